/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SFU arithmetic: pointwise functions. The operations that models use most on DL16
 * and fp32 have specialised loops; all others use tiles. Each unit includes this
 * once.
 */
#ifndef SPYRE_MODEL_SIMD_SFU_H
#define SPYRE_MODEL_SIMD_SFU_H

#include "integer.h"
#include "math.h"
#include "tile.h"
#include "wide.h"

static ALWAYS_INLINE vf one_where(vi mask)
{
	return (vf)((vu)mask & 0x3f800000);
}

/* x: the inputs, k: the immediates; @exact: products of inputs are exact in fp32. */
static ALWAYS_INLINE vf sfu_short(u32 func, const vf *x, const vf *k, bool exact)
{
	vf a = x[0], b = x[1];

	switch (func) {
	case SPYRE_FUNC_RELU:
		/* a > 0 is false for -0 and NaN; NaN is passed through. */
		return vf_select((a > 0) | (a != a), a, (vf){ 0 });
	case SPYRE_FUNC_NEG:
		return (vf)((vu)a ^ 0x80000000);
	case SPYRE_FUNC_ABS:
		return vf_abs(a);
	case SPYRE_FUNC_ADD:
		return a + b;
	case SPYRE_FUNC_SUB:
		return a - b;
	case SPYRE_FUNC_MUL:
		return a * b;
	case SPYRE_FUNC_MAX:
		return vf_max(a, b);
	case SPYRE_FUNC_MIN:
		return vf_min(a, b);
	case SPYRE_FUNC_EQ:
		return one_where(a == b);
	case SPYRE_FUNC_NE:
		return one_where(a != b);
	case SPYRE_FUNC_GT:
		return one_where(a > b);
	case SPYRE_FUNC_LT:
		return one_where(a < b);
	case SPYRE_FUNC_GE:
		return one_where(a >= b);
	case SPYRE_FUNC_LE:
		return one_where(a <= b);
	case SPYRE_FUNC_WHERE:
		return vf_select(a != 0, b, x[2]);
	case SPYRE_FUNC_REVSUB:
		return b - a;
	case SPYRE_FUNC_REALDIV:
		return a / b;
	case SPYRE_FUNC_LAYERNORMSCALE:
		b = VF_FUSED(-a, a, b);
		return vf_rsqrt(vf_select((b > 0) | (b != b), b, (vf){ 0 }) + k[0]);
	case SPYRE_FUNC_LAYERNORMNORM:
		return (a - b) * x[2] * x[3] + x[4];
	case SPYRE_FUNC_FLOOR:
		return vf_floor(a);
	case SPYRE_FUNC_CLIP:
		return vf_clip(a, k[0], k[1]);
	case SPYRE_FUNC_LEAKYRELU:
		return vf_select(a > 0, a, a * k[0]);
	case SPYRE_FUNC_ROUND:
		return vf_round(a);
	case SPYRE_FUNC_TRUNC:
		return vf_trunc(a);
	case SPYRE_FUNC_MULADD:
		return exact ? VF_FMA(a, b, x[2]) : VF_FUSED(a, b, x[2]);
	case SPYRE_FUNC_FNMS:
		return exact ? VF_FMA(-a, b, x[2]) : VF_FUSED(-a, b, x[2]);
	default:
		return a;
	}
}

/* One input of a point; splats are read before any lane is written. */
struct sfu_input {
	const u8 *p;
	vf splat;
};

/*
 * Masks of the inputs that are splats. Loops for the usual masks need no test in the loop;
 * SFU_ANY tests each input.
 */
#define SFU_NONE 0
#define SFU_SECOND 2		/* a maximum, a sum or a scale per row */
#define SFU_STATISTICS 6	/* LAYERNORMNORM's mean and scale per row */
#define SFU_ANY (-1)

/* @splats is a constant. */
static ALWAYS_INLINE bool sfu_is_splat(const struct spyre_span *v, long splats, long index)
{
	return splats == SFU_ANY ? v[index].splat : splats >> index & 1;
}

