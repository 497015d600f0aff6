// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Proofs about single instructions: which fields are allowed, and which bytes
 * each view can reach over all points and all turns of the enclosing loops.
 */
#include "verify.h"

static bool arithmetic_format(u32 fmt)
{
	return fmt == SPYRE_FMT_SEN169_FP16 || fmt == SPYRE_FMT_IEEE_FP32 ||
	       fmt == SPYRE_FMT_IEEE_FP16 || fmt == SPYRE_FMT_BFLOAT16;
}

/* Views of a function of an opcode, 0 if the pair does not exist. */
static u32 views_of(u32 opcode, u32 func)
{
	switch (opcode) {
	case SPYRE_OP_MOVE:
	case SPYRE_OP_RESTICK:
		return func == SPYRE_FUNC_NONE ? 2 : 0;
	case SPYRE_OP_PT:
		return func == SPYRE_FUNC_NONE ? 3 : 0;
	case SPYRE_OP_SFU:
		return spyre_func_inputs(func) ? 1 + spyre_func_inputs(func) : 0;
	case SPYRE_OP_REDUCE:
		return func >= SPYRE_FUNC_SUM && func <= SPYRE_FUNC_EXX2 ? 2 : 0;
	default:
		return 0;
	}
}

static int verify_counts(struct spyre_verify *v, const struct spyre_instr *in)
{
	u32 d;

	if (in->num_dims > SPYRE_MAX_DIMS)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_dims, SPYRE_MAX_DIMS);
	for (d = 0; d < in->num_dims; d++)
		if (!in->count[d] || in->count[d] > SPYRE_MAX_COUNT)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[d],
						 SPYRE_MAX_COUNT);
	for (; d < SPYRE_MAX_DIMS; d++)
		if (in->count[d] > 1)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[d], 1);
	if (!in->lanes || in->lanes > 128)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, 128);
	if (in->reserved)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->reserved, 0);
	return 0;
}

/* Fields that only one opcode uses. */
static int verify_extras(struct spyre_verify *v, const struct spyre_instr *in)
{
	u32 i;

	for (i = spyre_func_imms(in->func); i < 4; i++)
		if (in->imm[i])
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[i], 0);
	if (in->opcode == SPYRE_OP_REDUCE)
		return 0;
	if (in->flags || in->reduce_mask)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE,
					 in->flags ? in->flags : in->reduce_mask, 0);
	if (in->valid)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->valid, 0);
	return 0;
}

static int verify_reduce(struct spyre_verify *v, const struct spyre_instr *in)
{
	const struct spyre_view *out = spyre_instr_views(in);
	u64 reduced = in->lanes;
	u32 d;

	if (in->flags & ~SPYRE_INSTR_REDUCE_LANES)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->flags,
					 SPYRE_INSTR_REDUCE_LANES);
	if (in->func == SPYRE_FUNC_EXX2 && !(in->flags & SPYRE_INSTR_REDUCE_LANES))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->flags,
					 SPYRE_INSTR_REDUCE_LANES);
	if (in->func == SPYRE_FUNC_EXX2 && in->lanes < 2)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, 2);
	if (in->reduce_mask >> in->num_dims || (!in->reduce_mask && !in->flags))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->reduce_mask, in->num_dims);
	for (d = 0; d < in->num_dims; d++) {
		if (!(in->reduce_mask & (1u << d)))
			continue;
		if (out->stride[d])
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, out->stride[d], 0);
		reduced *= in->count[d];
		if (reduced > SPYRE_MAX_WORK * 128)
			return spyre_verify_fail(v, SPYRE_STOP_TOO_LONG, reduced, SPYRE_MAX_WORK);
	}
	if (!(in->flags & SPYRE_INSTR_REDUCE_LANES))
		reduced = 0;
	if (in->valid > reduced)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->valid, reduced);
	return 0;
}

/* PT and RESTICK have fixed roles: strides that would give others are 0. */
static int verify_zero_stride(struct spyre_verify *v, const struct spyre_instr *in,
			      u32 view, u32 d)
{
	u64 stride = spyre_instr_views(in)[view].stride[d];

	if (!stride)
		return 0;
	v->err->view = view;
	return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, stride, 0);
}

static int verify_pt(struct spyre_verify *v, const struct spyre_instr *in)
{
	if (in->num_dims != 6)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_dims, 6);
	if (in->lanes != 64)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, 64);
	if (in->count[5] % 64)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[5], 64);
	if (verify_zero_stride(v, in, 0, 5) || verify_zero_stride(v, in, 1, 4))
		return -EINVAL;
	return verify_zero_stride(v, in, 2, 3);
}

static int verify_restick(struct spyre_verify *v, const struct spyre_instr *in)
{
	if (in->num_dims != 6)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_dims, 6);
	if (in->lanes != 64)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, 64);
	if (in->count[4] != 64)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[4], 64);
	if (in->count[5] != 64)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[5], 64);
	if (verify_zero_stride(v, in, 0, 4))
		return -EINVAL;
	return verify_zero_stride(v, in, 1, 5);
}

static int verify_formats(struct spyre_verify *v, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	bool raw = in->opcode == SPYRE_OP_MOVE || in->opcode == SPYRE_OP_RESTICK;
	u32 i;

	for (i = 0; i < in->num_views; i++) {
		u32 fmt = view[i].format;
		bool good = raw ? spyre_fmt_bytes(fmt) != 0 : arithmetic_format(fmt);

		v->err->view = i;
		if (fmt >= SPYRE_FMT_COUNT || !good)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_FORMAT, fmt, SPYRE_FMT_COUNT);
		if (raw && fmt != view[0].format)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_FORMAT, fmt, view[0].format);
		if (in->opcode == SPYRE_OP_RESTICK && spyre_fmt_bytes(fmt) != 2)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_FORMAT, fmt, 2);
	}
	return 0;
}

