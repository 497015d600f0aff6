/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A unit of four lanes, for targets whose vectors have 16 bytes and a fused multiply-add. The
 * including file defines VF_FMA(a, b, c), VF_SQRT(a), VI_MIN(a, b), VI_MAX(a, b), HLS_MAX(a, b) and
 * HL_PACK(a, b) (dl16_pair.h), and may define VU_WIDEN(x) and VH_NARROW(x); then UNIT_OF_FOUR(name)
 * makes spyre_unit_name. Elements of a vector are numbered in the order of memory.
 */
#ifndef SPYRE_MODEL_SIMD_FOUR_H
#define SPYRE_MODEL_SIMD_FOUR_H

#include "../types.h"

#define VL 4
/* 24 sums and four vectors of columns, of at least 32 registers. */
#define PT_ROWS 6
#define PT_VECS 4
#define PT_FEW_ROWS 6
#define PT_FEW_SUMS 24
#define PT_FEW_MOST 12

typedef s32 v4si __attribute__((vector_size(16)));
typedef u32 v4su __attribute__((vector_size(16)));
typedef u16 v8hu __attribute__((vector_size(16)));
typedef u16 v4hu __attribute__((vector_size(8)));
typedef u8 v16qu __attribute__((vector_size(16)));
typedef u64 v2du __attribute__((vector_size(16)));

#define FOUR_INLINE inline __attribute__((__always_inline__))

static FOUR_INLINE int v4si_any(v4si mask)
{
	v2du halves = (v2du)mask;

	return (halves[0] | halves[1]) != 0;
}

#define V_ANY(mask) v4si_any((v4si)(mask))
#define HL_ANY(mask) v4si_any((v4si)(mask))

static FOUR_INLINE v8hu v8hu_low(v8hu a, v8hu b)
{
	return __builtin_shuffle(a, b, (v8hu){ 0, 8, 1, 9, 2, 10, 3, 11 });
}

static FOUR_INLINE v8hu v8hu_high(v8hu a, v8hu b)
{
	return __builtin_shuffle(a, b, (v8hu){ 4, 12, 5, 13, 6, 14, 7, 15 });
}

#define HL_LOW(a, b) v8hu_low((v8hu)(a), (v8hu)(b))
#define HL_HIGH(a, b) v8hu_high((v8hu)(a), (v8hu)(b))
#define HL_SPREAD(x) (x)
#define HL_MAX(a, b) ((hl)HLS_MAX((hls)(a), (hls)(b)))	/* of magnitudes, which have no sign */
#define HL_ADD_SOME(x, y, z) ((x) + ((y) & (hl)((z) != 0)))

/* Lanes of a pair are in order: both halves of a vector of codes become vectors. */
#define DL16_PAIRS
#define PAIR_FIRST(a, b) (a)
#define PAIR_SECOND(a, b) (b)

static FOUR_INLINE v4su v4su_swap(v4su x)
{
	const v16qu bytes = { 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12 };

	return (v4su)__builtin_shuffle((v16qu)x, bytes);
}

/* The other order of bytes, which big-endian hosts need. */
#define VU_SWAP(x) ((vu)v4su_swap((v4su)(x)))

#ifndef VU_WIDEN
/* Vectors of eight bytes are no type of these targets, and GCC would move their elements singly. */
static FOUR_INLINE v4su v4hu_widen(v4hu x)
{
	const v8hu zero = { 0 };
	v8hu both;
	u64 half;

	__builtin_memcpy(&half, &x, sizeof(half));
	both = (v8hu)(v2du){ half, half };
	return (v4su)(SPYRE_BIG_ENDIAN ? v8hu_low(zero, both) : v8hu_low(both, zero));
}

static FOUR_INLINE v4hu v4su_narrow(v4su x)
{
	const v8hu lower = (v8hu){ 0, 2, 4, 6, 0, 2, 4, 6 } + SPYRE_BIG_ENDIAN;
	v2du both = (v2du)__builtin_shuffle((v8hu)x, lower);
	u64 half = both[0];
	v4hu codes;

	__builtin_memcpy(&codes, &half, sizeof(codes));
	return codes;
}

#define VU_WIDEN(x) ((vu)v4hu_widen((v4hu)(x)))
#define VH_NARROW(x) ((vh)v4su_narrow((v4su)(x)))
#endif

#include "functions.h"

#define UNIT_OF_FOUR(unit)				\
const struct spyre_unit spyre_unit_##unit = {		\
	.name = #unit,					\
	.budget = 256u << 10,				\
	.inexact_factor = 1,				\
	.long_factor = 4,				\
	.pt = pt_fused,					\
	UNIT_FUNCTIONS,					\
}

#endif /* SPYRE_MODEL_SIMD_FOUR_H */
