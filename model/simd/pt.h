/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PT arithmetic: a block of rows times a stick of 64 columns in fp32, one fused
 * multiply-add per k in ascending order, accumulators in registers. The unit
 * defines PT_ROWS and PT_VECS (rows and vectors of columns held in registers). Each
 * unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_PT_H
#define SPYRE_MODEL_SIMD_PT_H

#include "vec.h"

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

#endif /* SPYRE_MODEL_SIMD_PT_H */
