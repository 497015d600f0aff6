/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Program encoding of the virtual card, which libspyre's SDSC compiler emits,
 * the verifier checks and the cores execute.  docs/isa.md is the reference;
 * IBM's device encoding is not public and this one is our own.
 *
 * An image is 8-byte aligned and laid out in this order, in the host's byte order in memory
 * and little endian in files:
 *
 *	header | operands[] | steps[] | streams[] | instructions
 *
 * A step is one barrier-to-barrier phase of all cores (one SDSC), or a loop
 * bracket around steps.  A phase owns a range of streams; a stream is the
 * straight-line instruction list of one core in that phase.  An instruction
 * is a fixed head followed by its views.  A view addresses one operand: an
 * entry of the operand table (LPDDR5, base address given at launch), the
 * core's own LX scratchpad, or a peer's LX over the ring.
 *
 * Compute instructions name LPDDR5 operands directly: the load/store unit
 * streams the sticks through the reserved fifth of LX, as SDSC's memOrg_
 * (hbm and lx both present) specifies; timing.c charges that traffic.
 */
#ifndef SPYRE_MODEL_PROGRAM_H
#define SPYRE_MODEL_PROGRAM_H

#include "format.h"
#include "types.h"

#define SPYRE_PROG_MAGIC 0x47505953u	/* "SYPG" */
#define SPYRE_PROG_VERSION 5

#define SPYRE_MAX_CORES 32u
#define SPYRE_LX_BYTES (2u << 20)
#define SPYRE_MAX_OPERANDS 64u
#define SPYRE_MAX_STEPS 65536u
#define SPYRE_MAX_DIMS 6u
#define SPYRE_MAX_VIEWS 6u
#define SPYRE_MAX_LOOPS 4u
#define SPYRE_MAX_LANES 128u
#define SPYRE_MAX_COUNT 65535u		/* loop and dimension counts */
#define SPYRE_MAX_EXTENT (1ull << 34)	/* one segment: 16 GiB */
#define SPYRE_MAX_PLACE (1u << 24)	/* coordinates and places: exact in fp32 */
#define SPYRE_MAX_RANKS 65536u		/* TOPK */
#define SPYRE_MAX_INDEX_VIEWS 4u	/* GATHER, SCATTER */
#define SPYRE_MAX_INDEX (1u << 31)	/* their extents: a negative index is beyond each */

struct spyre_prog_header {
	u32 magic;
	u16 version;
	u16 num_cores;		/* 1..32: cores the program needs */
	u64 size;		/* bytes of the whole image */
	u32 num_operands;
	u32 num_steps;
	u32 num_streams;
	u32 lx_bytes;		/* LX bytes used per core, multiple of 128 */
	u32 instr_bytes;	/* bytes of the instruction section */
	u32 lx_kept;		/* leading LX bytes that are not cleared; at most lx_bytes */
	u32 reserved[6];	/* must be zero */
};

#define SPYRE_OPERAND_READ 1u
#define SPYRE_OPERAND_WRITE 2u

struct spyre_prog_operand {
	u64 extent;	/* bytes from the base address; verified to be exact */
	u32 flags;	/* SPYRE_OPERAND_*; verified to be exact */
	u32 reserved;
};

enum spyre_step_kind {
	SPYRE_STEP_PHASE = 1,
	SPYRE_STEP_LOOP = 2,
	SPYRE_STEP_END = 3,
};

struct spyre_prog_step {
	u32 kind;
	u32 count;		/* LOOP: iterations, 1..65535 */
	u32 first_stream;	/* PHASE */
	u32 num_streams;	/* PHASE: at least 1, cores strictly ascending */
};

struct spyre_prog_stream {
	u32 core;
	u32 num_instrs;
	u32 offset;	/* of its first instruction in the instruction section */
	u32 reserved;
};

#define SPYRE_VIEW_LX 0xffffu		/* the executing core's scratchpad */
#define SPYRE_VIEW_RING 0x8000u		/* | core: a peer's scratchpad, read only */

