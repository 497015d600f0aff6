/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Format conversion for the DMA engine and for packing PT tiles. Floating formats
 * go through fp32, which holds all of them but fp64. Conversions between integers
 * and floats use fp32 as well; those between integers use 64 bits if the run is a
 * cast. Each unit includes this once.
 */
#ifndef SPYRE_MODEL_SIMD_CONVERT_H
#define SPYRE_MODEL_SIMD_CONVERT_H

#include "pair.h"
#include "tile.h"

/*
 * Rows of a tile lie pages apart on the host, where no hardware prefetcher follows;
 * prefetching PREFETCH_ROWS ahead hides the memory's latency.
 */
#define PREFETCH_ROWS 12

static ALWAYS_INLINE void prefetch_row(const struct spyre_convert_run *run, const u8 *src)
{
	/* An integer instead of a pointer, because it may lie outside the span, or wrap. */
	const unsigned long at = (unsigned long)src + PREFETCH_ROWS * run->src_stride;
	const u8 *ahead = (const u8 *)at;

	__builtin_prefetch(ahead, 0, 2);
	__builtin_prefetch(ahead + 64, 0, 2);
}

/* Widens integer element i like a C cast. */
static s64 integer_load(u32 format, const u8 *p, long i)
{
	if (is_scratch_integer(format))
		return (s32)((const u32_mem *)p)[i];
	switch (format) {
	case SPYRE_FMT_BOOL:
		return p[i] != 0;
	case SPYRE_FMT_UINT8:
		return p[i];
	case SPYRE_FMT_SENINT8:
		return (s8)p[i];
	case SPYRE_FMT_SENINT16:
		return (s16)spyre_le16(((const u16_mem *)p)[i]);
	case SPYRE_FMT_IEEE_INT32:
		return (s32)spyre_le32(((const u32_mem *)p)[i]);
	case SPYRE_FMT_SENUINT32:
		return spyre_le32(((const u32_mem *)p)[i]);
	default:
		return spyre_le64(((const u64_mem *)p)[i]);
	}
}

/* Narrows like a C cast. */
static void integer_store(u32 format, u8 *p, long i, s64 x)
{
	if (is_scratch_integer(format)) {
		((u32_mem *)p)[i] = x;
		return;
	}
	switch (format) {
	case SPYRE_FMT_BOOL:
		p[i] = x != 0;
		break;
	case SPYRE_FMT_UINT8:
	case SPYRE_FMT_SENINT8:
		p[i] = x;
		break;
	case SPYRE_FMT_SENINT16:
		((u16_mem *)p)[i] = spyre_le16(x);
		break;
	case SPYRE_FMT_IEEE_INT32:
	case SPYRE_FMT_SENUINT32:
		((u32_mem *)p)[i] = spyre_le32(x);
		break;
	default:
		((u64_mem *)p)[i] = spyre_le64(x);
	}
}

/* Rounds towards zero, saturates, and converts NaN to 0. */
static s64 integer_of_float(u32 format, float x)
{
	float lo = -0x1p63f, above = 0x1p63f;
	s64 min = -0x7fffffffffffffffll - 1, max = 0x7fffffffffffffffll;

	if (format == SPYRE_FMT_BOOL)
		return x != 0;
	if (format == SPYRE_FMT_UINT8 || format == SPYRE_FMT_SENUINT32) {
		above = format == SPYRE_FMT_UINT8 ? 0x1p8f : 0x1p32f;
		max = format == SPYRE_FMT_UINT8 ? 0xff : 0xffffffffll;
		lo = 0;
		min = 0;
	} else if (format != SPYRE_FMT_IEEE_INT64) {
		above = format == SPYRE_FMT_SENINT8 ? 0x1p7f :
			format == SPYRE_FMT_SENINT16 ? 0x1p15f : 0x1p31f;
		lo = -above;
		min = (s64)lo;
		max = -min - 1;
	}
	if (x != x)
		return 0;
	if (x >= above)
		return max;
	return x <= lo ? min : (s64)x;
}

