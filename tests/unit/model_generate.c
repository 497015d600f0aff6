// SPDX-License-Identifier: MIT
/*
 * Programs are generated so that the verifier must accept them and so that their
 * values are defined: every instruction writes a separate region, or reads exactly
 * the region that it writes, and otherwise reads only inputs, regions that its own
 * stream wrote before, and regions that any core wrote in an earlier phase.
 */
#include "model_generate.h"

#include <stdlib.h>
#include <string.h>

#define LX_BYTES 16384u
#define MAX_REGIONS 256u
#define INDICES 4u		/* numbers in GENERATE_INDICES are below it */

struct region {
	uint32_t operand;	/* index in the table, or SPYRE_VIEW_LX */
	uint32_t core;		/* the core that wrote it */
	uint32_t phase;
	uint64_t start, bytes;
};

struct generator {
	struct builder b;
	uint64_t rng;
	bool small;
	uint32_t core, phase;
	uint32_t depth, iterations[SPYRE_MAX_LOOPS];
	uint64_t used[GENERATE_OPERANDS];
	uint64_t lx_used[GENERATE_CORES];
	struct region region[MAX_REGIONS];
	uint32_t regions;
};

static uint32_t below(struct generator *g, uint32_t n)
{
	return rng_below(&g->rng, n);
}

static bool one_in(struct generator *g, uint32_t n)
{
	return !below(g, n);
}

static const uint32_t formats[] = {
	SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP16, SPYRE_FMT_BFLOAT16,
	SPYRE_FMT_SEN143_FP8, SPYRE_FMT_SEN152_FP8, SPYRE_FMT_SENINT8, SPYRE_FMT_SENINT4,
	SPYRE_FMT_SENINT16, SPYRE_FMT_IEEE_INT32, SPYRE_FMT_SENUINT32,
};

#define FLOATS 6u

static const uint32_t functions[] = {
	SPYRE_FUNC_IDENTITY, SPYRE_FUNC_RELU, SPYRE_FUNC_NEG, SPYRE_FUNC_ABS, SPYRE_FUNC_EXP,
	SPYRE_FUNC_LOG, SPYRE_FUNC_SQRT, SPYRE_FUNC_RSQRT, SPYRE_FUNC_RECIPROCAL, SPYRE_FUNC_TANH,
	SPYRE_FUNC_SIGMOID, SPYRE_FUNC_SILU, SPYRE_FUNC_GELU, SPYRE_FUNC_FLOOR, SPYRE_FUNC_CLIP,
	SPYRE_FUNC_ADD, SPYRE_FUNC_SUB, SPYRE_FUNC_MUL, SPYRE_FUNC_MAX, SPYRE_FUNC_MIN,
	SPYRE_FUNC_EQ, SPYRE_FUNC_NE, SPYRE_FUNC_GT, SPYRE_FUNC_LT, SPYRE_FUNC_GE, SPYRE_FUNC_LE,
	SPYRE_FUNC_REVSUB, SPYRE_FUNC_REALDIV, SPYRE_FUNC_LAYERNORMSCALE, SPYRE_FUNC_SOFTPLUS,
	SPYRE_FUNC_MISH, SPYRE_FUNC_LEAKYRELU, SPYRE_FUNC_ROUND, SPYRE_FUNC_TRUNC,
	SPYRE_FUNC_MASKBYINDEX, SPYRE_FUNC_WHERE, SPYRE_FUNC_MULADD, SPYRE_FUNC_FNMS,
	SPYRE_FUNC_LAYERNORMNORM, SPYRE_FUNC_MASKBYINDEX, SPYRE_FUNC_SIN, SPYRE_FUNC_COS,
	SPYRE_FUNC_ERF, SPYRE_FUNC_POW, SPYRE_FUNC_FMOD, SPYRE_FUNC_REMAINDER,
};

