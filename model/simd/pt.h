/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PT arithmetic: a block of rows times a stick of 64 columns in fp32, one fused
 * multiply-add per k in ascending order, accumulators in registers. The unit
 * defines PT_ROWS and PT_VECS (rows and vectors of columns held in registers). Each
 * unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_PT_H
#define SPYRE_MODEL_SIMD_PT_H

#include "pair.h"

#define PT_MOST_VECS (64 / VL < 8 ? 64 / VL : 8)

/* Few rows need more vectors of columns, so that eight sums hide the latency of an addition. */
static ALWAYS_INLINE long pt_vecs(long rows)
{
	long vecs = rows == 1 ? 8 : rows == 2 ? 4 : PT_VECS;

	vecs = vecs < PT_VECS ? PT_VECS : vecs;
	return vecs < PT_MOST_VECS ? vecs : PT_MOST_VECS;
}

/* @rows is a constant in every instance. */
static ALWAYS_INLINE void pt_rows(float *c, const u8 *a, u64 a_stride, const float *b, long k_end,
				  long rows)
{
	long vecs = pt_vecs(rows);
	long column, k, r, v;

	for (column = 0; column < 64; column += vecs * VL) {
		vf acc[PT_ROWS][PT_MOST_VECS];

#pragma GCC unroll 8
		for (r = 0; r < rows; r++)
#pragma GCC unroll 8
			for (v = 0; v < vecs; v++)
				acc[r][v] = *(const vf_mem *)(c + r * 64 + column + v * VL);
		for (k = 0; k < k_end; k++) {
			vf line[PT_MOST_VECS];

#pragma GCC unroll 8
			for (v = 0; v < vecs; v++)
				line[v] = *(const vf_mem *)(b + k * 64 + column + v * VL);
#pragma GCC unroll 8
			for (r = 0; r < rows; r++) {
				vf x = vf_splat(((const float *)(a + r * a_stride))[k]);

#pragma GCC unroll 8
				for (v = 0; v < vecs; v++)
					acc[r][v] = VF_FMA(x, line[v], acc[r][v]);
			}
		}
#pragma GCC unroll 8
		for (r = 0; r < rows; r++)
#pragma GCC unroll 8
			for (v = 0; v < vecs; v++)
				*(vf_mem *)(c + r * 64 + column + v * VL) = acc[r][v];
	}
}

/* @rows up to PT_ROWS, which is at most 6. */
static ALWAYS_INLINE void pt_some_rows(float *c, const u8 *a, u64 a_stride, const float *b, long k,
				       long rows)
{
	switch (rows) {
	case 1:
		return pt_rows(c, a, a_stride, b, k, 1);
	case 2:
		return pt_rows(c, a, a_stride, b, k, 2);
#if PT_ROWS > 2
	case 3:
		return pt_rows(c, a, a_stride, b, k, 3);
	case 4:
		return pt_rows(c, a, a_stride, b, k, 4);
	case 5:
		return pt_rows(c, a, a_stride, b, k, 5);
	case 6:
		return pt_rows(c, a, a_stride, b, k, 6);
#endif
	}
}

/* The rows behind the last PT_ROWS are divided evenly: few rows cannot use all of the unit. */
static void pt_fused(const struct spyre_pt_run *run)
{
	const u8 *a = run->a;
	float *c = run->c;
	long r, left, n;

	for (r = 0; r < run->rows; r += n) {
		left = run->rows - r;
		n = left <= PT_ROWS ? left : left < 2 * PT_ROWS ? (left + 1) / 2 : PT_ROWS;
		pt_some_rows(c + r * 64, a + r * run->a_stride, run->a_stride, run->b, run->k, n);
	}
}

/* Prefetches lines of B some pages ahead. The address is an integer, which may wrap. */
#define PT_ROW_AHEAD 16

/* Bytes between lines of B below which the unit's processors prefetch well by themselves. */
#ifndef PT_ROW_NEAR
#define PT_ROW_NEAR 1
#endif

