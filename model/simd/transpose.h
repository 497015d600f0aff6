/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Moves raw bits: transposes of tiles in blocks of 16 bytes, and copies of rows
 * that lie far apart. Each unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_TRANSPOSE_H
#define SPYRE_MODEL_SIMD_TRANSPOSE_H

#include "convert.h"

typedef u16 v8h __attribute__((vector_size(16)));
typedef u16 v8h_mem __attribute__((vector_size(16), aligned(1), may_alias));

#define ZIP_LO(a, b) __builtin_shuffle(a, b, (v8h){ 0, 8, 1, 9, 2, 10, 3, 11 })
#define ZIP_HI(a, b) __builtin_shuffle(a, b, (v8h){ 4, 12, 5, 13, 6, 14, 7, 15 })

static ALWAYS_INLINE void zip8(v8h *out, const v8h *in)
{
	long i;

#pragma GCC unroll 4
	for (i = 0; i < 4; i++) {
		out[2 * i] = ZIP_LO(in[i], in[i + 4]);
		out[2 * i + 1] = ZIP_HI(in[i], in[i + 4]);
	}
}

/* Three rounds that interleave row i with row i + 4 transpose eight rows of eight. */
static ALWAYS_INLINE void transpose8(u8 *out, u64 out_stride, const u8 *in, u64 in_stride)
{
	v8h x[8], y[8];
	long i;

	/* Unrolled, so that the lines are registers. */
#pragma GCC unroll 8
	for (i = 0; i < 8; i++)
		x[i] = *(const v8h_mem *)(in + i * in_stride);
	zip8(y, x);
	zip8(x, y);
	zip8(y, x);
#pragma GCC unroll 8
	for (i = 0; i < 8; i++)
		*(v8h_mem *)(out + i * out_stride) = y[i];
}

static void unit_transpose(u8 *out, u64 out_stride, const u8 *in, u64 in_stride)
{
	long i, j;

	/* Tiles of a row are adjacent; their lines lie far apart. */
	for (i = 0; i < 64; i++) {
		__builtin_prefetch(in + i * in_stride + 128, 0, 2);
		__builtin_prefetch(in + i * in_stride + 192, 0, 2);
	}
	for (j = 0; j < 64; j += 8)
		for (i = 0; i < 64; i += 8)
			transpose8(out + j * out_stride + i * 2, out_stride,
				   in + i * in_stride + j * 2, in_stride);
}

typedef u32 v4w __attribute__((vector_size(16)));
typedef u32 v4w_mem __attribute__((vector_size(16), aligned(1), may_alias));

/* Two rounds interleave row i with row i + 2. */
static ALWAYS_INLINE void transpose4(u8 *out, u64 out_stride, const u8 *in, u64 in_stride)
{
	const v4w lo = { 0, 4, 1, 5 }, hi = { 2, 6, 3, 7 };
	v4w x[4], y[4];
	long i;

#pragma GCC unroll 4
	for (i = 0; i < 4; i++)
		x[i] = *(const v4w_mem *)(in + i * in_stride);
#pragma GCC unroll 2
	for (i = 0; i < 2; i++) {
		y[2 * i] = __builtin_shuffle(x[i], x[i + 2], lo);
		y[2 * i + 1] = __builtin_shuffle(x[i], x[i + 2], hi);
	}
#pragma GCC unroll 2
	for (i = 0; i < 2; i++) {
		x[2 * i] = __builtin_shuffle(y[i], y[i + 2], lo);
		x[2 * i + 1] = __builtin_shuffle(y[i], y[i + 2], hi);
	}
#pragma GCC unroll 4
	for (i = 0; i < 4; i++)
		*(v4w_mem *)(out + i * out_stride) = x[i];
}

static void unit_transpose32(u8 *out, u64 out_stride, const u8 *in, u64 in_stride, u32 rows,
			     u32 columns)
{
	long i, j;

	for (i = 0; i < rows; i += 4) {
		/*
		 * Prefetches the next tile, whose lines lie far apart. The address
		 * is an integer, which may wrap.
		 */
		for (j = 0; j < columns; j += 16)
			__builtin_prefetch((const u8 *)((unsigned long)in + i * in_stride +
							4 * (columns + j)), 0, 2);
		for (j = 0; j < columns; j += 4)
			transpose4(out + j * out_stride + i * 4, out_stride,
				   in + i * in_stride + j * 4, in_stride);
	}
}

static ALWAYS_INLINE void copy_rows(const struct spyre_copy_run *run, bool stream)
{
	long row, i;

	for (row = 0; row < run->rows; row++) {
		const u8 *src = run->src + row * run->src_stride;
		/* An integer instead of a pointer, because it may lie outside the span, or wrap. */
		const unsigned long ahead = (unsigned long)src + PREFETCH_ROWS * run->src_stride;
		u8 *dst = run->dst + row * run->dst_stride;

		__builtin_prefetch((const u8 *)ahead, 0, 2);
		__builtin_prefetch((const u8 *)(ahead + 64), 0, 2);
		for (i = 0; i + 2 * HL <= run->bytes; i += 2 * HL)
			hl_store_raw(dst + i, *(const hl_mem *)(src + i), stream);
		if (i < run->bytes)
			__builtin_memcpy(dst + i, src + i, run->bytes - i);
	}
}

static NOINLINE void unit_copy(const struct spyre_copy_run *run)
{
	if (run->stream) {
		copy_rows(run, true);
		V_FENCE();
	} else {
		copy_rows(run, false);
	}
}

#endif /* SPYRE_MODEL_SIMD_TRANSPOSE_H */
