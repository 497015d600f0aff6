// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PT's inputs: unpacks interleaved rows and 4-bit elements with integer
 * moves and widens them to fp32 in the worker's scratch.
 */
#include "pt.h"

#define UNPACK_NS 6000u		/* upper bound of the time to unpack this many rows */

bool spyre_pt_convert(struct spyre_core *core, struct spyre_convert_run *run)
{
	/* Integers convert to fp32 and back; the scalar paths are slower. */
	u64 cost = run->lanes * (run->dst_format == SPYRE_FMT_SCRATCH_INT32 ? 32 : 8);
	u32 rows = run->rows;
	u32 chunk = core->unit->budget / cost / 2;
	u32 n;

	while (rows) {
		n = spyre_min(rows, chunk);
		run->rows = n;
		if (!spyre_section_enter(&core->section, n * cost +
					 spyre_cost_ns(core, SPYRE_CALL_NS)))
			return false;
		core->unit->convert(run);
		run->dst += n * run->dst_stride;
		run->src += n * run->src_stride;
		rows -= n;
	}
	return true;
}

/* The low half of a byte has the lower address. */
static u8 low_half(u8 byte)
{
	return (byte & 0xf) | -(byte & 8);
}

static u8 high_half(u8 byte)
{
	return byte >> 4 | -(byte >> 4 & 8);
}

/* One row of a stick [K 16, rows 2, K 8] of 4-bit elements. */
static void unpack_a4(u8 *out, const u8 *stick, u32 row)
{
	u32 block, i;

	for (block = 0; block < 8; block++) {
		const u8 *in = stick + block * 16 + row * 8;

		for (i = 0; i < 8; i++) {
			*out++ = low_half(in[i]);
			*out++ = high_half(in[i]);
		}
	}
}

static bool load_a4(struct spyre_core *core, const struct spyre_instr *in,
		    const struct spyre_pt_block *block, u32 stick, u8 *dst)
{
	const struct spyre_view *a = spyre_instr_views(in) + 1;
	struct spyre_pt_scratch *s = core->worker->scratch;
	u32 row, i, n;

	for (row = 0; row < block->rows; row += n) {
		struct spyre_convert_run run = {
			.dst = dst + row * spyre_pt_a_stride(block),
			.src = s->raw,
			.dst_stride = spyre_pt_a_stride(block),
			.src_stride = SPYRE_STICK_BYTES,
			.lanes = SPYRE_STICK_BYTES,
			.dst_format = SPYRE_FMT_SCRATCH_FP32,
			.src_format = SPYRE_FMT_SENINT8,
		};

		n = spyre_min(SPYRE_PT_UNPACK, block->rows - row);
		run.rows = n;
		if (!spyre_section_count(&core->section, spyre_cost_ns(core, UNPACK_NS)))
			return false;
		for (i = 0; i < n; i++)
			unpack_a4(s->raw + i * SPYRE_STICK_BYTES,
				  block->a + (row + i) / 2 * a->stride[3] + stick * a->stride[5],
				  (row + i) % 2);
		if (!spyre_pt_convert(core, &run))
			return false;
	}
	return true;
}

/* Loads stick @stick of K of all rows. */
static bool load_a_stick(struct spyre_core *core, const struct spyre_instr *in,
			 const struct spyre_pt_block *block, u32 stick, u8 *dst)
{
	const struct spyre_view *a = spyre_instr_views(in) + 1;
	struct spyre_pt_lines lines;
	u64 next, step;
	u32 i;

	spyre_pt_lines(block, &lines);
	next = lines.across ? a->stride[3] : block->a_iter;
	step = lines.across ? block->a_iter : a->stride[3];
	for (i = 0; i < lines.count; i++) {
		struct spyre_convert_run run = {
			.dst = dst + i * lines.next * spyre_pt_a_stride(block),
			.src = block->a + stick * a->stride[5] + i * next,
			.dst_stride = lines.step * spyre_pt_a_stride(block),
			.src_stride = step,
			.rows = lines.rows,
			.lanes = spyre_pt_depth(a->format),
			.dst_format = SPYRE_FMT_SCRATCH_FP32,
			.src_format = a->format,
		};

		if (!spyre_pt_convert(core, &run))
			return false;
	}
	return true;
}

