/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Data formats of the card and of host tensors, and their exact conversions.
 *
 * The numbers below are this project's own (IBM's are not public). They are part of
 * the program encoding and of the kernel ABI and therefore append-only.
 * <spyre/types.h> and <drm/spyre_accel.h> repeat them, and static assertions in
 * both hosts keep the three in sync.
 */
#ifndef SPYRE_MODEL_FORMAT_H
#define SPYRE_MODEL_FORMAT_H

#include "types.h"

#define SPYRE_STICK_BYTES 128u

/* The highest codes of DL16, without the sign; NaN is written without a sign. */
#define SPYRE_DL16_NAN 0x7ffe
#define SPYRE_DL16_INF 0x7fff

enum spyre_fmt {
	SPYRE_FMT_INVALID = 0,
	/* device formats */
	SPYRE_FMT_SEN169_FP16 = 1,	/* DL16: 1-6-9, bias 31 */
	SPYRE_FMT_IEEE_FP32 = 2,
	SPYRE_FMT_SEN143_FP8 = 3,	/* float8_e4m3fn: 1-4-3, bias 7 */
	SPYRE_FMT_SEN152_FP8 = 4,	/* float8_e5m2fnuz: 1-5-2, bias 16 */
	SPYRE_FMT_SEN153_FP9 = 5,
	SPYRE_FMT_SEN18F_FP24 = 6,
	SPYRE_FMT_SENINT2 = 7,
	SPYRE_FMT_SENINT4 = 8,		/* two in a byte, the first in the low half */
	SPYRE_FMT_SENINT8 = 9,
	SPYRE_FMT_SENINT16 = 10,
	SPYRE_FMT_SENINT24 = 11,
	SPYRE_FMT_SENUINT2 = 12,
	SPYRE_FMT_SENUINT32 = 13,
	SPYRE_FMT_IEEE_INT32 = 14,
	SPYRE_FMT_IEEE_INT64 = 15,
	SPYRE_FMT_IEEE_FP16 = 16,
	SPYRE_FMT_BFLOAT16 = 17,
	SPYRE_FMT_BOOL = 18,		/* one byte, 0 or 1 */
	/* host-only formats */
	SPYRE_FMT_UINT8 = 19,
	SPYRE_FMT_FP64 = 20,
	SPYRE_FMT_COUNT
};

/*
 * fp32 and 32-bit integers in a worker's scratch, in the host's byte order, for runs between it
 * and device memory. On a big-endian host they are formats of their own, which only the model's
 * own runs have: no program and no descriptor may name them.
 */
#if SPYRE_BIG_ENDIAN
#define SPYRE_FMT_SCRATCH_FP32 0x80u
#define SPYRE_FMT_SCRATCH_INT32 0x81u
#else
#define SPYRE_FMT_SCRATCH_FP32 SPYRE_FMT_IEEE_FP32
#define SPYRE_FMT_SCRATCH_INT32 SPYRE_FMT_IEEE_INT32
#endif

/* Bytes of one element; 0 if the format has no whole-byte elements. */
u32 spyre_fmt_bytes(enum spyre_fmt fmt);
/* Bits of one element; 0 if its packing in a stick is unknown. */
u32 spyre_fmt_bits(enum spyre_fmt fmt);

/*
 * Returns true if the DMA engine can convert between @host and @device format; raw
 * moves (same format, same width) are always supported.
 */
bool spyre_fmt_convertible(enum spyre_fmt host, enum spyre_fmt device);

/* Reference codecs on raw bits; the vector units must produce the same bits. */
u16 spyre_fp32_to_dl16(u32 f32);
u32 spyre_dl16_to_fp32(u16 dl16);
u16 spyre_fp32_to_fp16(u32 f32);
u32 spyre_fp16_to_fp32(u16 fp16);
u16 spyre_fp32_to_bf16(u32 f32);
u32 spyre_bf16_to_fp32(u16 bf16);
u32 spyre_fp64_to_fp32(u64 f64);
u64 spyre_fp32_to_fp64(u32 f32);
u8 spyre_fp32_to_fp8_143(u32 f32);
u32 spyre_fp8_143_to_fp32(u8 fp8);
u8 spyre_fp32_to_fp8_152(u32 f32);
u32 spyre_fp8_152_to_fp32(u8 fp8);
/* SENINT4, SENINT8, SENINT16, IEEE_INT32 and SENUINT32 as the SFU loads and stores them. */
u32 spyre_int_to_fp32(s64 value);
s64 spyre_fp32_to_int(enum spyre_fmt fmt, u32 f32);

#endif /* SPYRE_MODEL_FORMAT_H */
