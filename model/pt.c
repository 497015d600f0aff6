// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PT: matrix products.  Tiles are widened to fp32 once and multiplied
 * from the worker's scratch; accumulators are kept there in fp32 between
 * blocks of K, which does not change a bit of the result.
 */
#include "core.h"

#define ROWS 264u		/* rows of A in a block */
#define STICKS 8u		/* sticks of columns in a block */
#define DEPTH 256u		/* elements of K in a block */
#define A_STRIDE (4 * DEPTH)	/* bytes */
#define LINE 256u		/* bytes of 64 columns of fp32 */

struct scratch {
	u8 a[ROWS * A_STRIDE];
	u8 b[DEPTH * LINE];
	u8 c[STICKS][ROWS * LINE];
};

static_assert(sizeof(struct scratch) <= SPYRE_SCRATCH_BYTES, "PT tiles fit the scratch");

struct block {
	u8 *out;		/* first row and stick of the block, view by view */
	const u8 *a;
	const u8 *b;
	u32 rows;
	u32 sticks;
};

static bool convert(struct spyre_core *core, struct spyre_convert_run *run)
{
	u32 rows = run->rows;
	u32 chunk = core->unit->budget / (64 * 8) / 2;
	u32 n;

	while (rows) {
		n = spyre_min(rows, chunk);
		run->rows = n;
		if (!spyre_section_enter(&core->section, n * 64 * 8))
			return false;
		core->unit->convert(run);
		run->dst += n * run->dst_stride;
		run->src += n * run->src_stride;
		rows -= n;
	}
	return true;
}

static bool load_a(struct spyre_core *core, const struct spyre_instr *in,
		   const struct block *block, u32 k, u32 depth)
{
	const struct spyre_view *a = spyre_instr_views(in) + 1;
	struct scratch *s = core->worker->scratch;
	u32 i;

	for (i = 0; i < depth / 64; i++) {
		struct spyre_convert_run run = {
			.dst = s->a + i * LINE,
			.src = block->a + (k / 64 + i) * a->stride[5],
			.dst_stride = A_STRIDE,
			.src_stride = a->stride[3],
			.rows = block->rows,
			.lanes = 64,
			.dst_format = SPYRE_FMT_IEEE_FP32,
			.src_format = a->format,
		};

		if (!convert(core, &run))
			return false;
	}
	return true;
}

static bool load_b(struct spyre_core *core, const struct spyre_instr *in,
		   const struct block *block, u32 stick, u32 k, u32 depth)
{
	const struct spyre_view *b = spyre_instr_views(in) + 2;
	struct scratch *s = core->worker->scratch;
	struct spyre_convert_run run = {
		.dst = s->b,
		.src = block->b + stick * b->stride[4] + k * b->stride[5],
		.dst_stride = LINE,
		.src_stride = b->stride[5],
		.rows = depth,
		.lanes = 64,
		.dst_format = SPYRE_FMT_IEEE_FP32,
		.src_format = b->format,
	};

	return convert(core, &run);
}

static bool store_c(struct spyre_core *core, const struct spyre_instr *in,
		    const struct block *block)
{
	const struct spyre_view *c = spyre_instr_views(in);
	struct scratch *s = core->worker->scratch;
	u32 i;

	for (i = 0; i < block->sticks; i++) {
		struct spyre_convert_run run = {
			.dst = block->out + i * c->stride[4],
			.src = s->c[i],
			.dst_stride = c->stride[3],
			.src_stride = LINE,
			.rows = block->rows,
			.lanes = 64,
			.dst_format = c->format,
			.src_format = SPYRE_FMT_IEEE_FP32,
		};

		if (!convert(core, &run))
			return false;
	}
	return true;
}

static bool exact_product(u32 fmt)
{
	return fmt == SPYRE_FMT_SEN169_FP16 || fmt == SPYRE_FMT_IEEE_FP16;
}

static bool multiply(struct spyre_core *core, const struct spyre_instr *in,
		     const struct block *block, u32 stick, u32 depth)
{
	const struct spyre_view *view = spyre_instr_views(in);
	struct scratch *s = core->worker->scratch;
	struct spyre_pt_run run = {
		.a_stride = A_STRIDE,
		.exact = exact_product(view[1].format) && exact_product(view[2].format),
	};
	u32 factor = run.exact ? 1 : core->unit->inexact_factor;
	u32 fit = core->unit->budget / (64 * factor);	/* rows x k of a section */
	u32 k, row, rows, best = core->unit->pt_rows;

	run.k = spyre_min(depth, fit / best ? fit / best : 1);
	rows = fit / run.k / best * best;
	rows = rows ? rows : best;
	for (k = 0; k < depth; k += run.k) {
		run.k = spyre_min(run.k, depth - k);
		for (row = 0; row < block->rows; row += run.rows) {
			run.rows = spyre_min(rows, block->rows - row);
			run.a = s->a + row * A_STRIDE + k * 4;
			run.b = s->b + k * LINE;
			run.c = s->c[stick] + row * LINE;
			if (!spyre_section_enter(&core->section,
						 (u64)run.rows * run.k * 64 * factor))
				return false;
			core->unit->pt(&run);
		}
	}
	return true;
}

static bool run_block(struct spyre_core *core, const struct spyre_instr *in,
		      const struct block *block)
{
	struct scratch *s = core->worker->scratch;
	u32 k, depth, i;

	for (i = 0; i < block->sticks; i++)
		memset(s->c[i], 0, block->rows * LINE);
	for (k = 0; k < in->count[5]; k += depth) {
		depth = spyre_min(DEPTH, in->count[5] - k);
		if (!load_a(core, in, block, k, depth))
			return false;
		for (i = 0; i < block->sticks; i++)
			if (!load_b(core, in, block, i, k, depth) ||
			    !multiply(core, in, block, i, depth))
				return false;
	}
	return store_c(core, in, block);
}

bool spyre_core_pt(struct spyre_core *core, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	struct spyre_walk walk;
	struct block block;
	u32 d, row, stick;

	spyre_walk_start(&walk, core, in);
	for (d = 0; d < 3; d++)
		spyre_walk_add(&walk, in, d);
	do {
		for (stick = 0; stick < in->count[4]; stick += STICKS) {
			for (row = 0; row < in->count[3]; row += ROWS) {
				block.rows = spyre_min(ROWS, in->count[3] - row);
				block.sticks = spyre_min(STICKS, in->count[4] - stick);
				block.out = walk.p[0] + row * view[0].stride[3] +
					    stick * view[0].stride[4];
				block.a = walk.p[1] + row * view[1].stride[3];
				block.b = walk.p[2] + stick * view[2].stride[4];
				if (!run_block(core, in, &block))
					return false;
			}
		}
	} while (spyre_walk_next(&walk));
	return true;
}
