// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The SFU: pointwise functions and reductions. This file divides instructions into
 * runs; the unit does the arithmetic.
 */
#include "table.h"

#define COST_PER_ELEMENT 16u
#define STREAM_BYTES (16u << 20)	/* larger results bypass the caches */
#define LOOK_UP_ELEMENTS 4096u		/* that remain in the first cache */
#define LOOK_UP_MIN 256u		/* fewer are computed faster than the table is read */

/* Returns true if the units need several steps to convert an element of a view. */
static bool slow_format(u32 func, u32 format)
{
	if (spyre_func_integer(func))
		return format != SPYRE_FMT_IEEE_INT32;
	return format == SPYRE_FMT_SENINT4 || format == SPYRE_FMT_SEN143_FP8 ||
	       format == SPYRE_FMT_SEN152_FP8 || format == SPYRE_FMT_IEEE_FP16;
}

/*
 * Cost of an element of a pointwise function, in the unit's budget. Coordinates cost as much as
 * functions of two beats; each slow conversion costs as much as a short function.
 */
static u64 element_cost(const struct spyre_core *core, const struct spyre_sfu_run *run, u32 views)
{
	u64 cost = COST_PER_ELEMENT;
	u32 i;

	if (spyre_func_beats(run->func) > 1)
		cost *= core->unit->long_factor * (spyre_func_beats(run->func) / 2);
	else if (run->func == SPYRE_FUNC_MASKBYINDEX)
		cost *= core->unit->long_factor;
	for (i = 0; i < views; i++)
		if (slow_format(run->func, run->v[i].format))
			cost += COST_PER_ELEMENT;
	return cost;
}

/* Returns true if the inner dim merely continues the lanes of every view. */
static bool lanes_continue(const struct spyre_sfu_run *run, u32 views, u32 lanes)
{
	u32 i;

	for (i = 0; i < views; i++) {
		u64 next = run->v[i].splat ? 0 : spyre_fmt_span(run->v[i].format, lanes);

		if (run->v[i].stride != next)
			return false;
	}
	return run->func != SPYRE_FUNC_MASKBYINDEX || run->coord_step == lanes;
}

/* Returns true if the output has whole, aligned lines and is too large for the caches. */
static bool streams(const struct spyre_core *core, const struct spyre_instr *in,
		    const struct spyre_walk *walk, const struct spyre_span *out)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 d;

	if (view->operand >= SPYRE_MAX_OPERANDS || view->format != SPYRE_FMT_SEN169_FP16 ||
	    core->x->prog->operands[view->operand].extent < STREAM_BYTES ||
	    (unsigned long)walk->p[0] % 64 || in->lanes % 32 || out->stride % 64)
		return false;
	for (d = 0; d < walk->num_dims; d++)
		if (walk->stride[d][0] % 64)
			return false;
	return true;
}

/*
 * Bytes from one run to the next, @n points (flat: elements) further on. Rows may
 * be longer than 4 GiB; runs start at even elements.
 */
static u64 span_step(const struct spyre_span *span, u64 n, bool flat)
{
	if (!flat)
		return n * span->stride;
	return span->splat ? 0 : n * spyre_fmt_bits(span->format) / 8;
}

/* Points that @run has @done units further on, of @n units each. */
static void sfu_set(const struct spyre_walk *walk, struct spyre_sfu_run *run, u32 lanes, u64 done,
		    u64 n, bool flat)
{
	u32 i;

	for (i = 0; i < walk->num_views; i++)
		run->v[i].p = walk->p[i] + span_step(&run->v[i], done, flat);
	run->lanes = flat ? n : lanes;
	run->points = flat ? 1 : n;
	run->coord = walk->coord + done * (flat ? 1 : run->coord_step);
}