#define SPYRE_LANES_ALL 0u		/* lane i holds element i */
#define SPYRE_LANES_SPLAT 1u		/* lane 0 holds the value of all lanes */

struct spyre_view {
	u16 operand;		/* operand index, SPYRE_VIEW_LX or _RING | core */
	u8 format;		/* enum spyre_fmt */
	u8 lanes;		/* SPYRE_LANES_* */
	u32 reserved;
	u64 offset;		/* bytes from the operand's base */
	u64 stride[SPYRE_MAX_DIMS];		/* bytes per step of dim d */
	u64 loop_stride[SPYRE_MAX_LOOPS];	/* bytes per iteration, outermost first */
};

enum spyre_opcode {
	SPYRE_OP_MOVE = 1,	/* load/store: view0 = view1, same format */
	SPYRE_OP_SFU = 2,	/* pointwise: view0 = func(view1, ...) */
	SPYRE_OP_REDUCE = 3,	/* view0 = reduce(view1) */
	SPYRE_OP_PT = 4,	/* view0 = view1 x view2 */
	SPYRE_OP_RESTICK = 5,	/* transpose of a tile of one stick by one stick */
	SPYRE_OP_TOPK = 6,	/* view0 = the largest or smallest of view1, in order */
	SPYRE_OP_GATHER = 7,	/* view0 = view1 at indices, same format */
	SPYRE_OP_SCATTER = 8,	/* view0 at indices = view1, same format */
	SPYRE_OP_INT = 9,	/* pointwise on 32-bit integers: view0 = func(view1, ...) */
};

