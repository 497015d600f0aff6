// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Proofs about single instructions: the permitted fields and formats, and the
 * amount of work. verify_shape.c has the rules of single opcodes, verify_view.c
 * proves which bytes are reached.
 */
#include "verify.h"

static bool float_format(u32 fmt)
{
	return fmt == SPYRE_FMT_SEN169_FP16 || fmt == SPYRE_FMT_IEEE_FP32 ||
	       fmt == SPYRE_FMT_IEEE_FP16 || fmt == SPYRE_FMT_BFLOAT16 ||
	       fmt == SPYRE_FMT_SEN143_FP8 || fmt == SPYRE_FMT_SEN152_FP8;
}

static bool product_integer(u32 fmt)
{
	return fmt == SPYRE_FMT_SENINT4 || fmt == SPYRE_FMT_SENINT8;
}

/* The formats that the SFU computes on, converted to fp32. */
static bool arithmetic_format(u32 fmt)
{
	return float_format(fmt) || product_integer(fmt) || fmt == SPYRE_FMT_SENINT16 ||
	       fmt == SPYRE_FMT_IEEE_INT32 || fmt == SPYRE_FMT_SENUINT32;
}

static bool indirect(const struct spyre_instr *in)
{
	return in->opcode == SPYRE_OP_GATHER || in->opcode == SPYRE_OP_SCATTER;
}

/* Number of views of a function of an opcode; 0 if the pair does not exist. */
static u32 views_of(const struct spyre_instr *in)
{
	u32 func = in->func;

	switch (in->opcode) {
	case SPYRE_OP_GATHER:
	case SPYRE_OP_SCATTER:
		return func == SPYRE_FUNC_NONE ? 2 + spyre_indirect_dims(in, 8) : 0;
	case SPYRE_OP_MOVE:
	case SPYRE_OP_RESTICK:
		return func == SPYRE_FUNC_NONE ? 2 : 0;
	case SPYRE_OP_PT:
		return func == SPYRE_FUNC_NONE ? 3 : 0;
	case SPYRE_OP_SFU:
	case SPYRE_OP_INT:
		if (spyre_func_integer(func) != (in->opcode == SPYRE_OP_INT))
			return 0;
		return spyre_func_inputs(func) ? 1 + spyre_func_inputs(func) : 0;
	case SPYRE_OP_REDUCE:
		if (func == SPYRE_FUNC_MULSUM)
			return 3;
		if (func >= SPYRE_FUNC_INT_SUM && func <= SPYRE_FUNC_INT_AMIN)
			return 2;
		return func >= SPYRE_FUNC_SUM && func <= SPYRE_FUNC_QUANTSCALE ? 2 : 0;
	case SPYRE_OP_TOPK:
		return func == SPYRE_FUNC_TOPK_VALUE || func == SPYRE_FUNC_TOPK_INDEX ? 2 : 0;
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
	if (!in->lanes || in->lanes > SPYRE_MAX_LANES)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, SPYRE_MAX_LANES);
	if (in->reserved)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->reserved, 0);
	return 0;
}

/* Checks fields that only some opcodes and functions use. */
static int verify_extras(struct spyre_verify *v, const struct spyre_instr *in)
{
	bool search = in->opcode == SPYRE_OP_REDUCE || in->opcode == SPYRE_OP_TOPK;
	bool mask = search || in->func == SPYRE_FUNC_MASKBYINDEX || indirect(in);
	u32 flags = in->opcode == SPYRE_OP_REDUCE ? SPYRE_INSTR_REDUCE_LANES :
		    in->opcode == SPYRE_OP_PT ? SPYRE_INSTR_ACCUMULATE :
		    in->opcode == SPYRE_OP_TOPK ? SPYRE_INSTR_SMALLEST : 0;
	/* The number of views has been checked: 2 of them are no index. */
	u32 i = indirect(in) ? in->num_views - 2u : spyre_func_imms(in->func);

	for (; i < 4; i++)
		if (in->imm[i])
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->imm[i], 0);
	if (in->flags & ~flags)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->flags, flags);
	if (in->reduce_mask && (!mask || in->reduce_mask >> in->num_dims))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->reduce_mask,
					 mask ? in->num_dims : 0);
	if (in->valid && !search)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->valid, 0);
	return 0;
}

static bool good_format(const struct spyre_instr *in, u32 index)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 fmt = view[index].format;
	bool whole;

	switch (in->opcode) {
	case SPYRE_OP_GATHER:
	case SPYRE_OP_SCATTER:
		if (index >= 2)
			return fmt == SPYRE_FMT_IEEE_INT32 || fmt == SPYRE_FMT_SENUINT32;
		return spyre_fmt_bytes(fmt) && fmt == view->format;
	case SPYRE_OP_MOVE:
		return spyre_fmt_bytes(fmt) && fmt == view->format;
	case SPYRE_OP_RESTICK:
		return spyre_fmt_bytes(fmt) && spyre_fmt_bytes(fmt) <= 4 && fmt == view->format;
	case SPYRE_OP_PT:
		whole = product_integer(view[1].format);
		if (index)
			return whole ? product_integer(fmt) : float_format(fmt);
		if (in->flags & SPYRE_INSTR_ACCUMULATE)
			return fmt == (whole ? SPYRE_FMT_IEEE_INT32 : SPYRE_FMT_IEEE_FP32);
		return float_format(fmt) || (whole && fmt == SPYRE_FMT_IEEE_INT32);
	default:
		/* Integers are signed: SENUINT32 would be another number beyond 2^31. */
		if (spyre_func_integer(in->func) && fmt == SPYRE_FMT_SENUINT32)
			return false;
		return arithmetic_format(fmt);
	}
}

static int verify_formats(struct spyre_verify *v, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 i;

	for (i = 0; i < in->num_views; i++) {
		u32 fmt = view[i].format;

		v->err->view = i;
		if (fmt >= SPYRE_FMT_COUNT || !good_format(in, i))
			return spyre_verify_fail(v, SPYRE_STOP_BAD_FORMAT, fmt, SPYRE_FMT_COUNT);
		if (fmt == SPYRE_FMT_SENINT4 && in->lanes % 2)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->lanes, 2);
	}
	v->err->view = 0;
	return 0;
}

/* Computes the steps of work of an instruction, see SPYRE_MAX_WORK. */
static int verify_steps_of(struct spyre_verify *v, const struct spyre_instr *in)
{
	u64 steps = 1;
	u32 d;

	if (in->opcode == SPYRE_OP_TOPK)
		steps = spyre_topk_passes(in);
	for (d = 0; d < in->num_dims; d++) {
		u32 count = in->count[d];

		if (in->opcode == SPYRE_OP_PT && d == 5)
			count = (count + 63) / 64;
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
	u32 views = views_of(in);
	u32 i;

	if (in->opcode < SPYRE_OP_MOVE || in->opcode > SPYRE_OP_INT)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_OPCODE, in->opcode, SPYRE_OP_INT);
	if (!views)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_FUNC, in->func, in->opcode);
	if (indirect(in) && (views < 3 || views > 2 + SPYRE_MAX_INDEX_VIEWS))
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->reduce_mask,
					 SPYRE_MAX_INDEX_VIEWS);
	if (in->num_views != views)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_views, views);
	if (verify_counts(v, in) || verify_extras(v, in) || verify_formats(v, in) ||
	    spyre_verify_shape(v, in))
		return -EINVAL;
	for (i = 0; i < views; i++)
		if (spyre_verify_view(v, in, i))
			return -EINVAL;
	v->err->view = 0;
	return verify_steps_of(v, in);
}
