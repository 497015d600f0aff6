/* SPDX-License-Identifier: MIT */
/* fp16 on the host, for filling and checking; not for speed. */
#ifndef SPYRE_BENCH_HALF_H
#define SPYRE_BENCH_HALF_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Of numbers that fp16 has and that are 0 or normal there. */
static inline uint16_t bench_half(float x)
{
	int exponent;
	float fraction;

	if (x == 0)
		return 0;
	fraction = frexpf(fabsf(x), &exponent);
	return (x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | ((int)(fraction * 2048) & 0x3ff);
}

static inline float bench_float(uint16_t h)
{
	const int exponent = h >> 10 & 31, fraction = h & 1023;
	const float magnitude = exponent ? ldexpf(1024 + fraction, exponent - 25) :
					   ldexpf(fraction, -24);

	return h & 0x8000 ? -magnitude : magnitude;
}

/* Multiples of 1/4 from -1 to 1: exact in fp16 and in DL16. */
static inline float bench_quarter(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return ((int)(*seed >> 16) % 9 - 4) / 4.0f;
}

#endif /* SPYRE_BENCH_HALF_H */
