// SPDX-License-Identifier: MIT
#include "model_reference.h"

#include <math.h>
#include <string.h>

#include "tests/order.h"

static float from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return x;
}

static uint32_t to_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

float reference_load(uint32_t format, const uint8_t *p, uint32_t lane)
{
	uint32_t bits = spyre_fmt_bits(format);
	uint64_t w = get_le(p + lane * bits / 8, (bits + 7) / 8);

	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		return from_bits(spyre_dl16_to_fp32(w));
	case SPYRE_FMT_IEEE_FP16:
		return from_bits(spyre_fp16_to_fp32(w));
	case SPYRE_FMT_BFLOAT16:
		return from_bits(spyre_bf16_to_fp32(w));
	case SPYRE_FMT_SEN143_FP8:
		return from_bits(spyre_fp8_143_to_fp32(w));
	case SPYRE_FMT_SEN152_FP8:
		return from_bits(spyre_fp8_152_to_fp32(w));
	case SPYRE_FMT_SENINT4:
		w = lane % 2 ? w >> 4 : w & 15;
		return w < 8 ? (int)w : (int)w - 16;
	case SPYRE_FMT_SENINT8:
		return (int8_t)w;
	case SPYRE_FMT_SENINT16:
		return (int16_t)w;
	case SPYRE_FMT_IEEE_INT32:
		return from_bits(spyre_int_to_fp32((int32_t)w));
	case SPYRE_FMT_SENUINT32:
		return from_bits(spyre_int_to_fp32((uint32_t)w));
	default:
		return from_bits(w);
	}
}

void reference_store(uint32_t format, uint8_t *p, uint32_t lane, float x)
{
	uint32_t w = isnan(x) ? 0x7fc00000 : to_bits(x);
	uint32_t bits = spyre_fmt_bits(format);

	p += lane * bits / 8;
	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		w = spyre_fp32_to_dl16(w);
		break;
	case SPYRE_FMT_IEEE_FP16:
		w = spyre_fp32_to_fp16(w);
		break;
	case SPYRE_FMT_BFLOAT16:
		w = spyre_fp32_to_bf16(w);
		break;
	case SPYRE_FMT_SEN143_FP8:
		w = spyre_fp32_to_fp8_143(w);
		break;
	case SPYRE_FMT_SEN152_FP8:
		w = spyre_fp32_to_fp8_152(w);
		break;
	case SPYRE_FMT_SENINT4:
		w = spyre_fp32_to_int(format, w) & 15;
		w = lane % 2 ? (*p & 15) | w << 4 : (*p & 0xf0) | w;
		break;
	case SPYRE_FMT_SENINT8:
	case SPYRE_FMT_SENINT16:
	case SPYRE_FMT_IEEE_INT32:
	case SPYRE_FMT_SENUINT32:
		w = spyre_fp32_to_int(format, w);
		break;
	}
	put_le(p, w, (bits + 7) / 8);
}

static float larger(float a, float b)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return signbit(a) ? b : a;
	return a > b ? a : b;
}

static float smaller(float a, float b)
{
	return -larger(-a, -b);
}