bool spyre_pt_load_a(struct spyre_core *core, const struct spyre_instr *in,
		     const struct spyre_pt_block *block, u32 k, u32 depth)
{
	u32 format = spyre_instr_views(in)[1].format;
	struct spyre_pt_scratch *s = core->worker->scratch;
	u32 elements = spyre_pt_depth(format);
	u32 i;

	for (i = 0; i < depth / elements; i++) {
		u32 stick = k / elements + i;
		u8 *dst = s->a + i * elements * 4;

		if (format == SPYRE_FMT_SENINT4 ? !load_a4(core, in, block, stick, dst) :
						  !load_a_stick(core, in, block, stick, dst))
			return false;
	}
	return true;
}

/* Unpacks @columns of the rows of one group: two of bytes, or four of 4-bit elements. */
static void unpack_b(u8 *out, const u8 *group, u32 columns, u32 rows)
{
	u32 n;

	for (n = 0; n < columns; n++) {
		u8 lo = group[2 * n], hi = group[2 * n + 1];

		if (rows == 2) {
			out[n] = lo;
			out[columns + n] = hi;
			continue;
		}
		out[n] = low_half(lo);
		out[columns + n] = high_half(lo);
		out[2 * columns + n] = low_half(hi);
		out[3 * columns + n] = high_half(hi);
	}
}

/* Loads a stick of columns whose groups interleave @p rows of K. */
static bool load_packed(struct spyre_core *core, const struct spyre_instr *in, const u8 *group,
			u32 p, u8 *dst, u32 depth)
{
	const struct spyre_view *b = spyre_instr_views(in) + 2;
	struct spyre_pt_scratch *s = core->worker->scratch;
	u32 k, i;

	for (k = 0; k < depth; k += SPYRE_PT_UNPACK) {
		struct spyre_convert_run run = {
			.dst = dst + k * SPYRE_PT_LINE,
			.src = s->raw,
			.dst_stride = SPYRE_PT_LINE,
			.src_stride = in->lanes,
			.rows = SPYRE_PT_UNPACK,
			.lanes = in->lanes,
			.dst_format = SPYRE_FMT_SCRATCH_FP32,
			.src_format = p == 4 ? SPYRE_FMT_SENINT8 : b->format,
		};

		if (!spyre_section_count(&core->section, spyre_cost_ns(core, UNPACK_NS)))
			return false;
		for (i = 0; i < SPYRE_PT_UNPACK; i += p, group += b->stride[5])
			unpack_b(s->raw + i * in->lanes, group, in->lanes, p);
		if (!spyre_pt_convert(core, &run))
			return false;
	}
	return true;
}

static bool load_stick(struct spyre_core *core, const struct spyre_instr *in, const u8 *src,
		       u8 *dst, u32 k, u32 depth)
{
	const struct spyre_view *b = spyre_instr_views(in) + 2;
	u32 p = spyre_pt_interleave(b->format);
	struct spyre_convert_run run = {
		.dst = dst,
		.src = src + k / p * b->stride[5],
		.dst_stride = SPYRE_PT_LINE,
		.src_stride = b->stride[5],
		.rows = depth,
		.lanes = in->lanes,
		.dst_format = SPYRE_FMT_SCRATCH_FP32,
		.src_format = b->format,
	};

	if (p > 1)
		return load_packed(core, in, run.src, p, dst, depth);
	return spyre_pt_convert(core, &run);
}

bool spyre_pt_load_b(struct spyre_core *core, const struct spyre_instr *in,
		     const struct spyre_pt_block *block, u32 panel, u32 k, u32 depth)
{
	const struct spyre_view *b = spyre_instr_views(in) + 2;
	struct spyre_pt_scratch *s = core->worker->scratch;
	u32 column, stick = panel * 64 / in->lanes;
	u32 i;

	for (column = 0; column < 64; column += in->lanes, stick++) {
		if (stick < block->sticks) {
			if (!load_stick(core, in, block->b + stick * b->stride[4],
					s->b + column * 4, k, depth))
				return false;
			continue;
		}
		/* The panel's other half has no columns; its results are not stored. */
		for (i = 0; i < depth; i++)
			memset(s->b + i * SPYRE_PT_LINE + column * 4, 0, in->lanes * 4);
	}
	return true;
}
