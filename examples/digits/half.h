/* SPDX-License-Identifier: MIT */
/* IEEE half precision, as weights are stored and tensors are exchanged. */
#ifndef DIGITS_HALF_H
#define DIGITS_HALF_H

#include <math.h>
#include <stdint.h>

static inline float half_to_float(uint16_t half)
{
	int exponent = half >> 10 & 0x1f;
	int fraction = half & 0x3ff;
	float value;

	if (exponent == 0x1f)
		value = fraction ? NAN : INFINITY;
	else if (!exponent)
		value = ldexpf(fraction, -24);
	else
		value = ldexpf(fraction | 0x400, exponent - 25);
	return half & 0x8000 ? -value : value;
}

/* Sixteenths, 0/16 … 16/16: all that pixels are. Exact. */
static inline uint16_t half_from_sixteenths(unsigned int n)
{
	unsigned int top = 0;

	if (!n)
		return 0;
	while (n >> (top + 1))
		top++;
	return (uint16_t)((11 + top) << 10 | ((n << (10 - top)) & 0x3ff));
}

#endif /* DIGITS_HALF_H */
