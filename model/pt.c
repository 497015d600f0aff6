// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PT: matrix products. Tiles are widened to fp32 once and multiplied from the
 * worker's scratch. Accumulators stay there in fp32 between blocks of K, which does
 * not change any bit of the result. Integer products are exact in fp32 up to a
 * certain depth of K, after which they are added to 32-bit sums.
 */
#include "pt.h"

/*
 * Blocks of up to SHORT_ROWS rows use each widened element of B so rarely that widening takes a
 * large part of their time. They take SHORT_DEPTH elements of K at a time, so that the widened B
 * stays in an L1 cache. Larger blocks take more, because they would move their sums too often.
 */
#define SHORT_ROWS 128u
#define SHORT_DEPTH 64u

/* The unit's passes, of unit->pt_rows rows each, between two prefetches of lines of the next B. */
#define PREFETCH_PASSES 2u

/* Lines of B that are needed next; they come from memory while others are multiplied. */
struct ahead {
	const u8 *p;
	u64 stride;
	u32 lines;
};

static bool exact_product(u32 fmt)
{
	return fmt != SPYRE_FMT_IEEE_FP32 && fmt != SPYRE_FMT_BFLOAT16;
}

static void prefetch(struct ahead *ahead, u32 lines)
{
	const u32 end = ahead->lines - spyre_min(lines, ahead->lines);

	for (; ahead->lines > end; ahead->lines--, ahead->p += ahead->stride) {
		__builtin_prefetch(ahead->p, 0, 2);
		__builtin_prefetch(ahead->p + SPYRE_STICK_BYTES / 2, 0, 2);
	}
}

/* Sets @ahead to the lines of a panel, or to none: panels of two sticks are not worth it. */
static void look_ahead(struct ahead *ahead, const struct spyre_instr *in,
		       const struct spyre_pt_block *block, u32 panel, u32 k)
{
	const struct spyre_view *b = spyre_instr_views(in) + 2;
	const u32 p = spyre_pt_interleave(b->format);

	ahead->lines = 0;
	if (in->lanes != 64 || k >= in->count[5])
		return;
	ahead->p = block->b + panel * b->stride[4] + k / p * b->stride[5];
	ahead->stride = b->stride[5];
	ahead->lines = spyre_min(block->depth, in->count[5] - k) / p;
}

static bool multiply(struct spyre_core *core, const struct spyre_instr *in,
		     const struct spyre_pt_block *block, u32 panel, u32 depth,
		     struct ahead *ahead)
{
	const struct spyre_view *view = spyre_instr_views(in);
	struct spyre_pt_scratch *s = core->worker->scratch;
	struct spyre_pt_run run = {
		.a_stride = spyre_pt_a_stride(block),
		.exact = exact_product(view[1].format) && exact_product(view[2].format),
	};
	u32 factor = run.exact ? 1 : core->unit->inexact_factor;
	u32 fit = core->unit->budget / (64 * factor);	/* rows x k of a section */
	u32 k, row, rows, best = core->unit->pt_rows, lines = ahead->lines;

	run.k = spyre_min(depth, fit / best ? fit / best : 1);
	rows = spyre_min(fit / run.k / best, PREFETCH_PASSES) * best;
	rows = rows ? rows : best;
	for (k = 0; k < depth; k += run.k) {
		run.k = spyre_min(run.k, depth - k);
		for (row = 0; row < block->rows; row += run.rows) {
			run.rows = spyre_min(rows, block->rows - row);
			run.a = s->a + row * spyre_pt_a_stride(block) + k * 4;
			run.b = s->b + k * SPYRE_PT_LINE;
			run.c = s->c[panel] + row * SPYRE_PT_LINE;
			if (!spyre_section_enter(&core->section,
						 (u64)run.rows * run.k * 64 * factor))
				return false;
			prefetch(ahead, lines * run.rows / block->rows + 1);
			core->unit->pt(&run);
		}
	}
	return true;
}

/* Few rows do not need the lines of B in the scratch. */
static bool is_few(const struct spyre_core *core, const struct spyre_instr *in,
		   const struct spyre_pt_block *block)
{
	const struct spyre_view *view = spyre_instr_views(in);

	if (block->rows > core->unit->few_rows || in->lanes != 64)
		return false;
	if (view[2].format == SPYRE_FMT_BFLOAT16)
		return core->unit->inexact_factor == 1;
	return exact_product(view[1].format) && view[2].format == SPYRE_FMT_SEN169_FP16;
}

/* Returns how many elements of K to load at a time: whole sticks. */
static u32 depth_of(const struct spyre_instr *in, const struct spyre_pt_block *block)
{
	const u32 stick = spyre_pt_depth(spyre_instr_views(in)[1].format);

	if (block->few || block->rows > SHORT_ROWS)
		return SPYRE_PT_DEPTH;
	return stick > SHORT_DEPTH ? stick : SHORT_DEPTH;
}

