// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Data formats: sizes, the pairs that the DMA engine converts, and reference
 * codecs. All of this works on raw bits with integer arithmetic, so kernel code may
 * call it outside FPU sections.
 */
#include "format.h"

#define FP32_SIGN 0x80000000u
#define FP32_MAG 0x7fffffffu
#define FP32_INF 0x7f800000u
#define FP32_NAN 0x7fc00000u	/* the only NaN that the card writes */

#define DL16_BIAS_GAP 96u	/* fp32 bias 127 - DL16 bias 31 */

u32 spyre_fmt_bytes(enum spyre_fmt fmt)
{
	switch (fmt) {
	case SPYRE_FMT_SEN143_FP8:
	case SPYRE_FMT_SEN152_FP8:
	case SPYRE_FMT_SENINT8:
	case SPYRE_FMT_BOOL:
	case SPYRE_FMT_UINT8:
		return 1;
	case SPYRE_FMT_SEN169_FP16:
	case SPYRE_FMT_SENINT16:
	case SPYRE_FMT_IEEE_FP16:
	case SPYRE_FMT_BFLOAT16:
		return 2;
	case SPYRE_FMT_IEEE_FP32:
	case SPYRE_FMT_SENUINT32:
	case SPYRE_FMT_IEEE_INT32:
		return 4;
	case SPYRE_FMT_IEEE_INT64:
	case SPYRE_FMT_FP64:
		return 8;
	default:
		/*
		 * The sub-byte formats and those of 9 and 24 bits, whose packing in
		 * a stick is not public.
		 */
		return 0;
	}
}

u32 spyre_fmt_bits(enum spyre_fmt fmt)
{
	return fmt == SPYRE_FMT_SENINT4 ? 4 : 8 * spyre_fmt_bytes(fmt);
}

static bool is_float(enum spyre_fmt fmt)
{
	return fmt == SPYRE_FMT_SEN169_FP16 || fmt == SPYRE_FMT_IEEE_FP32 ||
	       fmt == SPYRE_FMT_IEEE_FP16 || fmt == SPYRE_FMT_BFLOAT16 ||
	       fmt == SPYRE_FMT_SEN143_FP8 || fmt == SPYRE_FMT_SEN152_FP8 ||
	       fmt == SPYRE_FMT_FP64;
}

static bool is_integer(enum spyre_fmt fmt)
{
	return fmt == SPYRE_FMT_SENINT8 || fmt == SPYRE_FMT_SENINT16 ||
	       fmt == SPYRE_FMT_IEEE_INT32 || fmt == SPYRE_FMT_IEEE_INT64 ||
	       fmt == SPYRE_FMT_SENUINT32 || fmt == SPYRE_FMT_UINT8 ||
	       fmt == SPYRE_FMT_BOOL;
}

bool spyre_fmt_convertible(enum spyre_fmt host, enum spyre_fmt device)
{
	if (!spyre_fmt_bytes(host) || !spyre_fmt_bytes(device))
		return false;
	/* The device has no form of the host-only formats, not even raw. */
	if (device == SPYRE_FMT_FP64 || device == SPYRE_FMT_UINT8)
		return false;
	if (host == device)
		return true;
	if (is_float(device))
		return is_float(host) || is_integer(host);
	/* Host floats cannot be converted to integer sticks: a program has to round them. */
	return is_integer(device) && is_integer(host);
}

u16 spyre_fp32_to_dl16(u32 f32)
{
	u32 sign = (f32 & FP32_SIGN) >> 16;
	u32 mag = f32 & FP32_MAG;
	u32 code;

	if (mag > FP32_INF)
		return SPYRE_DL16_NAN;
	/* Adds half an ulp of the 9-bit fraction, which may carry into the exponent. */
	code = (mag + 0x2000) >> 14;
	if (code < DL16_BIAS_GAP << 9)
		return sign;
	code -= DL16_BIAS_GAP << 9;
	/* A number that would round to the code of NaN overflows as well. */
	return sign | (code < SPYRE_DL16_NAN ? code : SPYRE_DL16_INF);
}

