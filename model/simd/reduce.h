/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reductions of the SFU: points are combined lane by lane into accumulators
 * of fp32, these in the end across the lanes by a tree.  Included once by each
 * unit.
 */
#ifndef SPYRE_MODEL_SIMD_REDUCE_H
#define SPYRE_MODEL_SIMD_REDUCE_H

#include "tile.h"

/* How an element is combined with what is there. */
enum combine {
	COMBINE_SUM,
	COMBINE_SQUARES,
	COMBINE_PRODUCTS,	/* of two inputs */
	COMBINE_PRODUCTS_EXACT,	/* that fp32 holds exactly */
	COMBINE_AMAX,
	COMBINE_AMIN,
	COMBINE_ABSMAX,
};

static ALWAYS_INLINE enum combine combine_of(u32 func)
{
	switch (func) {
	case SPYRE_FUNC_AMAX:
		return COMBINE_AMAX;
	case SPYRE_FUNC_AMIN:
		return COMBINE_AMIN;
	case SPYRE_FUNC_ABSMAX:
	case SPYRE_FUNC_QUANTSCALE:
		return COMBINE_ABSMAX;
	case SPYRE_FUNC_MULSUM:
		return COMBINE_PRODUCTS;
	default:
		return COMBINE_SUM;
	}
}

static ALWAYS_INLINE bool has_squares(u32 func)
{
	return func == SPYRE_FUNC_EXX2 || func == SPYRE_FUNC_EXX2_ZEROMEAN;
}

