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
	case SPYRE_FUNC_FLOOR:
		return vf_floor(a);
	case SPYRE_FUNC_CLIP:
		return vf_clip(a, k[0], k[1]);
	default:
		return a;
	}
}

/* Those that are too much code for one loop over all functions. */
static ALWAYS_INLINE vf sfu_long(u32 func, const vf *x, const vf *k)
{
	vf a = x[0], b = x[1];

	switch (func) {
	case SPYRE_FUNC_EXP:
		return vf_exp(a);
	case SPYRE_FUNC_LOG:
		return vf_log(a);
	case SPYRE_FUNC_SQRT:
		return VF_SQRT(a);
	case SPYRE_FUNC_RSQRT:
		return vf_rsqrt(a);
	case SPYRE_FUNC_RECIPROCAL:
		return 1.0f / a;
	case SPYRE_FUNC_TANH:
		return vf_tanh(a);
	case SPYRE_FUNC_SIGMOID:
		return vf_sigmoid(a);
	case SPYRE_FUNC_SILU:
		return vf_silu(a);
	case SPYRE_FUNC_GELU:
		return vf_gelu(a);
	case SPYRE_FUNC_SOFTPLUS:
		return vf_softplus(a, k[0], k[1]);
	case SPYRE_FUNC_MISH:
		return vf_mish(a);
	case SPYRE_FUNC_REALDIV:
		return a / b;
	case SPYRE_FUNC_LAYERNORMSCALE:
		b = VF_FUSED(-a, a, b);
		return vf_rsqrt(vf_select((b > 0) | (b != b), b, (vf){ 0 }) + k[0]);
	default:	/* LAYERNORMNORM */
		return (a - b) * x[2] * x[3] + x[4];
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

/* @func, @format and @inputs are constants in the fast instances; format 0: per view. */
static ALWAYS_INLINE void sfu_points(const struct spyre_sfu_run *run, u32 func, u32 format,
				     long inputs, bool is_long)
{
	const struct spyre_span *v = &run->v[1];
	u32 fo = format ? format : run->v[0].format;
	const vf k[2] = { (vf)vu_splat(run->imm[0]), (vf)vu_splat(run->imm[1]) };
	long lanes = run->lanes;
	long point, lane, i;

	for (point = 0; point < run->points; point++) {
		u8 *out = run->v[0].p + point * run->v[0].stride;
		struct sfu_input in[5] = { 0 };

		for (i = 0; i < inputs; i++) {
			in[i].p = v[i].p + point * v[i].stride;
			if (v[i].splat)
				in[i].splat = vf_load_splat(format ? format : v[i].format,
							    in[i].p);
		}
		for (lane = 0; lane < lanes; lane += VL) {
			long n = lanes - lane < VL ? lanes - lane : VL;
			vf x[5], r;

#pragma GCC unroll 5
			for (i = 0; i < 5; i++)
				x[i] = sfu_input(v, format ? format : v[i].format, inputs, i, in,
						 lane, n);
			r = is_long ? sfu_long(func, x, k) : sfu_short(func, x, k);
			if (n < VL)
				vf_store_part(fo, out + lane * vf_bytes(fo), r, n);
			else
				vf_store(fo, out + lane * vf_bytes(fo), r);
		}
	}
}

/* One instance per long function; only uniform DL16 and fp32 have loops of their own. */
#define SFU_LONG(f, n)								\
static NOINLINE void sfu_##f(const struct spyre_sfu_run *run, u32 format)	\
{										\
	if (format == SPYRE_FMT_SEN169_FP16)					\
		sfu_points(run, SPYRE_FUNC_##f, SPYRE_FMT_SEN169_FP16, n, true); \
	else if (format == SPYRE_FMT_IEEE_FP32)					\
		sfu_points(run, SPYRE_FUNC_##f, SPYRE_FMT_IEEE_FP32, n, true);	\
	else									\
		sfu_points(run, SPYRE_FUNC_##f, 0, n, true);			\
}

SFU_LONG(EXP, 1)
SFU_LONG(LOG, 1)
SFU_LONG(SQRT, 1)
SFU_LONG(RSQRT, 1)
SFU_LONG(RECIPROCAL, 1)
SFU_LONG(TANH, 1)
SFU_LONG(SIGMOID, 1)
SFU_LONG(SILU, 1)
SFU_LONG(GELU, 1)
SFU_LONG(SOFTPLUS, 1)
SFU_LONG(MISH, 1)
SFU_LONG(REALDIV, 2)
SFU_LONG(LAYERNORMSCALE, 2)
SFU_LONG(LAYERNORMNORM, 5)

#define SFU_LONG_CASE(f)		\
	case SPYRE_FUNC_##f:		\
		sfu_##f(run, format);	\
		return true

/* @format: of all views, 0 if they differ.  False: no long function. */
static bool sfu_run_long(const struct spyre_sfu_run *run, u32 format)
{
	switch (run->func) {
	SFU_LONG_CASE(EXP);
	SFU_LONG_CASE(LOG);
	SFU_LONG_CASE(SQRT);
	SFU_LONG_CASE(RSQRT);
	SFU_LONG_CASE(RECIPROCAL);
	SFU_LONG_CASE(TANH);
	SFU_LONG_CASE(SIGMOID);
	SFU_LONG_CASE(SILU);
	SFU_LONG_CASE(GELU);
	SFU_LONG_CASE(SOFTPLUS);
	SFU_LONG_CASE(MISH);
	SFU_LONG_CASE(REALDIV);
	SFU_LONG_CASE(LAYERNORMSCALE);
	SFU_LONG_CASE(LAYERNORMNORM);
	default:
		return false;
	}
}

static NOINLINE void sfu_mixed(const struct spyre_sfu_run *run)
{
	sfu_points(run, run->func, 0, spyre_func_inputs(run->func), false);
}

#define SFU_INSTANCE(f, n)						\
	case SPYRE_FUNC_##f:						\
		sfu_points(run, SPYRE_FUNC_##f, format, n, false);	\
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
	SFU_INSTANCE(WHERE, 3);
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

static void unit_sfu(const struct spyre_sfu_run *run)
{
	u32 format = run->v[0].format;
	u32 i;

	for (i = 1; i <= spyre_func_inputs(run->func); i++)
		if (run->v[i].format != run->v[0].format)
			format = 0;
	if (sfu_run_long(run, format))
		return;
	if (format == SPYRE_FMT_SEN169_FP16)
		sfu_dl16(run);
	else if (format == SPYRE_FMT_IEEE_FP32)
		sfu_fp32(run);
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
