/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Products of few rows, which use each line of B so little that widening it to memory would
 * take longer than multiplying: it is widened in registers. The unit defines PT_FEW_ROWS, the
 * rows that share a widened line, PT_FEW_SUMS, the vectors of sums up to which a pass over B takes
 * more columns, and PT_FEW_MOST, up to which number of rows this is faster than pt.h. Each unit
 * includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_PT_FEW_H
#define SPYRE_MODEL_SIMD_PT_FEW_H

#include "pair.h"

/* Prefetches lines of B some pages ahead. */
#define PT_FEW_AHEAD 16

/* Bytes between lines of B below which the unit's processors prefetch well by themselves. */
#ifndef PT_FEW_NEAR
#define PT_FEW_NEAR 1
#endif

/* The address is an integer, which may wrap. */
static ALWAYS_INLINE void pt_prefetch(const struct spyre_pt_few_run *run, const u8 *b)
{
	const unsigned long ahead = (unsigned long)b + PT_FEW_AHEAD * run->b_stride;

	__builtin_prefetch((const u8 *)ahead);
	__builtin_prefetch((const u8 *)(ahead + 64));
}

/* Widened elements of HL columns, in the order of the unit's fastest way to widen. */
struct pt_line {
	vf first, second;
};

#ifdef HL_LOW
#define PT_FEW_PAIRS true
#define PT_GROUP (HL / 4)	/* groups of four columns in a pair of vectors */

/* Right but for special numbers; @most becomes the largest magnitude. */
static ALWAYS_INLINE struct pt_line pt_widen_pair(u32 format, const u8 *b, hl *most)
{
	hl code = hl_le(*(const hl_mem *)b);
	hl mag = code & V_KEEP((hl){ 0 } + 0x7fff);
	struct hl_pair pair = hl_widen(format, code, mag);

	*most = HL_MAX(*most, mag);
	return (struct pt_line){ pair.low, pair.high };
}

static ALWAYS_INLINE bool pt_any_special(u32 format, hl most)
{
	return hl_any_special(format, most);
}
#else
#define PT_FEW_PAIRS false
#define PT_GROUP 1
#define HL_MAX(a, b) (b)
#define pt_widen_pair(format, b, most) pt_widen(format, b)
#define pt_any_special(format, most) ((void)(most), false)
#endif

/* Moves the sums of 64 columns between their order and, by groups of four, that of pairs. */
static ALWAYS_INLINE void pt_deal(float *sums, float *columns, bool pair, bool back)
{
	long i, at;

	for (i = 0; i < 16; i++) {
		long own = i % PT_GROUP;

		at = pair ? i - own + own / 2 + own % 2 * (PT_GROUP / 2) : i;
		__builtin_memcpy(back ? columns + 4 * i : sums + 4 * at,
				 back ? sums + 4 * at : columns + 4 * i, 16);
	}
}

static ALWAYS_INLINE struct pt_line pt_widen(u32 format, const u8 *b)
{
	return (struct pt_line){ vf_load(format, b), vf_load(format, b + 2 * VL) };
}

/* Pairs of vectors of columns in a pass over B. */
static ALWAYS_INLINE long pt_few_pairs(long rows)
{
	long pairs = 64 / HL;

	while (pairs > 1 && rows > 1 && 2 * rows * pairs > PT_FEW_SUMS)
		pairs /= 2;
	return pairs;
}

/* Products of DL16 are exact in fp32, those of bf16 are not. */
static ALWAYS_INLINE vf pt_few_add(u32 format, vf x, vf line, vf sum)
{
	return format == SPYRE_FMT_SEN169_FP16 ? VF_FMA(x, line, sum) : VF_FUSED(x, line, sum);
}

/*
 * A pass over B for the columns from @column, whose sums are in the order of pt_widen_pair() if
 * @pair is set. Returns the largest magnitude then. @rows and @pair are constants in every
 * instance.
 */
