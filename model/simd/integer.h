/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pointwise functions and reductions on 32-bit integers. Tiles hold exact integers:
 * IEEE_INT32 is copied, the other formats go through fp32, which holds all of their
 * integers. Each unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_INTEGER_H
#define SPYRE_MODEL_SIMD_INTEGER_H

#include "tile.h"

/* A quotient of 32-bit integers keeps its integer part when it is rounded to double. */
typedef double vd __attribute__((vector_size(8 * VL)));
typedef s32 vi_mem __attribute__((vector_size(4 * VL), aligned(1), may_alias));

static ALWAYS_INLINE vi vi_select(vi mask, vi yes, vi no)
{
	return (vi)vu_select(mask, (vu)yes, (vu)no);
}

/* Loads n <= TILE lanes; the others become 0. */
static NOINLINE void int32_load(vi *tile, u32 format, const u8 *p, long n)
{
	vf x[TILE_VECS];
	long i;

	n = n < TILE ? n : TILE;
	if (format != SPYRE_FMT_IEEE_INT32) {
		tile_load(x, format, p, n);
		for (i = 0; i < TILE_VECS; i++)
			tile[i] = (vi)vi_int32_encode(x[i]);
		return;
	}
	if (n < TILE) {
		__builtin_memset(tile, 0, 4 * TILE);
		__builtin_memcpy(tile, p, 4 * n);
		for (i = 0; SPYRE_BIG_ENDIAN && i < TILE_VECS; i++)
			tile[i] = (vi)vu_le((vu)tile[i]);
		return;
	}
	for (i = 0; i < TILE_VECS; i++)
		tile[i] = (vi)vu_le((vu)*(const vi_mem *)(p + 4 * i * VL));
}

static ALWAYS_INLINE u32 integer_bits(u32 format)
{
	switch (format) {
	case SPYRE_FMT_SENINT4:
		return 4;
	case SPYRE_FMT_SENINT8:
		return 8;
	case SPYRE_FMT_SENINT16:
		return 16;
	default:
		return 32;
	}
}

/* Stores @n < TILE lanes. */
static ALWAYS_INLINE void int32_store_part(u8 *p, const vi *tile, long n)
{
	vi x[TILE_VECS];
	long i;

	if (!SPYRE_BIG_ENDIAN) {
		__builtin_memcpy(p, tile, 4 * n);
		return;
	}
	for (i = 0; i < TILE_VECS; i++)
		x[i] = (vi)vu_le((vu)tile[i]);
	__builtin_memcpy(p, x, 4 * n);
}

/* A smaller integer keeps the low bits; a float is rounded to fp32 first. */
static NOINLINE void int32_store(const vi *tile, u32 format, u8 *p, long n)
{
	u32 unused = 32 - integer_bits(format);
	vf x[TILE_VECS];
	long i;

	n = n < TILE ? n : TILE;
	if (format != SPYRE_FMT_IEEE_INT32) {
		for (i = 0; i < TILE_VECS; i++)
			x[i] = __builtin_convertvector((vi)((vu)tile[i] << unused) >> unused, vf);
		tile_store(x, format, p, n);
		return;
	}
	if (n < TILE) {
		int32_store_part(p, tile, n);
		return;
	}
	for (i = 0; i < TILE_VECS; i++)
		*(vi_mem *)(p + 4 * i * VL) = (vi)vu_le((vu)tile[i]);
}

/* Loads the element at @p into all lanes. */
static void int32_splat(vi *tile, u32 format, const u8 *p)
{
	vi x;
	long i;

	int32_load(tile, format, p, 1);
	x = vi_splat(tile[0][0]);
	for (i = 0; i < TILE_VECS; i++)
		tile[i] = x;
}

/* Quotient or remainder of a / b, of the division towards zero or -infinity. */
static ALWAYS_INLINE vi integer_divide(vi a, vi b, bool remainder, bool down)
{
	vi zero = b == 0;
	/* The quotient of the lowest integer and -1 wraps to the lowest integer. */
	vi wraps = (a == (s32)0x80000000) & (b == -1);
	vi divisor = vi_select(zero | wraps, vi_splat(1), b);
	vd quotient = __builtin_convertvector(a, vd) / __builtin_convertvector(divisor, vd);
	vi q = __builtin_convertvector(quotient, vi);
	vi r = (vi)((vu)a - (vu)q * (vu)divisor);
	vi step = (r != 0) & ((r ^ divisor) < 0);

	if (down) {
		q = (vi)((vu)q + (vu)step);
		r = (vi)((vu)r + (vu)(step & divisor));
	}
	return remainder ? vi_select(zero, a, r) : q | zero;
}