static const uint32_t integer_functions[] = {
	SPYRE_FUNC_INT_IDENTITY, SPYRE_FUNC_INT_NEG, SPYRE_FUNC_INT_ABS, SPYRE_FUNC_INT_NOT,
	SPYRE_FUNC_INT_ADD, SPYRE_FUNC_INT_SUB, SPYRE_FUNC_INT_MUL, SPYRE_FUNC_INT_MAX,
	SPYRE_FUNC_INT_MIN, SPYRE_FUNC_INT_EQ, SPYRE_FUNC_INT_NE, SPYRE_FUNC_INT_GT,
	SPYRE_FUNC_INT_LT, SPYRE_FUNC_INT_GE, SPYRE_FUNC_INT_LE, SPYRE_FUNC_INT_AND,
	SPYRE_FUNC_INT_OR, SPYRE_FUNC_INT_XOR, SPYRE_FUNC_INT_SHL, SPYRE_FUNC_INT_SHR,
	SPYRE_FUNC_INT_FLOORDIV, SPYRE_FUNC_INT_REMAINDER, SPYRE_FUNC_INT_TRUNCDIV,
	SPYRE_FUNC_INT_FMOD, SPYRE_FUNC_INT_WHERE, SPYRE_FUNC_INT_CLIP,
};

static uint32_t align_of(const struct spyre_view *view)
{
	return spyre_fmt_span(view->format, 1);
}

/* Puts loops around the instruction, with a region for each iteration, or one for all. */
static uint64_t loop_strides(struct generator *g, struct spyre_view *view, uint64_t bytes)
{
	uint32_t d;

	for (d = 0; d < g->depth; d++) {
		if (one_in(g, 2))
			continue;
		view->loop_stride[d] = bytes;
		bytes *= g->iterations[d];
	}
	return bytes;
}

static void add_region(struct generator *g, uint32_t operand, uint64_t start, uint64_t bytes)
{
	if (g->regions < MAX_REGIONS)
		g->region[g->regions++] = (struct region){
			operand, g->core, g->phase, start, bytes,
		};
}

/* Nests dims in any order, sometimes with gaps. */
static uint64_t nest_strides(struct generator *g, const struct spyre_instr *in, uint32_t index,
			     uint32_t skip, struct spyre_view *view)
{
	uint64_t step = spyre_view_bytes(in, view, index);
	uint32_t order[SPYRE_MAX_DIMS], d, i;

	/* Half of the programs use the order of the dims, which executors merge. */
	for (d = 0; d < in->num_dims; d++)
		order[d] = in->num_dims - 1 - d;
	if (one_in(g, 2)) {
		for (d = 0; d < in->num_dims; d++) {
			i = below(g, d + 1);
			order[d] = order[i];
			order[i] = d;
		}
	}
	for (i = 0; i < in->num_dims; i++) {
		d = order[i];
		if (skip & 1u << d)
			continue;
		if (one_in(g, 4))
			step += align_of(view) * (1 + below(g, 4));
		view->stride[d] = step;
		step *= spyre_view_count(in, view, index, d);
	}
	return step;
}

/* Places view0 in an operand or the core's LX. */
static void place_output(struct generator *g, struct spyre_instr *in, uint32_t skip)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	uint64_t bytes = nest_strides(g, in, 0, skip, view);
	uint64_t *used;

	bytes = loop_strides(g, view, (bytes + 127) / 128 * 128);
	view->operand = GENERATE_INPUTS + below(g, GENERATE_OPERANDS - GENERATE_INPUTS);
	used = &g->used[view->operand];
	if (one_in(g, 3) && g->lx_used[g->core] + bytes <= LX_BYTES) {
		view->operand = SPYRE_VIEW_LX;
		used = &g->lx_used[g->core];
	}
	view->offset = *used;
	*used += bytes;
}

static void output_is_readable(struct generator *g, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	uint64_t end = view->operand == SPYRE_VIEW_LX ? g->lx_used[g->core] :
							g->used[view->operand];

	add_region(g, view->operand, view->offset, end - view->offset);
}

