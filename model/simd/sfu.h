/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SFU arithmetic: pointwise functions and reductions.  Included once by each
 * unit, after vec.h.
 */
#ifndef SPYRE_MODEL_SIMD_SFU_H
#define SPYRE_MODEL_SIMD_SFU_H

#include "vec.h"

static ALWAYS_INLINE vf one_where(vi mask)
{
	return (vf)((vu)mask & 0x3f800000);
}

static ALWAYS_INLINE vf sfu_apply(u32 func, vf a, vf b, vf c)
{
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
		return vf_select(a != 0, b, c);
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

/* @func, @format and @inputs are constants in the fast instances; format 0: per view. */
static ALWAYS_INLINE void sfu_points(const struct spyre_sfu_run *run, u32 func, u32 format,
				     long inputs)
{
	const struct spyre_span *v = &run->v[1];
	u32 fo = format ? format : run->v[0].format;
	long lanes = run->lanes;
	long point, lane, i;

	for (point = 0; point < run->points; point++) {
		u8 *out = run->v[0].p + point * run->v[0].stride;
		struct sfu_input in[3] = { 0 };

		for (i = 0; i < inputs; i++) {
			in[i].p = v[i].p + point * v[i].stride;
			if (v[i].splat)
				in[i].splat = vf_load_splat(format ? format : v[i].format,
							    in[i].p);
		}
		for (lane = 0; lane < lanes; lane += VL) {
			long n = lanes - lane < VL ? lanes - lane : VL;
			vf a = sfu_input(v, format ? format : v[0].format, inputs, 0, in, lane, n);
			vf b = sfu_input(v, format ? format : v[1].format, inputs, 1, in, lane, n);
			vf c = sfu_input(v, format ? format : v[2].format, inputs, 2, in, lane, n);
			vf r = sfu_apply(func, a, b, c);

			if (n < VL)
				vf_store_part(fo, out + lane * vf_bytes(fo), r, n);
			else
				vf_store(fo, out + lane * vf_bytes(fo), r);
		}
	}
}

static long sfu_inputs(u32 func)
{
	if (func == SPYRE_FUNC_WHERE)
		return 3;
	return func >= SPYRE_FUNC_ADD ? 2 : 1;
}

static NOINLINE void sfu_mixed(const struct spyre_sfu_run *run)
{
	sfu_points(run, run->func, 0, sfu_inputs(run->func));
}

#define SFU_INSTANCE(f, n)						\
	case SPYRE_FUNC_##f:						\
		sfu_points(run, SPYRE_FUNC_##f, format, n);		\
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
	long inputs = sfu_inputs(run->func);
	long i;

	for (i = 1; i <= inputs; i++)
		if (run->v[i].format != run->v[0].format)
			break;
	if (i <= inputs)
		sfu_mixed(run);
	else if (run->v[0].format == SPYRE_FMT_SEN169_FP16)
		sfu_dl16(run);
	else if (run->v[0].format == SPYRE_FMT_IEEE_FP32)
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
	for (i = 0; i < (long)SPYRE_ACC_LANES / VL; i++)
		a[i] = first;
}

static ALWAYS_INLINE void reduce_points(const struct spyre_reduce_run *run, u32 func, u32 format)
{
	long lanes = run->lanes;
	vf *acc = run->acc;
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
static ALWAYS_INLINE void reduce_sticks(const struct spyre_reduce_run *run, u32 func)
{
	vf acc[64 / VL];
	long point, i;

	for (i = 0; i < 64 / VL; i++)
		acc[i] = ((vf *)run->acc)[i];
	for (point = 0; point < run->points; point++) {
		const u8 *p = run->in.p + point * run->in.stride;

#pragma GCC unroll 16
		for (i = 0; i < 64 / VL; i++)
			acc[i] = reduce_apply(func, acc[i], dl16_decode(((const vh_mem *)p)[i]));
	}
	for (i = 0; i < 64 / VL; i++)
		((vf *)run->acc)[i] = acc[i];
}

static void unit_reduce(const struct spyre_reduce_run *run)
{
	bool sum = run->func == SPYRE_FUNC_SUM || run->func == SPYRE_FUNC_MEAN;

	if (run->in.format == SPYRE_FMT_SEN169_FP16 && run->lanes == 64 && !run->in.splat) {
		if (sum)
			reduce_sticks(run, SPYRE_FUNC_SUM);
		else
			reduce_sticks(run, run->func);
	} else {
		reduce_points(run, run->func, run->in.format);
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

static void unit_reduce_end(const struct spyre_reduce_end *end)
{
	vf factor = (vf)vu_splat(end->imm);
	vf *acc = end->acc;
	long lane, n;

	if (end->across) {
		reduce_tree(end->func, end->acc);
		acc[0] = vf_splat(acc[0][0]);
	}
	for (lane = 0; lane < end->lanes; lane += VL) {
		vf x = acc[end->across ? 0 : lane / VL];
		u8 *p = end->out + lane * vf_bytes(end->format);

		if (end->func == SPYRE_FUNC_MEAN)
			x *= factor;
		n = end->lanes - lane;
		if (n < VL)
			vf_store_part(end->format, p, x, n);
		else
			vf_store(end->format, p, x);
	}
}

#endif /* SPYRE_MODEL_SIMD_SFU_H */