/* Sums and products wrap; unsigned lanes make this defined. */
static ALWAYS_INLINE vi integer_value(u32 func, vi a, vi b, vi c)
{
	vi inside = (vi)((vu)b < 32);

	switch (func) {
	case SPYRE_FUNC_INT_NEG:
		return (vi)(0 - (vu)a);
	case SPYRE_FUNC_INT_ABS:
		return (vi)(((vu)a ^ (vu)(a >> 31)) - (vu)(a >> 31));
	case SPYRE_FUNC_INT_NOT:
		return ~a;
	case SPYRE_FUNC_INT_CLIP:
		return VI_MIN(VI_MAX(a, b), c);
	case SPYRE_FUNC_INT_ADD:
		return (vi)((vu)a + (vu)b);
	case SPYRE_FUNC_INT_SUB:
		return (vi)((vu)a - (vu)b);
	case SPYRE_FUNC_INT_MUL:
		return (vi)((vu)a * (vu)b);
	case SPYRE_FUNC_INT_MAX:
		return VI_MAX(a, b);
	case SPYRE_FUNC_INT_MIN:
		return VI_MIN(a, b);
	case SPYRE_FUNC_INT_EQ:
		return (a == b) & 1;
	case SPYRE_FUNC_INT_NE:
		return (a != b) & 1;
	case SPYRE_FUNC_INT_GT:
		return (a > b) & 1;
	case SPYRE_FUNC_INT_LT:
		return (a < b) & 1;
	case SPYRE_FUNC_INT_GE:
		return (a >= b) & 1;
	case SPYRE_FUNC_INT_LE:
		return (a <= b) & 1;
	case SPYRE_FUNC_INT_AND:
		return a & b;
	case SPYRE_FUNC_INT_OR:
		return a | b;
	case SPYRE_FUNC_INT_XOR:
		return a ^ b;
	case SPYRE_FUNC_INT_SHL:
		return (vi)((vu)a << (vu)(b & 31)) & inside;
	case SPYRE_FUNC_INT_SHR:
		return a >> vi_select(inside, b, vi_splat(31));
	case SPYRE_FUNC_INT_WHERE:
		return vi_select(a != 0, b, c);
	default:
		return a;
	}
}

/* A tile for each input, and one for the result. */
struct integer_tiles {
	vi out[TILE_VECS];
	vi in[3][TILE_VECS];
};

/* @func is a constant. */
static ALWAYS_INLINE void integer_tile(struct integer_tiles *t, u32 func)
{
	long i;

	for (i = 0; i < TILE_VECS; i++)
		t->out[i] = integer_value(func, t->in[0][i], t->in[1][i], t->in[2][i]);
}

/* Divisions have functions of their own: on a target without vectors each needs a large frame. */
#define INTEGER_DIVISION(name, remainder, down)					\
static NOINLINE void integer_##name(struct integer_tiles *t)			\
{										\
	long i;									\
										\
	for (i = 0; i < TILE_VECS; i++)						\
		t->out[i] = integer_divide(t->in[0][i], t->in[1][i], remainder, down);	\
}

INTEGER_DIVISION(floordiv, false, true)
INTEGER_DIVISION(remainder, true, true)
INTEGER_DIVISION(truncdiv, false, false)
INTEGER_DIVISION(fmod, true, false)