/* Finds a readable region of at least @bytes; returns false if there is none. */
static bool read_region(struct generator *g, struct spyre_view *view, uint64_t bytes)
{
	const struct region *r;
	uint32_t try;

	for (try = 0; try < 6 && g->regions; try++) {
		r = &g->region[below(g, g->regions)];
		if (r->bytes < bytes || (r->phase == g->phase && r->core != g->core))
			continue;
		view->operand = r->operand;
		if (r->operand == SPYRE_VIEW_LX && r->core != g->core)
			view->operand = SPYRE_VIEW_RING | r->core;
		view->offset = r->start + below(g, (r->bytes - bytes) / align_of(view) + 1) *
					  align_of(view);
		return true;
	}
	return false;
}

static void place_input(struct generator *g, struct spyre_instr *in, uint32_t index, uint32_t skip)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1) + index;
	bool splat = in->opcode == SPYRE_OP_SFU || in->opcode == SPYRE_OP_INT ||
		     in->opcode == SPYRE_OP_REDUCE;
	uint64_t bytes;
	uint32_t d;

	if (splat && one_in(g, 5))
		view->lanes = SPYRE_LANES_SPLAT;
	bytes = nest_strides(g, in, index, skip, view);
	/* Broadcast dims. */
	for (d = 0; d < in->num_dims; d++)
		if (one_in(g, 6))
			view->stride[d] = 0;
	if (one_in(g, 2) && read_region(g, view, bytes))
		return;
	view->operand = below(g, GENERATE_INPUTS);
	view->offset = align_of(view) * below(g, 64);
	loop_strides(g, view, align_of(view) * below(g, 40));
}

/* Uses view0's region again: defined only if an element depends on its own place only. */
static void place_same(struct spyre_instr *in)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);

	view[1] = view[0];
}

static void small_counts(struct generator *g, struct spyre_instr *in, uint32_t dims)
{
	bool tiles = in->opcode == SPYRE_OP_PT || in->opcode == SPYRE_OP_RESTICK;
	uint32_t d;

	for (d = 0; d < dims; d++)
		in->count[d] = one_in(g, 2) ? 1 : 1 + below(g, g->small || tiles ? 2 : 4);
	/* Sometimes uses many points of few elements. */
	if (dims && !tiles && !g->small && one_in(g, 6)) {
		for (d = 0; d < dims; d++)
			in->count[d] = 1 + one_in(g, 3);
		in->count[below(g, dims)] = 50 + below(g, 300);
		in->lanes = 2 * (1 + below(g, 4));
	}
}

static uint32_t some_lanes(struct generator *g)
{
	static const uint32_t lanes[] = { 1, 2, 3, 8, 16, 31, 32, 33, 64, 65, 100, 127, 128 };

	return g->small ? lanes[below(g, 6)] : lanes[below(g, 13)];
}

static uint32_t some_float(struct generator *g)
{
	static const uint32_t bits[] = {
		0x3f800000, 0x3f000000, 0xbfc00000, 0x40c00000, 0x3727c5ac, 0, 0x7f800000,
		0x7fc00000, 0x42000000, 0x80000000,
	};

	return bits[below(g, 10)];
}

/* One format for all views, or one for each; SENINT4 requires even lanes. */
static void arithmetic_formats(struct generator *g, struct spyre_instr *in)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	uint32_t i, format = formats[below(g, one_in(g, 2) ? 2 : 11)];
	bool mixed = one_in(g, 2);

	for (i = 0; i < in->num_views; i++) {
		view[i].format = mixed ? formats[below(g, 11)] : format;
		if (view[i].format == SPYRE_FMT_SENINT4 && in->lanes % 2)
			in->lanes++;
	}
}

/* Mostly IEEE_INT32, and any format but SENUINT32, which is the last one. */
static void integer_formats(struct generator *g, struct spyre_instr *in)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	uint32_t i;

	for (i = 0; i < in->num_views; i++) {
		view[i].format = one_in(g, 2) ? formats[below(g, 10)] : SPYRE_FMT_IEEE_INT32;
		if (view[i].format == SPYRE_FMT_SENINT4 && in->lanes % 2)
			in->lanes++;
	}
}

