// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The verifier's rules of single opcodes and functions: shapes, and the
 * strides that must be 0.
 */
#include "verify.h"

static int verify_zero_stride(struct spyre_verify *v, const struct spyre_instr *in,
			      u32 view, u32 d)
{
	u64 stride = spyre_instr_views(in)[view].stride[d];

	if (!stride)
		return 0;
	v->err->view = view;
	return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW, stride, 0);
}

/* Multiplies *total by the counts of reduce_mask; fails if it exceeds @most. */
static int verify_masked(struct spyre_verify *v, const struct spyre_instr *in, u64 *total,
			 u64 most, enum spyre_stop stop)
{
	u32 d;

	if (*total > most)
		return spyre_verify_fail(v, stop, *total, most);
	for (d = 0; d < in->num_dims; d++) {
		if (!(in->reduce_mask & 1u << d))
			continue;
		*total *= in->count[d];
		if (*total > most)
			return spyre_verify_fail(v, stop, *total, most);
	}
	return 0;
}

/* The output must not move while the masked dims are walked. */
static int verify_masked_output(struct spyre_verify *v, const struct spyre_instr *in)
{
	u32 d;

	for (d = 0; d < in->num_dims; d++)
		if (in->reduce_mask & 1u << d && verify_zero_stride(v, in, 0, d))
			return -EINVAL;
	return 0;
}

static int verify_reduce(struct spyre_verify *v, const struct spyre_instr *in)
{
	bool across = in->flags & SPYRE_INSTR_REDUCE_LANES;
	bool pair = in->func == SPYRE_FUNC_EXX2 || in->func == SPYRE_FUNC_EXX2_ZEROMEAN;
	u64 reduced = in->lanes;

	if (!across && (pair || !in->reduce_mask))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->flags,
					 SPYRE_INSTR_REDUCE_LANES);
	if (pair && in->lanes < 2)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, 2);
	if (verify_masked_output(v, in) ||
	    verify_masked(v, in, &reduced, SPYRE_MAX_WORK * SPYRE_MAX_LANES,
			  SPYRE_STOP_TOO_LONG))
		return -EINVAL;
	if (!across)
		reduced = 0;
	if (in->valid > reduced)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->valid, reduced);
	return 0;
}

static int verify_topk(struct spyre_verify *v, const struct spyre_instr *in)
{
	u64 searched = in->lanes;

	if (!in->imm[1] || in->imm[1] > in->lanes)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[1], in->lanes);
	if (in->imm[0] > SPYRE_MAX_RANKS - in->imm[1])
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[0],
					 SPYRE_MAX_RANKS - in->imm[1]);
	if (in->func == SPYRE_FUNC_TOPK_VALUE && in->imm[2])
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[2], 0);
	if (in->imm[2] > SPYRE_MAX_PLACE)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[2], SPYRE_MAX_PLACE);
	if (verify_masked_output(v, in) ||
	    verify_masked(v, in, &searched, SPYRE_MAX_PLACE - in->imm[2], SPYRE_STOP_BAD_SHAPE))
		return -EINVAL;
	if (in->valid > searched)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->valid, searched);
	return 0;
}

static int verify_coordinates(struct spyre_verify *v, const struct spyre_instr *in)
{
	u64 most = in->lanes, falls = 1;
	u32 d;

	if (in->imm[1] > SPYRE_MAX_PLACE)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[1], SPYRE_MAX_PLACE);
	if (in->imm[2] >> in->num_dims || in->imm[2] & in->reduce_mask)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[2], in->reduce_mask);
	if (in->imm[3] > SPYRE_MAX_PLACE)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[3], SPYRE_MAX_PLACE);
	for (d = 0; d < in->num_dims; d++) {
		if (in->imm[2] & 1u << d)
			falls *= in->count[d];
		if (falls - 1 > in->imm[1])
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, falls - 1, in->imm[1]);
	}
	return verify_masked(v, in, &most, SPYRE_MAX_PLACE - in->imm[1], SPYRE_STOP_BAD_SHAPE);
}

static int verify_pt(struct spyre_verify *v, const struct spyre_instr *in)
{
	u32 format = spyre_instr_views(in)[1].format;

	if (in->num_dims != 6)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_dims, 6);
	if (in->lanes != 64 && in->lanes != 32)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, 64);
	if (in->count[5] % spyre_pt_depth(format))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[5],
					 spyre_pt_depth(format));
	if (format == SPYRE_FMT_SENINT4 && in->count[3] % 2)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[3], 2);
	if (verify_zero_stride(v, in, 0, 5) || verify_zero_stride(v, in, 1, 4))
		return -EINVAL;
	return verify_zero_stride(v, in, 2, 3);
}

static int verify_restick(struct spyre_verify *v, const struct spyre_instr *in)
{
	u32 tile = SPYRE_STICK_BYTES / spyre_fmt_bytes(spyre_instr_views(in)->format);

	if (in->num_dims != 6)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_dims, 6);
	if (in->lanes != tile)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, tile);
	if (in->count[4] != tile)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[4], tile);
	if (in->count[5] != tile)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->count[5], tile);
	if (verify_zero_stride(v, in, 0, 4))
		return -EINVAL;
	return verify_zero_stride(v, in, 1, 5);
}

static int verify_indices(struct spyre_verify *v, const struct spyre_instr *in)
{
	u32 k;

	for (k = 0; k + 2 < in->num_views; k++) {
		if (!in->imm[k] || in->imm[k] > SPYRE_MAX_INDEX)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[k],
						 SPYRE_MAX_INDEX);
		if (spyre_instr_views(in)[2 + k].lanes != SPYRE_LANES_SPLAT) {
			v->err->view = 2 + k;
			return spyre_verify_fail(v, SPYRE_STOP_BAD_VIEW,
						 spyre_instr_views(in)[2 + k].lanes,
						 SPYRE_LANES_SPLAT);
		}
	}
	return 0;
}

int spyre_verify_shape(struct spyre_verify *v, const struct spyre_instr *in)
{
	switch (in->opcode) {
	case SPYRE_OP_REDUCE:
		return verify_reduce(v, in);
	case SPYRE_OP_PT:
		return verify_pt(v, in);
	case SPYRE_OP_RESTICK:
		return verify_restick(v, in);
	case SPYRE_OP_TOPK:
		return verify_topk(v, in);
	case SPYRE_OP_GATHER:
	case SPYRE_OP_SCATTER:
		return verify_indices(v, in);
	case SPYRE_OP_SFU:
		return in->func == SPYRE_FUNC_MASKBYINDEX ? verify_coordinates(v, in) : 0;
	default:
		return 0;
	}
}
