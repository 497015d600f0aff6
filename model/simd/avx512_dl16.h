/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * DL16 with mask registers: the same results as codec.h in fewer instructions.
 * Included by the AVX-512 unit.
 */
#ifndef SPYRE_MODEL_SIMD_AVX512_DL16_H
#define SPYRE_MODEL_SIMD_AVX512_DL16_H

#include "../format.h"

#define ALL16 ((u16)-1)
#define MASK_EQ16(a, b) __builtin_ia32_pcmpeqw256_mask(a, b, ALL16)
#define MASK_GT16(a, b) __builtin_ia32_pcmpgtw256_mask(a, b, ALL16)

/*
 * Keeps a constant in a register. GCC would rebuild it from a general register at each use in
 * a loop, which takes longer than the operation.
 */
#define V_KEEP(x)					\
	({						\
		__typeof__(x) kept = (x);		\
							\
		__asm__("" : "+v"(kept));		\
		kept;					\
	})

typedef float v16sf __attribute__((vector_size(64)));

/* Sign extension and a shift put the sign where fp32 has it; zeros keep nothing else. */
static inline __attribute__((__always_inline__)) v16sf dl16_finite16(v16hi code)
{
	const v16hi magnitude = V_KEEP((v16hi){ 0 } + 0x7fff);
	const v16si fields = V_KEEP((v16si){ 0 } + (int)0x9fffffff);
	const v16si bias = V_KEEP((v16si){ 0 } + (96 << 23));
	u16 some = __builtin_ia32_ptestmw256(code, magnitude, ALL16);
	v16si x = __builtin_ia32_pmovsxwd512_mask(code, (v16si){ 0 }, ALL16);

	x = (x << 14) & fields;
	return (v16sf)__builtin_ia32_paddd512_mask(x, bias, x, some);
}

/* The last two magnitudes, NaN and infinity, are rare, so one comparison skips their code. */
static inline __attribute__((__always_inline__)) v16sf dl16_decode16(v16hi code)
{
	const v16hi most = V_KEEP((v16hi){ 0 } + (SPYRE_DL16_NAN - 1));
	v16hi mag = code & V_KEEP((v16hi){ 0 } + 0x7fff);
	v16si x = (v16si)dl16_finite16(code);

	if (__builtin_expect(MASK_GT16(mag, most) != 0, 0)) {
		const v16si infinity = (x & (int)0x80000000) + 0x7f800000;
		const v16si nan = (v16si){ 0 } + 0x7fc00000;
		u16 infinite = MASK_EQ16(mag, (v16hi){ 0 } + SPYRE_DL16_INF);
		u16 none = MASK_EQ16(mag, (v16hi){ 0 } + SPYRE_DL16_NAN);

		x = __builtin_ia32_blendmd_512_mask(x, infinity, infinite);
		x = __builtin_ia32_blendmd_512_mask(x, nan, none);
	}
	return (v16sf)x;
}

/* Narrowing saturates to infinity's code; underflows are negative before the maximum. */
static inline __attribute__((__always_inline__)) v16hi dl16_magnitude16(v16sf x)
{
	const v16si magnitude = V_KEEP((v16si){ 0 } + 0x7fffffff);
	const v16si round = V_KEEP((v16si){ 0 } + (0x2000 - (96 << 23)));
	v16si wide = (((v16si)x & magnitude) + round) >> 14;
	v16hi code = __builtin_ia32_pmovsdw512_mask(wide, (v16hi){ 0 }, ALL16);

	return __builtin_ia32_pmaxsw256(code, (v16hi){ 0 });
}

static inline __attribute__((__always_inline__)) v16hi dl16_signed16(v16hi magnitude, v16sf x)
{
	const v16hi sign = V_KEEP((v16hi){ 0 } + (short)0x8000);
	u16 negative = __builtin_ia32_cvtd2mask512((v16si)x);

	return __builtin_ia32_psubw256_mask(magnitude, sign, magnitude, negative);
}

/* NaN saturates too, so one comparison finds all lanes that need more than the sign. */
static inline __attribute__((__always_inline__)) v16hi dl16_encode16(v16sf x)
{
	const v16hi nan = (v16hi){ 0 } + SPYRE_DL16_NAN;
	const v16hi most = V_KEEP((v16hi){ 0 } + (SPYRE_DL16_NAN - 1));
	v16hi code = dl16_magnitude16(x);
	u16 none;

	if (__builtin_expect(MASK_GT16(code, most) == 0, 1))
		return dl16_signed16(code, x);
	none = __builtin_ia32_cmpps512_mask(x, x, 3, ALL16, 4);	/* 3: one is NaN */
	code -= code == nan;	/* infinity is the code after NaN */
	return __builtin_ia32_blendmw_256_mask(dl16_signed16(code, x), nan, none);
}

#define DL16_FINITE(code) ((vf)dl16_finite16((v16hi)(code)))
#define DL16_ROUND(x)							\
	((vh)dl16_signed16(dl16_magnitude16((v16sf)(x)), (v16sf)(x)))
#define VH_MAX(a, b) ((vh)__builtin_ia32_pmaxuw256((v16hi)(a), (v16hi)(b)))
#define VH_ANY_ABOVE(a, b)						\
	(__builtin_ia32_ucmpw256_mask((v16hi)(a), (v16hi)(b), 6, ALL16) != 0)
#define DL16_DECODE(code) ((vf)dl16_decode16((v16hi)(code)))
#define DL16_ENCODE(x) ((vh)dl16_encode16((v16sf)(x)))

#endif /* SPYRE_MODEL_SIMD_AVX512_DL16_H */