/* The arguments of sfu_points() and what its lanes have in common. */
struct sfu_loop {
	u32 func, format;
	long inputs, splats;
	bool stream, inverse;		/* @inverse: the second input is inverted */
	const struct spyre_span *v;
	vf k[2];
};

/* The @n lanes from @lane on; @n is VL at most. */
static ALWAYS_INLINE vf sfu_input(const struct sfu_loop *l, const struct sfu_input *in, long i,
				  long lane, long n)
{
	const u8 *p;

	if (sfu_is_splat(l->v, l->splats, i))
		return in[i].splat;
	p = in[i].p + vf_bytes(l->format, lane);
	return n < VL ? vf_load_part(l->format, p, n) : vf_load(l->format, p);
}

/* @x: the inputs. */
static ALWAYS_INLINE vf sfu_value(const struct sfu_loop *l, const vf *x)
{
	return l->inverse ? x[0] * x[1] :
	       sfu_short(l->func, x, l->k, l->format == SPYRE_FMT_SEN169_FP16);
}

static ALWAYS_INLINE void sfu_store(u32 format, u8 *p, vf x, bool stream)
{
	if (format == SPYRE_FMT_SEN169_FP16)
		dl16_store(p, dl16_encode(x), stream);
	else
		vf_store(format, p, x);
}

static ALWAYS_INLINE void sfu_lanes(const struct sfu_loop *l, const struct sfu_input *in, u8 *out,
				    long lane, long n)
{
	vf x[5] = { 0 }, r;
	long i;

#pragma GCC unroll 5
	for (i = 0; i < l->inputs; i++)
		x[i] = sfu_input(l, in, i, lane, n);
	r = sfu_value(l, x);
	if (n < VL)
		vf_store_part(l->format, out + vf_bytes(l->format, lane), r, n);
	else
		sfu_store(l->format, out + vf_bytes(l->format, lane), r, l->stream);
}

#if defined(DL16_PAIRS) || defined(VH_ANY_ABOVE)
#define SFU_PAIRS
#endif

#if defined(DL16_PAIRS)
/* Stores two vectors and returns true, unless NaN or infinity is among inputs or results. */
static ALWAYS_INLINE bool sfu_numbers(const struct sfu_loop *l, const struct sfu_input *in,
				      u8 *out, long lane)
{
	vf x[5] = { 0 }, y[5] = { 0 };
	struct vf_two pair;
	hls most = { 0 }, code;
	long i;

#pragma GCC unroll 5
	for (i = 0; i < l->inputs; i++) {
		if (sfu_is_splat(l->v, l->splats, i)) {
			x[i] = y[i] = in[i].splat;
			continue;
		}
		code = (hls)hl_le(*(const hl_mem *)(in[i].p + 2 * lane));
		pair = dl16_pair_finite(code, &most);
		x[i] = pair.first;
		y[i] = pair.second;
	}
	pair.first = sfu_value(l, x);
	pair.second = sfu_value(l, y);
	code = dl16_pair_round(pair, &most);
	if (__builtin_expect(dl16_pair_special(most), 0))
		return false;
	hl_store(out + 2 * lane, (hl)code, l->stream);
	return true;
}
#elif defined(SFU_PAIRS)
/*
 * The codes of a vector of DL16, correct unless @doubled is above that of the largest number
 * in any lane. It is the maximum of all codes without their sign, times two.
 */
static ALWAYS_INLINE vh sfu_codes(const struct sfu_loop *l, const struct sfu_input *in, long lane,
				  vh *doubled)
{
	vf x[5] = { 0 };
	vh code;
	long i;

#pragma GCC unroll 5
	for (i = 0; i < l->inputs; i++) {
		if (sfu_is_splat(l->v, l->splats, i)) {
			x[i] = in[i].splat;
			continue;
		}
		code = vh_le(*(const vh_mem *)(in[i].p + 2 * lane));
		*doubled = VH_MAX(*doubled, code + code);
		x[i] = dl16_finite(code);
	}
	code = dl16_round(sfu_value(l, x));
	*doubled = VH_MAX(*doubled, code + code);
	return code;
}