static struct spyre_instr *new_instr(struct generator *g, uint32_t opcode, uint32_t func,
				     uint32_t dims)
{
	return build_instr(&g->b, opcode, func, dims, some_lanes(g));
}

/* Formats of whole bytes, which are moved as they are. */
static const uint32_t raw_formats[] = {
	SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_SENINT8,
	SPYRE_FMT_BOOL, SPYRE_FMT_IEEE_INT64, SPYRE_FMT_SEN143_FP8, SPYRE_FMT_SEN152_FP8,
	SPYRE_FMT_SENINT16, SPYRE_FMT_SENUINT32, SPYRE_FMT_IEEE_INT32,
	SPYRE_FMT_IEEE_FP16, SPYRE_FMT_BFLOAT16, SPYRE_FMT_UINT8, SPYRE_FMT_FP64,
};

static void generate_move(struct generator *g)
{
	struct spyre_instr *in = new_instr(g, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, below(g, 7));
	struct spyre_view *view = (struct spyre_view *)(in + 1);

	small_counts(g, in, in->num_dims);
	view[0].format = raw_formats[below(g, 14)];
	view[1].format = view[0].format;
	place_output(g, in, 0);
	if (one_in(g, 10))
		place_same(in);
	else
		place_input(g, in, 1, 0);
	output_is_readable(g, in);
}

/* Indices are read from the operand that holds small numbers. */
static void place_indices(struct generator *g, struct spyre_instr *in)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	uint32_t i, d;

	for (i = 2; i < in->num_views; i++) {
		view[i].format = one_in(g, 2) ? SPYRE_FMT_IEEE_INT32 : SPYRE_FMT_SENUINT32;
		view[i].lanes = SPYRE_LANES_SPLAT;
		nest_strides(g, in, i, 0, &view[i]);
		for (d = 0; d < in->num_dims; d++)
			if (one_in(g, 3))
				view[i].stride[d] = 0;
		view[i].operand = GENERATE_INDICES;
		view[i].offset = 4 * below(g, 64);
		loop_strides(g, &view[i], 4 * below(g, 40));
	}
}

static void generate_indirect(struct generator *g)
{
	uint32_t opcode = one_in(g, 2) ? SPYRE_OP_GATHER : SPYRE_OP_SCATTER, d;
	uint32_t more = one_in(g, 2) ? below(g, SPYRE_MAX_INDEX_VIEWS) : 0;
	struct spyre_instr *in = new_instr(g, opcode, SPYRE_FUNC_NONE,
					   1 + more + below(g, 6 - more));
	struct spyre_view *view = (struct spyre_view *)(in + 1);

	small_counts(g, in, in->num_dims);
	in->reduce_mask = ((2u << more) - 1) << below(g, in->num_dims - more);
	build_more_views(&g->b, in, spyre_indirect_dims(in, in->num_dims));
	/* A span has as many points as the extents multiply to. */
	if (in->num_views > 3)
		in->lanes = 1 + below(g, 4);
	for (d = 0; d + 2 < in->num_views; d++)
		in->imm[d] = INDICES + below(g, 3);
	view[0].format = raw_formats[below(g, 14)];
	view[1].format = view[0].format;
	place_output(g, in, 0);
	place_input(g, in, 1, 0);
	place_indices(g, in);
	output_is_readable(g, in);
}

/* Coordinates are compared with the small numbers of input 2. */
static void mask_coordinates(struct generator *g, struct spyre_instr *in)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	uint32_t d, falls = 1;

	in->reduce_mask = below(g, 1u << in->num_dims);
	in->imm[1] = one_in(g, 4) ? below(g, 1u << 20) : below(g, 40);
	in->imm[2] = one_in(g, 2) ? below(g, 1u << in->num_dims) & ~in->reduce_mask : 0;
	for (d = 0; d < in->num_dims; d++)
		falls *= in->imm[2] & 1u << d ? in->count[d] : 1;
	in->imm[1] += falls - 1;
	in->imm[3] = one_in(g, 2) ? below(g, 100) : 0;
	view[2].operand = 2;
	view[2].offset = align_of(&view[2]) * below(g, 64);
	memset(view[2].loop_stride, 0, sizeof(view[2].loop_stride));
}

