// SPDX-License-Identifier: MIT
/* Numbers as elements of the data formats, by the model's codecs. */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/check.h"
#include "libspyre/base/error.h"
#include "model/format.h"

/* The integer formats; the others have the range 0 to 0. */
static const struct {
	int64_t min, max;
} range[SPYRE_FORMAT_COUNT] = {
	[SPYRE_FORMAT_SENINT4] = { -8, 7 },
	[SPYRE_FORMAT_SENINT8] = { INT8_MIN, INT8_MAX },
	[SPYRE_FORMAT_SENINT16] = { INT16_MIN, INT16_MAX },
	[SPYRE_FORMAT_SENUINT32] = { 0, UINT32_MAX },
	[SPYRE_FORMAT_IEEE_INT32] = { INT32_MIN, INT32_MAX },
	[SPYRE_FORMAT_IEEE_INT64] = { INT64_MIN, INT64_MAX },
	[SPYRE_FORMAT_UINT8] = { 0, UINT8_MAX },
	[SPYRE_FORMAT_BOOL] = { 0, 1 },
};

static double number_of_bits(uint64_t fp64)
{
	double number;

	memcpy(&number, &fp64, sizeof(number));
	return number;
}

/* The number of an element whose bits are the lowest of @code. */
static double decode(spyre_format format, uint64_t code)
{
	uint32_t unused = 64 - spyre_fmt_bits((enum spyre_fmt)format);

	switch (format) {
	case SPYRE_FORMAT_SEN169_FP16:
		return number_of_bits(spyre_fp32_to_fp64(spyre_dl16_to_fp32((uint16_t)code)));
	case SPYRE_FORMAT_IEEE_FP16:
		return number_of_bits(spyre_fp32_to_fp64(spyre_fp16_to_fp32((uint16_t)code)));
	case SPYRE_FORMAT_BFLOAT16:
		return number_of_bits(spyre_fp32_to_fp64(spyre_bf16_to_fp32((uint16_t)code)));
	case SPYRE_FORMAT_SEN143_FP8:
		return number_of_bits(spyre_fp32_to_fp64(spyre_fp8_143_to_fp32((uint8_t)code)));
	case SPYRE_FORMAT_SEN152_FP8:
		return number_of_bits(spyre_fp32_to_fp64(spyre_fp8_152_to_fp32((uint8_t)code)));
	case SPYRE_FORMAT_IEEE_FP32:
		return number_of_bits(spyre_fp32_to_fp64((uint32_t)code));
	case SPYRE_FORMAT_FP64:
		return number_of_bits(code);
	case SPYRE_FORMAT_BOOL:
		return code != 0;
	default:
		if (range[format].min < 0)
			return (double)((int64_t)(code << unused) >> unused);
		return (double)code;
	}
}

/* Towards zero, saturating, NaN to 0. */
static int64_t integer_of(double number, int64_t min, int64_t max)
{
	if (number != number)
		return 0;
	if (number <= (double)min)
		return min;
	return number >= (double)max ? max : (int64_t)number;
}

static uint64_t encode(spyre_format format, double number)
{
	uint64_t bits;
	uint32_t fp32;

	memcpy(&bits, &number, sizeof(bits));
	fp32 = spyre_fp64_to_fp32(bits);
	switch (format) {
	case SPYRE_FORMAT_SEN169_FP16:
		return spyre_fp32_to_dl16(fp32);
	case SPYRE_FORMAT_IEEE_FP16:
		return spyre_fp32_to_fp16(fp32);
	case SPYRE_FORMAT_BFLOAT16:
		return spyre_fp32_to_bf16(fp32);
	case SPYRE_FORMAT_SEN143_FP8:
		return spyre_fp32_to_fp8_143(fp32);
	case SPYRE_FORMAT_SEN152_FP8:
		return spyre_fp32_to_fp8_152(fp32);
	case SPYRE_FORMAT_IEEE_FP32:
		return fp32;
	case SPYRE_FORMAT_FP64:
		return bits;
	case SPYRE_FORMAT_BOOL:
		return number != 0;
	default:
		return (uint64_t)integer_of(number, range[format].min, range[format].max);
	}
}

static spyre_status check(const char *function, spyre_format format, const double *numbers,
			  const void *elements, size_t count)
{
	const char *name = spyre_format_name(format);

	if (!name)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "%s: unknown format %d; pass a spyre_format", function,
				   (int)format);
	if (!spyre_fmt_bits((enum spyre_fmt)format))
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "%s: cannot convert %s: the encoding of its elements is not public",
				   function, name);
	if (count && (!numbers || !elements))
		return spyre_null_argument(function, numbers ? "elements" : "numbers");
	return SPYRE_SUCCESS;
}

/* The low @bytes of @code, in the host's order. */
static void *low_bytes(uint64_t *code, size_t bytes)
{
	return (uint8_t *)code + (SPYRE_BIG_ENDIAN ? sizeof(*code) - bytes : 0);
}

spyre_status spyre_format_encode(spyre_format format, const double *numbers, size_t count,
				 void *elements)
{
	const size_t bytes = spyre_format_bytes(format);
	uint8_t *p = elements;

	TRY(check("spyre_format_encode", format, numbers, elements, count));
	for (size_t i = 0; i < count; i++) {
		uint64_t code = encode(format, numbers[i]);

		if (bytes)
			memcpy(p + i * bytes, low_bytes(&code, bytes), bytes);
		else if (i % 2)		/* SENINT4: the second of a pair is the high half */
			p[i / 2] = (uint8_t)(p[i / 2] | code << 4);
		else
			p[i / 2] = (uint8_t)(code & 15);
	}
	return SPYRE_SUCCESS;
}

spyre_status spyre_format_decode(spyre_format format, const void *elements, size_t count,
				 double *numbers)
{
	const size_t bytes = spyre_format_bytes(format);
	const uint8_t *p = elements;

	TRY(check("spyre_format_decode", format, numbers, elements, count));
	for (size_t i = 0; i < count; i++) {
		uint64_t code = 0;

		if (bytes)
			memcpy(low_bytes(&code, bytes), p + i * bytes, bytes);
		else
			code = p[i / 2] >> (i % 2 ? 4 : 0);
		numbers[i] = decode(format, code);
	}
	return SPYRE_SUCCESS;
}
