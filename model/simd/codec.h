/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The formats of the SFU as vectors of fp32: decoders, encoders, loads and stores.
 * docs/numerics.md has the rules; model/format.c has the same codecs for single
 * numbers. Each unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_CODEC_H
#define SPYRE_MODEL_SIMD_CODEC_H

#include "vec.h"

/* Decodes all codes but those of NaN and infinity. */
static ALWAYS_INLINE vf dl16_finite(vh code)
{
#ifdef DL16_FINITE
	return DL16_FINITE(code);
#else
	vu x = vu_widen(code);
	vu mag = x & 0x7fff;

	return (vf)((((mag << 14) + (96u << 23)) & (vu)(mag != 0)) | (x & 0x8000) << 16);
#endif
}

static ALWAYS_INLINE vf dl16_decode(vh code)
{
#ifdef DL16_DECODE
	return DL16_DECODE(code);
#else
	vu x = vu_widen(code);
	vu mag = x & 0x7fff;
	vu sign = (x & 0x8000) << 16;
	vu r = (vu)dl16_finite(code);

	if (__builtin_expect(V_ANY((vi)mag >= SPYRE_DL16_NAN), 0)) {
		r = vu_select(mag == SPYRE_DL16_INF, INF_BITS | sign, r);
		r = vu_select(mag == SPYRE_DL16_NAN, vu_splat(NAN_BITS), r);
	}
	return (vf)r;
#endif
}

/*
 * One addition applies half an ulp and the change of bias; an arithmetic shift
 * keeps underflows negative. Numbers that would round to the code of NaN become
 * infinity.
 */
static ALWAYS_INLINE vh dl16_encode(vf x)
{
#ifdef DL16_ENCODE
	return DL16_ENCODE(x);
#else
	vi mag = (vi)x & 0x7fffffff;
	vi code = (mag + (0x2000 - (96 << 23))) >> 14;
	vu sign = ((vu)x >> 16) & 0x8000;
	vu r = (vu)VI_MAX(code, (vi){ 0 }) | sign;

	if (__builtin_expect(V_ANY(code >= SPYRE_DL16_NAN), 0)) {
		code = VI_MIN(VI_MAX(code, (vi){ 0 }), vi_splat(SPYRE_DL16_INF));
		code -= code == SPYRE_DL16_NAN;
		r = vu_select(x == x, (vu)code | sign, vu_splat(SPYRE_DL16_NAN));
	}
	return vh_narrow(r);
#endif
}

/* Encodes all numbers but those whose code is that of NaN or above, which have such a code. */
static ALWAYS_INLINE vh dl16_round(vf x)
{
#ifdef DL16_ROUND
	return DL16_ROUND(x);
#else
	vi code = (((vi)x & 0x7fffffff) + (0x2000 - (96 << 23))) >> 14;

	code = VI_MIN(VI_MAX(code, (vi){ 0 }), vi_splat(SPYRE_DL16_INF));
	return vh_narrow((vu)code | (((vu)x >> 16) & 0x8000));
#endif
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
	/* Adding 0.5 aligns a number below 2^-14 to units of 2^-24. */
	vu low = (vu)((vf)mag + 0.5f) - 0x3f000000;

	code = VI_MIN(code, vi_splat(0x7c00));
	code = (vi)vu_select((vi)mag < 0x38800000, low, (vu)code);
	code = (vi)vu_select((vi)mag > 0x7f800000, vu_splat(0x7e00), (vu)code | sign);
	return vh_narrow((vu)code);
}

/* As for fp16, a power of two compensates for the bias, subnormals included. */
static ALWAYS_INLINE vf fp8_143_decode(vb code)
{
	vu x = __builtin_convertvector(code, vu);
	vu mag = x & 0x7f;
	vu r = (vu)((vf)(mag << 20) * 0x1p120f) | (x & 0x80) << 24;

	return (vf)vu_select(mag == 0x7f, vu_splat(NAN_BITS), r);
}

static ALWAYS_INLINE vf fp8_152_decode(vb code)
{
	vu x = __builtin_convertvector(code, vu);
	vu r = (vu)((vf)((x & 0x7f) << 21) * 0x1p111f) | (x & 0x80) << 24;

	return (vf)vu_select(x == 0x80, vu_splat(NAN_BITS), r);
}

