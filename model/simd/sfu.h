/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SFU arithmetic: pointwise functions and reductions.  Included once by each
 * unit, after vec.h.
 */
#ifndef SPYRE_MODEL_SIMD_SFU_H
#define SPYRE_MODEL_SIMD_SFU_H

#include "math.h"

static ALWAYS_INLINE vf one_where(vi mask)
{
	return (vf)((vu)mask & 0x3f800000);
}

/* x: the inputs, k: the immediates. */
static ALWAYS_INLINE vf sfu_short(u32 func, const vf *x, const vf *k)
{
	vf a = x[0], b = x[1];

	switch (func) {
	case SPYRE_FUNC_RELU:
		/* a > 0 fails for -0 and NaN; NaN goes on as it is. */
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
	default:
		return a;
	}
}

/* One input of a point: splats are read before any lane is written. */
struct sfu_input {
	const u8 *p;
	vf splat;
};

static ALWAYS_INLINE vf sfu_input(const struct spyre_span *v, u32 format, long inputs,
				  long index, const struct sfu_input *in, long lane, long n)
{
	const u8 *p;

	if (index >= inputs)
		return (vf){ 0 };
	if (v[index].splat)
		return in[index].splat;
	p = in[index].p + lane * vf_bytes(format);
	return n < VL ? vf_load_part(format, p, n) : vf_load(format, p);
}

/*
 * @func, @format and @inputs are constants in the fast instances; format 0: per
 * view.  @most is a constant not below @inputs.
 */
static ALWAYS_INLINE void sfu_points(const struct spyre_sfu_run *run, u32 func, u32 format,
				     long inputs, long most)
{
	const struct spyre_span *v = &run->v[1];
	u32 fo = format ? format : run->v[0].format;
	const vf k[2] = { (vf)vu_splat(run->imm[0]), (vf)vu_splat(run->imm[1]) };
	long lanes = run->lanes;
	long point, lane, i;

	for (point = 0; point < run->points; point++) {
		u8 *out = run->v[0].p + point * run->v[0].stride;
		struct sfu_input in[5] = { 0 };

#pragma GCC unroll 5
		for (i = 0; i < most; i++) {
			if (i >= inputs)
				break;
			in[i].p = v[i].p + point * v[i].stride;
			if (v[i].splat)
				in[i].splat = vf_load_splat(format ? format : v[i].format,
							    in[i].p);
		}
		for (lane = 0; lane < lanes; lane += VL) {
			long n = lanes - lane < VL ? lanes - lane : VL;
			vf x[5] = { 0 }, r;

#pragma GCC unroll 5
			for (i = 0; i < most; i++)
				x[i] = sfu_input(v, format ? format : v[i].format, inputs, i, in,
						 lane, n);
			r = sfu_short(func, x, k);
			if (n < VL)
				vf_store_part(fo, out + lane * vf_bytes(fo), r, n);
			else
				vf_store(fo, out + lane * vf_bytes(fo), r);
		}
	}
}

static NOINLINE void sfu_mixed(const struct spyre_sfu_run *run)
{
	sfu_points(run, run->func, 0, spyre_func_inputs(run->func), 3);
}

static NOINLINE void sfu_mixed_norm(const struct spyre_sfu_run *run)
{
	sfu_points(run, SPYRE_FUNC_LAYERNORMNORM, 0, 5, 5);
}

