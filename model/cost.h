/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cost of a program in detail, for an observer of its verification.
 */
#ifndef SPYRE_MODEL_COST_H
#define SPYRE_MODEL_COST_H

#include "program.h"

/* The engines of a core. DMA moves rows: RESTICK, GATHER, SCATTER; the ring leads to LPDDR5. */
enum spyre_engine_kind {
	SPYRE_ENGINE_PT,
	SPYRE_ENGINE_SFU,
	SPYRE_ENGINE_DMA,
	SPYRE_ENGINE_LX,
	SPYRE_ENGINE_RING,
	SPYRE_ENGINES,
};

/* The cost of one core in one iteration of a phase. */
struct spyre_cost_core {
	u32 core;
	u32 num_instrs;
	u64 cycles;		/* of its instructions, one after the other */
	u64 busy[SPYRE_ENGINES];	/* engines overlap within an instruction */
	u64 bytes_read;		/* LPDDR5 */
	u64 bytes_written;
	u64 lx_bytes_read;
	u64 lx_bytes_written;
	u64 macs;
};

/*
 * The cost of one iteration of a phase: the larger of core_cycles and lpddr_cycles, and
 * barrier_cycles. The sum over the phases, times their trips, is the cost of the program.
 */
struct spyre_cost_phase {
	u32 step;
	u32 num_cores;
	u64 trips;		/* iterations of the loops around it */
	u64 core_cycles;	/* the slowest core */
	u64 lpddr_cycles;
	u64 barrier_cycles;
	u64 bytes_read;
	u64 bytes_written;
	u64 macs;
};

/* Learns of the cores of a phase in order, then of the phase. */
struct spyre_cost_observer {
	void *context;
	void (*core)(void *context, const struct spyre_cost_core *core);
	void (*phase)(void *context, const struct spyre_cost_phase *phase);
};

/* The same; @observer learns of the cost in detail, as far as the program verifies. */
int spyre_program_verify_observed(const void *image, u64 size, u32 cores,
				  struct spyre_program *prog, struct spyre_verify_error *err,
				  const struct spyre_cost_observer *observer);

#endif /* SPYRE_MODEL_COST_H */