enum spyre_func {
	SPYRE_FUNC_NONE = 0,
	/* SFU, unary */
	SPYRE_FUNC_IDENTITY = 1,	/* with format conversion */
	SPYRE_FUNC_RELU = 2,
	SPYRE_FUNC_NEG = 3,
	SPYRE_FUNC_ABS = 4,
	SPYRE_FUNC_EXP = 5,
	SPYRE_FUNC_LOG = 6,
	SPYRE_FUNC_SQRT = 7,
	SPYRE_FUNC_RSQRT = 8,
	SPYRE_FUNC_RECIPROCAL = 9,
	SPYRE_FUNC_TANH = 10,
	SPYRE_FUNC_SIGMOID = 11,
	SPYRE_FUNC_SILU = 12,
	SPYRE_FUNC_GELU = 13,		/* exact form, x Phi(x) */
	SPYRE_FUNC_FLOOR = 14,
	SPYRE_FUNC_CLIP = 15,		/* imm[0] lower, imm[1] upper bound (fp32 bits) */
	/* SFU, binary */
	SPYRE_FUNC_ADD = 16,
	SPYRE_FUNC_SUB = 17,
	SPYRE_FUNC_MUL = 18,
	SPYRE_FUNC_MAX = 19,
	SPYRE_FUNC_MIN = 20,
	SPYRE_FUNC_EQ = 21,
	SPYRE_FUNC_NE = 22,
	SPYRE_FUNC_GT = 23,
	SPYRE_FUNC_LT = 24,
	SPYRE_FUNC_GE = 25,
	SPYRE_FUNC_LE = 26,
	SPYRE_FUNC_REVSUB = 27,		/* view2 - view1 */
	SPYRE_FUNC_REALDIV = 28,
	/*
	 * 1 / sqrt(max(view2 - view1^2, 0) + imm[0]): view1 the mean, view2 the
	 * mean of the squares, as EXX2 leaves them in lanes 0 and 1.
	 */
	SPYRE_FUNC_LAYERNORMSCALE = 29,
	SPYRE_FUNC_POW = 30,		/* view1 ^ view2 */
	SPYRE_FUNC_FMOD = 31,		/* view1 - n view2, with the sign of view1 */
	/* SFU, unary again */
	SPYRE_FUNC_SOFTPLUS = 32,	/* imm[0] beta, imm[1] threshold (fp32 bits) */
	SPYRE_FUNC_MISH = 33,
	SPYRE_FUNC_LEAKYRELU = 34,	/* x > 0 ? x : x * imm[0] (fp32 bits) */
	SPYRE_FUNC_ROUND = 35,		/* to an integer, ties to even */
	SPYRE_FUNC_TRUNC = 36,		/* to an integer, towards zero */
	SPYRE_FUNC_SIN = 37,
	SPYRE_FUNC_COS = 38,
	SPYRE_FUNC_ERF = 39,
	/* SFU, binary again */
	/*
	 * coordinate < view2 ? view1 : imm[0] (fp32 bits).  The coordinate of
	 * a lane is imm[1] + lanes * (place in the dims of reduce_mask, the
	 * last of them fastest) + the lane - (place in the dims of imm[2]), at
	 * most SPYRE_MAX_PLACE and not negative.  Unless imm[3] is 0, view1 is
	 * kept only from view2 - imm[3] on.
	 */
	SPYRE_FUNC_MASKBYINDEX = 40,
	SPYRE_FUNC_REMAINDER = 41,	/* as FMOD, plus view2 if the signs differ */
	/* SFU, ternary */
	SPYRE_FUNC_WHERE = 48,
	SPYRE_FUNC_MULADD = 49,		/* fma(view1, view2, view3) */
	SPYRE_FUNC_FNMS = 50,		/* fma(-view1, view2, view3) */
	/* SFU, of five: (view1 - view2) * view3 * view4 + view5 */
	SPYRE_FUNC_LAYERNORMNORM = 56,
	/* REDUCE */
	SPYRE_FUNC_SUM = 64,
	SPYRE_FUNC_MEAN = 65,	/* sum, then times imm[0] (fp32 bits), once */
	SPYRE_FUNC_AMAX = 66,
	SPYRE_FUNC_AMIN = 67,
	SPYRE_FUNC_ABSMAX = 68,
	/* REDUCE_LANES only: lane 0 the sum, lane 1 that of squares, times imm[0]; others 0 */
	SPYRE_FUNC_EXX2 = 69,
	SPYRE_FUNC_EXX2_ZEROMEAN = 70,	/* as EXX2, but lane 0 is 0: the mean is taken as 0 */
	SPYRE_FUNC_QUANTSCALE = 71,	/* ABSMAX, then times imm[0] (fp32 bits), once */
	SPYRE_FUNC_MULSUM = 72,		/* two inputs: acc = fma(view1, view2, acc) */
	/* TOPK */
	SPYRE_FUNC_TOPK_VALUE = 80,
	SPYRE_FUNC_TOPK_INDEX = 81,
	/* INT, unary */
	SPYRE_FUNC_INT_IDENTITY = 96,	/* with format conversion */
	SPYRE_FUNC_INT_NEG = 97,
	SPYRE_FUNC_INT_ABS = 98,
	SPYRE_FUNC_INT_NOT = 99,
	SPYRE_FUNC_INT_CLIP = 100,	/* imm[0] lower, imm[1] upper bound, integers */
	/* INT, binary */
	SPYRE_FUNC_INT_ADD = 104,
	SPYRE_FUNC_INT_SUB = 105,
	SPYRE_FUNC_INT_MUL = 106,
	SPYRE_FUNC_INT_MAX = 107,
	SPYRE_FUNC_INT_MIN = 108,
	SPYRE_FUNC_INT_EQ = 109,
	SPYRE_FUNC_INT_NE = 110,
	SPYRE_FUNC_INT_GT = 111,
	SPYRE_FUNC_INT_LT = 112,
	SPYRE_FUNC_INT_GE = 113,
	SPYRE_FUNC_INT_LE = 114,
	SPYRE_FUNC_INT_AND = 115,
	SPYRE_FUNC_INT_OR = 116,
	SPYRE_FUNC_INT_XOR = 117,
	SPYRE_FUNC_INT_SHL = 118,	/* 0 for a count that is not 0..31 */
	SPYRE_FUNC_INT_SHR = 119,	/* arithmetic; the sign for a count that is not 0..31 */
	/* Division: by zero the quotient is -1, the remainder view1. */
	SPYRE_FUNC_INT_FLOORDIV = 120,	/* towards -infinity */
	SPYRE_FUNC_INT_REMAINDER = 121,	/* of FLOORDIV: the sign of view2 */
	SPYRE_FUNC_INT_TRUNCDIV = 122,	/* towards zero */
	SPYRE_FUNC_INT_FMOD = 123,	/* of TRUNCDIV: the sign of view1 */
	/* INT, ternary */
	SPYRE_FUNC_INT_WHERE = 128,	/* view1 != 0 ? view2 : view3 */
	/* REDUCE, of 32-bit integers */
	SPYRE_FUNC_INT_SUM = 144,
	SPYRE_FUNC_INT_AMAX = 145,
	SPYRE_FUNC_INT_AMIN = 146,
};

