// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Data formats: sizes, which pairs the DMA engine converts, and reference
 * codecs.  Everything here works on raw bits with integer arithmetic, so
 * kernel code outside an FPU section may call it.
 */
#include "format.h"

#define FP32_SIGN 0x80000000u
#define FP32_MAG 0x7fffffffu
#define FP32_INF 0x7f800000u
#define FP32_NAN 0x7fc00000u	/* the only NaN that the card writes */

#define DL16_NAN 0x7fffu
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
		 * Sub-byte formats, and the 9 and 24 bit ones, whose place in
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
	/* Host-only formats have no place on the device, not even raw. */
	if (device == SPYRE_FMT_FP64 || device == SPYRE_FMT_UINT8)
		return false;
	if (host == device)
		return true;
	if (is_float(device))
		return is_float(host) || is_integer(host);
	/* No rule for host floats in integer sticks: round in a program. */
	return is_integer(device) && is_integer(host);
}

u16 spyre_fp32_to_dl16(u32 f32)
{
	u32 sign = (f32 & FP32_SIGN) >> 16;
	u32 mag = f32 & FP32_MAG;
	u32 code;

	if (mag > FP32_INF)
		return DL16_NAN;
	/* Half an ulp of the 9-bit fraction, carrying into the exponent. */
	code = (mag + 0x2000) >> 14;
	if (code < DL16_BIAS_GAP << 9)
		return sign;
	code -= DL16_BIAS_GAP << 9;
	if (code > DL16_NAN)
		code = DL16_NAN;
	return sign | code;
}

u32 spyre_dl16_to_fp32(u16 dl16)
{
	u32 sign = (u32)(dl16 & 0x8000) << 16;
	u32 mag = dl16 & 0x7fff;

	if (!mag)
		return sign;
	if (mag == DL16_NAN)
		return FP32_NAN;
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
	/* Subnormal: in units of 2^-149. */
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