#define INTEGER_FUNCTION(f)						\
	case SPYRE_FUNC_INT_##f:					\
		return integer_tile(t, SPYRE_FUNC_INT_##f)

static NOINLINE void integer_function(u32 func, struct integer_tiles *t)
{
	switch (func) {
	INTEGER_FUNCTION(IDENTITY);
	INTEGER_FUNCTION(NEG);
	INTEGER_FUNCTION(ABS);
	INTEGER_FUNCTION(NOT);
	INTEGER_FUNCTION(CLIP);
	INTEGER_FUNCTION(ADD);
	INTEGER_FUNCTION(SUB);
	INTEGER_FUNCTION(MUL);
	INTEGER_FUNCTION(MAX);
	INTEGER_FUNCTION(MIN);
	INTEGER_FUNCTION(EQ);
	INTEGER_FUNCTION(NE);
	INTEGER_FUNCTION(GT);
	INTEGER_FUNCTION(LT);
	INTEGER_FUNCTION(GE);
	INTEGER_FUNCTION(LE);
	INTEGER_FUNCTION(AND);
	INTEGER_FUNCTION(OR);
	INTEGER_FUNCTION(XOR);
	INTEGER_FUNCTION(SHL);
	INTEGER_FUNCTION(SHR);
	INTEGER_FUNCTION(WHERE);
	case SPYRE_FUNC_INT_FLOORDIV:
		return integer_floordiv(t);
	case SPYRE_FUNC_INT_REMAINDER:
		return integer_remainder(t);
	case SPYRE_FUNC_INT_TRUNCDIV:
		return integer_truncdiv(t);
	case SPYRE_FUNC_INT_FMOD:
		return integer_fmod(t);
	}
}

/*
 * Splats are read before any lane of the point is written. Immediates take the place of
 * the second and third input.
 */
static NOINLINE void integer_tiles(const struct spyre_sfu_run *run, u32 inputs)
{
	const struct spyre_span *v = &run->v[1], *out = &run->v[0];
	struct integer_tiles t = { 0 };
	long point, lane;
	u32 i;

	for (i = 0; i < spyre_func_imms(run->func); i++)
		for (lane = 0; lane < TILE_VECS; lane++)
			t.in[1 + i][lane] = vi_splat((s32)run->imm[i]);

	for (point = 0; point < run->points; point++) {
		u8 *q = out->p + point * out->stride;

		for (i = 0; i < inputs; i++)
			if (v[i].splat)
				int32_splat(t.in[i], v[i].format, v[i].p + point * v[i].stride);
		for (lane = 0; lane < run->lanes; lane += TILE) {
			long n = run->lanes - lane;

			for (i = 0; i < inputs; i++)
				if (!v[i].splat)
					int32_load(t.in[i], v[i].format,
						     v[i].p + point * v[i].stride +
						     vf_bytes(v[i].format, lane), n);
			integer_function(run->func, &t);
			int32_store(t.out, out->format, q + vf_bytes(out->format, lane), n);
		}
	}
}

static void integer_reduce_begin(u32 func, void *acc)
{
	vi *a = acc, first = { 0 };
	long i;

	if (func == SPYRE_FUNC_INT_AMAX)
		first = vi_splat((s32)0x80000000);
	else if (func == SPYRE_FUNC_INT_AMIN)
		first = vi_splat(0x7fffffff);
	for (i = 0; i < (long)SPYRE_ACC_LANES / VL; i++)
		a[i] = first;
}

static ALWAYS_INLINE vi integer_combine(u32 func, vi acc, vi x)
{
	switch (func) {
	case SPYRE_FUNC_INT_AMAX:
		return VI_MAX(acc, x);
	case SPYRE_FUNC_INT_AMIN:
		return VI_MIN(acc, x);
	default:
		return (vi)((vu)acc + (vu)x);
	}
}

/* Combines @n lanes; accumulators beyond them do not change. @func is a constant. */
static ALWAYS_INLINE void integer_combine_tile(u32 func, vi *acc, const vi *x, long n)
{
	vi part;
	long i;

	for (i = 0; i < TILE_VECS && n >= VL; i++, n -= VL)
		acc[i] = integer_combine(func, acc[i], x[i]);
	if (i < TILE_VECS && n > 0) {
		part = integer_combine(func, acc[i], x[i]);
		__builtin_memcpy(&acc[i], &part, 4 * n);
	}
}

static NOINLINE void integer_reduce(const struct spyre_reduce_run *run)
{
	const struct spyre_span *in = &run->in;
	vi x[TILE_VECS], *acc = run->acc;
	long point, lane;

	for (point = 0; point < run->points; point++) {
		const u8 *p = in->p + point * in->stride;

		for (lane = 0; lane < run->lanes; lane += TILE) {
			long n = run->lanes - lane;

			if (in->splat)
				int32_splat(x, in->format, p);
			else
				int32_load(x, in->format, p + vf_bytes(in->format, lane), n);
			if (run->func == SPYRE_FUNC_INT_AMAX)
				integer_combine_tile(SPYRE_FUNC_INT_AMAX, acc + lane / VL, x, n);
			else if (run->func == SPYRE_FUNC_INT_AMIN)
				integer_combine_tile(SPYRE_FUNC_INT_AMIN, acc + lane / VL, x, n);
			else
				integer_combine_tile(SPYRE_FUNC_INT_SUM, acc + lane / VL, x, n);
		}
	}
}

/* Integers may be combined in any order: the result is the same. */
static void integer_reduce_end(const struct spyre_reduce_end *end)
{
	vi *acc = end->acc, x = acc[0];
	long i;

	if (end->across) {
		for (i = 1; i < (long)SPYRE_ACC_LANES / VL; i++)
			x = integer_combine(end->func, x, acc[i]);
		acc[0] = x;
		for (i = 1; i < VL; i++)
			x = integer_combine(end->func, x, vi_splat(acc[0][i]));
		for (i = 0; i < (long)SPYRE_ACC_LANES / VL; i++)
			acc[i] = vi_splat(x[0]);
	}
	for (i = 0; i < end->lanes; i += TILE)
		int32_store(acc + i / VL, end->format, end->out + vf_bytes(end->format, i),
			      end->lanes - i);
}

#endif /* SPYRE_MODEL_SIMD_INTEGER_H */