/*
 * Dimensions.  MOVE, SFU, INT and REDUCE walk count[0..num_dims-1], dim 0
 * outermost; each point is @lanes consecutive elements of every view.
 * REDUCE: dims set in reduce_mask are reduced (view0 has stride 0 there),
 * taken in ascending index order; REDUCE_LANES also reduces across the lanes
 * and fills every lane of the output point with the value.  With
 * REDUCE_LANES, @valid counts the elements that take part along the reduced
 * dims, lanes fastest (the others are padding); 0 means all.
 *
 * PT has fixed roles: dims 0..2 batch, 3 rows (M), 4 sticks of columns, 5
 * elements of K.  @lanes is the columns of such a stick, 64 or 32.  A stick of
 * A (view1) holds E = 128 / bytes elements of K of one row: 32 of fp32, 64 of
 * the 16-bit, 128 of the 8-bit formats; stride[5] is the distance of these
 * sticks and count[5] a multiple of E.  B (view2) has columns in its lanes and
 * interleaves p rows of K, 2 of 8-bit, 4 of 4-bit elements, else 1: column n of
 * row k is element n * p + k % p of group k / p; stride[5] is the distance of
 * the groups, stride[4] that of sticks of columns.  SENINT4 puts the lower
 * address in the low half of a byte; a stick of A is [K 16, rows 2, K 8] inner
 * to outer, 128 elements of K of two rows: count[3] is even, stride[3] is the
 * distance of row pairs.  Stride[4] of A, [3] of B and [5] of view0 must be 0.
 *
 * Floating-point products (DL16, fp32, fp16, bf16, both fp8, in any mix) sum
 * in fp32 with fused multiply-add, k ascending, and view0 is any of these.
 * Integer products (SENINT8, SENINT4, in any mix) sum in 32-bit integers, which
 * K <= 65535 keeps in range; view0 is IEEE_INT32, or a float, to which the sum
 * is rounded via fp32.  With ACCUMULATE the sums start with the value of view0,
 * which is read and written; its format is fp32, or IEEE_INT32 (modulo 2^32)
 * for integers.
 *
 * RESTICK: E x E tiles, E = 128 / bytes = @lanes, of 1, 2 or 4 bytes; dims 0..3
 * loops, 4 rows of the input tile (E), 5 rows of the output tile (E): out[j][i] =
 * in[i][j], where view1.stride[4] and view0.stride[5] are the row distances.
 *
 * TOPK searches the dims in reduce_mask and the lanes, which it counts like REDUCE
 * with REDUCE_LANES, including @valid; at most SPYRE_MAX_PLACE elements.  Lane
 * i < imm[1] of the output gets the element of rank imm[0] + i in descending
 * order (SMALLEST: ascending), its value or its place plus imm[2]; other lanes,
 * and ranks that do not exist, get 0.  Elements compare as fp32, -0 equal to +0;
 * NaN compares as the largest number, equal elements keep their order.  imm[1] is
 * 1..@lanes, imm[0] + imm[1] at most SPYRE_MAX_RANKS.  View0 has stride 0 in the
 * searched dims.
 *
 * GATHER and SCATTER move like MOVE, but one view is indirect: view1 of GATHER,
 * view0 of SCATTER. In the dims of reduce_mask its stride is multiplied by an index
 * in place of the dim's coordinate. The k-th of these dims, ascending, takes its
 * indices from view 2 + k, one 32-bit integer (a SPLAT) for each point of all dims,
 * and imm[k] is their extent: the core stops with INDEX at an index, read as an
 * unsigned number, that is not below it. Points are moved one after the other in
 * the order of the dims, so the last one of an output that several reach remains.
 *
 * SFU, REDUCE and TOPK compute on DL16, fp32, fp16, bf16, the fp8 formats,
 * SENINT4, SENINT8, SENINT16, IEEE_INT32 and SENUINT32, all via fp32.  Two
 * elements of SENINT4 share a byte: @lanes is even if any view has this format,
 * and a SPLAT of it is the low half of a byte.  docs/numerics.md has the rounding
 * rules.
 *
 * INT and the reductions INT_* compute on 32-bit integers, modulo 2^32, in the same
 * formats except SENUINT32.  Each input is converted like IDENTITY to IEEE_INT32, which
 * is exact for integers; a result keeps its low bits in a smaller integer and is rounded
 * to fp32 before it is stored as a float.
 */
