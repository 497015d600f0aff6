/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PT arithmetic: a block of rows times a stick of 64 columns in fp32, one fused
 * multiply-add per k in ascending order, accumulators in registers. The unit
 * defines PT_ROWS and PT_VECS (rows and vectors of columns held in registers). Each
 * unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_PT_H
#define SPYRE_MODEL_SIMD_PT_H

#include "codec.h"

/* Vectors of columns held in registers for so many rows: more for fewer rows. */
static ALWAYS_INLINE long pt_vecs(long rows)
{
	long vecs = PT_VECS;

	while (2 * vecs * rows <= PT_ROWS * PT_VECS && 2 * vecs * VL <= 64)
		vecs *= 2;
	return vecs;
}

/* @rows is a constant in every instance. */
static ALWAYS_INLINE void pt_rows(float *c, const u8 *a, u64 a_stride, const float *b, long k_end,
				  long rows)
{
	const long vecs = pt_vecs(rows);
	long column, k, r, v;

	for (column = 0; column < 64; column += vecs * VL) {
		vf acc[PT_ROWS * PT_VECS];

#pragma GCC unroll 8
		for (r = 0; r < rows; r++)
#pragma GCC unroll 8
			for (v = 0; v < vecs; v++)
				acc[r * vecs + v] =
					*(const vf_mem *)(c + r * 64 + column + v * VL);
		for (k = 0; k < k_end; k++) {
			vf line[64 / VL];

#pragma GCC unroll 8
			for (v = 0; v < vecs; v++)
				line[v] = *(const vf_mem *)(b + k * 64 + column + v * VL);
#pragma GCC unroll 8
			for (r = 0; r < rows; r++) {
				vf x = vf_splat(((const float *)(a + r * a_stride))[k]);

#pragma GCC unroll 8
				for (v = 0; v < vecs; v++)
					acc[r * vecs + v] =
						VF_FMA(x, line[v], acc[r * vecs + v]);
			}
		}
#pragma GCC unroll 8
		for (r = 0; r < rows; r++)
#pragma GCC unroll 8
			for (v = 0; v < vecs; v++)
				*(vf_mem *)(c + r * 64 + column + v * VL) = acc[r * vecs + v];
	}
}

#define PT_REST(n)								\
	case n:									\
		return pt_rows(c, a, run->a_stride, run->b, run->k, n)

static void pt_fused(const struct spyre_pt_run *run)
{
	const u8 *a = run->a;
	float *c = run->c;
	u32 rows = run->rows;

	for (; rows >= PT_ROWS; rows -= PT_ROWS, c += PT_ROWS * 64, a += PT_ROWS * run->a_stride)
		pt_rows(c, a, run->a_stride, run->b, run->k, PT_ROWS);
	/* One at a time, they would wait for the latency of their few sums. */
	switch (rows) {
	PT_REST(1);
#if PT_ROWS > 2
	PT_REST(2);
	PT_REST(3);
	PT_REST(4);
	PT_REST(5);
#endif
	}
}

static_assert(PT_ROWS == 2 || PT_ROWS == 6, "every number of remaining rows has an instance");

/* Prefetches lines of B some pages ahead. The address is an integer, which may wrap. */
#define PT_ROW_AHEAD 16

/* Bytes between lines of B below which the unit's processors prefetch well by themselves. */
#ifndef PT_ROW_NEAR
#define PT_ROW_NEAR 1
#endif

/* For one row each line of B is used once, so it is widened in registers. */
static NOINLINE void unit_pt_row(const struct spyre_pt_row_run *run)
{
	const float *a = run->a;
	struct vf_two acc[64 / HL];
	long k, i;

	for (i = 0; i < 64 / HL; i++)
		acc[i] = vf_two_swap(vf_two_load((const u8 *)run->c + i * 4 * HL));
	for (k = 0; k < run->k; k++) {
		const u8 *b = run->b + k * run->b_stride;
		const unsigned long ahead = (unsigned long)b + PT_ROW_AHEAD * run->b_stride;
		vf x = vf_splat(a[k]);

		if (run->b_stride >= PT_ROW_NEAR) {
			__builtin_prefetch((const u8 *)ahead);
			__builtin_prefetch((const u8 *)(ahead + 64));
		}
#pragma GCC unroll 16
		for (i = 0; i < 64 / HL; i++) {
			struct vf_two line = dl16_load_pair(b + i * 2 * HL);

			acc[i].first = VF_FMA(x, line.first, acc[i].first);
			acc[i].second = VF_FMA(x, line.second, acc[i].second);
		}
	}
	for (i = 0; i < 64 / HL; i++)
		vf_two_store((u8 *)run->c + i * 4 * HL, vf_two_swap(acc[i]));
}

#endif /* SPYRE_MODEL_SIMD_PT_H */