static bool multiply_few(struct spyre_core *core, const struct spyre_instr *in,
			 const struct spyre_pt_block *block, u32 panel, u32 k, u32 depth)
{
	const struct spyre_view *b = spyre_instr_views(in) + 2;
	struct spyre_pt_scratch *s = core->worker->scratch;
	struct spyre_pt_few_run run = {
		.c = s->c[panel],
		.a = s->a,
		.b = block->b + panel * b->stride[4] + k * b->stride[5],
		.b_stride = b->stride[5],
		.rows = block->rows,
		.k = depth,
		.a_stride = spyre_pt_a_stride(block),
		.format = b->format,
	};

	/* Widening costs as much as eight multiplications, and rows of two blocks widen twice. */
	if (!spyre_section_enter(&core->section, (u64)depth * 64 * (8 + 2 * block->rows)))
		return false;
	core->unit->pt_few(&run);
	return true;
}

/* Moves the sums of all rows of a stick to @out, or (@load) from there. */
static bool move_stick(struct spyre_core *core, const struct spyre_instr *in,
		       const struct spyre_pt_block *block, u8 *out, u8 *sums, bool load)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 format = spyre_pt_integer(in) ? SPYRE_FMT_SCRATCH_INT32 : SPYRE_FMT_SCRATCH_FP32;
	struct spyre_pt_lines lines;
	u64 next, step;
	u32 i;

	spyre_pt_lines(block, &lines);
	next = lines.across ? view->stride[3] : block->out_iter;
	step = lines.across ? block->out_iter : view->stride[3];
	for (i = 0; i < lines.count; i++) {
		u8 *row = sums + i * lines.next * SPYRE_PT_LINE;
		struct spyre_convert_run run = {
			.dst = load ? row : out + i * next,
			.src = load ? out + i * next : row,
			.dst_stride = load ? lines.step * SPYRE_PT_LINE : step,
			.src_stride = load ? step : lines.step * SPYRE_PT_LINE,
			.rows = lines.rows,
			.lanes = in->lanes,
			.dst_format = load ? format : view->format,
			.src_format = load ? view->format : format,
			/* Integers must not pass through fp32. */
			.cast = view->format == SPYRE_FMT_IEEE_INT32,
		};

		if (!spyre_pt_convert(core, &run))
			return false;
	}
	return true;
}

/* Moves the sums of a panel to view0, or (@load) from there. */
static bool move_sums(struct spyre_core *core, const struct spyre_instr *in,
		      const struct spyre_pt_block *block, u32 panel, bool load)
{
	const struct spyre_view *view = spyre_instr_views(in);
	struct spyre_pt_scratch *s = core->worker->scratch;
	u8 *sums = spyre_pt_integer(in) ? s->sum[panel] : s->c[panel];
	u32 stick = panel * 64 / in->lanes;
	u32 column;

	for (column = 0; column < 64 && stick < block->sticks; column += in->lanes, stick++)
		if (!move_stick(core, in, block, block->out + stick * view->stride[4],
				sums + column * 4, load))
			return false;
	return true;
}

static bool begin(struct spyre_core *core, const struct spyre_instr *in,
		  const struct spyre_pt_block *block, u32 panels)
{
	struct spyre_pt_scratch *s = core->worker->scratch;
	u32 bytes = block->rows * SPYRE_PT_LINE;
	u32 i;

	for (i = 0; i < panels; i++) {
		if (!spyre_section_count(&core->section, spyre_cost_ns(core, bytes / 4)))
			return false;
		memset(s->c[i], 0, bytes);
		if (spyre_pt_integer(in))
			memset(s->sum[i], 0, bytes);
		if (in->flags & SPYRE_INSTR_ACCUMULATE && !move_sums(core, in, block, i, true))
			return false;
	}
	return true;
}

/* Adds a panel's exact partial sums in fp32 to the 32-bit sums. */
static bool gather(struct spyre_core *core, const struct spyre_pt_block *block, u32 panel)
{
	struct spyre_pt_scratch *s = core->worker->scratch;
	u32 bytes = block->rows * SPYRE_PT_LINE;
	struct spyre_convert_run run = {
		.dst = s->part,
		.src = s->c[panel],
		.dst_stride = SPYRE_PT_LINE,
		.src_stride = SPYRE_PT_LINE,
		.rows = block->rows,
		.lanes = 64,
		.dst_format = SPYRE_FMT_SCRATCH_INT32,
		.src_format = SPYRE_FMT_SCRATCH_FP32,
	};
	const u32 *part = (const u32 *)s->part;
	u32 *sum = (u32 *)s->sum[panel];
	u32 i;

	if (!spyre_pt_convert(core, &run) ||
	    !spyre_section_count(&core->section, spyre_cost_ns(core, bytes / 4)))
		return false;
	for (i = 0; i < bytes / 4; i++)
		sum[i] += part[i];
	memset(s->c[panel], 0, bytes);
	return true;
}

