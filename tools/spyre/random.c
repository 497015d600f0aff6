// SPDX-License-Identifier: MIT
/*
 * Reproducible random numbers from splitmix64. Stream i of a seed starts at the
 * state mix(seed + GAMMA) + i * mix(i + GAMMA), so that the streams of a seed are
 * independent. spyre-launch(1) documents this.
 */
#include <math.h>

#include "random.h"

#define GAMMA 0x9e3779b97f4a7c15ull

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void random_init(struct random_stream *stream, uint64_t seed, uint64_t index)
{
	stream->state = mix(seed + GAMMA) + index * mix(index + GAMMA);
	stream->has_spare = 0;
}

static uint64_t next(struct random_stream *stream)
{
	stream->state += GAMMA;
	return mix(stream->state);
}

double random_uniform(struct random_stream *stream)
{
	return (double)(next(stream) >> 11) * 0x1p-53;
}

double random_normal(struct random_stream *stream)
{
	double radius, angle;

	if (stream->has_spare) {
		stream->has_spare = 0;
		return stream->spare;
	}
	/* 1 - u lies in (0, 1], so its logarithm is finite. */
	radius = sqrt(-2 * log(1 - random_uniform(stream)));
	angle = 2 * M_PI * random_uniform(stream);
	stream->spare = radius * sin(angle);
	stream->has_spare = 1;
	return radius * cos(angle);
}