static ALWAYS_INLINE vf reduce_apply(enum combine how, vf acc, vf x, vf y)
{
	switch (how) {
	case COMBINE_AMAX:
		return vf_max(acc, x);
	case COMBINE_AMIN:
		return vf_min(acc, x);
	case COMBINE_ABSMAX:
		return vf_max(acc, vf_abs(x));
	case COMBINE_SQUARES:
		return acc + x * x;
	case COMBINE_PRODUCTS:
		return VF_FUSED(x, y, acc);
	case COMBINE_PRODUCTS_EXACT:
		return VF_FMA(x, y, acc);
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

/* @how is a constant. */
static ALWAYS_INLINE void reduce_tile(enum combine how, vf *acc, const vf *x, const vf *y, long n)
{
	vf part;
	long i;

	if (n >= TILE) {
		for (i = 0; i < TILE_VECS; i++)
			acc[i] = reduce_apply(how, acc[i], x[i], y[i]);
		return;
	}
#pragma GCC unroll 1
	for (i = 0; n >= VL; i++, n -= VL)
		acc[i] = reduce_apply(how, acc[i], x[i], y[i]);
	if (n > 0) {
		part = reduce_apply(how, acc[i], x[i], y[i]);
		__builtin_memcpy(&acc[i], &part, 4 * n);
	}
}

static NOINLINE void reduce_any_tile(enum combine how, vf *acc, const vf *x, const vf *y, long n)
{
	switch (how) {
	case COMBINE_AMAX:
		return reduce_tile(COMBINE_AMAX, acc, x, y, n);
	case COMBINE_AMIN:
		return reduce_tile(COMBINE_AMIN, acc, x, y, n);
	case COMBINE_ABSMAX:
		return reduce_tile(COMBINE_ABSMAX, acc, x, y, n);
	case COMBINE_SQUARES:
		return reduce_tile(COMBINE_SQUARES, acc, x, y, n);
	case COMBINE_PRODUCTS:
		return reduce_tile(COMBINE_PRODUCTS, acc, x, y, n);
	default:
		return reduce_tile(COMBINE_SUM, acc, x, y, n);
	}
}

static ALWAYS_INLINE void reduce_input(vf *tile, const struct spyre_span *in, long point,
				       long lane, long n)
{
	const u8 *p = in->p + point * in->stride;

	if (in->splat)
		tile_splat(tile, in->format, p);
	else
		tile_load(tile, in->format, p + vf_bytes(in->format, lane), n);
}

static NOINLINE void reduce_tiles(const struct spyre_reduce_run *run)
{
	enum combine how = combine_of(run->func);
	bool two = run->func == SPYRE_FUNC_MULSUM, squares = has_squares(run->func);
	vf x[TILE_VECS], y[TILE_VECS] = { { 0 } };
	vf *acc = run->acc;
	long point, lane;

	for (point = 0; point < run->points; point++) {
		for (lane = 0; lane < run->lanes; lane += TILE) {
			long n = run->lanes - lane;

			reduce_input(x, &run->in, point, lane, n);
			if (two)
				reduce_input(y, &run->in2, point, lane, n);
			reduce_any_tile(how, acc + lane / VL, x, y, n);
			if (squares)
				reduce_any_tile(COMBINE_SQUARES,
						acc + (SPYRE_ACC_LANES + lane) / VL, x, y, n);
		}
	}
}

/* One whole stick per point: accumulators stay in registers.  All but @run is constant. */
static ALWAYS_INLINE void reduce_sticks(const struct spyre_reduce_run *run, enum combine how,
					u32 format, long lanes, void *into)
{
	bool two = how == COMBINE_PRODUCTS || how == COMBINE_PRODUCTS_EXACT;
	vf acc[64 / VL];
	long point, i;

	for (i = 0; i < lanes / VL; i++)
		acc[i] = ((vf *)into)[i];
	for (point = 0; point < run->points; point++) {
		const u8 *p = run->in.p + point * run->in.stride;
		const u8 *q = two ? run->in2.p + point * run->in2.stride : p;

#pragma GCC unroll 16
		for (i = 0; i < lanes / VL; i++)
			acc[i] = reduce_apply(how, acc[i],
					      vf_load(format, p + vf_bytes(format, i * VL)),
					      vf_load(format, q + vf_bytes(format, i * VL)));
	}
	for (i = 0; i < lanes / VL; i++)
		((vf *)into)[i] = acc[i];
}

/* EXX2 reads the points twice; a run of them stays in the L2 cache. */
static ALWAYS_INLINE void reduce_function(const struct spyre_reduce_run *run, u32 format,
					  long lanes)
{
	switch (run->func) {
	case SPYRE_FUNC_AMAX:
		return reduce_sticks(run, COMBINE_AMAX, format, lanes, run->acc);
	case SPYRE_FUNC_AMIN:
		return reduce_sticks(run, COMBINE_AMIN, format, lanes, run->acc);
	case SPYRE_FUNC_ABSMAX:
	case SPYRE_FUNC_QUANTSCALE:
		return reduce_sticks(run, COMBINE_ABSMAX, format, lanes, run->acc);
	case SPYRE_FUNC_MULSUM:
		return reduce_sticks(run, format == SPYRE_FMT_SEN169_FP16 ?
					  COMBINE_PRODUCTS_EXACT : COMBINE_PRODUCTS,
				     format, lanes, run->acc);
	case SPYRE_FUNC_EXX2:
	case SPYRE_FUNC_EXX2_ZEROMEAN:
		reduce_sticks(run, COMBINE_SQUARES, format, lanes,
			      (float *)run->acc + SPYRE_ACC_LANES);
		break;
	}
	reduce_sticks(run, COMBINE_SUM, format, lanes, run->acc);
}

static NOINLINE void reduce_dl16(const struct spyre_reduce_run *run)
{
	reduce_function(run, SPYRE_FMT_SEN169_FP16, 64);
}

static NOINLINE void reduce_fp32(const struct spyre_reduce_run *run)
{
	reduce_function(run, SPYRE_FMT_IEEE_FP32, 32);
}

static void unit_reduce(const struct spyre_reduce_run *run)
{
	u32 format = run->in.format;
	bool splat = run->in.splat;

	if (run->func == SPYRE_FUNC_MULSUM) {
		splat |= run->in2.splat;
		format = run->in2.format == format ? format : 0;
	}
	if (format == SPYRE_FMT_SEN169_FP16 && run->lanes == 64 && !splat)
		reduce_dl16(run);
	else if (format == SPYRE_FMT_IEEE_FP32 && run->lanes == 32 && !splat)
		reduce_fp32(run);
	else
		reduce_tiles(run);
}

/* The tree: lane i += lane i + 64, then 32, 16, 8, 4, 2, 1. */
static void reduce_tree(enum combine how, float *acc)
{
	vf none = { 0 };
	long half, i;

	for (half = SPYRE_ACC_LANES / 2; half; half /= 2) {
		for (i = 0; i + VL <= half; i += VL) {
			vf *lo = (vf *)(acc + i);
			const vf *hi = (const vf *)(acc + half + i);

			*lo = reduce_apply(how, *lo, *hi, none);
		}
		for (; i < half; i++)
			acc[i] = reduce_apply(how, vf_splat(acc[i]), vf_splat(acc[half + i]),
					      none)[0];
	}
}

/* Both sums to the first two lanes, +0.0 to the others. */
static void squares_end(const struct spyre_reduce_end *end, float factor)
{
	float *acc = end->acc, *squares = acc + SPYRE_ACC_LANES;
	float both[2];

	reduce_tree(COMBINE_SUM, acc);
	reduce_tree(COMBINE_SUM, squares);
	both[0] = end->func == SPYRE_FUNC_EXX2 ? acc[0] * factor : 0;
	both[1] = squares[0] * factor;
	__builtin_memset(acc, 0, 4 * SPYRE_ACC_LANES);
	__builtin_memcpy(acc, both, sizeof(both));
}

static void unit_reduce_end(const struct spyre_reduce_end *end)
{
	enum combine how = combine_of(end->func);
	vf factor = (vf)vu_splat(end->imm);
	vf *acc = end->acc;
	long i;

	if (has_squares(end->func)) {
		squares_end(end, factor[0]);
	} else {
		if (end->across) {
			reduce_tree(how == COMBINE_PRODUCTS ? COMBINE_SUM : how, end->acc);
			acc[0] = vf_splat(acc[0][0]);
			for (i = 1; i < (long)SPYRE_ACC_LANES / VL; i++)
				acc[i] = acc[0];
		}
		if (end->func == SPYRE_FUNC_MEAN || end->func == SPYRE_FUNC_QUANTSCALE)
			for (i = 0; i < (long)SPYRE_ACC_LANES / VL; i++)
				acc[i] *= factor;
	}
	for (i = 0; i < end->lanes; i += TILE)
		tile_store(acc + i / VL, end->format, end->out + vf_bytes(end->format, i),
			   end->lanes - i);
}

#endif /* SPYRE_MODEL_SIMD_REDUCE_H */