/* The same as sfu_row() by table: no arithmetic, and at most a nanosecond per element. */
static bool look_up_row(struct spyre_core *core, const struct spyre_table *table,
			const struct spyre_walk *walk, struct spyre_sfu_run *run, u32 lanes,
			u64 total, bool flat)
{
	u64 unit = flat ? 1 : lanes;
	u64 chunk = LOOK_UP_ELEMENTS / unit ? LOOK_UP_ELEMENTS / unit : 1;
	u64 done, n;

	for (done = 0; done < total; done += n) {
		n = spyre_min(chunk, total - done);
		sfu_set(walk, run, lanes, done, n, flat);
		if (!spyre_section_count(&core->section,
					 spyre_cost_ns(core, n * unit + SPYRE_CALL_NS)))
			return false;
		spyre_table_look_up(table, run);
	}
	return true;
}

/* Runs one row of @count points from the walk's position, in budgeted runs. */
static bool sfu_row(struct spyre_core *core, const struct spyre_walk *walk,
		    struct spyre_sfu_run *run, u32 lanes, u32 count, bool flat)
{
	u64 total = flat ? (u64)lanes * count : count;
	u64 unit = flat ? 1 : spyre_tile_lanes(lanes);
	u64 cost = element_cost(core, run, walk->num_views);
	u64 chunk = core->unit->budget / cost / 2 / unit;
	struct spyre_table *table = NULL;
	u64 done, n;

	if (total * unit >= LOOK_UP_MIN)
		table = spyre_table_of(core->x->host, run);
	if (table && !spyre_table_fill(core, table, run, total * unit, cost))
		return false;
	if (table && spyre_table_ready(table))
		return look_up_row(core, table, walk, run, lanes, total, flat);
	chunk = chunk < 128 / unit ? 128 / unit : chunk;
	/* A chunk has fewer than 2^31 elements and starts at an even one. */
	chunk = flat ? chunk & ~63ull : chunk;
	for (done = 0; done < total; done += n) {
		n = spyre_min(chunk, total - done);
		sfu_set(walk, run, lanes, done, n, flat);
		if (!spyre_section_enter(&core->section, n * unit * cost +
					 spyre_cost_ns(core, SPYRE_CALL_NS)))
			return false;
		core->unit->sfu(run);
	}
	return true;
}

bool spyre_core_sfu(struct spyre_core *core, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	struct spyre_sfu_run run = { .func = in->func, .imm = { in->imm[0], in->imm[1] },
				     .width = in->imm[3] };
	struct spyre_walk walk;
	u64 stride[SPYRE_MAX_VIEWS];
	u32 i, count;
	bool flat;

	spyre_walk_start(&walk, core, in);
	for (i = 0; i < in->num_dims; i++)
		spyre_walk_add(&walk, in, i);
	count = spyre_walk_take_inner(&walk, stride);
	run.coord_step = spyre_walk_inner_coord(&walk);
	for (i = 0; i < in->num_views; i++) {
		run.v[i].stride = stride[i];
		run.v[i].format = view[i].format;
		run.v[i].splat = view[i].lanes == SPYRE_LANES_SPLAT;
	}
	flat = count > 1 && lanes_continue(&run, in->num_views, in->lanes);
	run.stream = streams(core, in, &walk, &run.v[0]);
	do {
		if (!sfu_row(core, &walk, &run, in->lanes, count, flat))
			return false;
	} while (spyre_walk_next(&walk));
	return true;
}

#define REDUCE_ROWS 8u		/* outputs at once, adjacent in their walk */

static_assert(REDUCE_ROWS * SPYRE_ACC_BYTES <= SPYRE_SCRATCH_BYTES, "accumulators fit");

/* Adds @count points of each row to its accumulators, at most @left elements. */
static bool reduce_points(struct spyre_core *core, struct spyre_reduce_run *run,
			  const struct spyre_walk *at, u32 lanes, u64 count, u64 *left)
{
	u64 cost = spyre_tile_lanes(lanes) * COST_PER_ELEMENT;
	u64 chunk = core->unit->budget / cost / 2 / run->rows;
	u64 done, n;

	chunk = chunk ? chunk : 1;
	for (done = 0; done < count && *left; done += n) {
		n = spyre_min(chunk, count - done);
		run->lanes = lanes;
		if (*left < lanes) {
			n = 1;
			run->lanes = *left;
		} else {
			n = spyre_min(n, *left / lanes);
		}
		run->points = n;
		run->in.p = at->p[1] + done * run->in.stride;
		run->in2.p = at->p[2] + done * run->in2.stride;
		*left -= n * run->lanes;
		if (!spyre_section_enter(&core->section,
					 run->rows * (n * cost +
						      spyre_cost_ns(core, SPYRE_CALL_NS))))
			return false;
		core->unit->reduce(run);
	}
	return true;
}

