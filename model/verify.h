/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by the parts of the verifier.
 */
#ifndef SPYRE_MODEL_VERIFY_H
#define SPYRE_MODEL_VERIFY_H

#include "cost.h"

/*
 * The work bound of a program in steps. A step is one point (up to 128 lanes of
 * every view), 64 x 64 multiply-adds of a PT, one row of a tile, a stream or a loop
 * iteration; a point of TOPK counts as many steps as it may take passes. 2^36 steps
 * are 2.8e14 multiply-adds or 8.8 TB of sticks.
 */
#define SPYRE_MAX_WORK (1ull << 36)

struct spyre_verify {
	struct spyre_program *prog;
	struct spyre_verify_error *err;
	const struct spyre_cost_observer *observer;	/* or NULL */
	u64 extent[SPYRE_MAX_OPERANDS];
	u8 flags[SPYRE_MAX_OPERANDS];
	u32 depth;			/* open loops */
	u32 iters[SPYRE_MAX_LOOPS];	/* their counts */
	u64 trips;			/* product of the counts */
	u64 work;			/* steps so far */
};

/* The cost of one instruction for its core and the memory, per iteration. */
struct spyre_instr_cost {
	u64 cycles;
	u64 bytes_read;
	u64 bytes_written;
	u64 lpddr_read;		/* the same bytes, weighted by LPDDR5's rate for them */
	u64 lpddr_written;
	u64 macs;
	u64 elements;
	u64 lx_bytes_read;	/* of LX, its own and those of other cores */
	u64 lx_bytes_written;
	u64 busy[SPYRE_ENGINES];	/* cycles; they overlap */
};

int spyre_verify_fail(struct spyre_verify *v, enum spyre_stop stop, u64 value, u64 limit);
int spyre_verify_instr(struct spyre_verify *v, const struct spyre_instr *in);
int spyre_verify_shape(struct spyre_verify *v, const struct spyre_instr *in);
int spyre_verify_view(struct spyre_verify *v, const struct spyre_instr *in, u32 index);
/* Adds steps that run once per iteration of the open loops. */
int spyre_verify_work(struct spyre_verify *v, u64 steps);

/* timing.c; the instruction has been verified, so the sums cannot overflow. */
void spyre_cost_instr(const struct spyre_instr *in, struct spyre_instr_cost *cost);
/* Cycles in which LPDDR5 moves this many bytes in each direction. */
u64 spyre_cost_lpddr_cycles(u64 read, u64 written);
u64 spyre_cost_barrier_cycles(u32 streams);
/* @rows: parts of a box, each of which takes an access of its own; 0 for other transfers. */
void spyre_cost_dma(u64 host_bytes, u64 device_bytes, u64 rows, bool to_device,
		    struct spyre_counters *cost);

/* TOPK: levels of the tree that an element may sink through, 1..17. */
static inline u32 spyre_topk_passes(const struct spyre_instr *in)
{
	u32 ranks = in->imm[0] + in->imm[1];
	u32 passes = 1;

	while (ranks >>= 1)
		passes++;
	return passes;
}

#endif /* SPYRE_MODEL_VERIFY_H */