/* The address is an integer, which may wrap. */
static ALWAYS_INLINE void pt_prefetch(const struct spyre_pt_row_run *run, const u8 *b)
{
	const unsigned long ahead = (unsigned long)b + PT_ROW_AHEAD * run->b_stride;

	if (run->b_stride < PT_ROW_NEAR)
		return;
	__builtin_prefetch((const u8 *)ahead);
	__builtin_prefetch((const u8 *)(ahead + 64));
}

/* For one row each line of B is used once, so it is widened in registers. */
static ALWAYS_INLINE void pt_row(const struct spyre_pt_row_run *run, u32 format)
{
	const float *a = run->a;
	vf acc[64 / VL];
	long k, i;

	for (i = 0; i < 64 / VL; i++)
		acc[i] = ((const vf_mem *)run->c)[i];
	for (k = 0; k < run->k; k++) {
		const u8 *b = run->b + k * run->b_stride;
		vf x = vf_splat(a[k]);

		pt_prefetch(run, b);
#pragma GCC unroll 16
		for (i = 0; i < 64 / VL; i++)
			acc[i] = format == SPYRE_FMT_SEN169_FP16 ?
				 VF_FMA(x, vf_load(format, b + i * 2 * VL), acc[i]) :
				 VF_FUSED(x, vf_load(format, b + i * 2 * VL), acc[i]);
	}
	for (i = 0; i < 64 / VL; i++)
		((vf_mem *)run->c)[i] = acc[i];
}

static NOINLINE void pt_row_any(const struct spyre_pt_row_run *run)
{
	if (run->format == SPYRE_FMT_SEN169_FP16)
		pt_row(run, SPYRE_FMT_SEN169_FP16);
	else
		pt_row(run, SPYRE_FMT_BFLOAT16);
}

#ifdef HL_LOW
#define PT_GROUP (HL / 4)	/* groups of four columns in a pair of vectors */

/* Moves the sums of 64 columns, by groups of four, between their order and that of pairs. */
static ALWAYS_INLINE void pt_deal(float *pairs, float *columns, bool back)
{
	long i, at;

	for (i = 0; i < 16; i++) {
		long own = i % PT_GROUP;

		at = i - own + own / 2 + own % 2 * (PT_GROUP / 2);
		__builtin_memcpy(back ? columns + 4 * i : pairs + 4 * at,
				 back ? pairs + 4 * at : columns + 4 * i, 16);
	}
}

/* Returns false and changes nothing if B has a special number, which is rare. */
static ALWAYS_INLINE bool pt_row_pairs(const struct spyre_pt_row_run *run, u32 format)
{
	const hl magnitude = V_KEEP((hl){ 0 } + 0x7fff);
	const float *a = run->a;
	vf acc[64 / HL][2];
	hl most = { 0 };
	long k, i;

	pt_deal((float *)acc, run->c, false);
	for (k = 0; k < run->k; k++) {
		const u8 *b = run->b + k * run->b_stride;
		vf x = vf_splat(a[k]);

		pt_prefetch(run, b);
#pragma GCC unroll 8
		for (i = 0; i < 64 / HL; i++) {
			hl code = hl_le(*(const hl_mem *)(b + i * 2 * HL));
			hl mag = code & magnitude;
			struct hl_pair line = hl_widen(format, code, mag);

			most = HL_MAX(most, mag);
			acc[i][0] = VF_FMA(x, line.low, acc[i][0]);
			acc[i][1] = VF_FMA(x, line.high, acc[i][1]);
		}
	}
	if (hl_any((hls)most >= (s16)hl_least_special(format)))
		return false;
	pt_deal((float *)acc, run->c, true);
	return true;
}

static NOINLINE void unit_pt_row(const struct spyre_pt_row_run *run)
{
	if (run->format == SPYRE_FMT_SEN169_FP16 ? !pt_row_pairs(run, SPYRE_FMT_SEN169_FP16) :
						   !pt_row_pairs(run, SPYRE_FMT_BFLOAT16))
		pt_row_any(run);
}
#else
#define unit_pt_row pt_row_any
#endif

#endif /* SPYRE_MODEL_SIMD_PT_H */