/* Multiplies @depth elements of K of all panels. */
static bool run_depth(struct spyre_core *core, const struct spyre_instr *in,
		      const struct spyre_pt_block *block, u32 panels, u32 k, u32 depth)
{
	const u32 end = k + depth;
	const bool full = !(end % SPYRE_PT_EXACT_DEPTH) || end == in->count[5];
	struct ahead ahead;
	u32 i;

	if (!spyre_pt_load_a(core, in, block, k, depth))
		return false;
	for (i = 0; i < panels; i++) {
		if (block->few) {
			if (!multiply_few(core, in, block, i, k, depth))
				return false;
			continue;
		}
		look_ahead(&ahead, in, block, (i + 1) % panels, i + 1 < panels ? k : end);
		if (!spyre_pt_load_b(core, in, block, i, k, depth) ||
		    !multiply(core, in, block, i, depth, &ahead) ||
		    (spyre_pt_integer(in) && full && !gather(core, block, i)))
			return false;
	}
	return true;
}

static bool run_block(struct spyre_core *core, const struct spyre_instr *in,
		      const struct spyre_pt_block *block)
{
	u32 panels = (block->sticks * in->lanes + 63) / 64;
	u32 k, depth, i, end = in->count[5];
	struct ahead first;

	if (!block->few) {
		look_ahead(&first, in, block, 0, 0);
		prefetch(&first, first.lines);
	}
	if (!begin(core, in, block, panels))
		return false;
	for (k = 0; k < end; k += depth) {
		depth = spyre_min(block->depth, end - k);
		if (!run_depth(core, in, block, panels, k, depth))
			return false;
	}
	for (i = 0; i < panels; i++)
		if (!move_sums(core, in, block, i, false))
			return false;
	return true;
}

/* Returns true if the output has distinct addresses along dims 3, 4 and @d. */
static bool disjoint(const struct spyre_instr *in, u32 d)
{
	const struct spyre_view *out = spyre_instr_views(in);
	u32 dims[3] = { 3, 4, d };
	u64 reach = (u64)in->lanes * spyre_fmt_bits(out->format) / 8;
	u32 i, k, n;

	for (n = 0; n < 3; n++) {
		/* Selects the smallest stride of the remaining dims. */
		for (i = n, k = n; k < 3; k++)
			if (out->stride[dims[k]] < out->stride[dims[i]])
				i = k;
		k = dims[i];
		dims[i] = dims[n];
		if (in->count[k] == 1)
			continue;
		if (out->stride[k] < reach)
			return false;
		reach += (in->count[k] - 1) * out->stride[k];
	}
	return true;
}

/*
 * Returns a batch dim along which B does not change, and how many of its iterations
 * form one block, for which B is widened once. Every row has its own sums, so the
 * result is the same.
 */
static u32 shared_dim(const struct spyre_instr *in, u32 *iters)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 d;

	*iters = 1;
	for (d = 0; d < 3; d++) {
		if (in->count[d] == 1 || view[2].stride[d] || spyre_pt_integer(in) ||
		    in->count[3] > SPYRE_PT_ROWS / 2 || !disjoint(in, d))
			continue;
		*iters = spyre_min(in->count[d], SPYRE_PT_ROWS / in->count[3]);
		return d;
	}
	return 3;
}

/* Runs all rows and columns of @iters iterations of a dim. */
static bool run_iters(struct spyre_core *core, const struct spyre_instr *in,
		      const struct spyre_walk *walk, u32 iter, u32 iters, u32 dim)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 a_rows = view[1].format == SPYRE_FMT_SENINT4 ? 2 : 1;	/* of a stick of A */
	u32 sticks = SPYRE_PT_PANELS * 64 / in->lanes;
	struct spyre_pt_block block = { .iters = iters };
	u32 row, stick, rows;

	if (dim < 3) {
		block.out_iter = view[0].stride[dim];
		block.a_iter = view[1].stride[dim];
	}
	for (stick = 0; stick < in->count[4]; stick += sticks) {
		for (row = 0; row < in->count[3]; row += SPYRE_PT_ROWS) {
			rows = spyre_min(SPYRE_PT_ROWS, in->count[3] - row);
			block.rows = rows * iters;
			block.sticks = spyre_min(sticks, in->count[4] - stick);
			block.out = walk->p[0] + iter * block.out_iter +
				    row * view[0].stride[3] + stick * view[0].stride[4];
			block.a = walk->p[1] + iter * block.a_iter +
				  row / a_rows * view[1].stride[3];
			block.b = walk->p[2] + stick * view[2].stride[4];
			block.few = is_few(core, in, &block);
			block.depth = depth_of(in, &block);
			if (!run_block(core, in, &block))
				return false;
		}
	}
	return true;
}

bool spyre_core_pt(struct spyre_core *core, const struct spyre_instr *in)
{
	struct spyre_walk walk;
	u32 d, iter, iters, most, dim = shared_dim(in, &most);
	u32 count = dim < 3 ? in->count[dim] : 1;

	spyre_walk_start(&walk, core, in);
	for (d = 0; d < 3; d++)
		if (d != dim)
			spyre_walk_add(&walk, in, d);
	do {
		for (iter = 0; iter < count; iter += iters) {
			iters = spyre_min(most, count - iter);
			if (!run_iters(core, in, &walk, iter, iters, dim))
				return false;
		}
	} while (spyre_walk_next(&walk));
	return true;
}