#define SFU_INSTANCE(f, n)						\
	case SPYRE_FUNC_##f:						\
		sfu_points(run, SPYRE_FUNC_##f, format, n, n);	\
		break

static ALWAYS_INLINE void sfu_uniform(const struct spyre_sfu_run *run, u32 format)
{
	switch (run->func) {
	SFU_INSTANCE(RELU, 1);
	SFU_INSTANCE(ADD, 2);
	SFU_INSTANCE(SUB, 2);
	SFU_INSTANCE(MUL, 2);
	SFU_INSTANCE(MAX, 2);
	SFU_INSTANCE(MIN, 2);
	SFU_INSTANCE(REALDIV, 2);
	SFU_INSTANCE(WHERE, 3);
	SFU_INSTANCE(LAYERNORMNORM, 5);
	default:
		sfu_mixed(run);
	}
}

static NOINLINE void sfu_dl16(const struct spyre_sfu_run *run)
{
	sfu_uniform(run, SPYRE_FMT_SEN169_FP16);
}

static NOINLINE void sfu_fp32(const struct spyre_sfu_run *run)
{
	sfu_uniform(run, SPYRE_FMT_IEEE_FP32);
}

/*
 * Functions that are much code have one loop each, over a tile of fp32; the
 * formats are dealt with around it.
 */
#define TILE 64

/* Not one function with a switch: the stack of all together would be too large. */
#define TILE_FUNCTION(name, value)					\
static NOINLINE void tile_##name(vf *tile, const u32 *imm)		\
{									\
	vf k0 = (vf)vu_splat(imm[0]), k1 = (vf)vu_splat(imm[1]);	\
	long i;								\
									\
	(void)k0;							\
	(void)k1;							\
	for (i = 0; i < TILE / VL; i++) {				\
		vf x = tile[i];						\
									\
		tile[i] = value;					\
	}								\
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

static void sfu_tile(u32 func, vf *tile, const u32 *imm)
{
	switch (func) {
	case SPYRE_FUNC_EXP:
		return tile_exp(tile, imm);
	case SPYRE_FUNC_LOG:
		return tile_log(tile, imm);
	case SPYRE_FUNC_SQRT:
		return tile_sqrt(tile, imm);
	case SPYRE_FUNC_RSQRT:
		return tile_rsqrt(tile, imm);
	case SPYRE_FUNC_RECIPROCAL:
		return tile_reciprocal(tile, imm);
	case SPYRE_FUNC_TANH:
		return tile_tanh(tile, imm);
	case SPYRE_FUNC_SIGMOID:
		return tile_sigmoid(tile, imm);
	case SPYRE_FUNC_SILU:
		return tile_silu(tile, imm);
	case SPYRE_FUNC_GELU:
		return tile_gelu(tile, imm);
	case SPYRE_FUNC_SOFTPLUS:
		return tile_softplus(tile, imm);
	default:	/* MISH */
		return tile_mish(tile, imm);
	}
}

/* Lanes beyond @n become +0.0. */
static ALWAYS_INLINE void tile_load(vf *tile, u32 format, const u8 *p, long n)
{
	long i;

	for (i = 0; i < TILE / VL; i++, n -= VL, p += VL * vf_bytes(format))
		tile[i] = n >= VL ? vf_load(format, p) :
			  n > 0 ? vf_load_part(format, p, n) : (vf){ 0 };
}

static ALWAYS_INLINE void tile_store(const vf *tile, u32 format, u8 *p, long n)
{
	long i;

	for (i = 0; n > 0; i++, n -= VL, p += VL * vf_bytes(format)) {
		if (n >= VL)
			vf_store(format, p, tile[i]);
		else
			vf_store_part(format, p, tile[i], n);
	}
}

/* Whole tiles of DL16 are what counts. */
static NOINLINE void tile_load_any(vf *tile, u32 format, const u8 *p, long n, bool splat)
{
	long i;

	if (splat) {
		tile[0] = vf_load_splat(format, p);
		for (i = 1; i < TILE / VL; i++)
			tile[i] = tile[0];
	} else if (n >= TILE && format == SPYRE_FMT_SEN169_FP16) {
		tile_load(tile, SPYRE_FMT_SEN169_FP16, p, TILE);
	} else {
		tile_load(tile, format, p, n);
	}
}

static NOINLINE void tile_store_any(const vf *tile, u32 format, u8 *p, long n)
{
	if (n >= TILE && format == SPYRE_FMT_SEN169_FP16)
		tile_store(tile, SPYRE_FMT_SEN169_FP16, p, TILE);
	else
		tile_store(tile, format, p, n < TILE ? n : TILE);
}

static void sfu_tiles(const struct spyre_sfu_run *run)
{
	const struct spyre_span *in = &run->v[1], *out = &run->v[0];
	u32 in_bytes = in->splat ? 0 : vf_bytes(in->format);
	long point, lane;
	vf tile[TILE / VL];

	for (point = 0; point < run->points; point++) {
		const u8 *p = in->p + point * in->stride;
		u8 *q = out->p + point * out->stride;

		for (lane = 0; lane < run->lanes; lane += TILE) {
			long n = run->lanes - lane;

			tile_load_any(tile, in->format, p + lane * in_bytes, n, in->splat);
			sfu_tile(run->func, tile, run->imm);
			tile_store_any(tile, out->format, q + lane * vf_bytes(out->format), n);
		}
	}
}

static void unit_sfu(const struct spyre_sfu_run *run)
{
	u32 format = run->v[0].format;
	u32 i;

	for (i = 1; i <= spyre_func_inputs(run->func); i++)
		if (run->v[i].format != run->v[0].format)
			format = 0;
	if (spyre_func_inputs(run->func) == 1 && spyre_func_long(run->func))
		sfu_tiles(run);
	else if (format == SPYRE_FMT_SEN169_FP16)
		sfu_dl16(run);
	else if (format == SPYRE_FMT_IEEE_FP32)
		sfu_fp32(run);
	else if (run->func == SPYRE_FUNC_LAYERNORMNORM)
		sfu_mixed_norm(run);
	else
		sfu_mixed(run);
}

static ALWAYS_INLINE vf reduce_apply(u32 func, vf acc, vf x)
{
	switch (func) {
	case SPYRE_FUNC_AMAX:
		return vf_max(acc, x);
	case SPYRE_FUNC_AMIN:
		return vf_min(acc, x);
	case SPYRE_FUNC_ABSMAX:
		return vf_max(acc, vf_abs(x));
	case SPYRE_FUNC_EXX2:	/* of its second accumulators */
		return acc + x * x;
	default:
		return acc + x;
	}
}

static void unit_reduce_begin(u32 func, void *acc)
{
	vf *a = acc;
	vf first = { 0 };
	long i;

	if (func == SPYRE_FUNC_AMAX)
		first = (vf)vu_splat(0xff800000);
	else if (func == SPYRE_FUNC_AMIN)
		first = (vf)vu_splat(0x7f800000);
	for (i = 0; i < (long)SPYRE_ACC_BYTES / 4 / VL; i++)
		a[i] = first;
}

static ALWAYS_INLINE void reduce_points(const struct spyre_reduce_run *run, u32 func, u32 format,
					void *into)
{
	long lanes = run->lanes;
	vf *acc = into;
	long point, lane;

	for (point = 0; point < run->points; point++) {
		const u8 *p = run->in.p + point * run->in.stride;

		for (lane = 0; lane + VL <= lanes; lane += VL) {
			vf x = run->in.splat ? vf_load_splat(format, p) :
					       vf_load(format, p + lane * vf_bytes(format));

			acc[lane / VL] = reduce_apply(func, acc[lane / VL], x);
		}
		if (lane < lanes) {
			vf old = acc[lane / VL];
			vf x = run->in.splat ? vf_load_splat(format, p) :
			       vf_load_part(format, p + lane * vf_bytes(format), lanes - lane);
			vf new = reduce_apply(func, old, x);

			__builtin_memcpy(&acc[lane / VL], &new, 4 * (lanes - lane));
		}
	}
}

/* 64 lanes of DL16, the common stick: accumulators stay in registers. */
static ALWAYS_INLINE void reduce_sticks(const struct spyre_reduce_run *run, u32 func, void *into)
{
	vf acc[64 / VL];
	long point, i;

	for (i = 0; i < 64 / VL; i++)
		acc[i] = ((vf *)into)[i];
	for (point = 0; point < run->points; point++) {
		const u8 *p = run->in.p + point * run->in.stride;

#pragma GCC unroll 16
		for (i = 0; i < 64 / VL; i++)
			acc[i] = reduce_apply(func, acc[i], dl16_decode(((const vh_mem *)p)[i]));
	}
	for (i = 0; i < 64 / VL; i++)
		((vf *)into)[i] = acc[i];
}

/* The points are read twice; a run of them stays in the L2 cache. */
static NOINLINE void reduce_exx2(const struct spyre_reduce_run *run)
{
	void *squares = (float *)run->acc + SPYRE_ACC_LANES;

	if (run->in.format == SPYRE_FMT_SEN169_FP16 && run->lanes == 64 && !run->in.splat) {
		reduce_sticks(run, SPYRE_FUNC_SUM, run->acc);
		reduce_sticks(run, SPYRE_FUNC_EXX2, squares);
	} else {
		reduce_points(run, SPYRE_FUNC_SUM, run->in.format, run->acc);
		reduce_points(run, SPYRE_FUNC_EXX2, run->in.format, squares);
	}
}

static void unit_reduce(const struct spyre_reduce_run *run)
{
	bool sum = run->func == SPYRE_FUNC_SUM || run->func == SPYRE_FUNC_MEAN;

	if (run->func == SPYRE_FUNC_EXX2) {
		reduce_exx2(run);
	} else if (run->in.format == SPYRE_FMT_SEN169_FP16 && run->lanes == 64 &&
		   !run->in.splat) {
		if (sum)
			reduce_sticks(run, SPYRE_FUNC_SUM, run->acc);
		else
			reduce_sticks(run, run->func, run->acc);
	} else {
		reduce_points(run, run->func, run->in.format, run->acc);
	}
}

/* The tree: lane i += lane i + 64, then 32, 16, 8, 4, 2, 1. */
static void reduce_tree(u32 func, float *acc)
{
	long half, i;

	for (half = SPYRE_ACC_LANES / 2; half; half /= 2) {
		for (i = 0; i + VL <= half; i += VL) {
			vf *lo = (vf *)(acc + i);
			const vf *hi = (const vf *)(acc + half + i);

			*lo = reduce_apply(func, *lo, *hi);
		}
		for (; i < half; i++)
			acc[i] = reduce_apply(func, vf_splat(acc[i]), vf_splat(acc[half + i]))[0];
	}
}

/* Both sums to the first two lanes, +0.0 to the others. */
static void exx2_end(float *acc)
{
	float *squares = acc + SPYRE_ACC_LANES;
	float both[2];

	reduce_tree(SPYRE_FUNC_SUM, acc);
	reduce_tree(SPYRE_FUNC_SUM, squares);
	both[0] = acc[0];
	both[1] = squares[0];
	__builtin_memset(acc, 0, 4 * SPYRE_ACC_LANES);
	__builtin_memcpy(acc, both, sizeof(both));
}

static void unit_reduce_end(const struct spyre_reduce_end *end)
{
	vf factor = (vf)vu_splat(end->imm);
	bool splat = end->across && end->func != SPYRE_FUNC_EXX2;
	vf *acc = end->acc;
	long lane, n;

	if (end->func == SPYRE_FUNC_EXX2) {
		exx2_end(end->acc);
	} else if (end->across) {
		reduce_tree(end->func, end->acc);
		acc[0] = vf_splat(acc[0][0]);
	}
	for (lane = 0; lane < end->lanes; lane += VL) {
		vf x = acc[splat ? 0 : lane / VL];
		u8 *p = end->out + lane * vf_bytes(end->format);

		if (end->func == SPYRE_FUNC_MEAN || end->func == SPYRE_FUNC_EXX2)
			x *= factor;
		n = end->lanes - lane;
		if (n < VL)
			vf_store_part(end->format, p, x, n);
		else
			vf_store(end->format, p, x);
	}
}

#endif /* SPYRE_MODEL_SIMD_SFU_H */