#define SPYRE_INSTR_REDUCE_LANES 1u	/* REDUCE */
#define SPYRE_INSTR_ACCUMULATE 2u	/* PT */
#define SPYRE_INSTR_SMALLEST 4u		/* TOPK */

struct spyre_instr {
	u16 opcode;
	u16 func;
	u8 num_dims;
	u8 num_views;
	u8 flags;
	u8 reduce_mask;
	u32 count[SPYRE_MAX_DIMS];
	u32 lanes;		/* 1..128 */
	u32 reserved;
	u64 valid;
	u32 imm[4];
	/* struct spyre_view view[num_views] follows */
};

static_assert(sizeof(struct spyre_prog_header) == 64, "header is 64 bytes");
static_assert(sizeof(struct spyre_prog_operand) == 16, "operand is 16 bytes");
static_assert(sizeof(struct spyre_prog_step) == 16, "step is 16 bytes");
static_assert(sizeof(struct spyre_prog_stream) == 16, "stream is 16 bytes");
static_assert(sizeof(struct spyre_view) == 96, "view is 96 bytes");
static_assert(sizeof(struct spyre_instr) == 64, "instruction head is 64 bytes");

static inline const struct spyre_view *spyre_instr_views(const struct spyre_instr *in)
{
	return (const struct spyre_view *)(in + 1);
}

static inline const struct spyre_instr *spyre_instr_next(const struct spyre_instr *in)
{
	return (const struct spyre_instr *)(spyre_instr_views(in) + in->num_views);
}

/* Bytes of @n elements; 4-bit elements come in pairs. */
static inline u32 spyre_fmt_span(u32 fmt, u32 n)
{
	return fmt == SPYRE_FMT_SENINT4 ? (n + 1) / 2 : n * spyre_fmt_bytes(fmt);
}

/* PT: elements of K in a stick of A. */
static inline u32 spyre_pt_depth(u32 fmt)
{
	u32 bytes = spyre_fmt_bytes(fmt);

	return bytes ? SPYRE_STICK_BYTES / bytes : SPYRE_STICK_BYTES;
}

/* PT: rows of K that B interleaves. */
static inline u32 spyre_pt_interleave(u32 fmt)
{
	if (fmt == SPYRE_FMT_SENINT4)
		return 4;
	return spyre_fmt_bytes(fmt) == 1 ? 2 : 1;
}

/* The view of GATHER and SCATTER that indices address; of others none. */
static inline u32 spyre_indirect_view(const struct spyre_instr *in)
{
	return in->opcode == SPYRE_OP_GATHER ? 1 :
	       in->opcode == SPYRE_OP_SCATTER ? 0 : SPYRE_MAX_VIEWS;
}

/* Returns true if an index takes the place of view @index's coordinate along a dim. */
static inline bool spyre_dim_indirect(const struct spyre_instr *in, u32 index, u32 d)
{
	return index == spyre_indirect_view(in) && in->reduce_mask & 1u << d;
}