static void generate_sfu(struct generator *g)
{
	uint32_t func = functions[below(g, sizeof(functions) / sizeof(functions[0]))];
	struct spyre_instr *in = new_instr(g, SPYRE_OP_SFU, func, below(g, 7));
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	uint32_t i, first = 1;

	small_counts(g, in, in->num_dims);
	for (i = 0; i < spyre_func_imms(func); i++)
		in->imm[i] = some_float(g);
	arithmetic_formats(g, in);
	/* Numbers that are near to coordinates are in this format alone. */
	if (func == SPYRE_FUNC_MASKBYINDEX && !one_in(g, 4))
		view[2].format = SPYRE_FMT_SEN169_FP16;
	place_output(g, in, 0);
	if (view[0].format == view[1].format && one_in(g, 6)) {
		place_same(in);
		first = 2;
	}
	for (i = first; i < in->num_views; i++)
		place_input(g, in, i, 0);
	if (func == SPYRE_FUNC_MASKBYINDEX)
		mask_coordinates(g, in);
	output_is_readable(g, in);
}

static void generate_integers(struct generator *g)
{
	uint32_t count = sizeof(integer_functions) / sizeof(integer_functions[0]), i, first = 1;
	struct spyre_instr *in = new_instr(g, SPYRE_OP_INT, integer_functions[below(g, count)],
					   below(g, 7));
	struct spyre_view *view = (struct spyre_view *)(in + 1);

	small_counts(g, in, in->num_dims);
	for (i = 0; i < spyre_func_imms(in->func); i++)
		in->imm[i] = (uint32_t)rng_next(&g->rng) >> below(g, 32);
	integer_formats(g, in);
	place_output(g, in, 0);
	if (view[0].format == view[1].format && one_in(g, 6)) {
		place_same(in);
		first = 2;
	}
	for (i = first; i < in->num_views; i++)
		place_input(g, in, i, 0);
	output_is_readable(g, in);
}

/* Number of elements of a search or of a reduction across the lanes. */
static uint64_t searched(const struct spyre_instr *in)
{
	uint64_t n = in->lanes;
	uint32_t d;

	for (d = 0; d < in->num_dims; d++)
		n *= in->reduce_mask & 1u << d ? in->count[d] : 1;
	return n;
}

static void generate_reduce(struct generator *g)
{
	bool integer = one_in(g, 5);
	uint32_t func = integer ? SPYRE_FUNC_INT_SUM + below(g, 3) : SPYRE_FUNC_SUM + below(g, 9);
	uint32_t i;
	bool pair = func == SPYRE_FUNC_EXX2 || func == SPYRE_FUNC_EXX2_ZEROMEAN;
	struct spyre_instr *in = new_instr(g, SPYRE_OP_REDUCE, func, below(g, 7));

	small_counts(g, in, in->num_dims);
	if (pair && in->lanes < 2)
		in->lanes = 2;
	if (integer)
		integer_formats(g, in);
	else
		arithmetic_formats(g, in);
	in->reduce_mask = below(g, 1u << in->num_dims);
	in->flags = pair || !in->reduce_mask || one_in(g, 2) ? SPYRE_INSTR_REDUCE_LANES : 0;
	if (in->flags && one_in(g, 2))
		in->valid = 1 + below(g, searched(in));
	if (spyre_func_imms(func))
		in->imm[0] = some_float(g);
	place_output(g, in, in->reduce_mask);
	for (i = 1; i < in->num_views; i++)
		place_input(g, in, i, 0);
	output_is_readable(g, in);
}