static ALWAYS_INLINE hl pt_few_pass(const struct spyre_pt_few_run *run, u32 format, long rows,
				    bool pair, float *sums, const u8 *a, long column)
{
	const bool ahead = column == 0 && run->b_stride >= PT_FEW_NEAR;
	const long pairs = pt_few_pairs(rows);
	vf acc[PT_FEW_ROWS][64 / HL][2];
	hl most = { 0 };
	long k, r, i;

#pragma GCC unroll 12
	for (r = 0; r < rows; r++)
#pragma GCC unroll 8
		for (i = 0; i < 2 * pairs; i++)
			acc[r][i / 2][i % 2] = *(vf_mem *)(sums + r * 64 + column + i * VL);
	for (k = 0; k < run->k; k++) {
		const u8 *b = run->b + k * run->b_stride;

		if (ahead)
			pt_prefetch(run, b);
#pragma GCC unroll 8
		for (i = 0; i < pairs; i++) {
			const u8 *codes = b + 2 * (column + i * HL);
			struct pt_line line = pair ? pt_widen_pair(format, codes, &most) :
						     pt_widen(format, codes);

#pragma GCC unroll 12
			for (r = 0; r < rows; r++) {
				vf x = vf_splat(((const float *)(a + r * run->a_stride))[k]);

				acc[r][i][0] = pt_few_add(format, x, line.first, acc[r][i][0]);
				acc[r][i][1] = pt_few_add(format, x, line.second, acc[r][i][1]);
			}
		}
	}
#pragma GCC unroll 12
	for (r = 0; r < rows; r++)
#pragma GCC unroll 8
		for (i = 0; i < 2 * pairs; i++)
			*(vf_mem *)(sums + r * 64 + column + i * VL) = acc[r][i / 2][i % 2];
	return most;
}

/* Returns false and changes nothing if @pair is set and B has a special number, which is rare. */
static ALWAYS_INLINE bool pt_few_rows(const struct spyre_pt_few_run *run, u32 format, long rows,
				      bool pair, long row, float *sums)
{
	const u8 *a = (const u8 *)run->a + row * run->a_stride;
	float *c = (float *)run->c + row * 64;
	hl most = { 0 };
	long r, column;

	for (r = 0; r < rows; r++)
		pt_deal(sums + r * 64, c + r * 64, pair, false);
	for (column = 0; column < 64; column += pt_few_pairs(rows) * HL) {
		hl pass = pt_few_pass(run, format, rows, pair, sums, a, column);

		most = HL_MAX(most, pass);
	}
	if (pair && pt_any_special(format, most))
		return false;
	for (r = 0; r < rows; r++)
		pt_deal(sums + r * 64, c + r * 64, pair, true);
	return true;
}

/* Functions of their own, since the frame of all together would not fit the kernel's stack. */
#define PT_FEW_FUNCTION(name, rows, pair)						\
static NOINLINE bool name(const struct spyre_pt_few_run *run, long row, float *sums)	\
{											\
	return run->format == SPYRE_FMT_SEN169_FP16 ?					\
	       pt_few_rows(run, SPYRE_FMT_SEN169_FP16, rows, pair, row, sums) :		\
	       pt_few_rows(run, SPYRE_FMT_BFLOAT16, rows, pair, row, sums);		\
}

PT_FEW_FUNCTION(pt_few_1, 1, PT_FEW_PAIRS)
PT_FEW_FUNCTION(pt_few_special, 1, false)
#if PT_FEW_ROWS > 1
PT_FEW_FUNCTION(pt_few_2, 2, PT_FEW_PAIRS)
PT_FEW_FUNCTION(pt_few_3, 3, PT_FEW_PAIRS)
PT_FEW_FUNCTION(pt_few_4, 4, PT_FEW_PAIRS)
PT_FEW_FUNCTION(pt_few_5, 5, PT_FEW_PAIRS)
PT_FEW_FUNCTION(pt_few_6, 6, PT_FEW_PAIRS)
#endif
#if PT_FEW_ROWS > 6
PT_FEW_FUNCTION(pt_few_7, 7, PT_FEW_PAIRS)
PT_FEW_FUNCTION(pt_few_8, 8, PT_FEW_PAIRS)
#endif

static bool (*const pt_few[PT_FEW_ROWS + 1])(const struct spyre_pt_few_run *run, long row,
					     float *sums) = {
	NULL,
	pt_few_1,
#if PT_FEW_ROWS > 1
	pt_few_2, pt_few_3, pt_few_4, pt_few_5, pt_few_6,
#endif
#if PT_FEW_ROWS > 6
	pt_few_7, pt_few_8,
#endif
};

static NOINLINE void unit_pt_few(const struct spyre_pt_few_run *run)
{
	float sums[PT_FEW_ROWS * 64] __attribute__((aligned(4 * VL)));
	long row, left, n, i;

	for (row = 0; row < run->rows; row += n) {
		left = run->rows - row;
		n = left <= PT_FEW_ROWS ? left : left < 2 * PT_FEW_ROWS ? (left + 1) / 2 :
									  PT_FEW_ROWS;
		if (pt_few[n](run, row, sums))
			continue;
		for (i = 0; i < n; i++)
			pt_few_special(run, row + i, sums);
	}
}

#endif /* SPYRE_MODEL_SIMD_PT_FEW_H */