/* GATHER, SCATTER: indirect dims below @d. Dim d itself takes its indices from view 2 + these. */
static inline u32 spyre_indirect_dims(const struct spyre_instr *in, u32 d)
{
	u32 n = 0;

	while (d--)
		n += in->reduce_mask >> d & 1;
	return n;
}

/*
 * Steps of view @index along a dim: PT's operands are packed, and an indirect dim has
 * as many as there are valid indices.
 */
static inline u32 spyre_view_count(const struct spyre_instr *in, const struct spyre_view *view,
				   u32 index, u32 d)
{
	/* Walks over all views of a program at each launch ask this. */
	if (in->opcode >= SPYRE_OP_GATHER && spyre_dim_indirect(in, index, d))
		return in->imm[spyre_indirect_dims(in, d)];
	if (in->opcode != SPYRE_OP_PT)
		return in->count[d];
	if (index == 1 && d == 5)
		return in->count[d] / spyre_pt_depth(view->format);
	if (index == 1 && d == 3 && view->format == SPYRE_FMT_SENINT4)
		return in->count[d] / 2;
	if (index == 2 && d == 5)
		return in->count[d] / spyre_pt_interleave(view->format);
	return in->count[d];
}

/* Contiguous bytes of a view at each of these steps. */
static inline u32 spyre_view_bytes(const struct spyre_instr *in, const struct spyre_view *view,
				   u32 index)
{
	if (view->lanes == SPYRE_LANES_SPLAT)
		return spyre_fmt_span(view->format, 1);
	if (in->opcode == SPYRE_OP_PT && index == 1)
		return SPYRE_STICK_BYTES;
	if (in->opcode == SPYRE_OP_PT && index == 2)
		return spyre_fmt_span(view->format,
				      in->lanes * spyre_pt_interleave(view->format));
	return spyre_fmt_span(view->format, in->lanes);
}

/* SPYRE_OPERAND_* of a view: only the output is written. */
static inline u32 spyre_view_access(const struct spyre_instr *in, u32 index)
{
	if (index)
		return SPYRE_OPERAND_READ;
	if (in->opcode == SPYRE_OP_PT && in->flags & SPYRE_INSTR_ACCUMULATE)
		return SPYRE_OPERAND_READ | SPYRE_OPERAND_WRITE;
	return SPYRE_OPERAND_WRITE;
}

/* MASKBYINDEX: distance of the coordinate along a dim; modulo 2^64 where it falls. */
static inline u64 spyre_coord_stride(const struct spyre_instr *in, u32 d)
{
	bool falls = in->imm[2] & 1u << d;
	u32 mask = falls ? in->imm[2] : in->reduce_mask;
	u64 stride = falls ? -1ull : in->lanes;
	u32 i;

	if (in->func != SPYRE_FUNC_MASKBYINDEX || !(mask & 1u << d))
		return 0;
	for (i = d + 1; i < in->num_dims; i++)
		if (mask & 1u << i)
			stride *= in->count[i];
	return stride;
}

/* Returns true if a function computes on 32-bit integers rather than fp32. */
static inline bool spyre_func_integer(u32 func)
{
	return func >= SPYRE_FUNC_INT_IDENTITY && func <= SPYRE_FUNC_INT_AMIN;
}

/* Number of inputs of a function of the SFU or INT; 0 if neither has it. */
static inline u32 spyre_func_inputs(u32 func)
{
	if (func >= SPYRE_FUNC_IDENTITY && func <= SPYRE_FUNC_CLIP)
		return 1;
	if (func >= SPYRE_FUNC_ADD && func <= SPYRE_FUNC_FMOD)
		return 2;
	if (func >= SPYRE_FUNC_SOFTPLUS && func <= SPYRE_FUNC_ERF)
		return 1;
	if (func == SPYRE_FUNC_MASKBYINDEX || func == SPYRE_FUNC_REMAINDER)
		return 2;
	if (func >= SPYRE_FUNC_WHERE && func <= SPYRE_FUNC_FNMS)
		return 3;
	if (func >= SPYRE_FUNC_INT_IDENTITY && func <= SPYRE_FUNC_INT_CLIP)
		return 1;
	if (func >= SPYRE_FUNC_INT_ADD && func <= SPYRE_FUNC_INT_FMOD)
		return 2;
	if (func == SPYRE_FUNC_INT_WHERE)
		return 3;
	return func == SPYRE_FUNC_LAYERNORMNORM ? 5 : 0;
}