static ALWAYS_INLINE vb fp8_143_encode(vf v)
{
	vu x = (vu)v;
	vu mag = x & 0x7fffffff;
	vi code = (vi)(((mag + 0x7ffff + ((mag >> 20) & 1)) >> 20) - (120u << 3));
	/* Aligns a number below 2^-6 to units of 2^-9. */
	vu low = (vu)((vf)mag + 0x1p14f) - 0x46800000;

	code = VI_MIN(code, vi_splat(0x7e));
	code = (vi)vu_select((vi)mag < 0x3c800000, low, (vu)code);
	code |= (vi)(x >> 24 & 0x80);
	return vb_narrow(vu_select((vi)mag > 0x7f800000, vu_splat(0x7f), (vu)code));
}

static ALWAYS_INLINE vb fp8_152_encode(vf v)
{
	vu x = (vu)v;
	vu mag = x & 0x7fffffff;
	vi code = (vi)(((mag + 0xfffff + ((mag >> 21) & 1)) >> 21) - (111u << 2));
	/* Aligns a number below 2^-15 to units of 2^-17. */
	vu low = (vu)((vf)mag + 0x1p6f) - 0x42800000;

	code = VI_MIN(code, vi_splat(0x7f));
	code = (vi)vu_select((vi)mag < 0x38000000, low, (vu)code);
	code |= (vi)(x >> 24 & 0x80) & (code != 0);	/* -0 does not exist */
	return vb_narrow(vu_select((vi)mag > 0x7f800000, vu_splat(0x80), (vu)code));
}

/* Signed integers of @bits <= 16: nearest, ties to even, saturating, NaN to 0. */
static ALWAYS_INLINE vu vi_small_encode(vf x, u32 bits)
{
	const float max = (1 << (bits - 1)) - 1, min = -max - 1;

	x = vf_select(x > max, vf_splat(max), x);
	x = vf_select(x < min, vf_splat(min), x);
	/* The low bits of the sum are the integer. */
	x = vf_select(x == x, x + 0x1.8p23f, (vf){ 0 });
	return (vu)x & ((1u << bits) - 1);
}

static ALWAYS_INLINE vu vi_int32_encode(vf x)
{
	vf r = vf_round(x);
	vi inside = vf_abs(r) < 0x1p31f;
	vu whole = (vu)__builtin_convertvector(vf_select(inside, r, (vf){ 0 }), vi);

	whole = vu_select(x >= 0x1p31f, vu_splat(0x7fffffff), whole);
	return vu_select(x <= -0x1p31f, vu_splat(0x80000000), whole);
}

static ALWAYS_INLINE vu vi_uint32_encode(vf x)
{
	vf r = vf_round(x);
	vi inside = (r > 0) & (r < 0x1p32f), high = r >= 0x1p31f;
	/* Subtracts 2^31 from the upper half, exactly, and restores that bit below. */
	vf rest = r - (vf)((vu)high & 0x4f000000);
	vu whole = (vu)__builtin_convertvector(vf_select(inside, rest, (vf){ 0 }), vi);

	whole |= (vu)high & 0x80000000;
	return vu_select(x >= 0x1p32f, vu_splat(0xffffffff), whole);
}

static ALWAYS_INLINE vf uint32_decode(vu x)
{
	/* The halves are exact; their sum is rounded once. */
	vf high = __builtin_convertvector((vi)(x >> 16), vf) * 0x1p16f;

	return high + __builtin_convertvector((vi)(x & 0xffff), vf);
}

/* Pairs of lanes, for two elements per byte. */
typedef u64 vp __attribute__((vector_size(4 * VL)));
typedef u8 vp_bytes __attribute__((vector_size(VL / 2)));

static ALWAYS_INLINE vf int4_decode(const u8 *p)
{
	vp_bytes bytes;
	vp x;
	vi low, sign = vi_splat(8);

	__builtin_memcpy(&bytes, p, sizeof(bytes));
	x = __builtin_convertvector(bytes, vp);
	/* The pair's first lane is its high half on a big-endian host. */
	low = (vi)((SPYRE_BIG_ENDIAN ? x << 32 | x >> 4 : x | x << 28) & 0xf0000000full);
	return __builtin_convertvector((low ^ sign) - sign, vf);
}

static ALWAYS_INLINE void int4_encode(u8 *p, vf v)
{
	vp x = (vp)vi_small_encode(v, 4);
	vp one = SPYRE_BIG_ENDIAN ? x >> 32 | x << 4 : x | x >> 28;
	vp_bytes bytes = __builtin_convertvector(one & 0xff, vp_bytes);

	__builtin_memcpy(p, &bytes, sizeof(bytes));
}

static ALWAYS_INLINE vb vb_load(const u8 *p)
{
	vb x;

	__builtin_memcpy(&x, p, sizeof(x));
	return x;
}