/* Stores two vectors and returns true, unless NaN or infinity is among inputs or results. */
static ALWAYS_INLINE bool sfu_numbers(const struct sfu_loop *l, const struct sfu_input *in,
				      u8 *out, long lane)
{
	const vh most = (vh){ 0 } + 2 * (SPYRE_DL16_NAN - 1);
	vh doubled = { 0 };
	vh first = sfu_codes(l, in, lane, &doubled);
	vh second = sfu_codes(l, in, lane + VL, &doubled);

	if (__builtin_expect(VH_ANY_ABOVE(doubled, most), 0))
		return false;
	dl16_store(out + 2 * lane, first, l->stream);
	dl16_store(out + 2 * (lane + VL), second, l->stream);
	return true;
}
#endif

/*
 * All arguments but @run and @stream are constants.
 *
 * Quotients of DL16 by one number are products with its inverse. Their significands have ten
 * bits, so an exact quotient is at least 2^-21 of itself from the middle between two DL16
 * numbers (a quotient in the middle would have to be a multiple of eleven bits). The two
 * roundings of the product are less than half of that away and cannot change the result.
 */
static ALWAYS_INLINE void sfu_points(const struct spyre_sfu_run *run, u32 func, u32 format,
				     long inputs, long splats, bool stream)
{
	const struct sfu_loop l = {
		.func = func, .format = format, .inputs = inputs, .splats = splats,
		.stream = stream, .v = &run->v[1],
		.inverse = func == SPYRE_FUNC_REALDIV && format == SPYRE_FMT_SEN169_FP16 &&
			   splats == SFU_SECOND,
		.k = { (vf)vu_splat(run->imm[0]), (vf)vu_splat(run->imm[1]) },
	};
	long lanes = run->lanes;
	long point, lane, i;

	for (point = 0; point < run->points; point++) {
		u8 *out = run->v[0].p + point * run->v[0].stride;
		struct sfu_input in[5] = { 0 };

#pragma GCC unroll 5
		for (i = 0; i < inputs; i++) {
			in[i].p = l.v[i].p + point * l.v[i].stride;
			if (sfu_is_splat(l.v, splats, i))
				in[i].splat = vf_load_splat(format, in[i].p);
		}
		if (l.inverse)
			in[1].splat = 1.0f / in[1].splat;
		lane = 0;
#ifdef SFU_PAIRS
		if (format == SPYRE_FMT_SEN169_FP16) {
			for (; lane + HL <= lanes; lane += HL) {
				if (sfu_numbers(&l, in, out, lane))
					continue;
				sfu_lanes(&l, in, out, lane, VL);
				sfu_lanes(&l, in, out, lane + VL, VL);
			}
		}
#endif
		for (; lane + VL <= lanes; lane += VL)
			sfu_lanes(&l, in, out, lane, VL);
		if (lane < lanes)
			sfu_lanes(&l, in, out, lane, lanes - lane);
	}
}