/* A remainder of a division by @b, of either sign, to the one with the sign of @b. */
static float with_sign_of(float remainder, float b)
{
	return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

static float norm_scale(float mean, float squares, float eps)
{
	float variance = fmaf(-mean, mean, squares);

	/* The larger of the variance and +0; -0 becomes +0. */
	return 1 / sqrtf((variance > 0 || isnan(variance) ? variance : 0) + eps);
}

/*
 * Functions of IEEE operations only; model_functions.c has the others. @coord is
 * the position of the lane, for MASKBYINDEX.
 */
float reference_apply(uint32_t func, const uint32_t *imm, uint32_t coord, const float *x)
{
	float a = x[0], b = x[1], low = from_bits(imm[0]), high = from_bits(imm[1]);

	switch (func) {
	case SPYRE_FUNC_IDENTITY: return a;
	case SPYRE_FUNC_RELU: return isnan(a) ? NAN : a > 0 ? a : 0;
	case SPYRE_FUNC_LEAKYRELU: return a > 0 ? a : a * low;
	case SPYRE_FUNC_NEG: return -a;
	case SPYRE_FUNC_ABS: return fabsf(a);
	case SPYRE_FUNC_ADD: return a + b;
	case SPYRE_FUNC_SUB: return a - b;
	case SPYRE_FUNC_MUL: return a * b;
	case SPYRE_FUNC_MAX: return larger(a, b);
	case SPYRE_FUNC_MIN: return smaller(a, b);
	case SPYRE_FUNC_EQ: return a == b;
	case SPYRE_FUNC_NE: return a != b;
	case SPYRE_FUNC_GT: return a > b;
	case SPYRE_FUNC_LT: return a < b;
	case SPYRE_FUNC_GE: return a >= b;
	case SPYRE_FUNC_LE: return a <= b;
	case SPYRE_FUNC_REVSUB: return b - a;
	case SPYRE_FUNC_REALDIV: return a / b;
	case SPYRE_FUNC_RECIPROCAL: return 1 / a;
	case SPYRE_FUNC_SQRT: return sqrtf(a);
	case SPYRE_FUNC_RSQRT: return 1 / sqrtf(a);
	case SPYRE_FUNC_FLOOR: return floorf(a);
	case SPYRE_FUNC_ROUND: return rintf(a);
	case SPYRE_FUNC_TRUNC: return truncf(a);
	case SPYRE_FUNC_CLIP: a = a < low ? low : a; return a > high ? high : a;
	case SPYRE_FUNC_LAYERNORMSCALE: return norm_scale(a, b, low);
	case SPYRE_FUNC_LAYERNORMNORM: return (a - b) * x[2] * x[3] + x[4];
	case SPYRE_FUNC_FMOD: return fmodf(a, b);
	case SPYRE_FUNC_REMAINDER: return with_sign_of(fmodf(a, b), b);
	case SPYRE_FUNC_MULADD: return fmaf(a, b, x[2]);
	case SPYRE_FUNC_FNMS: return fmaf(-a, b, x[2]);
	/* Any position and any index is exact in double. */
	case SPYRE_FUNC_MASKBYINDEX:
		return (double)coord < b && (!imm[3] || (double)coord + imm[3] >= b) ? a : low;
	default: return a != 0 ? b : x[2];
	}
}

float reference_first(uint32_t func)
{
	return func == SPYRE_FUNC_AMAX ? -INFINITY : func == SPYRE_FUNC_AMIN ? INFINITY : 0;
}

/* Combines two accumulators, or one with an element. */
static float combine(uint32_t func, float acc, float x)
{
	switch (func) {
	case SPYRE_FUNC_AMAX: return larger(acc, x);
	case SPYRE_FUNC_AMIN: return smaller(acc, x);
	case SPYRE_FUNC_ABSMAX:
	case SPYRE_FUNC_QUANTSCALE: return larger(acc, fabsf(x));
	default: return acc + x;
	}
}

float reference_combine(uint32_t func, float acc, float x, float y, bool square)
{
	if (func == SPYRE_FUNC_MULSUM)
		return fmaf(x, y, acc);
	return combine(func, acc, square ? x * x : x);
}

void reference_across(uint32_t func, float *acc)
{
	uint32_t lane, half;

	for (half = 64; half; half /= 2)
		for (lane = 0; lane < half; lane++)
			acc[lane] = combine(func, acc[lane], acc[lane + half]);
	for (lane = 1; lane < 128; lane++)
		acc[lane] = acc[0];
}

/* The value to store from the accumulators; @squares is used by the EXX2 functions. */
void reference_finish(uint32_t func, float factor, float *acc, const float *squares)
{
	uint32_t lane;

	if (func == SPYRE_FUNC_EXX2 || func == SPYRE_FUNC_EXX2_ZEROMEAN) {
		memset(acc + 1, 0, 127 * sizeof(*acc));
		acc[0] = func == SPYRE_FUNC_EXX2 ? acc[0] * factor : 0;
		acc[1] = squares[0] * factor;
	} else if (spyre_func_imms(func)) {
		for (lane = 0; lane < 128; lane++)
			acc[lane] *= factor;
	}
}

static uint32_t integer_width(uint32_t format)
{
	switch (format) {
	case SPYRE_FMT_SENINT4: return 4;
	case SPYRE_FMT_SENINT8: return 8;
	case SPYRE_FMT_SENINT16: return 16;
	case SPYRE_FMT_IEEE_INT32: return 32;
	default: return 0;
	}
}

int32_t reference_load_integer(uint32_t format, const uint8_t *p, uint32_t lane)
{
	if (format != SPYRE_FMT_IEEE_INT32)
		return (int32_t)spyre_fp32_to_int(SPYRE_FMT_IEEE_INT32,
						  to_bits(reference_load(format, p, lane)));
	return (int32_t)get_le(p + lane * 4, 4);
}

void reference_store_integer(uint32_t format, uint8_t *p, uint32_t lane, int32_t x)
{
	uint32_t width = integer_width(format), w = (uint32_t)x;

	if (!width) {
		reference_store(format, p, lane, (float)x);
		return;
	}
	p += lane * width / 8;
	if (width == 4)
		w = lane % 2 ? (*p & 15) | (w & 15) << 4 : (*p & 0xf0) | (w & 15);
	put_le(p, w, (width + 7) / 8);
}

/* Of the division that rounds down or towards zero, by 64-bit integers. */
static int64_t integer_quotient(int64_t a, int64_t b, bool down)
{
	if (!b)
		return -1;
	return a / b - (down && a % b && (a < 0) != (b < 0));
}

static int64_t integer_shifted(int64_t a, int64_t b, bool left)
{
	if (b < 0 || b > 31)
		return left ? 0 : a < 0 ? -1 : 0;
	return left ? a * (1ll << b) : a < 0 ? ~(~a >> b) : a >> b;
}

/* In 64 bits nothing overflows; the result is then taken modulo 2^32. */
static int64_t integer_result(uint32_t func, int64_t a, int64_t b, int64_t c)
{
	switch (func) {
	case SPYRE_FUNC_INT_IDENTITY: return a;
	case SPYRE_FUNC_INT_NEG: return -a;
	case SPYRE_FUNC_INT_ABS: return a < 0 ? -a : a;
	case SPYRE_FUNC_INT_NOT: return -1 - a;
	case SPYRE_FUNC_INT_CLIP: a = a < b ? b : a; return a > c ? c : a;
	case SPYRE_FUNC_INT_ADD: return a + b;
	case SPYRE_FUNC_INT_SUB: return a - b;
	case SPYRE_FUNC_INT_MUL: return a * b;
	case SPYRE_FUNC_INT_MAX: return a > b ? a : b;
	case SPYRE_FUNC_INT_MIN: return a < b ? a : b;
	case SPYRE_FUNC_INT_EQ: return a == b;
	case SPYRE_FUNC_INT_NE: return a != b;
	case SPYRE_FUNC_INT_GT: return a > b;
	case SPYRE_FUNC_INT_LT: return a < b;
	case SPYRE_FUNC_INT_GE: return a >= b;
	case SPYRE_FUNC_INT_LE: return a <= b;
	case SPYRE_FUNC_INT_AND: return a & b;
	case SPYRE_FUNC_INT_OR: return a | b;
	case SPYRE_FUNC_INT_XOR: return a ^ b;
	case SPYRE_FUNC_INT_SHL: return integer_shifted(a, b, true);
	case SPYRE_FUNC_INT_SHR: return integer_shifted(a, b, false);
	case SPYRE_FUNC_INT_FLOORDIV: return integer_quotient(a, b, true);
	case SPYRE_FUNC_INT_TRUNCDIV: return integer_quotient(a, b, false);
	case SPYRE_FUNC_INT_REMAINDER: return b ? a - b * integer_quotient(a, b, true) : a;
	case SPYRE_FUNC_INT_FMOD: return b ? a % b : a;
	default: return a ? b : c;
	}
}

int32_t reference_apply_integer(uint32_t func, const int32_t *x)
{
	return (int32_t)(uint32_t)integer_result(func, x[0], x[1], x[2]);
}

int32_t reference_first_integer(uint32_t func)
{
	return func == SPYRE_FUNC_INT_AMAX ? INT32_MIN :
	       func == SPYRE_FUNC_INT_AMIN ? INT32_MAX : 0;
}

int32_t reference_combine_integer(uint32_t func, int32_t acc, int32_t x)
{
	if (func == SPYRE_FUNC_INT_AMAX)
		return acc > x ? acc : x;
	if (func == SPYRE_FUNC_INT_AMIN)
		return acc < x ? acc : x;
	return (int32_t)((uint32_t)acc + (uint32_t)x);
}

static bool is_float(uint32_t f)
{
	return f == SPYRE_FMT_SEN169_FP16 || f == SPYRE_FMT_IEEE_FP32 ||
	       f == SPYRE_FMT_IEEE_FP16 || f == SPYRE_FMT_BFLOAT16 || f == SPYRE_FMT_FP64 ||
	       f == SPYRE_FMT_SEN143_FP8 || f == SPYRE_FMT_SEN152_FP8;
}

static int64_t load_int(uint32_t format, const uint8_t *p)
{
	int64_t x = (int64_t)get_le(p, spyre_fmt_bytes(format));

	switch (format) {
	case SPYRE_FMT_SENINT8: return (int8_t)x;
	case SPYRE_FMT_SENINT16: return (int16_t)x;
	case SPYRE_FMT_IEEE_INT32: return (int32_t)x;
	case SPYRE_FMT_BOOL: return x != 0;
	default: return x;
	}
}

static int64_t float_to_int(uint32_t format, float x)
{
	double lo, hi;

	switch (format) {
	case SPYRE_FMT_BOOL: return x != 0;
	case SPYRE_FMT_UINT8: lo = 0; hi = 255; break;
	case SPYRE_FMT_SENUINT32: lo = 0; hi = 4294967295.0; break;
	case SPYRE_FMT_SENINT8: lo = -128; hi = 127; break;
	case SPYRE_FMT_SENINT16: lo = -32768; hi = 32767; break;
	case SPYRE_FMT_IEEE_INT32: lo = -2147483648.0; hi = 2147483647.0; break;
	default:
		if (isnan(x))
			return 0;
		return x >= 0x1p63f ? INT64_MAX : x < -0x1p63f ? INT64_MIN : (int64_t)x;
	}
	if (isnan(x))
		return 0;
	return trunc(x) < lo ? (int64_t)lo : trunc(x) > hi ? (int64_t)hi : (int64_t)x;
}

void reference_convert(uint32_t to, uint8_t *dst, uint32_t from, const uint8_t *src)
{
	uint64_t bits;
	float x;
	double d;
	int64_t i;

	if (to == from) {
		memcpy(dst, src, spyre_fmt_bytes(to));
		return;
	}
	if (!is_float(to) && !is_float(from)) {
		i = load_int(from, src);
		if (to == SPYRE_FMT_BOOL)
			i = i != 0;
		put_le(dst, (uint64_t)i, spyre_fmt_bytes(to));
		return;
	}
	if (from == SPYRE_FMT_FP64) {
		bits = get_le(src, 8);
		memcpy(&d, &bits, 8);
		x = (float)d;
	} else if (is_float(from)) {
		x = reference_load(from, src, 0);
	} else {
		x = (float)load_int(from, src);
	}
	if (to == SPYRE_FMT_FP64) {
		d = x;
		memcpy(&bits, &d, 8);
		put_le(dst, isnan(x) ? 0x7ff8ull << 48 : bits, 8);
	} else if (is_float(to)) {
		reference_store(to, dst, 0, x);
	} else {
		i = float_to_int(to, x);
		put_le(dst, (uint64_t)i, spyre_fmt_bytes(to));
	}
}

void reference_move(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host)
{
	uint64_t bytes = spyre_fmt_bytes(desc->host_format);
	uint8_t element[8];

	if (desc->direction == SPYRE_DMA_D2H) {
		reference_convert(desc->host_format, host, desc->device_format, device);
		order_le(host, 1, bytes);
		return;
	}
	memcpy(element, host, bytes);
	order_le(element, 1, bytes);
	reference_convert(desc->device_format, device, desc->host_format, element);
}

void reference_dma(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host,
		   uint64_t host_bytes)
{
	uint32_t c[SPYRE_DMA_MAX_DIMS] = { 0 };
	uint64_t hb = spyre_fmt_bytes(desc->host_format);
	uint64_t db = spyre_fmt_bytes(desc->device_format);
	uint32_t b, d;

	for (;; device += db) {
		uint64_t at = desc->host_offset;
		bool real = true;

		for (d = 0; d < desc->num_dims; d++)
			at += c[d] * desc->dim[d].host_stride;
		for (b = 0; b < desc->num_bounds; b++) {
			uint64_t sum = 0;

			for (d = 0; d < desc->num_dims; d++)
				sum += c[d] * desc->bound[b].coef[d];
			real = real && sum < desc->bound[b].limit;
		}
		real = real && at + hb <= host_bytes;
		if (real)
			reference_move(desc, device, host + at);
		else if (desc->direction == SPYRE_DMA_H2D)
			memset(device, 0, db);
		for (d = desc->num_dims; d--;) {
			if (++c[d] < desc->dim[d].count)
				break;
			c[d] = 0;
		}
		if (d == (uint32_t)-1)
			return;
	}
}

bool reference_box_at(const struct spyre_dma_desc *desc, uint64_t index, uint64_t *host,
		      uint64_t *device)
{
	uint32_t d;

	*host = desc->host_offset;
	*device = desc->box.device_offset;
	for (d = desc->num_dims; d--; index /= desc->dim[d].count) {
		*host += index % desc->dim[d].count * desc->dim[d].host_stride;
		*device += index % desc->dim[d].count * desc->box.device_stride[d];
	}
	return !index;
}

void reference_box(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host)
{
	uint64_t i, h, d;

	for (i = 0; reference_box_at(desc, i, &h, &d); i++)
		reference_move(desc, device + d, host + h);
}
