/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by the parts of the executor: a core that runs one stream, and the
 * sections in which it may use the arithmetic unit.
 */
#ifndef SPYRE_MODEL_CORE_H
#define SPYRE_MODEL_CORE_H

#include "card.h"
#include "simd/unit.h"

/*
 * Arithmetic is bracketed by fpu_begin/fpu_end. A section ends when its budget is
 * used up, and only between sections is the host asked whether to stop. All threads
 * of a job share @stop, an enum spyre_stop.
 */
struct spyre_section {
	struct spyre_host *host;
	void *job;
	u32 *stop;
	u64 used;
	bool open;
};

/* Accounts @cost (unit->budget) before arithmetic of the unit. Returns false to stop. */
bool spyre_section_enter(struct spyre_section *s, u64 cost);
/* Like spyre_section_enter(), before work that does not use the unit. */
bool spyre_section_count(struct spyre_section *s, u64 cost);
void spyre_section_leave(struct spyre_section *s);
bool spyre_stopped(const u32 *stop);
/* Stops a job's threads because the host asked for it, unless they stop for an error. */
void spyre_stop_cancel(u32 *stop);

struct spyre_core {
	const struct spyre_exec *x;
	struct spyre_worker *worker;
	const struct spyre_unit *unit;
	u32 index;
	u8 *lx;			/* its own scratchpad, if the program uses any */
	const u32 *iter;	/* iter[level] of the open loops */
	struct spyre_section section;
};

/* Converts nanoseconds of any CPU to cost: a budget is about 20 us. */
static inline u64 spyre_cost_ns(const struct spyre_core *core, u64 ns)
{
	return core->unit->budget * ns / 20000;
}

/* Fixed cost of a call of the unit or a step of a walk. */
#define SPYRE_CALL_NS 80u

/*
 * Returns how many phases from step @first on, outside of loops, need no barriers
 * between them; 1 if none but @first. @scratch belongs to an idle worker.
 */
u32 spyre_phase_group(const struct spyre_exec *x, u32 first, void *scratch);

/* Address of a view's first point in the current iteration of the loops. */
u8 *spyre_core_base(const struct spyre_core *core, const struct spyre_view *view);

/*
 * A walk over points, outermost dim first. Dims of one point are dropped, and dims
 * that continue each other in every view (and in MASKBYINDEX's coordinate) are
 * merged.
 */
struct spyre_walk {
	u32 num_views;
	u32 num_dims;
	u32 count[SPYRE_MAX_DIMS];
	u32 at[SPYRE_MAX_DIMS];
	u64 stride[SPYRE_MAX_DIMS][SPYRE_MAX_VIEWS];
	u64 coord_stride[SPYRE_MAX_DIMS];
	u8 *p[SPYRE_MAX_VIEWS];
	u64 coord;
};

void spyre_walk_start(struct spyre_walk *w, const struct spyre_core *core,
		      const struct spyre_instr *in);
void spyre_walk_add(struct spyre_walk *w, const struct spyre_instr *in, u32 d);
/* Removes the innermost dim from the walk; its count is 1 if there is none. */
u32 spyre_walk_take_inner(struct spyre_walk *w, u64 stride[SPYRE_MAX_VIEWS]);
/* Distance of the coordinate along the removed dim. */
static inline u64 spyre_walk_inner_coord(const struct spyre_walk *w)
{
	return w->num_dims < SPYRE_MAX_DIMS ? w->coord_stride[w->num_dims] : 0;
}
/* Steps to the next point; returns false after the last, with the walk back at the first. */
bool spyre_walk_next(struct spyre_walk *w);

/* Executors of the opcodes. They return false if stopped. */
bool spyre_core_move(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_indirect(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_sfu(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_reduce(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_pt(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_restick(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_topk(struct spyre_core *core, const struct spyre_instr *in);
/* Runs one stream from its first to its last instruction. */
bool spyre_core_run(struct spyre_core *core, const struct spyre_prog_stream *stream);

static inline u64 spyre_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Lanes that a point costs: a partial tile of 64 is no faster, except for sticks of fp32. */
static inline u32 spyre_tile_lanes(u32 lanes)
{
	return lanes % 32 ? (lanes + 63) & ~63u : lanes;
}

#endif /* SPYRE_MODEL_CORE_H */