static ALWAYS_INLINE bool is_sfu_integer(u32 format)
{
	return format == SPYRE_FMT_SENINT4 || format == SPYRE_FMT_SENINT8 ||
	       format == SPYRE_FMT_SENINT16 || format == SPYRE_FMT_IEEE_INT32 ||
	       format == SPYRE_FMT_SENUINT32 || is_scratch_integer(format);
}

static ALWAYS_INLINE bool is_sfu_float(u32 format)
{
	return format == SPYRE_FMT_SEN169_FP16 || format == SPYRE_FMT_IEEE_FP32 ||
	       format == SPYRE_FMT_IEEE_FP16 || format == SPYRE_FMT_BFLOAT16 ||
	       format == SPYRE_FMT_SEN143_FP8 || format == SPYRE_FMT_SEN152_FP8 ||
	       is_scratch_float(format);
}

/* fp64 by its bits, which are swapped before they are a number. */
static double double_load(const u8 *p, long i)
{
	u64 bits = spyre_le64(((const u64_mem *)p)[i]);
	double x;

	__builtin_memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Formats that only hosts have are loaded element by element. */
static NOINLINE void host_load(vf *tile, u32 format, const u8 *p, long n)
{
	float x[TILE];
	long i;

	if (format == SPYRE_FMT_FP64) {
		for (i = 0; i < n; i++)
			x[i] = (float)double_load(p, i);
	} else {
		for (i = 0; i < n; i++)
			x[i] = (float)integer_load(format, p, i);
	}
	__builtin_memcpy(tile, x, 4 * n);
}

static NOINLINE void host_store(const vf *tile, u32 format, u8 *p, long n)
{
	float x[TILE];
	long i;

	__builtin_memcpy(x, tile, 4 * n);
	if (format != SPYRE_FMT_FP64) {
		for (i = 0; i < n; i++)
			integer_store(format, p, i, integer_of_float(format, x[i]));
		return;
	}
	for (i = 0; i < n; i++) {
		if (x[i] != x[i])
			((u64_mem *)p)[i] = 0x7ff8ull << 48;
		else
			((f64_mem *)p)[i] = x[i];
	}
	for (i = 0; SPYRE_BIG_ENDIAN && i < n; i++)
		((u64_mem *)p)[i] = spyre_le64(((u64_mem *)p)[i]);
}

/* The formats are constants and have whole bytes. */
static ALWAYS_INLINE void convert_part(u8 *dst, u32 to, const u8 *src, u32 from, long n)
{
	if (n < VL)
		vf_store_part(to, dst, vf_load_part(from, src, n), n);
	else if (to == SPYRE_FMT_IEEE_FP32 && from == SPYRE_FMT_SEN169_FP16)
		*(vf_mem *)dst = vf_le(vf_load(from, src));	/* its NaN is canonical already */
	else
		vf_store(to, dst, vf_load(from, src));
}

static ALWAYS_INLINE void convert_rows(const struct spyre_convert_run *run, u32 to, u32 from)
{
	long lanes = run->lanes;
	long row, i;

	for (row = 0; row < run->rows; row++) {
		u8 *dst = run->dst + row * run->dst_stride;
		const u8 *src = run->src + row * run->src_stride;

		prefetch_row(run, src);
		i = 0;
		if (to == SPYRE_FMT_SEN169_FP16 && from == SPYRE_FMT_IEEE_FP32)
			for (; i + HL <= lanes; i += HL)
				dl16_store_ordered(dst + 2 * i, vf_two_load(src + 4 * i));
		if (to == SPYRE_FMT_IEEE_FP32 && from == SPYRE_FMT_SEN169_FP16)
			for (; i + HL <= lanes; i += HL)
				vf_two_store(dst + 4 * i, dl16_load_ordered(src + 2 * i));
		for (; i + VL <= lanes; i += VL)
			convert_part(dst + vf_bytes(to, i), to, src + vf_bytes(from, i), from, VL);
		if (i < lanes)
			convert_part(dst + vf_bytes(to, i), to, src + vf_bytes(from, i), from,
				     lanes - i);
	}
}

/* Units whose fp32 vectors need no order of their own do not define HL_SPREAD. */
#ifdef HL_SPREAD
/* Widens a tile. Returns false if some numbers are special, whose results are wrong. */
static ALWAYS_INLINE bool widen_tile(u8 *dst, const u8 *src, u32 from)
{
	hl most = { 0 };
	long i;

#pragma GCC unroll 8
	for (i = 0; i < TILE; i += HL) {
		hl code = HL_SPREAD((hl)hl_le(*(const hl_mem *)(src + 2 * i)));
		hl mag = code & V_KEEP((hl){ 0 } + 0x7fff);
		struct hl_pair pair = hl_widen(from, code, mag);

		most = HL_MAX(most, mag);
		*(vf_mem *)(dst + 4 * i) = vf_le(pair.low);
		*(vf_mem *)(dst + 4 * (i + VL)) = vf_le(pair.high);
	}
	return __builtin_expect(!hl_any_special(from, most), 1);
}

static ALWAYS_INLINE void widen_some(u8 *dst, const u8 *src, u32 from, long lanes)
{
	long i;

	for (i = 0; i < lanes; i += VL)
		convert_part(dst + 4 * i, SPYRE_FMT_IEEE_FP32, src + 2 * i, from,
			     lanes - i < VL ? lanes - i : VL);
}

static ALWAYS_INLINE void widen_rows(const struct spyre_convert_run *run, u32 from)
{
	const long tiles = run->lanes / TILE, rest = run->lanes % TILE;
	long row, tile;

	for (row = 0; row < run->rows; row++) {
		u8 *dst = run->dst + row * run->dst_stride;
		const u8 *src = run->src + row * run->src_stride;

		prefetch_row(run, src);
		for (tile = 0; tile < tiles; tile++, dst += 4 * TILE, src += 2 * TILE)
			if (!widen_tile(dst, src, from))
				widen_some(dst, src, from, TILE);
		if (rest)
			widen_some(dst, src, from, rest);
	}
}
#else
#define widen_rows(run, from) convert_rows(run, SPYRE_FMT_IEEE_FP32, from)
#endif

/*
 * fp16 and DL16 differ by bias and one fraction bit. Sticks without subnormal fp16
 * numbers, nearly all, convert in 16 bits, HL lanes at a time, twice as many as
 * fp32 allows.
 */

/*
 * The first @n < HL elements; memory beyond them is not touched, and a load makes the others 0.
 * Units without masks move them by constant sizes, since a copy of a variable size is a call.
 */
#ifdef HL_LOAD_PART
#define HL_HAS_MASKS true
#else
#define HL_HAS_MASKS false
#define HL_LOAD_PART(p, n) hl_load_part(p, n)
#define HL_STORE_PART(p, x, n) hl_store_part(p, x, n)

static ALWAYS_INLINE void copy_part(u8 *dst, const u8 *src, long n)
{
	long size;

#pragma GCC unroll 4
	for (size = HL / 2; size; size /= 2) {
		if (!(n & size))
			continue;
		__builtin_memcpy(dst, src, 2 * size);
		dst += 2 * size;
		src += 2 * size;
	}
}

static ALWAYS_INLINE hl hl_load_part(const u8 *p, long n)
{
	hl x = { 0 };

	copy_part((u8 *)&x, p, n);
	return x;
}

static ALWAYS_INLINE void hl_store_part(u8 *p, hl x, long n)
{
	copy_part(p, (const u8 *)&x, n);
}
#endif

static ALWAYS_INLINE hl hl_load(const u8 *src, long n)
{
	return n < HL ? hl_le(HL_LOAD_PART(src, n)) : (hl)hl_le(*(const hl_mem *)src);
}

static ALWAYS_INLINE void hl_store_first(u8 *dst, hl x, long n, bool stream)
{
	if (n < HL)
		HL_STORE_PART(dst, hl_le(x), n);
	else
		hl_store(dst, x, stream);
}

/* One comparison finds subnormals, infinities and NaN, which are rare; 16 << 9 changes the bias. */
static ALWAYS_INLINE bool dl16_of_fp16(u8 *dst, const u8 *src, long n, bool stream)
{
	const hl magnitude = V_KEEP((hl){ 0 } + 0x7fff), one = V_KEEP((hl){ 0 } + 1);
	const hl bias = V_KEEP((hl){ 0 } + (16 << 9)), least = V_KEEP((hl){ 0 } + 0x400);
	const hl numbers = V_KEEP((hl){ 0 } + (0x7c00 - 0x400));
	hl x = hl_load(src, n);
	hl mag = x & magnitude;
	hl sign = x & ~magnitude;
	hls zero = (hls)mag == 0;
	/* Rounds half away from zero. */
	hl code = ((mag + one) >> 1) + bias;

	if (__builtin_expect(hl_any(((mag - least) >= numbers) & ~zero), 0)) {
		if (hl_any(((hls)mag < 0x400) & ~zero))
			return false;
		code = hl_select((hls)mag >= 0x7c00, (hl){ 0 } + SPYRE_DL16_INF, code);
		code = hl_select((hls)mag > 0x7c00, (hl){ 0 } + SPYRE_DL16_NAN, code);
		sign &= ~(hl)((hls)mag > 0x7c00);
	}
	hl_store_first(dst, (code & ~(hl)zero) | sign, n, stream);
	return true;
}

static ALWAYS_INLINE bool fp16_of_dl16(u8 *dst, const u8 *src, long n, bool stream)
{
	const hl magnitude = V_KEEP((hl){ 0 } + 0x7fff), bias = V_KEEP((hl){ 0 } + (16 << 9));
	const hl least = V_KEEP((hl){ 0 } + (17 << 9)), numbers = V_KEEP((hl){ 0 } + (30 << 9));
	hl x = hl_load(src, n);
	hl mag = x & magnitude;
	hl sign = x & ~magnitude;
	hls zero = (hls)mag == 0;
	hl code = (mag - bias) << 1;

	if (__builtin_expect(hl_any(((mag - least) >= numbers) & ~zero), 0)) {
		hls nan = (hls)mag == SPYRE_DL16_NAN;

		if (hl_any(((hls)mag < 17 << 9) & ~zero))
			return false;
		code = hl_select((hls)mag >= 47 << 9, (hl){ 0 } + 0x7c00, code);
		code = hl_select(nan, (hl){ 0 } + 0x7e00, code);
		sign &= ~(hl)nan;
	}
	hl_store_first(dst, (code & ~(hl)zero) | sign, n, stream);
	return true;
}

/* Converts @n of up to HL elements; returns false without it if some are rare. */
static ALWAYS_INLINE bool convert_half(u8 *dst, u32 to, const u8 *src, long n, bool stream)
{
	return to == SPYRE_FMT_SEN169_FP16 ? dl16_of_fp16(dst, src, n, stream) :
					     fp16_of_dl16(dst, src, n, stream);
}

/*
 * Converts the elements of a row from @i on, fewer than HL. Without masks the last HL elements
 * are converted, some of them again, unless that would convert results.
 */
static ALWAYS_INLINE bool convert_rest(u8 *dst, u32 to, const u8 *src, long i, long lanes)
{
	if (!HL_HAS_MASKS && i && dst != src)
		return convert_half(dst + 2 * (lanes - HL), to, src + 2 * (lanes - HL), HL, false);
	return convert_half(dst + 2 * i, to, src + 2 * i, lanes - i, false);
}

static ALWAYS_INLINE void convert_rare(u8 *dst, u32 to, const u8 *src, u32 from, long lanes)
{
	long i;

	for (i = 0; i < lanes; i += VL)
		convert_part(dst + 2 * i, to, src + 2 * i, from,
			     lanes - i < VL ? lanes - i : VL);
}

#define LINE_HALVES 32		/* elements of a cache line */

static ALWAYS_INLINE void convert_halves(const struct spyre_convert_run *run, u32 to, u32 from,
					 bool stream)
{
	long lanes = run->lanes;
	/* A line that is streamed in part and stored in part goes to memory and back. */
	long streamed = stream ? lanes / LINE_HALVES * LINE_HALVES : 0;
	long row, i;

	for (row = 0; row < run->rows; row++) {
		u8 *dst = run->dst + row * run->dst_stride;
		const u8 *src = run->src + row * run->src_stride;

		prefetch_row(run, src);
		for (i = 0; i + HL <= lanes; i += HL)
			if (!convert_half(dst + 2 * i, to, src + 2 * i, HL, i < streamed))
				convert_rare(dst + 2 * i, to, src + 2 * i, from, HL);
		if (i < lanes && !convert_rest(dst, to, src, i, lanes))
			convert_rare(dst + 2 * i, to, src + 2 * i, from, lanes - i);
	}
}

#define CONVERT_INSTANCE(name, to, from)				\
static NOINLINE void name(const struct spyre_convert_run *run)		\
{									\
	convert_rows(run, to, from);					\
}

#define WIDEN_INSTANCE(name, from)					\
static NOINLINE void name(const struct spyre_convert_run *run)		\
{									\
	widen_rows(run, from);						\
}

CONVERT_INSTANCE(convert_dl16_fp32, SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32)
WIDEN_INSTANCE(convert_fp32_dl16, SPYRE_FMT_SEN169_FP16)
WIDEN_INSTANCE(convert_fp32_bf16, SPYRE_FMT_BFLOAT16)
CONVERT_INSTANCE(convert_fp32_fp32, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP32)
CONVERT_INSTANCE(convert_dl16_bf16, SPYRE_FMT_SEN169_FP16, SPYRE_FMT_BFLOAT16)
CONVERT_INSTANCE(convert_bf16_dl16, SPYRE_FMT_BFLOAT16, SPYRE_FMT_SEN169_FP16)

static NOINLINE void convert_dl16_fp16(const struct spyre_convert_run *run)
{
	if (run->stream) {
		convert_halves(run, SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP16, true);
		V_FENCE();
	} else {
		convert_halves(run, SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP16, false);
	}
}

static NOINLINE void convert_fp16_dl16(const struct spyre_convert_run *run)
{
	if (run->stream) {
		convert_halves(run, SPYRE_FMT_IEEE_FP16, SPYRE_FMT_SEN169_FP16, true);
		V_FENCE();
	} else {
		convert_halves(run, SPYRE_FMT_IEEE_FP16, SPYRE_FMT_SEN169_FP16, false);
	}
}

static u32 format_bits(u32 format)
{
	return is_scratch_float(format) || is_scratch_integer(format) ? 32 : spyre_fmt_bits(format);
}

static NOINLINE void convert_tiles(const struct spyre_convert_run *run)
{
	u32 to = run->dst_format, from = run->src_format;
	bool sfu_to = is_sfu_float(to) || (is_sfu_integer(to) && !run->cast);
	bool sfu_from = is_sfu_float(from) || is_sfu_integer(from);
	u32 to_bits = format_bits(to), from_bits = format_bits(from);
	vf tile[TILE_VECS];
	long row, lane, n;

	for (row = 0; row < run->rows; row++) {
		u8 *dst = run->dst + row * run->dst_stride;
		const u8 *src = run->src + row * run->src_stride;

		prefetch_row(run, src);
		for (lane = 0; lane < run->lanes; lane += TILE) {
			u8 *q = dst + lane * to_bits / 8;
			const u8 *p = src + lane * from_bits / 8;

			n = run->lanes - lane < TILE ? run->lanes - lane : TILE;
			if (sfu_from)
				tile_load(tile, from, p, n);
			else
				host_load(tile, from, p, n);
			if (sfu_to)
				tile_store(tile, to, q, n);
			else
				host_store(tile, to, q, n);
		}
	}
}

static NOINLINE void convert_integer(const struct spyre_convert_run *run)
{
	u32 row;
	long i;

	for (row = 0; row < run->rows; row++) {
		u8 *dst = run->dst + row * run->dst_stride;
		const u8 *src = run->src + row * run->src_stride;

		for (i = 0; i < run->lanes; i++)
			integer_store(run->dst_format, dst, i,
				      integer_load(run->src_format, src, i));
	}
}

static ALWAYS_INLINE bool is_float_format(u32 format)
{
	return is_sfu_float(format) || format == SPYRE_FMT_FP64;
}

#if SPYRE_BIG_ENDIAN
CONVERT_INSTANCE(convert_scratch_dl16, SPYRE_FMT_SCRATCH_FP32, SPYRE_FMT_SEN169_FP16)
CONVERT_INSTANCE(convert_scratch_bf16, SPYRE_FMT_SCRATCH_FP32, SPYRE_FMT_BFLOAT16)
CONVERT_INSTANCE(convert_scratch_fp32, SPYRE_FMT_SCRATCH_FP32, SPYRE_FMT_IEEE_FP32)
CONVERT_INSTANCE(convert_dl16_scratch, SPYRE_FMT_SEN169_FP16, SPYRE_FMT_SCRATCH_FP32)

/* The usual formats of the PT's inputs and sums; returns false for others. */
static bool convert_scratch(const struct spyre_convert_run *run)
{
	u32 to = run->dst_format, from = run->src_format;

	if (to == SPYRE_FMT_SCRATCH_FP32 && from == SPYRE_FMT_SEN169_FP16)
		convert_scratch_dl16(run);
	else if (to == SPYRE_FMT_SCRATCH_FP32 && from == SPYRE_FMT_BFLOAT16)
		convert_scratch_bf16(run);
	else if (to == SPYRE_FMT_SCRATCH_FP32 && from == SPYRE_FMT_IEEE_FP32)
		convert_scratch_fp32(run);
	else if (to == SPYRE_FMT_SEN169_FP16 && from == SPYRE_FMT_SCRATCH_FP32)
		convert_dl16_scratch(run);
	else
		return false;
	return true;
}
#else
#define convert_scratch(run) false
#endif

#define PAIR(to, from) ((to) << 8 | (from))

static void unit_convert(const struct spyre_convert_run *run)
{
	u32 to = run->dst_format, from = run->src_format;

	if (convert_scratch(run))
		return;
	switch (PAIR(to, from)) {
	case PAIR(SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP16):
		return convert_dl16_fp16(run);
	case PAIR(SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32):
		return convert_dl16_fp32(run);
	case PAIR(SPYRE_FMT_IEEE_FP16, SPYRE_FMT_SEN169_FP16):
		return convert_fp16_dl16(run);
	case PAIR(SPYRE_FMT_IEEE_FP32, SPYRE_FMT_SEN169_FP16):
		return convert_fp32_dl16(run);
	case PAIR(SPYRE_FMT_IEEE_FP32, SPYRE_FMT_BFLOAT16):
		return convert_fp32_bf16(run);
	case PAIR(SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP32):
		return convert_fp32_fp32(run);
	case PAIR(SPYRE_FMT_SEN169_FP16, SPYRE_FMT_BFLOAT16):
		return convert_dl16_bf16(run);
	case PAIR(SPYRE_FMT_BFLOAT16, SPYRE_FMT_SEN169_FP16):
		return convert_bf16_dl16(run);
	}
	if (run->cast && !is_float_format(to) && !is_float_format(from))
		convert_integer(run);
	else
		convert_tiles(run);
}

#endif /* SPYRE_MODEL_SIMD_CONVERT_H */
