/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transpose of a 64 x 64 tile of 16-bit elements in 8 x 8 blocks.  Moves raw
 * bits; included once by each unit.
 */
#ifndef SPYRE_MODEL_SIMD_TRANSPOSE_H
#define SPYRE_MODEL_SIMD_TRANSPOSE_H

#include "vec.h"

typedef u16 v8h __attribute__((vector_size(16)));
typedef u16 v8h_mem __attribute__((vector_size(16), aligned(1), may_alias));

#define ZIP_LO(a, b) __builtin_shuffle(a, b, (v8h){ 0, 8, 1, 9, 2, 10, 3, 11 })
#define ZIP_HI(a, b) __builtin_shuffle(a, b, (v8h){ 4, 12, 5, 13, 6, 14, 7, 15 })

/* Three rounds of zipping row i with row i + 4 transpose eight rows of eight. */
static ALWAYS_INLINE void transpose8(u8 *out, u64 out_stride, const u8 *in, u64 in_stride)
{
	v8h x[8], y[8];
	long i;

	for (i = 0; i < 8; i++)
		x[i] = *(const v8h_mem *)(in + i * in_stride);
	for (i = 0; i < 4; i++) {
		y[2 * i] = ZIP_LO(x[i], x[i + 4]);
		y[2 * i + 1] = ZIP_HI(x[i], x[i + 4]);
	}
	for (i = 0; i < 4; i++) {
		x[2 * i] = ZIP_LO(y[i], y[i + 4]);
		x[2 * i + 1] = ZIP_HI(y[i], y[i + 4]);
	}
	for (i = 0; i < 4; i++) {
		y[2 * i] = ZIP_LO(x[i], x[i + 4]);
		y[2 * i + 1] = ZIP_HI(x[i], x[i + 4]);
	}
	for (i = 0; i < 8; i++)
		*(v8h_mem *)(out + i * out_stride) = y[i];
}

static void unit_transpose(u8 *out, u64 out_stride, const u8 *in, u64 in_stride)
{
	long i, j;

	/* Tiles of a row follow each other; their lines are far apart. */
	for (i = 0; i < 64; i++) {
		__builtin_prefetch(in + i * in_stride + 128, 0, 2);
		__builtin_prefetch(in + i * in_stride + 192, 0, 2);
	}
	for (j = 0; j < 64; j += 8)
		for (i = 0; i < 64; i += 8)
			transpose8(out + j * out_stride + i * 2, out_stride,
				   in + i * in_stride + j * 2, in_stride);
}

#endif /* SPYRE_MODEL_SIMD_TRANSPOSE_H */
