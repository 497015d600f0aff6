// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Proofs about views: the bytes that one can reach, over all points and all
 * iterations of the enclosing loops.
 */
#include "verify.h"

/* Adds (count - 1) * stride to *end; returns false if that exceeds the largest extent. */
static bool reach(u64 *end, u32 count, u64 stride)
{
	/* The stride is checked even for one point: engines may form the address after the last. */
	if (stride > SPYRE_MAX_EXTENT)
		return false;
	if (count <= 1 || !stride)
		return true;
	/* An extent of indices times a stride may be beyond 64 bits. */
	if (count - 1 > SPYRE_MAX_EXTENT / stride)
		return false;
	*end += (u64)(count - 1) * stride;
	return *end <= SPYRE_MAX_EXTENT;
}

/* Computes the end of the view's last byte, over all points and iterations. */
static int view_end(struct spyre_verify *v, const struct spyre_instr *in, u32 index, u64 *end)
{
	const struct spyre_view *view = spyre_instr_views(in) + index;
	u64 align = spyre_fmt_span(view->format, 1);
	u32 d;

	if (view->offset % align)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->offset, align);
	if (view->offset > SPYRE_MAX_EXTENT)
		return spyre_verify_fail(v, SPYRE_STOP_EXTENT, view->offset, SPYRE_MAX_EXTENT);
	*end = view->offset;
	/* Most strides are 0, which is aligned and reaches nothing: they need no division. */
	for (d = 0; d < SPYRE_MAX_DIMS; d++) {
		if (!view->stride[d])
			continue;
		if (view->stride[d] % align || d >= in->num_dims)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->stride[d], align);
		if (!reach(end, spyre_view_count(in, view, index, d), view->stride[d]))
			return spyre_verify_fail(v, SPYRE_STOP_EXTENT, view->stride[d],
						 SPYRE_MAX_EXTENT);
	}
	for (d = 0; d < SPYRE_MAX_LOOPS; d++) {
		if (!view->loop_stride[d])
			continue;
		if (view->loop_stride[d] % align || d >= v->depth)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->loop_stride[d],
						 align);
		if (!reach(end, v->iters[d], view->loop_stride[d]))
			return spyre_verify_fail(v, SPYRE_STOP_EXTENT, view->loop_stride[d],
						 SPYRE_MAX_EXTENT);
	}
	*end += spyre_view_bytes(in, view, index);
	return 0;
}

static int verify_operand(struct spyre_verify *v, const struct spyre_instr *in, u32 index, u64 end)
{
	u32 operand = spyre_instr_views(in)[index].operand;
	u32 operands = v->prog->header->num_operands;

	if (operand >= operands)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, operand, operands);
	if (end > SPYRE_MAX_EXTENT)
		return spyre_verify_fail(v, SPYRE_STOP_EXTENT, end, SPYRE_MAX_EXTENT);
	if (end > v->extent[operand])
		v->extent[operand] = end;
	v->flags[operand] |= spyre_view_access(in, index);
	return 0;
}

int spyre_verify_view(struct spyre_verify *v, const struct spyre_instr *in, u32 index)
{
	const struct spyre_view *view = spyre_instr_views(in) + index;
	const struct spyre_prog_header *h = v->prog->header;
	bool indices = index >= 2 && spyre_indirect_view(in) < 2;
	bool splat_ok = indices || (index && (in->opcode == SPYRE_OP_SFU ||
					      in->opcode == SPYRE_OP_INT ||
					      in->opcode == SPYRE_OP_REDUCE));
	u64 end = 0;

	v->err->view = index;
	if (view->lanes > (splat_ok ? SPYRE_LANES_SPLAT : SPYRE_LANES_ALL))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->lanes, splat_ok);
	if (view->reserved)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->reserved, 0);
	if (view_end(v, in, index, &end))
		return -EINVAL;
	if (view->operand < SPYRE_MAX_OPERANDS)
		return verify_operand(v, in, index, end);
	if (view->operand != SPYRE_VIEW_LX) {
		u32 peer = view->operand ^ SPYRE_VIEW_RING;

		/* Peers' scratchpads are read-only. */
		if (peer >= h->num_cores || !index)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, view->operand,
						 h->num_cores);
	}
	if (end > h->lx_bytes)
		return spyre_verify_fail(v, SPYRE_STOP_LX_OVERFLOW, end, h->lx_bytes);
	return 0;
}