u32 spyre_dl16_to_fp32(u16 dl16)
{
	u32 sign = (u32)(dl16 & 0x8000) << 16;
	u32 mag = dl16 & 0x7fff;

	if (!mag)
		return sign;
	if (mag == SPYRE_DL16_NAN)
		return FP32_NAN;
	if (mag == SPYRE_DL16_INF)
		return sign | FP32_INF;
	return sign | ((mag << 14) + (DL16_BIAS_GAP << 23));
}

/* Drops @shift low bits of @value, rounding to nearest, ties to even. */
static u64 shift_rne(u64 value, u32 shift)
{
	u64 half, rest;

	if (!shift)
		return value;
	if (shift > 63)
		return 0;
	half = 1ull << (shift - 1);
	rest = value & ((half << 1) - 1);
	value >>= shift;
	if (rest > half || (rest == half && (value & 1)))
		value++;
	return value;
}

u16 spyre_fp32_to_fp16(u32 f32)
{
	u32 sign = (f32 & FP32_SIGN) >> 16;
	u32 mag = f32 & FP32_MAG;
	u32 exp = mag >> 23;
	u32 code;

	if (mag > FP32_INF)
		return 0x7e00;
	if (exp > 112) {
		code = shift_rne(mag - (112u << 23), 13);
		return sign | (code > 0x7c00 ? 0x7c00 : code);
	}
	if (exp < 102)
		return sign;
	/* Subnormal: the fraction with its hidden bit, in units of 2^-24. */
	return sign | shift_rne((mag & 0x7fffff) | 0x800000, 126 - exp);
}

u32 spyre_fp16_to_fp32(u16 fp16)
{
	u32 sign = (u32)(fp16 & 0x8000) << 16;
	u32 mag = fp16 & 0x7fff;
	u32 exp = 113;

	if (mag > 0x7c00)
		return FP32_NAN;
	if (mag == 0x7c00)
		return sign | FP32_INF;
	if (mag >= 0x400)
		return sign | ((mag << 13) + (112u << 23));
	if (!mag)
		return sign;
	while (!(mag & 0x400)) {
		mag <<= 1;
		exp--;
	}
	return sign | exp << 23 | (mag & 0x3ff) << 13;
}

u16 spyre_fp32_to_bf16(u32 f32)
{
	if ((f32 & FP32_MAG) > FP32_INF)
		return 0x7fc0;
	return (f32 + 0x7fff + ((f32 >> 16) & 1)) >> 16;
}

u32 spyre_bf16_to_fp32(u16 bf16)
{
	if ((bf16 & 0x7fff) > 0x7f80)
		return FP32_NAN;
	return (u32)bf16 << 16;
}

u32 spyre_fp64_to_fp32(u64 f64)
{
	u32 sign = (f64 >> 32) & FP32_SIGN;
	u64 mag = f64 & ~(1ull << 63);
	u32 exp = mag >> 52;
	u64 code;

	if (mag > 0x7ffull << 52)
		return FP32_NAN;
	if (exp > 896) {
		code = shift_rne(mag - (896ull << 52), 29);
		return sign | (code > FP32_INF ? FP32_INF : code);
	}
	if (exp < 872)
		return sign;
	/* Subnormal: the fraction with its hidden bit, in units of 2^-149. */
	return sign | shift_rne((mag & ((1ull << 52) - 1)) | 1ull << 52, 926 - exp);
}

u64 spyre_fp32_to_fp64(u32 f32)
{
	u64 sign = (u64)(f32 & FP32_SIGN) << 32;
	u64 mag = f32 & FP32_MAG;
	u64 exp = 897;

	if (mag > FP32_INF)
		return 0x7ff8ull << 48;
	if (mag == FP32_INF)
		return sign | 0x7ffull << 52;
	if (mag >= 0x800000)
		return sign | ((mag << 29) + (896ull << 52));
	if (!mag)
		return sign;
	while (!(mag & 0x800000)) {
		mag <<= 1;
		exp--;
	}
	return sign | exp << 52 | (mag & 0x7fffff) << 29;
}

