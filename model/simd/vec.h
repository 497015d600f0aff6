/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Vectors of VL fp32 lanes in GCC vector extensions (the kernel has no
 * <immintrin.h>). The including unit defines VL and the macros VF_FMA(a, b, c),
 * VF_SQRT(a), VI_MIN(a, b) and VI_MAX(a, b). Indices are long, because with int and
 * -fwrapv GCC does not vectorise.
 */
#ifndef SPYRE_MODEL_VEC_H
#define SPYRE_MODEL_VEC_H

#include "unit.h"

#define ALWAYS_INLINE inline __attribute__((__always_inline__))
#define NOINLINE __attribute__((__noinline__))

typedef float vf __attribute__((vector_size(4 * VL)));
typedef s32 vi __attribute__((vector_size(4 * VL)));
typedef u32 vu __attribute__((vector_size(4 * VL)));
typedef u16 vh __attribute__((vector_size(2 * VL)));
typedef u8 vb __attribute__((vector_size(VL)));

/* The same for memory of any alignment and type. */
typedef float vf_mem __attribute__((vector_size(4 * VL), aligned(1), may_alias));
typedef u16 vh_mem __attribute__((vector_size(2 * VL), aligned(1), may_alias));
typedef float f32_mem __attribute__((aligned(1), may_alias));
typedef double f64_mem __attribute__((aligned(1), may_alias));
typedef u32 u32_mem __attribute__((aligned(1), may_alias));
typedef u64 u64_mem __attribute__((aligned(1), may_alias));
typedef u16 u16_mem __attribute__((aligned(1), may_alias));

/* Correct for any operands; VF_FMA may be correct only for exact products. */
#ifndef VF_FUSED
#define VF_FUSED VF_FMA
#endif
/* For operands whose exact result fits double, such as the error of a product. */
#ifndef VF_REST
#define VF_REST VF_FUSED
#endif

/* Orders streamed stores before the thread's later stores. */
#ifndef V_FENCE
#define V_FENCE() do { } while (0)
#endif

/*
 * Tests whether a comparison holds in any lane, so that code for rare cases can be skipped.
 * Units without a cheap test always run that code, which is right for all lanes.
 */
#ifndef V_ANY
#define V_ANY(mask) 1
#endif

#define NAN_BITS 0x7fc00000
#define INF_BITS 0x7f800000

/* Twice as many lanes of 16 bits. */
#define HL (2 * VL)

typedef u16 hl __attribute__((vector_size(4 * VL)));
typedef s16 hls __attribute__((vector_size(4 * VL)));
typedef u16 hl_mem __attribute__((vector_size(4 * VL), aligned(1), may_alias));

static ALWAYS_INLINE hl hl_select(hls mask, hl yes, hl no)
{
	return ((hl)mask & yes) | (~(hl)mask & no);
}

static ALWAYS_INLINE bool hl_any(hls mask)
{
#ifdef HL_ANY
	return HL_ANY(mask);
#else
	u64 part[4 * VL / 8], all = 0;
	long i;

	__builtin_memcpy(part, &mask, sizeof(mask));
	for (i = 0; i < 4 * VL / 8; i++)
		all |= part[i];
	return all;
#endif
}

/*
 * Between the order of device memory, which is little endian (types.h), and the host's: around
 * each load and store of elements, and nowhere else in a unit.
 */
#if SPYRE_BIG_ENDIAN
static ALWAYS_INLINE vh vh_le(vh x)
{
	return x << 8 | x >> 8;
}

static ALWAYS_INLINE hl hl_le(hl x)
{
	return x << 8 | x >> 8;
}

static ALWAYS_INLINE vu vu_le(vu x)
{
#ifdef VU_SWAP
	return VU_SWAP(x);
#else
	x = x << 16 | x >> 16;
	return (x & 0x00ff00ff) << 8 | (x >> 8 & 0x00ff00ff);
#endif
}

static ALWAYS_INLINE vf vf_le(vf x)
{
	return (vf)vu_le((vu)x);
}
#else
#define vh_le(x) (x)
#define hl_le(x) (x)
#define vu_le(x) (x)
#define vf_le(x) (x)
#endif

static ALWAYS_INLINE vf vf_splat(float x)
{
	return x - (vf){ 0 };
}

static ALWAYS_INLINE vi vi_splat(s32 x)
{
	return x - (vi){ 0 };
}

static ALWAYS_INLINE vu vu_splat(u32 x)
{
	return x - (vu){ 0 };
}

static ALWAYS_INLINE vu vu_select(vi mask, vu yes, vu no)
{
	return ((vu)mask & yes) | (~(vu)mask & no);
}

static ALWAYS_INLINE vf vf_select(vi mask, vf yes, vf no)
{
	return (vf)vu_select(mask, (vu)yes, (vu)no);
}

/* Units may define a better instruction than GCC chooses. */
static ALWAYS_INLINE vu vu_widen(vh x)
{
#ifdef VU_WIDEN
	return VU_WIDEN(x);
#else
	return __builtin_convertvector(x, vu);
#endif
}

/* Values are below 2^16. */
static ALWAYS_INLINE vh vh_narrow(vu x)
{
#ifdef VH_NARROW
	return VH_NARROW(x);
#else
	return __builtin_convertvector(x, vh);
#endif
}

/* Values are below 2^8. */
static ALWAYS_INLINE vb vb_narrow(vu x)
{
#ifdef VB_NARROW
	return VB_NARROW(x);
#else
	return __builtin_convertvector(x, vb);
#endif
}

static ALWAYS_INLINE vf vf_nan(void)
{
	return (vf)vu_splat(NAN_BITS);
}

/* The larger of two: NaN if either is, +0 above -0, so the order does not matter. */
static ALWAYS_INLINE vf vf_max(vf a, vf b)
{
	vf r = vf_select(a > b, a, b);

	r = vf_select(a == b, (vf)((vu)a & (vu)b), r);
	return vf_select((a != a) | (b != b), vf_nan(), r);
}

static ALWAYS_INLINE vf vf_min(vf a, vf b)
{
	vf r = vf_select(a < b, a, b);

	r = vf_select(a == b, (vf)((vu)a | (vu)b), r);
	return vf_select((a != a) | (b != b), vf_nan(), r);
}

/* a < b ? a : b and a > b ? a : b: @b if one is NaN, one instruction on x86. */
static ALWAYS_INLINE vf vf_least(vf a, vf b)
{
#ifdef VF_LEAST
	return VF_LEAST(a, b);
#else
	return vf_select(a < b, a, b);
#endif
}

static ALWAYS_INLINE vf vf_most(vf a, vf b)
{
#ifdef VF_MOST
	return VF_MOST(a, b);
#else
	return vf_select(a > b, a, b);
#endif
}

static ALWAYS_INLINE vf vf_abs(vf a)
{
	return (vf)((vu)a & 0x7fffffff);
}

static ALWAYS_INLINE vf vf_copysign(vf x, vf sign)
{
	return (vf)(((vu)x & 0x7fffffff) | ((vu)sign & 0x80000000));
}

/* Rounds to an integer, ties to even. */
static ALWAYS_INLINE vf vf_round(vf x)
{
	vf t = vf_abs(x);
	vf r = (t + 0x1p23f) - 0x1p23f;

	return vf_select(t < 0x1p23f, vf_copysign(r, x), x);
}

#endif /* SPYRE_MODEL_VEC_H */
