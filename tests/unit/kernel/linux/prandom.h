/* SPDX-License-Identifier: MIT */
/* Reproducible random numbers from a seed, different from the kernel's. */
#ifndef TESTS_UNIT_KERNEL_PRANDOM_H
#define TESTS_UNIT_KERNEL_PRANDOM_H

#include "../shim.h"

struct rnd_state {
	u64 state;
};

static inline void prandom_seed_state(struct rnd_state *rnd, u64 seed)
{
	rnd->state = seed;
}

static inline u32 prandom_u32_state(struct rnd_state *rnd)
{
	u64 x;

	rnd->state += 0x9e3779b97f4a7c15ull;
	x = rnd->state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (u32)(x >> 32);
}

#endif
