/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tiles: 64 lanes of fp32 that are loaded from and stored to any format. Operations
 * without specialised loops use them, so that format and function are dispatched
 * once per tile. Each unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_TILE_H
#define SPYRE_MODEL_SIMD_TILE_H

#include "codec.h"

#define TILE 64
#define TILE_VECS (TILE / VL)

static ALWAYS_INLINE void tile_load_part(vf *tile, u32 format, const u8 *p, long n)
{
	long i;

#pragma GCC unroll 1
	for (i = 0; i < TILE_VECS; i++, n -= VL, p += vf_bytes(format, VL))
		tile[i] = n >= VL ? vf_load(format, p) :
			  n > 0 ? vf_load_part(format, p, n) : (vf){ 0 };
}

static ALWAYS_INLINE void tile_store_part(const vf *tile, u32 format, u8 *p, long n)
{
	long i;

#pragma GCC unroll 1
	for (i = 0; n > 0; i++, n -= VL, p += vf_bytes(format, VL)) {
		if (n >= VL)
			vf_store(format, p, tile[i]);
		else
			vf_store_part(format, p, tile[i], n);
	}
}

/* @n <= TILE lanes; a load fills the others with +0.0. */
#define TILE_FORMAT(name, format)						\
static NOINLINE void tile_load_##name(vf *tile, const u8 *p, long n)		\
{										\
	long i;									\
										\
	if (n < TILE) {								\
		tile_load_part(tile, format, p, n);				\
		return;								\
	}									\
	for (i = 0; i < TILE_VECS; i++)						\
		tile[i] = vf_load(format, p + vf_bytes(format, i * VL));	\
}										\
										\
static NOINLINE void tile_store_##name(const vf *tile, u8 *p, long n)		\
{										\
	long i;									\
										\
	if (n < TILE) {								\
		tile_store_part(tile, format, p, n);				\
		return;								\
	}									\
	for (i = 0; i < TILE_VECS; i++)						\
		vf_store(format, p + vf_bytes(format, i * VL), tile[i]);	\
}

TILE_FORMAT(dl16, SPYRE_FMT_SEN169_FP16)
TILE_FORMAT(fp32, SPYRE_FMT_IEEE_FP32)
TILE_FORMAT(fp16, SPYRE_FMT_IEEE_FP16)
TILE_FORMAT(bf16, SPYRE_FMT_BFLOAT16)
TILE_FORMAT(fp8_143, SPYRE_FMT_SEN143_FP8)
TILE_FORMAT(fp8_152, SPYRE_FMT_SEN152_FP8)
TILE_FORMAT(int4, SPYRE_FMT_SENINT4)
TILE_FORMAT(int8, SPYRE_FMT_SENINT8)
TILE_FORMAT(int16, SPYRE_FMT_SENINT16)
TILE_FORMAT(int32, SPYRE_FMT_IEEE_INT32)
TILE_FORMAT(uint32, SPYRE_FMT_SENUINT32)
/* Not used on a little-endian host. */
TILE_FORMAT(scratch_fp32, SPYRE_FMT_SCRATCH_FP32)
TILE_FORMAT(scratch_int32, SPYRE_FMT_SCRATCH_INT32)

static void tile_load(vf *tile, u32 format, const u8 *p, long n)
{
	n = n < TILE ? n : TILE;
	if (is_scratch_float(format))
		return tile_load_scratch_fp32(tile, p, n);
	if (is_scratch_integer(format))
		return tile_load_scratch_int32(tile, p, n);
	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		return tile_load_dl16(tile, p, n);
	case SPYRE_FMT_IEEE_FP32:
		return tile_load_fp32(tile, p, n);
	case SPYRE_FMT_IEEE_FP16:
		return tile_load_fp16(tile, p, n);
	case SPYRE_FMT_BFLOAT16:
		return tile_load_bf16(tile, p, n);
	case SPYRE_FMT_SEN143_FP8:
		return tile_load_fp8_143(tile, p, n);
	case SPYRE_FMT_SEN152_FP8:
		return tile_load_fp8_152(tile, p, n);
	case SPYRE_FMT_SENINT4:
		return tile_load_int4(tile, p, n);
	case SPYRE_FMT_SENINT8:
		return tile_load_int8(tile, p, n);
	case SPYRE_FMT_SENINT16:
		return tile_load_int16(tile, p, n);
	case SPYRE_FMT_IEEE_INT32:
		return tile_load_int32(tile, p, n);
	default:
		return tile_load_uint32(tile, p, n);
	}
}

static void tile_store(const vf *tile, u32 format, u8 *p, long n)
{
	n = n < TILE ? n : TILE;
	if (is_scratch_float(format))
		return tile_store_scratch_fp32(tile, p, n);
	if (is_scratch_integer(format))
		return tile_store_scratch_int32(tile, p, n);
	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		return tile_store_dl16(tile, p, n);
	case SPYRE_FMT_IEEE_FP32:
		return tile_store_fp32(tile, p, n);
	case SPYRE_FMT_IEEE_FP16:
		return tile_store_fp16(tile, p, n);
	case SPYRE_FMT_BFLOAT16:
		return tile_store_bf16(tile, p, n);
	case SPYRE_FMT_SEN143_FP8:
		return tile_store_fp8_143(tile, p, n);
	case SPYRE_FMT_SEN152_FP8:
		return tile_store_fp8_152(tile, p, n);
	case SPYRE_FMT_SENINT4:
		return tile_store_int4(tile, p, n);
	case SPYRE_FMT_SENINT8:
		return tile_store_int8(tile, p, n);
	case SPYRE_FMT_SENINT16:
		return tile_store_int16(tile, p, n);
	case SPYRE_FMT_IEEE_INT32:
		return tile_store_int32(tile, p, n);
	default:
		return tile_store_uint32(tile, p, n);
	}
}

/* Loads the element at @p into all lanes. */
static void tile_splat(vf *tile, u32 format, const u8 *p)
{
	vf x;
	long i;

	tile_load(tile, format, p, 1);
	x = vf_splat(tile[0][0]);
	for (i = 0; i < TILE_VECS; i++)
		tile[i] = x;
}

#endif /* SPYRE_MODEL_SIMD_TILE_H */
