/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * DL16 without mask registers: the same results as codec.h in fewer instructions. Included by
 * the AVX2 unit.
 */
#ifndef SPYRE_MODEL_SIMD_AVX2_DL16_H
#define SPYRE_MODEL_SIMD_AVX2_DL16_H

#include "../format.h"

typedef float v8sf __attribute__((vector_size(32)));
typedef short v16hi __attribute__((vector_size(32)));
typedef unsigned int v8su __attribute__((vector_size(32)));

#define DL16_INLINE inline __attribute__((__always_inline__))

/* Keeps a constant of a conversion in a register. Loops of the SFU are no faster with it. */
#define V_KEEP(x)					\
	({						\
		__typeof__(x) kept = (x);		\
							\
		__asm__("" : "+v"(kept));		\
		kept;					\
	})

/* GCC would widen and narrow the halves of a vector separately. */
#define VU_WIDEN(x) ((vu)__builtin_ia32_pmovzxwd256((v8hi)(x)))
#define VH_NARROW(x) ((vh)v8hi_narrow((v8si)(x)))

static DL16_INLINE v8hi v8hi_narrow(v8si x)
{
	v4si low = (v4si)__builtin_ia32_extract128i256((v4di)x, 0);
	v4si high = (v4si)__builtin_ia32_extract128i256((v4di)x, 1);

	return __builtin_ia32_packusdw128(low, high);
}

static DL16_INLINE v8hi v8hi_narrow_signed(v8si x)
{
	v4si low = (v4si)__builtin_ia32_extract128i256((v4di)x, 0);
	v4si high = (v4si)__builtin_ia32_extract128i256((v4di)x, 1);

	return __builtin_ia32_packssdw128(low, high);
}

/*
 * Sign extension and a shift put the sign where fp32 has it. vpsignd returns 0 for a magnitude
 * of 0 and the bias for all others.
 */
static DL16_INLINE v8si dl16_finite8(v8hi code)
{
	v8si x = (__builtin_ia32_pmovsxwd256(code) << 14) & (int)0x9fffffff;
	v8su twice = (v8su)x + (v8su)x;	/* without the sign, which would overflow an int */

	return x + __builtin_ia32_psignd256((v8si){ 0 } + (96 << 23), (v8si)twice);
}

/* The last two magnitudes, NaN and infinity, are rare, so one comparison skips their code. */
static DL16_INLINE v8sf dl16_decode8(v8hi code)
{
	v8si x = dl16_finite8(code);
	v8hi mag = code & 0x7fff;

	if (__builtin_expect(v8hi_any(mag > SPYRE_DL16_NAN - 1), 0)) {
		v8si infinite = __builtin_ia32_pmovsxwd256(mag == SPYRE_DL16_INF);
		v8si none = __builtin_ia32_pmovsxwd256(mag == SPYRE_DL16_NAN);

		x = (infinite & ((x & (int)0x80000000) + 0x7f800000)) | (~infinite & x);
		x = (none & 0x7fc00000) | (~none & x);
	}
	return (v8sf)x;
}

/* Narrowing saturates to infinity's code; underflows are negative before the maximum. */
static DL16_INLINE v8hi dl16_magnitude8(v8sf x)
{
	v8si wide = (((v8si)x & 0x7fffffff) + (0x2000 - (96 << 23))) >> 14;

	return __builtin_ia32_pmaxsw128(v8hi_narrow_signed(wide), (v8hi){ 0 });
}

/* Saturation preserves the sign of the pattern of any number. */
static DL16_INLINE v8hi dl16_signs8(v8sf x)
{
	return v8hi_narrow_signed((v8si)x) & (short)0x8000;
}

static DL16_INLINE v8hi dl16_round8(v8sf x)
{
	return dl16_magnitude8(x) | dl16_signs8(x);
}

/* NaN saturates too, so one comparison finds all lanes that need more than the sign. */
static DL16_INLINE v8hi dl16_encode8(v8sf x)
{
	v8hi code = dl16_magnitude8(x), none;

	if (__builtin_expect(!v8hi_any(code > SPYRE_DL16_NAN - 1), 1))
		return code | dl16_signs8(x);
	none = v8hi_narrow_signed((v8si)(x != x));
	code -= code == SPYRE_DL16_NAN;	/* infinity is the code after NaN */
	return (none & SPYRE_DL16_NAN) | (~none & (code | dl16_signs8(x)));
}

#define DL16_FINITE(code) ((vf)dl16_finite8((v8hi)(code)))
#define DL16_DECODE(code) ((vf)dl16_decode8((v8hi)(code)))
#define DL16_ROUND(x) ((vh)dl16_round8((v8sf)(x)))
#define DL16_ENCODE(x) ((vh)dl16_encode8((v8sf)(x)))

/*
 * The instructions that join and separate the halves of words leave lanes 0 to 3 and 8 to 11 in
 * the first vector of a pair (dl16_pair.h), the others in the second.
 */
#define DL16_PAIRS
#define HL_PACK(a, b) ((hls)__builtin_ia32_packssdw256((v8si)(a), (v8si)(b)))
#define HLS_MAX(a, b) ((hls)__builtin_ia32_pmaxsw256((v16hi)(a), (v16hi)(b)))
#define PAIR_FIRST(a, b) ((vf)__builtin_ia32_permti256((v4di)(a), (v4di)(b), 0x20))
#define PAIR_SECOND(a, b) ((vf)__builtin_ia32_permti256((v4di)(a), (v4di)(b), 0x31))

#endif /* SPYRE_MODEL_SIMD_AVX2_DL16_H */
