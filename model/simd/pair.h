/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * 16-bit floats to fp32, twice as many lanes per operation as codec.h: the two halves of an
 * fp32 number are computed in 16 bits and interleaved. The unit defines HL_LOW(a, b) and
 * HL_HIGH(a, b), which interleave the first and the last four elements of each 128 bits, and
 * HL_ADD_SOME(x, y, z), x + y where z is not 0 and x elsewhere; elements of z are below 2^15.
 */
#ifndef SPYRE_MODEL_SIMD_PAIR_H
#define SPYRE_MODEL_SIMD_PAIR_H

#include "codec.h"

/* Keeps a constant in a register, if the unit has a reason to. */
#ifndef V_KEEP
#define V_KEEP(x) (x)
#endif

#ifdef HL_LOW

/* Widened elements: the first four of each eight, and the others. */
struct hl_pair {
	vf low, high;
};

/* The lower half of a number comes first on a little-endian host. */
static ALWAYS_INLINE struct hl_pair hl_join(hl bottom, hl top)
{
	hl first = SPYRE_BIG_ENDIAN ? top : bottom, second = SPYRE_BIG_ENDIAN ? bottom : top;

	return (struct hl_pair){ (vf)HL_LOW(first, second), (vf)HL_HIGH(first, second) };
}

/* The fraction's last two bits are the only ones of the lower half. @mag is @code without signs. */
static ALWAYS_INLINE struct hl_pair dl16_pair(hl code, hl mag)
{
	const hl fields = V_KEEP((hl){ 0 } + 0x9fff), bias = V_KEEP((hl){ 0 } + (96 << 7));
	hl top = HL_ADD_SOME((hl)((hls)code >> 2) & fields, bias, mag);
	hl bottom = code << 14;

	return hl_join(bottom, top);
}

static ALWAYS_INLINE struct hl_pair bf16_pair(hl code)
{
	return hl_join((hl){ 0 }, code);
}

/* The least magnitude that hl_widen() does not widen: of DL16's NaN and infinity, or bf16's NaN. */
static ALWAYS_INLINE u16 hl_least_special(u32 format)
{
	return format == SPYRE_FMT_SEN169_FP16 ? SPYRE_DL16_NAN : 0x7f81;
}

#ifndef HL_ANY_ABOVE
#define HL_ANY_ABOVE(x, y) hl_any((hls)(x) > (hls)(y))
#endif

/* Tells if the magnitudes have one that is not widened below. */
static ALWAYS_INLINE bool hl_any_special(u32 format, hl mag)
{
	return HL_ANY_ABOVE(mag, V_KEEP((hl){ 0 } + (u16)(hl_least_special(format) - 1)));
}

static ALWAYS_INLINE struct hl_pair hl_widen(u32 format, hl code, hl mag)
{
	return format == SPYRE_FMT_SEN169_FP16 ? dl16_pair(code, mag) : bf16_pair(code);
}

#endif /* HL_LOW */

#endif /* SPYRE_MODEL_SIMD_PAIR_H */