static ALWAYS_INLINE void vb_store(u8 *p, vb x)
{
	__builtin_memcpy(p, &x, sizeof(x));
}

typedef s8 vb_signed __attribute__((vector_size(VL)));
typedef s16 vh_signed __attribute__((vector_size(2 * VL)));

/*
 * Formats of a worker's scratch that differ from those of device memory (format.h): none on a
 * little-endian host, where IEEE_FP32 and IEEE_INT32 are both.
 */
static ALWAYS_INLINE bool is_scratch_float(u32 format)
{
	return SPYRE_BIG_ENDIAN && format == SPYRE_FMT_SCRATCH_FP32;
}

static ALWAYS_INLINE bool is_scratch_integer(u32 format)
{
	return SPYRE_BIG_ENDIAN && format == SPYRE_FMT_SCRATCH_INT32;
}

/* @format is a constant in every performance-critical caller. */
static ALWAYS_INLINE vf vf_load(u32 format, const u8 *p)
{
	if (is_scratch_float(format))
		return *(const vf_mem *)p;
	if (is_scratch_integer(format))
		return __builtin_convertvector((vi)*(const vf_mem *)p, vf);
	switch (format) {
	case SPYRE_FMT_IEEE_FP32:
		return vf_le(*(const vf_mem *)p);
	case SPYRE_FMT_SEN169_FP16:
		return dl16_decode(vh_le(*(const vh_mem *)p));
	case SPYRE_FMT_IEEE_FP16:
		return fp16_decode(vh_le(*(const vh_mem *)p));
	case SPYRE_FMT_BFLOAT16:
		return bf16_decode(vh_le(*(const vh_mem *)p));
	case SPYRE_FMT_SEN143_FP8:
		return fp8_143_decode(vb_load(p));
	case SPYRE_FMT_SEN152_FP8:
		return fp8_152_decode(vb_load(p));
	case SPYRE_FMT_SENINT4:
		return int4_decode(p);
	case SPYRE_FMT_SENINT8:
		return __builtin_convertvector(
			__builtin_convertvector((vb_signed)vb_load(p), vi), vf);
	case SPYRE_FMT_SENINT16:
		return __builtin_convertvector(
			__builtin_convertvector((vh_signed)vh_le(*(const vh_mem *)p), vi), vf);
	case SPYRE_FMT_IEEE_INT32:
		return __builtin_convertvector((vi)vf_le(*(const vf_mem *)p), vf);
	default:	/* SENUINT32 */
		return uint32_decode((vu)vf_le(*(const vf_mem *)p));
	}
}

static ALWAYS_INLINE void vf_store(u32 format, u8 *p, vf x)
{
	if (is_scratch_float(format)) {
		*(vf_mem *)p = vf_select(x != x, vf_nan(), x);
		return;
	}
	if (is_scratch_integer(format)) {
		*(vf_mem *)p = (vf)vi_int32_encode(x);
		return;
	}
	switch (format) {
	case SPYRE_FMT_IEEE_FP32:
		*(vf_mem *)p = vf_le(vf_select(x != x, vf_nan(), x));
		break;
	case SPYRE_FMT_SEN169_FP16:
		*(vh_mem *)p = vh_le(dl16_encode(x));
		break;
	case SPYRE_FMT_IEEE_FP16:
		*(vh_mem *)p = vh_le(fp16_encode(x));
		break;
	case SPYRE_FMT_BFLOAT16:
		*(vh_mem *)p = vh_le(bf16_encode(x));
		break;
	case SPYRE_FMT_SEN143_FP8:
		vb_store(p, fp8_143_encode(x));
		break;
	case SPYRE_FMT_SEN152_FP8:
		vb_store(p, fp8_152_encode(x));
		break;
	case SPYRE_FMT_SENINT4:
		int4_encode(p, x);
		break;
	case SPYRE_FMT_SENINT8:
		vb_store(p, vb_narrow(vi_small_encode(x, 8)));
		break;
	case SPYRE_FMT_SENINT16:
		*(vh_mem *)p = vh_le(vh_narrow(vi_small_encode(x, 16)));
		break;
	case SPYRE_FMT_IEEE_INT32:
		*(vf_mem *)p = vf_le((vf)vi_int32_encode(x));
		break;
	default:
		*(vf_mem *)p = vf_le((vf)vi_uint32_encode(x));
	}
}

