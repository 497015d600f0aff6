/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of the executor share: a core at work on one stream, and the
 * sections in which it may use the arithmetic unit.
 */
#ifndef SPYRE_MODEL_CORE_H
#define SPYRE_MODEL_CORE_H

#include "card.h"
#include "simd/unit.h"

/*
 * Arithmetic is bracketed by fpu_begin/fpu_end; a section ends when its
 * budget is used up, and only between sections is the host asked whether to
 * stop.  stop is shared by all threads of a job.
 */
struct spyre_section {
	struct spyre_host *host;
	void *job;
	u32 *stop;
	u64 used;
	bool open;
};

/* Accounts @cost (unit->budget) before arithmetic of the unit; false: stop. */
bool spyre_section_enter(struct spyre_section *s, u64 cost);
/* The same before work that needs no unit. */
bool spyre_section_count(struct spyre_section *s, u64 cost);
void spyre_section_leave(struct spyre_section *s);
bool spyre_stopped(const u32 *stop);

struct spyre_core {
	const struct spyre_exec *x;
	struct spyre_worker *worker;
	const struct spyre_unit *unit;
	u32 index;
	u8 *lx;			/* its own scratchpad, if the program uses any */
	const u32 *turn;	/* turn[level] of the open loops */
	struct spyre_section section;
};

/* Cost of so many nanoseconds of any CPU: a budget is about 20 us. */
static inline u64 spyre_cost_ns(const struct spyre_core *core, u64 ns)
{
	return core->unit->budget * ns / 20000;
}

/* Calls of the unit and steps of a walk are not free, however little they do. */
#define SPYRE_CALL_NS 80u

/*
 * How many phases from step @first on, outside of loops, need no barriers
 * between them; 1 if only that one.  @scratch: of a worker that is idle.
 */
u32 spyre_phase_group(const struct spyre_exec *x, u32 first, void *scratch);

/* Lanes that a point costs: part of a tile of 64 is no faster, but for the sticks of fp32. */
static inline u32 spyre_tile_lanes(u32 lanes)
{
	return lanes % 32 ? (lanes + 63) & ~63u : lanes;
}

/* Address of a view's first point in this turn of the loops. */
u8 *spyre_core_base(const struct spyre_core *core, const struct spyre_view *view);

/*
 * A walk over points, outermost dim first.  Dims of one point vanish and dims
 * that continue each other in every view (and in MASKBYINDEX's coordinate) are
 * made one.
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
/* Takes the innermost dim out of the walk; count 1 if there is none. */
u32 spyre_walk_take_inner(struct spyre_walk *w, u64 stride[SPYRE_MAX_VIEWS]);
/* How far the coordinate went along the dim that was taken out. */
static inline u64 spyre_walk_inner_coord(const struct spyre_walk *w)
{
	return w->num_dims < SPYRE_MAX_DIMS ? w->coord_stride[w->num_dims] : 0;
}
/* Steps to the next point; false after the last (and back at the first). */
bool spyre_walk_next(struct spyre_walk *w);

/* Executors of the opcodes; false: stopped. */
bool spyre_core_move(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_sfu(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_reduce(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_pt(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_restick(struct spyre_core *core, const struct spyre_instr *in);
bool spyre_core_topk(struct spyre_core *core, const struct spyre_instr *in);
/* One stream from its first to its last instruction. */
bool spyre_core_run(struct spyre_core *core, const struct spyre_prog_stream *stream);

static inline u64 spyre_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

#endif /* SPYRE_MODEL_CORE_H */