/* 8-bit formats: fraction bits, and 127 minus the bias of the exponent. */
#define FP8_143_FRACTION 3
#define FP8_143_GAP 120u
#define FP8_143_NAN 0x7fu
#define FP8_143_MAX 0x7eu
#define FP8_152_FRACTION 2
#define FP8_152_GAP 111u
#define FP8_152_NAN 0x80u
#define FP8_152_MAX 0x7fu

static u32 fp8_encode(u32 mag, u32 fraction, u32 gap, u32 max)
{
	u32 exp = mag >> 23;
	u64 code;

	if (exp > gap)
		code = shift_rne(mag - (gap << 23), 23 - fraction);
	else	/* Subnormal: with its hidden bit, in units of the smallest code. */
		code = shift_rne((mag & 0x7fffff) | 0x800000, 24 - fraction + gap - exp);
	return code > max ? max : code;
}

static u32 fp8_decode(u32 code, u32 fraction, u32 gap)
{
	u32 exp = gap + 1;

	if (code >> fraction)
		return (code << (23 - fraction)) + (gap << 23);
	if (!code)
		return 0;
	while (!(code >> fraction)) {
		code <<= 1;
		exp--;
	}
	return exp << 23 | (code << (23 - fraction) & 0x7fffff);
}

u8 spyre_fp32_to_fp8_143(u32 f32)
{
	u32 mag = f32 & FP32_MAG;

	if (mag > FP32_INF)
		return FP8_143_NAN;
	return (f32 & FP32_SIGN) >> 24 |
	       fp8_encode(mag, FP8_143_FRACTION, FP8_143_GAP, FP8_143_MAX);
}

u32 spyre_fp8_143_to_fp32(u8 fp8)
{
	if ((fp8 & 0x7f) == FP8_143_NAN)
		return FP32_NAN;
	return (u32)(fp8 & 0x80) << 24 | fp8_decode(fp8 & 0x7f, FP8_143_FRACTION, FP8_143_GAP);
}

u8 spyre_fp32_to_fp8_152(u32 f32)
{
	u32 mag = f32 & FP32_MAG;
	u32 code;

	if (mag > FP32_INF)
		return FP8_152_NAN;
	code = fp8_encode(mag, FP8_152_FRACTION, FP8_152_GAP, FP8_152_MAX);
	/* -0 does not exist: its code is NaN. */
	return code ? (f32 & FP32_SIGN) >> 24 | code : 0;
}

u32 spyre_fp8_152_to_fp32(u8 fp8)
{
	if (fp8 == FP8_152_NAN)
		return FP32_NAN;
	return (u32)(fp8 & 0x80) << 24 | fp8_decode(fp8 & 0x7f, FP8_152_FRACTION, FP8_152_GAP);
}

u32 spyre_int_to_fp32(s64 value)
{
	u64 mag = value < 0 ? -(u64)value : (u64)value;
	u32 sign = value < 0 ? FP32_SIGN : 0;
	u32 exp = 127 + 63;

	if (!mag)
		return 0;
	while (!(mag >> 63)) {
		mag <<= 1;
		exp--;
	}
	/* The hidden bit and the carry of the rounding increment the exponent. */
	return sign + ((exp - 1) << 23) + (u32)shift_rne(mag, 40);
}

/* Largest number of an integer format of the SFU; the smallest is -@max - 1 or 0. */
static s64 int_max(enum spyre_fmt fmt)
{
	return fmt == SPYRE_FMT_SENUINT32 ? 0xffffffffll :
	       (1ll << (spyre_fmt_bits(fmt) - 1)) - 1;
}

s64 spyre_fp32_to_int(enum spyre_fmt fmt, u32 f32)
{
	s64 max = int_max(fmt), min = fmt == SPYRE_FMT_SENUINT32 ? 0 : -max - 1;
	u32 mag = f32 & FP32_MAG;
	u32 exp = mag >> 23;
	u64 digits = (mag & 0x7fffff) | 0x800000;
	s64 r;

	if (mag > FP32_INF)
		return 0;
	if (exp > 127 + 32)
		return f32 & FP32_SIGN ? min : max;
	digits = exp >= 150 ? digits << (exp - 150) : shift_rne(digits, 150 - exp);
	r = f32 & FP32_SIGN ? -(s64)digits : (s64)digits;
	return r < min ? min : r > max ? max : r;
}
