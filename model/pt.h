/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A block of a product: the PT's data in the worker's scratch.
 */
#ifndef SPYRE_MODEL_PT_H
#define SPYRE_MODEL_PT_H

#include "core.h"

#define SPYRE_PT_ROWS 264u		/* rows of A in a block, even */
#define SPYRE_PT_PANELS 8u		/* panels of 64 columns in a block */
#define SPYRE_PT_DEPTH 256u		/* elements of K at a time, at most */
#define SPYRE_PT_UNPACK 32u		/* rows unpacked at a time, 4 Ki elements at most */
#define SPYRE_PT_LINE 256u		/* bytes of 64 columns of fp32 */
#define SPYRE_PT_PANEL (SPYRE_PT_ROWS * SPYRE_PT_LINE)

/* Integer sums are exact in fp32 over this many elements of K: 2^24 / (128 * 128). */
#define SPYRE_PT_EXACT_DEPTH 1024u

struct spyre_pt_scratch {
	u8 a[SPYRE_PT_ROWS * SPYRE_PT_DEPTH * 4];	/* fp32 */
	u8 b[SPYRE_PT_DEPTH * SPYRE_PT_LINE];		/* fp32 */
	u8 c[SPYRE_PT_PANELS][SPYRE_PT_PANEL];		/* fp32 */
	u8 sum[SPYRE_PT_PANELS][SPYRE_PT_PANEL];	/* 32-bit integers */
	u8 part[SPYRE_PT_PANEL];			/* 32-bit integers */
	u8 raw[SPYRE_PT_UNPACK * SPYRE_STICK_BYTES];	/* unpacked elements of one byte */
};

static_assert(sizeof(struct spyre_pt_scratch) <= SPYRE_SCRATCH_BYTES, "PT tiles fit the scratch");

struct spyre_pt_block {
	u8 *out;		/* first row and stick of the block, view by view */
	const u8 *a;
	const u8 *b;
	u32 rows;		/* of all iterations */
	u32 sticks;		/* of columns; a panel is one of 64 or two of 32 */
	u32 depth;		/* elements of K at a time, a multiple of those of a stick */
	bool few;		/* rows, for which B is widened in registers */
	/* Iterations of an outer dim that share B; their rows are consecutive. */
	u32 iters;
	u64 out_iter, a_iter;
};

/* Bytes between rows of A in the scratch. */
static inline u64 spyre_pt_a_stride(const struct spyre_pt_block *block)
{
	return 4 * block->depth;
}

/* Equidistant rows, which one conversion moves: the rows of an iteration, or one of each. */
struct spyre_pt_lines {
	u32 count, rows;	/* number of conversions, and of rows in each */
	u32 next, step;		/* rows of the scratch between conversions, between rows */
	bool across;
};

static inline void spyre_pt_lines(const struct spyre_pt_block *block, struct spyre_pt_lines *lines)
{
	u32 own = block->rows / block->iters;

	lines->across = block->iters > own;
	lines->count = lines->across ? own : block->iters;
	lines->rows = lines->across ? block->iters : own;
	lines->next = lines->across ? 1 : own;
	lines->step = lines->across ? own : 1;
}

/* Calls unit->convert in sections. */
bool spyre_pt_convert(struct spyre_core *core, struct spyre_convert_run *run);

/* Load elements k.. of K of all rows, or of the columns of a panel, into the scratch. */
bool spyre_pt_load_a(struct spyre_core *core, const struct spyre_instr *in,
		     const struct spyre_pt_block *block, u32 k, u32 depth);
bool spyre_pt_load_b(struct spyre_core *core, const struct spyre_instr *in,
		     const struct spyre_pt_block *block, u32 panel, u32 k, u32 depth);

static inline bool spyre_pt_integer(const struct spyre_instr *in)
{
	u32 format = spyre_instr_views(in)[1].format;

	return format == SPYRE_FMT_SENINT8 || format == SPYRE_FMT_SENINT4;
}

#endif /* SPYRE_MODEL_PT_H */