/* Number of words of imm[] that a function uses; the others must be zero. */
static inline u32 spyre_func_imms(u32 func)
{
	switch (func) {
	case SPYRE_FUNC_MASKBYINDEX:
		return 4;
	case SPYRE_FUNC_TOPK_VALUE:
	case SPYRE_FUNC_TOPK_INDEX:
		return 3;
	case SPYRE_FUNC_CLIP:
	case SPYRE_FUNC_SOFTPLUS:
	case SPYRE_FUNC_INT_CLIP:
		return 2;
	case SPYRE_FUNC_LAYERNORMSCALE:
	case SPYRE_FUNC_LEAKYRELU:
	case SPYRE_FUNC_MEAN:
	case SPYRE_FUNC_EXX2:
	case SPYRE_FUNC_EXX2_ZEROMEAN:
	case SPYRE_FUNC_QUANTSCALE:
		return 1;
	default:
		return 0;
	}
}

/*
 * Beats of the SFU for a function: two for those that need several passes. SIN, COS, FMOD and
 * REMAINDER are charged for their slowest operands, because data may consist of these.
 */
static inline u32 spyre_func_beats(u32 func)
{
	switch (func) {
	case SPYRE_FUNC_FMOD:
	case SPYRE_FUNC_REMAINDER:
		return 20;
	case SPYRE_FUNC_SIN:
	case SPYRE_FUNC_COS:
		return 8;
	case SPYRE_FUNC_ERF:
	case SPYRE_FUNC_POW:
		return 4;
	default:
		return (func >= SPYRE_FUNC_EXP && func <= SPYRE_FUNC_GELU) ||
		       (func >= SPYRE_FUNC_REALDIV && func <= SPYRE_FUNC_MISH) ||
		       (func >= SPYRE_FUNC_INT_FLOORDIV && func <= SPYRE_FUNC_INT_FMOD) ||
		       func == SPYRE_FUNC_LAYERNORMNORM ? 2 : 1;
	}
}

/* The reasons to refuse or stop work; docs/unsupported.md and isa.md list them. */
enum spyre_stop {
	SPYRE_STOP_NONE = 0,
	SPYRE_STOP_TRUNCATED,		/* image shorter than its header claims */
	SPYRE_STOP_BAD_MAGIC,
	SPYRE_STOP_BAD_VERSION,
	SPYRE_STOP_BAD_HEADER,		/* counts, sizes, reserved fields */
	SPYRE_STOP_BAD_STEP,		/* unknown kind, unbalanced loops, count */
	SPYRE_STOP_BAD_STREAM,		/* core order, range, overlap */
	SPYRE_STOP_BAD_OPCODE,
	SPYRE_STOP_BAD_FUNC,		/* unknown, or wrong for the opcode */
	SPYRE_STOP_BAD_SHAPE,		/* dims, counts, lanes, number of views */
	SPYRE_STOP_BAD_FORMAT,		/* the unit does not support this format */
	SPYRE_STOP_BAD_VIEW,		/* operand index, lanes mode, alignment */
	SPYRE_STOP_LX_OVERFLOW,		/* view leaves lx_bytes */
	SPYRE_STOP_EXTENT,		/* operand extent differs from the bytes used */
	SPYRE_STOP_ACCESS,		/* operand flags differ from the accesses made */
	SPYRE_STOP_TOO_LONG,		/* the work bound is exceeded */
	SPYRE_STOP_TOO_MANY_CORES,
	SPYRE_STOP_DMA_SHAPE,		/* DMA descriptor dims or bounds */
	SPYRE_STOP_DMA_FORMAT,
	SPYRE_STOP_DMA_RANGE,		/* descriptor needs more device bytes */
	SPYRE_STOP_CANCELLED,
	SPYRE_STOP_INDEX,		/* while it runs: an index is not below its extent */
	SPYRE_STOP_COUNT
};