/* Reduces all inputs of run->rows points of the output. */
static bool reduce_rows(struct spyre_core *core, const struct spyre_instr *in,
			struct spyre_walk *inner, struct spyre_reduce_run *run, u32 count)
{
	u64 left = in->valid ? in->valid : ~0ull;
	u32 row;

	/* This includes the cost of the final reduction across the lanes. */
	if (!spyre_section_enter(&core->section,
				 run->rows * (2 * SPYRE_ACC_LANES * COST_PER_ELEMENT +
					      2 * spyre_cost_ns(core, SPYRE_CALL_NS))))
		return false;
	for (row = 0; row < run->rows; row++)
		core->unit->reduce_begin(in->func, (u8 *)run->acc + row * SPYRE_ACC_BYTES);
	do {
		if (!reduce_points(core, run, inner, in->lanes, count, &left))
			return false;
	} while (left && spyre_walk_next(inner));
	memset(inner->at, 0, sizeof(inner->at));
	return true;
}

struct reduce_outputs {
	u32 count;		/* from the outer walk's position on */
	u64 stride[SPYRE_MAX_VIEWS];
};

static bool reduce_outputs(struct spyre_core *core, const struct spyre_instr *in,
			   const struct reduce_outputs *outputs, const struct spyre_walk *outer,
			   struct spyre_walk *inner, struct spyre_reduce_run *run, u32 points)
{
	struct spyre_reduce_end end = {
		.func = in->func,
		.lanes = in->lanes,
		.imm = in->imm[0],
		.across = in->flags & SPYRE_INSTR_REDUCE_LANES,
		.format = spyre_instr_views(in)->format,
	};
	u32 done, row, i;

	for (done = 0; done < outputs->count; done += run->rows) {
		run->rows = spyre_min(REDUCE_ROWS, outputs->count - done);
		for (i = 0; i < in->num_views; i++)
			inner->p[i] = outer->p[i] + done * outputs->stride[i];
		if (!reduce_rows(core, in, inner, run, points))
			return false;
		for (row = 0; row < run->rows; row++) {
			end.out = outer->p[0] + (done + row) * outputs->stride[0];
			end.acc = (u8 *)run->acc + row * SPYRE_ACC_BYTES;
			core->unit->reduce_end(&end);
		}
	}
	return true;
}

bool spyre_core_reduce(struct spyre_core *core, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	bool pair = in->func == SPYRE_FUNC_MULSUM;
	struct spyre_reduce_run run = {
		.func = in->func,
		.in.format = view[1].format,
		.in.splat = view[1].lanes == SPYRE_LANES_SPLAT,
		.in2.format = pair ? view[2].format : 0,
		.in2.splat = pair && view[2].lanes == SPYRE_LANES_SPLAT,
		.acc = core->worker->scratch,
	};
	struct reduce_outputs outputs;
	struct spyre_walk outer, inner;
	u64 stride[SPYRE_MAX_VIEWS];
	u32 d, points;

	spyre_walk_start(&outer, core, in);
	inner = outer;
	for (d = 0; d < in->num_dims; d++)
		spyre_walk_add(in->reduce_mask & (1u << d) ? &inner : &outer, in, d);
	points = spyre_walk_take_inner(&inner, stride);
	run.in.stride = stride[1];
	run.in2.stride = stride[2];
	outputs.count = spyre_walk_take_inner(&outer, outputs.stride);
	run.row_stride = outputs.stride[1];
	run.row_stride2 = outputs.stride[2];
	do {
		if (!reduce_outputs(core, in, &outputs, &outer, &inner, &run, points))
			return false;
	} while (spyre_walk_next(&outer));
	return true;
}