static void generate_topk(struct generator *g)
{
	struct spyre_instr *in = new_instr(g, SPYRE_OP_TOPK, one_in(g, 2) ? SPYRE_FUNC_TOPK_VALUE :
					   SPYRE_FUNC_TOPK_INDEX, below(g, 7));

	small_counts(g, in, in->num_dims);
	arithmetic_formats(g, in);
	in->reduce_mask = below(g, 1u << in->num_dims);
	in->flags = one_in(g, 2) ? SPYRE_INSTR_SMALLEST : 0;
	if (one_in(g, 2))
		in->valid = 1 + below(g, searched(in));
	in->imm[1] = 1 + below(g, in->lanes);
	in->imm[0] = one_in(g, 2) ? below(g, searched(in) + 2) : 0;
	if (in->func == SPYRE_FUNC_TOPK_INDEX)
		in->imm[2] = below(g, 1000);
	place_output(g, in, in->reduce_mask);
	place_input(g, in, 1, 0);
	output_is_readable(g, in);
}

static void product_formats(struct generator *g, struct spyre_instr *in)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	bool integer = one_in(g, 2);
	uint32_t i;

	in->flags = one_in(g, 3) ? SPYRE_INSTR_ACCUMULATE : 0;
	for (i = 1; i < 3; i++)
		view[i].format = integer ? formats[FLOATS + below(g, 2)] :
					   formats[below(g, FLOATS)];
	view->format = formats[below(g, FLOATS)];
	if (in->flags)
		view->format = integer ? SPYRE_FMT_IEEE_INT32 : SPYRE_FMT_IEEE_FP32;
	else if (integer && one_in(g, 2))
		view->format = SPYRE_FMT_IEEE_INT32;
}

static void generate_pt(struct generator *g)
{
	struct spyre_instr *in = new_instr(g, SPYRE_OP_PT, SPYRE_FUNC_NONE, 6);
	uint32_t depth;

	in->lanes = one_in(g, 2) ? 64 : 32;
	product_formats(g, in);
	depth = spyre_pt_depth(spyre_instr_views(in)[1].format);
	small_counts(g, in, 3);
	in->count[3] = 1 + below(g, g->small ? 2 : 4);
	if (spyre_instr_views(in)[1].format == SPYRE_FMT_SENINT4)
		in->count[3] += in->count[3] % 2;
	in->count[4] = 1 + below(g, g->small ? 1 : 2);
	in->count[5] = depth * (1 + below(g, g->small ? 1 : 2));
	/* Deeper than the exact integer sums in fp32, or than a block of K. */
	if (!g->small && one_in(g, 8)) {
		in->count[3] = 2;
		in->count[4] = 1;
		in->count[5] = depth * (1280 / depth);
		memcpy(in->count, (uint32_t[]){ 1, 1, 1 }, 12);
	}
	/* More rows than a block has. */
	if (!g->small && one_in(g, 16)) {
		in->count[3] = 268;
		in->lanes = 32;
		in->count[4] = 1;
		in->count[5] = depth;
		memcpy(in->count, (uint32_t[]){ 1, 1, 1 }, 12);
	}
	place_output(g, in, 1u << 5);
	place_input(g, in, 1, 1u << 4);
	place_input(g, in, 2, 1u << 3);
	output_is_readable(g, in);
}

static void generate_restick(struct generator *g)
{
	static const uint32_t raw[] = {
		SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_SENINT8, SPYRE_FMT_SENINT16,
		SPYRE_FMT_SEN143_FP8, SPYRE_FMT_SEN152_FP8, SPYRE_FMT_SENUINT32,
		SPYRE_FMT_IEEE_INT32, SPYRE_FMT_IEEE_FP16, SPYRE_FMT_BFLOAT16, SPYRE_FMT_BOOL,
		SPYRE_FMT_UINT8,
	};
	struct spyre_instr *in = new_instr(g, SPYRE_OP_RESTICK, SPYRE_FUNC_NONE, 6);
	struct spyre_view *view = (struct spyre_view *)(in + 1);

	view[0].format = raw[below(g, 12)];
	view[1].format = view[0].format;
	in->lanes = 128 / spyre_fmt_bytes(view->format);
	small_counts(g, in, 3);
	in->count[4] = in->lanes;
	in->count[5] = in->lanes;
	place_output(g, in, 1u << 4);
	place_input(g, in, 1, 1u << 5);
	output_is_readable(g, in);
}