/* A specialised loop for each function and format, and for the usual kinds of inputs. */
#define SFU_LOOPS(name, f, format, n, usual)					\
static NOINLINE void sfu_##name(const struct spyre_sfu_run *run, long splats)	\
{										\
	if (splats == (usual) && splats)					\
		sfu_points(run, SPYRE_FUNC_##f, format, n, usual, run->stream);	\
	else if (splats)							\
		sfu_points(run, SPYRE_FUNC_##f, format, n, SFU_ANY, run->stream);	\
	else if (run->stream)							\
		sfu_points(run, SPYRE_FUNC_##f, format, n, SFU_NONE, true);	\
	else									\
		sfu_points(run, SPYRE_FUNC_##f, format, n, SFU_NONE, false);	\
}

#define SFU_FORMATS(name, f, n, usual)						\
	SFU_LOOPS(dl16_##name, f, SPYRE_FMT_SEN169_FP16, n, usual)		\
	SFU_LOOPS(fp32_##name, f, SPYRE_FMT_IEEE_FP32, n, usual)

SFU_FORMATS(identity, IDENTITY, 1, SFU_NONE)
SFU_FORMATS(relu, RELU, 1, SFU_NONE)
SFU_FORMATS(neg, NEG, 1, SFU_NONE)
SFU_FORMATS(add, ADD, 2, SFU_SECOND)
SFU_FORMATS(sub, SUB, 2, SFU_SECOND)
SFU_FORMATS(mul, MUL, 2, SFU_SECOND)
SFU_FORMATS(max, MAX, 2, SFU_NONE)
SFU_FORMATS(min, MIN, 2, SFU_NONE)
SFU_FORMATS(realdiv, REALDIV, 2, SFU_SECOND)
SFU_FORMATS(where, WHERE, 3, SFU_NONE)
SFU_FORMATS(muladd, MULADD, 3, SFU_NONE)
SFU_FORMATS(fnms, FNMS, 3, SFU_NONE)
SFU_FORMATS(layernormnorm, LAYERNORMNORM, 5, SFU_STATISTICS)

/* LAYERNORMNORM of sticks whose factors and terms are the same for all points, decoded once. */
static NOINLINE void sfu_dl16_layernorm_rows(const struct spyre_sfu_run *run)
{
	const struct spyre_span *v = &run->v[1];
	const u32 format = SPYRE_FMT_SEN169_FP16;
	struct vf_two factor[64 / HL], term[64 / HL];
	long point, i;

	for (i = 0; i < 64 / HL; i++) {
		factor[i] = dl16_load_pair(v[3].p + i * 2 * HL);
		term[i] = dl16_load_pair(v[4].p + i * 2 * HL);
	}
	for (point = 0; point < run->points; point++) {
		const u8 *in = v[0].p + point * v[0].stride;
		u8 *out = run->v[0].p + point * run->v[0].stride;
		vf mean = vf_load_splat(format, v[1].p + point * v[1].stride);
		vf scale = vf_load_splat(format, v[2].p + point * v[2].stride);

#pragma GCC unroll 4
		for (i = 0; i < 64 / HL; i++) {
			struct vf_two x = dl16_load_pair(in + i * 2 * HL);
			vf a[5] = { x.first, mean, scale, factor[i].first, term[i].first };
			vf b[5] = { x.second, mean, scale, factor[i].second, term[i].second };

			x.first = sfu_short(SPYRE_FUNC_LAYERNORMNORM, a, &mean, true);
			x.second = sfu_short(SPYRE_FUNC_LAYERNORMNORM, b, &mean, true);
			dl16_store_pair(out + i * 2 * HL, x, run->stream);
		}
	}
}

static bool sfu_has_layernorm_rows(const struct spyre_sfu_run *run, u32 format, long splats)
{
	return run->func == SPYRE_FUNC_LAYERNORMNORM && format == SPYRE_FMT_SEN169_FP16 &&
	       splats == SFU_STATISTICS && run->lanes == 64 && !run->v[4].stride &&
	       !run->v[5].stride;
}

/* Functions with much code, of one input, which is not a splat. */
#define SFU_LONG(name, value)							\
static NOINLINE void sfu_dl16_##name(const struct spyre_sfu_run *run)		\
{										\
	const struct spyre_span *in = &run->v[1], *out = &run->v[0];		\
	long point, lane;							\
										\
	for (point = 0; point < run->points; point++) {				\
		const u8 *p = in->p + point * in->stride;			\
		u8 *q = out->p + point * out->stride;				\
										\
		for (lane = 0; lane < run->lanes; lane += VL) {			\
			long n = run->lanes - lane;				\
			vf x = n < VL ?						\
			       vf_load_part(SPYRE_FMT_SEN169_FP16, p + 2 * lane, n) :	\
			       vf_load(SPYRE_FMT_SEN169_FP16, p + 2 * lane);	\
			vf r = value;						\
										\
			if (n < VL)						\
				vf_store_part(SPYRE_FMT_SEN169_FP16, q + 2 * lane, r, n);	\
			else							\
				sfu_store(SPYRE_FMT_SEN169_FP16, q + 2 * lane, r, run->stream);	\
		}								\
	}									\
}

SFU_LONG(exp, vf_exp(x))
SFU_LONG(rsqrt, vf_rsqrt(x))
SFU_LONG(reciprocal, 1.0f / x)
SFU_LONG(tanh, vf_tanh(x))
SFU_LONG(sigmoid, vf_sigmoid(x))
SFU_LONG(silu, vf_silu(x))
SFU_LONG(gelu, vf_gelu(x))

/* Returns false if this function has no specialised loop. */
static bool sfu_dl16_long(const struct spyre_sfu_run *run)
{
	switch (run->func) {
	case SPYRE_FUNC_EXP:
		sfu_dl16_exp(run);
		return true;
	case SPYRE_FUNC_RSQRT:
		sfu_dl16_rsqrt(run);
		return true;
	case SPYRE_FUNC_RECIPROCAL:
		sfu_dl16_reciprocal(run);
		return true;
	case SPYRE_FUNC_TANH:
		sfu_dl16_tanh(run);
		return true;
	case SPYRE_FUNC_SIGMOID:
		sfu_dl16_sigmoid(run);
		return true;
	case SPYRE_FUNC_SILU:
		sfu_dl16_silu(run);
		return true;
	case SPYRE_FUNC_GELU:
		sfu_dl16_gelu(run);
		return true;
	default:
		return false;
	}
}

#define SFU_CASE(f, name)					\
	case SPYRE_FUNC_##f:					\
		if (format == SPYRE_FMT_SEN169_FP16)		\
			sfu_dl16_##name(run, splats);		\
		else						\
			sfu_fp32_##name(run, splats);		\
		return true

/* @splats: a mask of the inputs that are splats. */
static bool sfu_uniform(const struct spyre_sfu_run *run, u32 format, long splats)
{
	if (sfu_has_layernorm_rows(run, format, splats)) {
		sfu_dl16_layernorm_rows(run);
		return true;
	}
	switch (run->func) {
	SFU_CASE(IDENTITY, identity);
	SFU_CASE(RELU, relu);
	SFU_CASE(NEG, neg);
	SFU_CASE(ADD, add);
	SFU_CASE(SUB, sub);
	SFU_CASE(MUL, mul);
	SFU_CASE(MAX, max);
	SFU_CASE(MIN, min);
	SFU_CASE(REALDIV, realdiv);
	SFU_CASE(WHERE, where);
	SFU_CASE(MULADD, muladd);
	SFU_CASE(FNMS, fnms);
	SFU_CASE(LAYERNORMNORM, layernormnorm);
	default:
		return !splats && format == SPYRE_FMT_SEN169_FP16 && sfu_dl16_long(run);
	}
}

/* A tile for each input, and one for the result. */
struct sfu_tiles {
	vf out[TILE_VECS];
	vf in[5][TILE_VECS];
};

/*
 * Functions with much code are separate, since inlining all of them would make the
 * stack too large.
 */
#define TILE_FUNCTION(name, value)						\
static NOINLINE void tile_##name(struct sfu_tiles *t, const u32 *imm)		\
{										\
	vf k0 = (vf)vu_splat(imm[0]), k1 = (vf)vu_splat(imm[1]);		\
	long i;									\
										\
	(void)k0;								\
	(void)k1;								\
	for (i = 0; i < TILE_VECS; i++) {					\
		vf x = t->in[0][i];						\
										\
		t->out[i] = value;						\
	}									\
}

TILE_FUNCTION(exp, vf_exp(x))
TILE_FUNCTION(log, vf_log(x))
TILE_FUNCTION(sqrt, VF_SQRT(x))
TILE_FUNCTION(rsqrt, vf_rsqrt(x))
TILE_FUNCTION(reciprocal, 1.0f / x)
TILE_FUNCTION(tanh, vf_tanh(x))
TILE_FUNCTION(sigmoid, vf_sigmoid(x))
TILE_FUNCTION(silu, vf_silu(x))
TILE_FUNCTION(gelu, vf_gelu(x))
TILE_FUNCTION(softplus, vf_softplus(x, k0, k1))
TILE_FUNCTION(mish, vf_mish(x))

/* The same for functions that are computed in double. */
#define TILE_WIDE(name, value)							\
static NOINLINE void tile_##name(struct sfu_tiles *t)				\
{										\
	long i;									\
										\
	for (i = 0; i < TILE / WIDE_LANES; i++) {				\
		wd x = wd_load(t->in[0], i);					\
										\
		wd_store(t->out, i, value);					\
	}									\
}

#define TILE_WIDE2(name, value)							\
static NOINLINE void tile_##name(struct sfu_tiles *t)				\
{										\
	long i;									\
										\
	for (i = 0; i < TILE / WIDE_LANES; i++) {				\
		wd x = wd_load(t->in[0], i), y = wd_load(t->in[1], i);		\
										\
		wd_store(t->out, i, value);					\
	}									\
}

TILE_WIDE(sin, wd_sine(x, 0))
TILE_WIDE(cos, wd_sine(x, 1))
TILE_WIDE(erf, wd_erf(x))
TILE_WIDE2(pow, wd_pow(x, y))
TILE_WIDE2(fmod, wd_fmod(x, y))
TILE_WIDE2(remainder, wd_remainder(x, y))

/* @func and @inputs are constants. */
static ALWAYS_INLINE void tile_short(struct sfu_tiles *t, const u32 *imm, u32 func, long inputs)
{
	const vf k[2] = { (vf)vu_splat(imm[0]), (vf)vu_splat(imm[1]) };
	long i, j;

#pragma GCC unroll 1
	for (i = 0; i < TILE_VECS; i++) {
		vf x[5] = { 0 };

#pragma GCC unroll 5
		for (j = 0; j < inputs; j++)
			x[j] = t->in[j][i];
		t->out[i] = sfu_short(func, x, k, false);
	}
}

/* coordinate < index <= coordinate + width ? value : imm[0]; all are integers, compared exactly. */
static NOINLINE void tile_mask(struct sfu_tiles *t, const struct spyre_sfu_run *run, u32 coord)
{
	vi lane;
	long i;

	for (i = 0; i < VL; i++)
		lane[i] = i;
	for (i = 0; i < TILE_VECS; i++) {
		vu place = (vu)lane + (coord + (u32)i * VL);

		vi keep = vu_below(place, t->in[1][i]);

		if (run->width)
			keep &= ~vu_below(place + run->width, t->in[1][i]);
		t->out[i] = vf_select(keep, t->in[0][i], (vf)vu_splat(run->imm[0]));
	}
}

#define SHORT_FUNCTION(f, n)						\
	case SPYRE_FUNC_##f:						\
		return tile_short(t, imm, SPYRE_FUNC_##f, n)

static NOINLINE void tile_short_function(u32 func, struct sfu_tiles *t, const u32 *imm)
{
	switch (func) {
	SHORT_FUNCTION(IDENTITY, 1);
	SHORT_FUNCTION(RELU, 1);
	SHORT_FUNCTION(NEG, 1);
	SHORT_FUNCTION(ABS, 1);
	SHORT_FUNCTION(FLOOR, 1);
	SHORT_FUNCTION(CLIP, 1);
	SHORT_FUNCTION(LEAKYRELU, 1);
	SHORT_FUNCTION(ROUND, 1);
	SHORT_FUNCTION(TRUNC, 1);
	SHORT_FUNCTION(ADD, 2);
	SHORT_FUNCTION(SUB, 2);
	SHORT_FUNCTION(MUL, 2);
	SHORT_FUNCTION(MAX, 2);
	SHORT_FUNCTION(MIN, 2);
	SHORT_FUNCTION(EQ, 2);
	SHORT_FUNCTION(NE, 2);
	SHORT_FUNCTION(GT, 2);
	SHORT_FUNCTION(LT, 2);
	SHORT_FUNCTION(GE, 2);
	SHORT_FUNCTION(LE, 2);
	SHORT_FUNCTION(REVSUB, 2);
	SHORT_FUNCTION(REALDIV, 2);
	SHORT_FUNCTION(LAYERNORMSCALE, 2);
	SHORT_FUNCTION(WHERE, 3);
	SHORT_FUNCTION(MULADD, 3);
	SHORT_FUNCTION(FNMS, 3);
	SHORT_FUNCTION(LAYERNORMNORM, 5);
	}
}

static void tile_function(const struct spyre_sfu_run *run, struct sfu_tiles *t, u32 coord)
{
	const u32 *imm = run->imm;
	u32 func = run->func;

	switch (func) {
	case SPYRE_FUNC_EXP:
		return tile_exp(t, imm);
	case SPYRE_FUNC_LOG:
		return tile_log(t, imm);
	case SPYRE_FUNC_SQRT:
		return tile_sqrt(t, imm);
	case SPYRE_FUNC_RSQRT:
		return tile_rsqrt(t, imm);
	case SPYRE_FUNC_RECIPROCAL:
		return tile_reciprocal(t, imm);
	case SPYRE_FUNC_TANH:
		return tile_tanh(t, imm);
	case SPYRE_FUNC_SIGMOID:
		return tile_sigmoid(t, imm);
	case SPYRE_FUNC_SILU:
		return tile_silu(t, imm);
	case SPYRE_FUNC_GELU:
		return tile_gelu(t, imm);
	case SPYRE_FUNC_SOFTPLUS:
		return tile_softplus(t, imm);
	case SPYRE_FUNC_MISH:
		return tile_mish(t, imm);
	case SPYRE_FUNC_SIN:
		return tile_sin(t);
	case SPYRE_FUNC_COS:
		return tile_cos(t);
	case SPYRE_FUNC_ERF:
		return tile_erf(t);
	case SPYRE_FUNC_POW:
		return tile_pow(t);
	case SPYRE_FUNC_FMOD:
		return tile_fmod(t);
	case SPYRE_FUNC_REMAINDER:
		return tile_remainder(t);
	case SPYRE_FUNC_MASKBYINDEX:
		return tile_mask(t, run, coord);
	default:
		return tile_short_function(func, t, imm);
	}
}

/* Splats are read before any lane of the point is written. */
static NOINLINE void sfu_tiles(const struct spyre_sfu_run *run, u32 inputs)
{
	const struct spyre_span *v = &run->v[1], *out = &run->v[0];
	u32 coord = run->coord;
	struct sfu_tiles t;
	long point, lane;
	u32 i;

	for (point = 0; point < run->points; point++, coord += run->coord_step) {
		u8 *q = out->p + point * out->stride;

		for (i = 0; i < inputs; i++)
			if (v[i].splat)
				tile_splat(t.in[i], v[i].format, v[i].p + point * v[i].stride);
		for (lane = 0; lane < run->lanes; lane += TILE) {
			long n = run->lanes - lane;

			for (i = 0; i < inputs; i++)
				if (!v[i].splat)
					tile_load(t.in[i], v[i].format,
						  v[i].p + point * v[i].stride +
						  vf_bytes(v[i].format, lane), n);
			tile_function(run, &t, coord + lane);
			tile_store(t.out, out->format, q + vf_bytes(out->format, lane), n);
		}
	}
}

static void unit_sfu(const struct spyre_sfu_run *run)
{
	u32 inputs = spyre_func_inputs(run->func);
	u32 format = run->v[0].format;
	long splats = 0;
	u32 i;

	if (spyre_func_integer(run->func)) {
		integer_tiles(run, inputs);
		return;
	}
	for (i = 1; i <= inputs; i++) {
		if (run->v[i].format != run->v[0].format)
			format = 0;
		splats |= (long)run->v[i].splat << (i - 1);
	}
	if ((format != SPYRE_FMT_SEN169_FP16 && format != SPYRE_FMT_IEEE_FP32) ||
	    !sfu_uniform(run, format, splats))
		sfu_tiles(run, inputs);
	if (run->stream)
		V_FENCE();
}

#endif /* SPYRE_MODEL_SIMD_SFU_H */
