/* SPDX-License-Identifier: MIT */
/* Two threads that wake each other through a futex: the least that a hand-over can cost. */
#ifndef SPYRE_BENCH_PINGPONG_H
#define SPYRE_BENCH_PINGPONG_H

#include <stdatomic.h>
#include <stdint.h>

struct bench_pingpong {
	/* The thread that runs next: 0 the caller, 1 the other one. */
	_Atomic uint32_t next;
	int rounds;
};

/* Seconds from the caller to the other thread and back, of @rounds; negative if it failed. */
double bench_pingpong(struct bench_pingpong *pingpong, int rounds);

#endif /* SPYRE_BENCH_PINGPONG_H */