/* Bytes of @lanes elements of a format of the SFU. */
static ALWAYS_INLINE long vf_bytes(u32 format, long lanes)
{
	if (is_scratch_float(format) || is_scratch_integer(format))
		return lanes * 4;
	switch (format) {
	case SPYRE_FMT_SEN143_FP8:
	case SPYRE_FMT_SEN152_FP8:
	case SPYRE_FMT_SENINT8:
		return lanes;
	case SPYRE_FMT_SENINT4:
		return (lanes + 1) / 2;
	case SPYRE_FMT_IEEE_FP32:
	case SPYRE_FMT_IEEE_INT32:
	case SPYRE_FMT_SENUINT32:
		return lanes * 4;
	default:
		return lanes * 2;
	}
}

/* Loads n < VL lanes; the others become +0.0. */
static ALWAYS_INLINE vf vf_load_part(u32 format, const u8 *p, long n)
{
	u8 buf[4 * VL] = { 0 };

	__builtin_memcpy(buf, p, vf_bytes(format, n));
	return vf_load(format, buf);
}

static ALWAYS_INLINE void vf_store_part(u32 format, u8 *p, vf x, long n)
{
	u8 buf[4 * VL];

	vf_store(format, buf, x);
	__builtin_memcpy(p, buf, vf_bytes(format, n));
}

/* Loads lane 0 into all lanes. */
static ALWAYS_INLINE vf vf_load_splat(u32 format, const u8 *p)
{
	if (format == SPYRE_FMT_SEN169_FP16)
		return dl16_decode(vh_le(*(const u16_mem *)p - (vh){ 0 }));
	/* Swapped bytes may not pass through a float, which could be a signalling NaN. */
	if (format == SPYRE_FMT_IEEE_FP32 && SPYRE_BIG_ENDIAN)
		return (vf)vu_le(vu_splat(*(const u32_mem *)p));
	if (format == SPYRE_FMT_IEEE_FP32)
		return vf_splat(*(const f32_mem *)p);
	return vf_splat(vf_load_part(format, p, 1)[0]);
}

/* Bypasses the caches, which a large result would only pollute; @p is aligned to the vector. */
static ALWAYS_INLINE void dl16_store(u8 *p, vh code, bool stream)
{
#ifdef V_STREAM_HALF
	if (stream) {
		V_STREAM_HALF(p, vh_le(code));
		return;
	}
#endif
	*(vh_mem *)p = vh_le(code);
}

/* Stores bytes as they are; hl_store() stores codes. */
static ALWAYS_INLINE void hl_store_raw(u8 *p, hl x, bool stream)
{
#ifdef V_STREAM
	if (stream) {
		V_STREAM(p, x);
		return;
	}
#endif
	*(hl_mem *)p = x;
}

#define hl_store(p, code, stream) hl_store_raw(p, hl_le(code), stream)

/*
 * Two vectors of DL16 numbers, for units that decode and encode them faster than one. The lanes
 * have an order of the unit's own, unless the function's name says otherwise.
 */
struct vf_two {
	vf first, second;
};

#ifdef DL16_PAIRS
#include "dl16_pair.h"
#else
static ALWAYS_INLINE struct vf_two dl16_load_pair(const u8 *p)
{
	return (struct vf_two) {
		dl16_decode(vh_le(*(const vh_mem *)p)),
		dl16_decode(vh_le(*(const vh_mem *)(p + 2 * VL))),
	};
}

static ALWAYS_INLINE struct vf_two dl16_load_ordered(const u8 *p)
{
	return dl16_load_pair(p);
}

static ALWAYS_INLINE void dl16_store_pair(u8 *p, struct vf_two x, bool stream)
{
	dl16_store(p, dl16_encode(x.first), stream);
	dl16_store(p + 2 * VL, dl16_encode(x.second), stream);
}

static ALWAYS_INLINE void dl16_store_ordered(u8 *p, struct vf_two x)
{
	dl16_store_pair(p, x, false);
}

static ALWAYS_INLINE struct vf_two vf_two_swap(struct vf_two x)
{
	return x;
}
#endif

/* Two vectors of fp32 in order. */
static ALWAYS_INLINE struct vf_two vf_two_load(const u8 *p)
{
	return (struct vf_two) { vf_le(*(const vf_mem *)p), vf_le(*(const vf_mem *)(p + 4 * VL)) };
}

static ALWAYS_INLINE void vf_two_store(u8 *p, struct vf_two x)
{
	*(vf_mem *)p = vf_le(x.first);
	*(vf_mem *)(p + 4 * VL) = vf_le(x.second);
}

#endif /* SPYRE_MODEL_SIMD_CODEC_H */
