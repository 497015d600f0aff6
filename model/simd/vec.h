/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Vectors of VL fp32 lanes and the formats that load into and store from
 * them, in GCC vector extensions (the kernel has no <immintrin.h>).  VL and
 * the macros VF_FMA(a, b, c), VF_SQRT(a), VI_MIN(a, b), VI_MAX(a, b) come from
 * the unit that includes this.  Indices are long: with int and -fwrapv GCC gives up on
 * vectorising.
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

/* The same for memory: any address, any type. */
typedef float vf_mem __attribute__((vector_size(4 * VL), aligned(1), may_alias));
typedef u16 vh_mem __attribute__((vector_size(2 * VL), aligned(1), may_alias));
typedef float f32_mem __attribute__((aligned(1), may_alias));
typedef double f64_mem __attribute__((aligned(1), may_alias));
typedef u32 u32_mem __attribute__((aligned(1), may_alias));
typedef u64 u64_mem __attribute__((aligned(1), may_alias));
typedef u16 u16_mem __attribute__((aligned(1), may_alias));

/* For any operands; VF_FMA may be right only where products are exact. */
#ifndef VF_FUSED
#define VF_FUSED VF_FMA
#endif

#define NAN_BITS 0x7fc00000

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

/* Units may know a better instruction than GCC finds. */
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

static ALWAYS_INLINE vf vf_nan(void)
{
	return (vf)vu_splat(NAN_BITS);
}

static ALWAYS_INLINE vf dl16_decode(vh code)
{
	vu x = vu_widen(code);
	vu mag = x & 0x7fff;
	vu sign = (x & 0x8000) << 16;
	vu r = ((mag << 14) + (96u << 23)) & (vu)(mag != 0);

	return (vf)vu_select(mag == 0x7fff, vu_splat(NAN_BITS), r | sign);
}

/*
 * Half an ulp and the change of bias in one addition; an arithmetic shift
 * keeps what underflows negative.
 */
static ALWAYS_INLINE vh dl16_encode(vf x)
{
	vi mag = (vi)x & 0x7fffffff;
	vi code = (mag + (0x2000 - (96 << 23))) >> 14;
	vu sign = ((vu)x >> 16) & 0x8000 & (vu)(x == x);

	code = VI_MIN(VI_MAX(code, (vi){ 0 }), vi_splat(0x7fff));
	return vh_narrow((vu)code | sign);
}

static ALWAYS_INLINE vf bf16_decode(vh code)
{
	vu x = vu_widen(code) << 16;

	return (vf)vu_select((vi)(x & 0x7fffffff) > 0x7f800000, vu_splat(NAN_BITS), x);
}

static ALWAYS_INLINE vh bf16_encode(vf v)
{
	vu x = (vu)v;
	vu code = (x + 0x7fff + ((x >> 16) & 1)) >> 16;

	code = vu_select((vi)(x & 0x7fffffff) > 0x7f800000, vu_splat(0x7fc0), code);
	return vh_narrow(code);
}

/* Scaling by a power of two handles normal and subnormal numbers alike. */
static ALWAYS_INLINE vf fp16_decode(vh code)
{
	vu x = vu_widen(code);
	vu mag = x & 0x7fff;
	vu sign = (x & 0x8000) << 16;
	vu r = (vu)((vf)(mag << 13) * 0x1p112f);

	r = vu_select((vi)mag >= 0x7c00, vu_splat(0x7f800000), r) | sign;
	return (vf)vu_select((vi)mag > 0x7c00, vu_splat(NAN_BITS), r);
}

static ALWAYS_INLINE vh fp16_encode(vf v)
{
	vu x = (vu)v;
	vu mag = x & 0x7fffffff;
	vu sign = (x >> 16) & 0x8000;
	vu even = (mag >> 13) & 1;
	vi code = (vi)(((mag + 0xfff + even) >> 13) - (112u << 10));
	/* Adding 0.5 lines a number below 2^-14 up with units of 2^-24. */
	vu low = (vu)((vf)mag + 0.5f) - 0x3f000000;

	code = VI_MIN(code, vi_splat(0x7c00));
	code = (vi)vu_select((vi)mag < 0x38800000, low, (vu)code);
	code = (vi)vu_select((vi)mag > 0x7f800000, vu_splat(0x7e00), (vu)code | sign);
	return vh_narrow((vu)code);
}

static ALWAYS_INLINE vf vf_load(u32 format, const u8 *p)
{
	if (format == SPYRE_FMT_IEEE_FP32)
		return *(const vf_mem *)p;
	if (format == SPYRE_FMT_SEN169_FP16)
		return dl16_decode(*(const vh_mem *)p);
	if (format == SPYRE_FMT_IEEE_FP16)
		return fp16_decode(*(const vh_mem *)p);
	return bf16_decode(*(const vh_mem *)p);
}

static ALWAYS_INLINE void vf_store(u32 format, u8 *p, vf x)
{
	if (format == SPYRE_FMT_IEEE_FP32)
		*(vf_mem *)p = vf_select(x != x, vf_nan(), x);
	else if (format == SPYRE_FMT_SEN169_FP16)
		*(vh_mem *)p = dl16_encode(x);
	else if (format == SPYRE_FMT_IEEE_FP16)
		*(vh_mem *)p = fp16_encode(x);
	else
		*(vh_mem *)p = bf16_encode(x);
}

static ALWAYS_INLINE u32 vf_bytes(u32 format)
{
	return format == SPYRE_FMT_IEEE_FP32 ? 4 : 2;
}

/* n < VL lanes; the others read as +0.0. */
static ALWAYS_INLINE vf vf_load_part(u32 format, const u8 *p, long n)
{
	u8 buf[4 * VL] = { 0 };

	__builtin_memcpy(buf, p, n * vf_bytes(format));
	return vf_load(format, buf);
}

static ALWAYS_INLINE void vf_store_part(u32 format, u8 *p, vf x, long n)
{
	u8 buf[4 * VL];

	vf_store(format, buf, x);
	__builtin_memcpy(p, buf, n * vf_bytes(format));
}

/* Lane 0 in all lanes. */
static ALWAYS_INLINE vf vf_load_splat(u32 format, const u8 *p)
{
	return vf_splat(vf_load_part(format, p, 1)[0]);
}

/* Larger of two: NaN if either is, +0 above -0, so order does not matter. */
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

static ALWAYS_INLINE vf vf_abs(vf a)
{
	return (vf)((vu)a & 0x7fffffff);
}

#endif /* SPYRE_MODEL_VEC_H */