/* Adds (count - 1) * stride to *end; false if that passes the largest extent. */
static bool reach(u64 *end, u32 count, u64 stride)
{
	/* Also for one point: engines may form the address after the last. */
	if (stride > SPYRE_MAX_EXTENT)
		return false;
	if (count <= 1 || !stride)
		return true;
	*end += (u64)(count - 1) * stride;
	return *end <= SPYRE_MAX_EXTENT;
}

/* Where the view's last byte ends, over all points and turns. */
static int view_end(struct spyre_verify *v, const struct spyre_instr *in,
		    const struct spyre_view *view, u64 *end)
{
	u64 bytes = spyre_fmt_bytes(view->format);
	u32 d, count;

	if (view->offset % bytes)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->offset, bytes);
	if (view->offset > SPYRE_MAX_EXTENT)
		return spyre_verify_fail(v, SPYRE_STOP_EXTENT, view->offset, SPYRE_MAX_EXTENT);
	*end = view->offset;
	for (d = 0; d < SPYRE_MAX_DIMS; d++) {
		if (view->stride[d] % bytes || (d >= in->num_dims && view->stride[d]))
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->stride[d], bytes);
		count = in->count[d];
		/* A is walked in sticks of K. */
		if (in->opcode == SPYRE_OP_PT && d == 5 && view == spyre_instr_views(in) + 1)
			count /= 64;
		if (!reach(end, count, view->stride[d]))
			return spyre_verify_fail(v, SPYRE_STOP_EXTENT, view->stride[d],
						 SPYRE_MAX_EXTENT);
	}
	for (d = 0; d < SPYRE_MAX_LOOPS; d++) {
		if (view->loop_stride[d] % bytes || (d >= v->depth && view->loop_stride[d]))
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->loop_stride[d],
						 bytes);
		count = d < v->depth ? v->turns[d] : 1;
		if (!reach(end, count, view->loop_stride[d]))
			return spyre_verify_fail(v, SPYRE_STOP_EXTENT, view->loop_stride[d],
						 SPYRE_MAX_EXTENT);
	}
	*end += bytes * spyre_view_lanes(in, view);
	return 0;
}

static int verify_view(struct spyre_verify *v, const struct spyre_instr *in, u32 index)
{
	const struct spyre_view *view = spyre_instr_views(in) + index;
	const struct spyre_prog_header *h = v->prog->header;
	bool splat_ok = index && (in->opcode == SPYRE_OP_SFU || in->opcode == SPYRE_OP_REDUCE);
	u64 end = 0;

	v->err->view = index;
	if (view->lanes > (splat_ok ? SPYRE_LANES_SPLAT : SPYRE_LANES_ALL))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->lanes, splat_ok);
	if (view->reserved)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->reserved, 0);
	if (view_end(v, in, view, &end))
		return -EINVAL;
	if (view->operand < SPYRE_MAX_OPERANDS) {
		if (view->operand >= h->num_operands)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->operand,
						 h->num_operands);
		if (end > SPYRE_MAX_EXTENT)
			return spyre_verify_fail(v, SPYRE_STOP_EXTENT, end, SPYRE_MAX_EXTENT);
		if (end > v->extent[view->operand])
			v->extent[view->operand] = end;
		v->flags[view->operand] |= index ? SPYRE_OPERAND_READ : SPYRE_OPERAND_WRITE;
		return 0;
	}
	if (view->operand != SPYRE_VIEW_LX) {
		u32 peer = view->operand ^ SPYRE_VIEW_RING;

		/* The ring is read only. */
		if (peer >= h->num_cores || !index)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->operand,
						 h->num_cores);
	}
	if (end > h->lx_bytes)
		return spyre_verify_fail(v, SPYRE_STOP_LX_OVERFLOW, end, h->lx_bytes);
	return 0;
}

/* Steps of work of an instruction, see SPYRE_MAX_WORK. */
static int verify_steps_of(struct spyre_verify *v, const struct spyre_instr *in)
{
	u64 steps = 1;
	u32 d;

	for (d = 0; d < in->num_dims; d++) {
		u32 count = in->count[d];

		if (in->opcode == SPYRE_OP_PT && d == 5)
			count /= 64;
		if (in->opcode == SPYRE_OP_RESTICK && d == 5)
			count = 1;
		steps *= count;
		if (steps > SPYRE_MAX_WORK)
			return spyre_verify_fail(v, SPYRE_STOP_TOO_LONG, steps, SPYRE_MAX_WORK);
	}
	return spyre_verify_work(v, steps);
}

int spyre_verify_instr(struct spyre_verify *v, const struct spyre_instr *in)
{
	u32 views = views_of(in->opcode, in->func);
	int ret = 0;
	u32 i;

	if (in->opcode < SPYRE_OP_MOVE || in->opcode > SPYRE_OP_RESTICK)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_OPCODE, in->opcode, SPYRE_OP_RESTICK);
	if (!views)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_FUNC, in->func, in->opcode);
	if (in->num_views != views)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_views, views);
	if (verify_counts(v, in) || verify_extras(v, in))
		return -EINVAL;
	if (in->opcode == SPYRE_OP_REDUCE)
		ret = verify_reduce(v, in);
	else if (in->opcode == SPYRE_OP_PT)
		ret = verify_pt(v, in);
	else if (in->opcode == SPYRE_OP_RESTICK)
		ret = verify_restick(v, in);
	if (ret || verify_formats(v, in))
		return -EINVAL;
	for (i = 0; i < views; i++)
		if (verify_view(v, in, i))
			return -EINVAL;
	v->err->view = 0;
	return verify_steps_of(v, in);
}
