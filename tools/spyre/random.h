/* SPDX-License-Identifier: MIT */
/* Reproducible random numbers: splitmix64 and the Box-Muller transform. */
#ifndef SPYRE_TOOL_RANDOM_H
#define SPYRE_TOOL_RANDOM_H

#include <stdint.h>

struct random_stream {
	uint64_t state;
	/* The second number of a Box-Muller pair. */
	double spare;
	int has_spare;
};

/* Stream number @index of @seed. */
void random_init(struct random_stream *stream, uint64_t seed, uint64_t index);
/* In [0, 1), 53 bits. */
double random_uniform(struct random_stream *stream);
/* Mean 0, variance 1. */
double random_normal(struct random_stream *stream);

#endif /* SPYRE_TOOL_RANDOM_H */