const char *spyre_stop_name(enum spyre_stop stop);

/* Kinds of fault of a context; their numbers are those of the kernel's interface. */
enum spyre_fault_kind {
	SPYRE_FAULT_KIND_NONE,
	/* work exceeded its limit of time */
	SPYRE_FAULT_KIND_TIMEOUT,
	/* an index beyond its extent, or memory that is not an operand */
	SPYRE_FAULT_KIND_ACCESS,
	/* a program did what verification had ruled out */
	SPYRE_FAULT_KIND_ESCAPE,
	/* a core or the DMA engine failed */
	SPYRE_FAULT_KIND_COMPUTE,
	SPYRE_FAULT_KIND_COUNT
};

/* Returns the kind of fault when the card stopped by itself. */
enum spyre_fault_kind spyre_fault_of_stop(enum spyre_stop stop);

/* Modelled cost, deterministic; see timing.c. */
struct spyre_counters {
	u64 cycles;		/* of the 1.5 GHz card clock */
	u64 bytes_read;		/* LPDDR5 -> card */
	u64 bytes_written;	/* card -> LPDDR5 */
	u64 macs;		/* PT multiply-adds */
	u64 elements;		/* SFU elements */
	u64 rdma_read;		/* another card -> card */
	u64 rdma_written;	/* card -> another card */
	u64 pcie_rx_bytes;	/* host memory -> card, by DMA */
	u64 pcie_tx_bytes;	/* card -> host memory, by DMA */
	u64 pt_cycles;		/* that the PT arrays compute, summed over the cores */
	u64 sfu_cycles;		/* the same for the SFUs */
	u64 dma_cycles;		/* of DMA, copies and fills */
	u64 launches;		/* programs */
	u64 copies;		/* DMA transfers, copies and fills */
};

static inline void spyre_counters_add(struct spyre_counters *sum,
				      const struct spyre_counters *more)
{
	sum->cycles += more->cycles;
	sum->bytes_read += more->bytes_read;
	sum->bytes_written += more->bytes_written;
	sum->macs += more->macs;
	sum->elements += more->elements;
	sum->rdma_read += more->rdma_read;
	sum->rdma_written += more->rdma_written;
	sum->pcie_rx_bytes += more->pcie_rx_bytes;
	sum->pcie_tx_bytes += more->pcie_tx_bytes;
	sum->pt_cycles += more->pt_cycles;
	sum->sfu_cycles += more->sfu_cycles;
	sum->dma_cycles += more->dma_cycles;
	sum->launches += more->launches;
	sum->copies += more->copies;
}

/*
 * A verified program: the image (borrowed; it must not change or move while this is
 * in use) and the data that the verifier derived from it.
 */
struct spyre_program {
	const struct spyre_prog_header *header;
	const struct spyre_prog_operand *operands;
	const struct spyre_prog_step *steps;
	const struct spyre_prog_stream *streams;
	const u8 *instrs;
	struct spyre_counters cost;
	u64 work;		/* steps of one launch, bounds its host time; see verify.h */
};

struct spyre_verify_error {
	enum spyre_stop stop;
	u32 step;		/* index of the step, or 0 */
	u32 core;
	u32 instr;		/* index within the stream */
	u32 view;
	u64 value;		/* the offending number */
	u64 limit;		/* the limit that it violates */
};

/*
 * Proves that executing @image stays within the operands' extents and the LX,
 * terminates, and costs what @prog->cost says. Of GATHER and SCATTER it proves this for
 * every index that their check of indices lets pass. Called once, when a program is
 * loaded; a launch then only compares operand sizes with the extents. @cores: cores
 * of the card. Returns 0, or -EINVAL with @err filled.
 */
int spyre_program_verify(const void *image, u64 size, u32 cores,
			 struct spyre_program *prog,
			 struct spyre_verify_error *err);

#endif /* SPYRE_MODEL_PROGRAM_H */