static void generate_instr(struct generator *g)
{
	/* A tile is large, but seeds of fuzzers should be small. */
	switch (below(g, g->small && !one_in(g, 8) ? 12 : 13)) {
	case 0: return generate_move(g);
	case 1: case 2: case 3: return generate_sfu(g);
	case 4: case 5: return generate_reduce(g);
	case 6: return generate_topk(g);
	case 7: case 8: return generate_pt(g);
	case 9: return generate_indirect(g);
	case 10: case 11: return generate_integers(g);
	default: return generate_restick(g);
	}
}

static void generate_phase(struct generator *g, uint32_t cores)
{
	bool any = false;
	uint32_t n;

	build_phase(&g->b);
	for (g->core = 0; g->core < cores; g->core++) {
		if (g->core + 1 < cores ? one_in(g, 3) : any && one_in(g, 2))
			continue;
		any = true;
		build_stream(&g->b, g->core);
		for (n = g->small ? 1 : below(g, 4); n; n--)
			generate_instr(g);
	}
	g->phase++;
}

static void open_loop(struct generator *g)
{
	g->iterations[g->depth] = 1 + below(g, g->depth ? 2 : 3);
	build_loop(&g->b, g->iterations[g->depth++]);
}

static void close_loop(struct generator *g)
{
	g->depth--;
	build_end(&g->b);
}

void *generate_program(uint64_t seed, bool small, size_t *size, struct spyre_program *prog,
		       struct spyre_verify_error *err)
{
	struct generator *g = calloc(1, sizeof(*g));
	uint32_t phases, cores;
	void *image;

	g->rng = seed * 0x9e3779b97f4a7c15ull + 1;
	g->small = small;
	cores = 1 + below(g, small ? 2 : GENERATE_CORES);
	build_start(&g->b, cores, LX_BYTES, GENERATE_OPERANDS);
	for (phases = 1 + below(g, small ? 2 : 4); phases; phases--) {
		if (g->depth < SPYRE_MAX_LOOPS && one_in(g, small ? 6 : 3))
			open_loop(g);
		generate_phase(g, cores);
		if (g->depth && one_in(g, 2))
			close_loop(g);
	}
	while (g->depth)
		close_loop(g);
	g->b.header.lx_bytes = 0;
	for (g->core = 0; g->core < cores; g->core++)
		if (g->lx_used[g->core] > g->b.header.lx_bytes)
			g->b.header.lx_bytes = g->lx_used[g->core];
	if (one_in(g, 3))
		g->b.header.lx_kept = SPYRE_STICK_BYTES *
				      below(g, g->b.header.lx_bytes / SPYRE_STICK_BYTES + 1);
	image = build_image(&g->b, size);
	free(g);
	if (build_settle(image, *size, SPYRE_MAX_CORES, prog, err))
		return image;
	free(image);
	return NULL;
}

void generate_operand(uint64_t seed, uint32_t operand, void *p, size_t bytes)
{
	static const uint32_t fill[GENERATE_OPERANDS] = {
		SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32, 0, 0, SPYRE_FMT_SEN169_FP16,
		SPYRE_FMT_IEEE_FP32,
	};
	uint64_t rng = (seed + operand) * 0xbf58476d1ce4e5b9ull + 1;
	uint16_t *small = p;
	uint32_t *index = p;
	size_t i;

	if (fill[operand]) {
		rng_fill(&rng, p, bytes, fill[operand]);
		return;
	}
	if (operand == GENERATE_INDICES) {
		for (i = 0; i < bytes / 4; i++)
			index[i] = spyre_le32(rng_below(&rng, INDICES));
		return;
	}
	/* DL16 numbers from 0 to 511, with which coordinates are compared. */
	memset(p, 0, bytes);
	for (i = 0; i < bytes / 2; i++) {
		float x = rng_below(&rng, 512);
		uint32_t bits;

		memcpy(&bits, &x, 4);
		small[i] = spyre_le16(spyre_fp32_to_dl16(bits));
	}
}
