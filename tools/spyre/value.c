// SPDX-License-Identifier: MIT
/* Converts single elements of host formats. */
#include <math.h>
#include <string.h>

#include "value.h"

/* The 16-bit floats: a sign, @fraction bits of fraction, and the exponent. */
static double get_float16(uint16_t bits, int fraction)
{
	int bias = (1 << (14 - fraction)) - 1;
	int exponent = (bits & 0x7fff) >> fraction;
	int mantissa = bits & ((1 << fraction) - 1);
	double value;

	if (exponent == 2 * bias + 1)
		value = mantissa ? NAN : INFINITY;
	else if (!exponent)
		value = ldexp(mantissa, 1 - bias - fraction);
	else
		value = ldexp(mantissa | 1 << fraction, exponent - bias - fraction);
	return bits & 0x8000 ? -value : value;
}

static uint16_t put_float16(double value, int fraction)
{
	int bias = (1 << (14 - fraction)) - 1;
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	uint16_t infinity = (2 * bias + 1) << fraction;
	double magnitude = fabs(value);
	int exponent;
	long bits;

	if (isnan(value))
		return sign | infinity | 1 << (fraction - 1);
	if (isinf(value))
		return sign | infinity;
	frexp(magnitude, &exponent);
	exponent--;
	if (exponent > bias)
		return sign | infinity;
	if (!magnitude || exponent < 1 - bias)
		return sign | (uint16_t)lrint(ldexp(magnitude, bias - 1 + fraction));
	/* A fraction that rounds up to 2 carries into the exponent, up to infinity. */
	bits = lrint(ldexp(magnitude, fraction - exponent)) - (1l << fraction);
	return sign | (uint16_t)(((long)(exponent + bias) << fraction) + bits);
}

/*
 * The 8-bit floats, both without infinities: SEN143_FP8 is float8_e4m3fn, whose
 * largest code of either sign is NaN; SEN152_FP8 is float8_e5m2fnuz, whose code of
 * -0 is NaN.
 */
static double get_float8(uint8_t bits, int fraction)
{
	int bias = fraction == 3 ? 7 : 16;
	int exponent = (bits & 0x7f) >> fraction, mantissa = bits & ((1 << fraction) - 1);
	double value;

	if (fraction == 3 ? (bits & 0x7f) == 0x7f : bits == 0x80)
		return NAN;
	value = exponent ? ldexp(mantissa | 1 << fraction, exponent - bias - fraction)
			 : ldexp(mantissa, 1 - bias - fraction);
	return bits & 0x80 ? -value : value;
}

/* Values out of range saturate. */
static uint8_t put_float8(double value, int fraction)
{
	int bias = fraction == 3 ? 7 : 16, most = fraction == 3 ? 0x7e : 0x7f, exponent;
	uint8_t sign = signbit(value) ? 0x80 : 0;
	double magnitude = fabs(value);
	long bits;

	if (isnan(value))
		return fraction == 3 ? 0x7f : 0x80;
	if (isinf(value))
		return sign | most;
	frexp(magnitude, &exponent);
	exponent--;
	if (!magnitude || exponent < 1 - bias)
		bits = lrint(ldexp(magnitude, bias - 1 + fraction));
	else if (exponent > 16)
		bits = most;
	else	/* A fraction that rounds up to 2 carries into the exponent. */
		bits = lrint(ldexp(magnitude, fraction - exponent)) - (1l << fraction) +
		       ((long)(exponent + bias) << fraction);
	if (bits > most)
		bits = most;
	return !bits && fraction == 2 ? 0 : sign | (uint8_t)bits;
}

bool value_known(spyre_format format)
{
	switch (format) {
	case SPYRE_FORMAT_IEEE_FP16:
	case SPYRE_FORMAT_BFLOAT16:
	case SPYRE_FORMAT_IEEE_FP32:
	case SPYRE_FORMAT_FP64:
	case SPYRE_FORMAT_SENINT8:
	case SPYRE_FORMAT_SENINT16:
	case SPYRE_FORMAT_IEEE_INT32:
	case SPYRE_FORMAT_IEEE_INT64:
	case SPYRE_FORMAT_UINT8:
	case SPYRE_FORMAT_BOOL:
	case SPYRE_FORMAT_SEN143_FP8:
	case SPYRE_FORMAT_SEN152_FP8:
		return true;
	default:
		return false;
	}
}

#define GET(type)                                          \
	({                                                 \
		type get_value;                            \
		memcpy(&get_value, at, sizeof(get_value)); \
		get_value;                                 \
	})

double value_get(spyre_format format, const void *at)
{
	switch (format) {
	case SPYRE_FORMAT_IEEE_FP16:
		return get_float16(GET(uint16_t), 10);
	case SPYRE_FORMAT_BFLOAT16:
		return get_float16(GET(uint16_t), 7);
	case SPYRE_FORMAT_SEN143_FP8:
	case SPYRE_FORMAT_SEN152_FP8:
		return get_float8(GET(uint8_t), format == SPYRE_FORMAT_SEN143_FP8 ? 3 : 2);
	case SPYRE_FORMAT_IEEE_FP32:
		return GET(float);
	case SPYRE_FORMAT_FP64:
		return GET(double);
	case SPYRE_FORMAT_SENINT8:
		return GET(int8_t);
	case SPYRE_FORMAT_SENINT16:
		return GET(int16_t);
	case SPYRE_FORMAT_IEEE_INT32:
		return GET(int32_t);
	case SPYRE_FORMAT_IEEE_INT64:
		return (double)GET(int64_t);
	case SPYRE_FORMAT_UINT8:
		return GET(uint8_t);
	case SPYRE_FORMAT_BOOL:
		return GET(uint8_t) != 0;
	default:
		return NAN;
	}
}

static int put_int(void *at, double value, double min, double max, size_t bytes)
{
	/* The low bytes, which are the last ones of a number on big-endian machines. */
	const size_t skip = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(int64_t) - bytes : 0;
	double rounded = rint(value);
	int64_t number;

	if (!(rounded >= min && rounded < max))
		return -1;
	number = (int64_t)rounded;
	memcpy(at, (const uint8_t *)&number + skip, bytes);
	return 0;
}

int value_put(spyre_format format, void *at, double value)
{
	uint16_t half;
	float single = (float)value;

	switch (format) {
	case SPYRE_FORMAT_IEEE_FP16:
	case SPYRE_FORMAT_BFLOAT16:
		half = put_float16(value, format == SPYRE_FORMAT_IEEE_FP16 ? 10 : 7);
		memcpy(at, &half, sizeof(half));
		return 0;
	case SPYRE_FORMAT_SEN143_FP8:
	case SPYRE_FORMAT_SEN152_FP8:
		*(uint8_t *)at = put_float8(value, format == SPYRE_FORMAT_SEN143_FP8 ? 3 : 2);
		return 0;
	case SPYRE_FORMAT_IEEE_FP32:
		memcpy(at, &single, sizeof(single));
		return 0;
	case SPYRE_FORMAT_FP64:
		memcpy(at, &value, sizeof(value));
		return 0;
	case SPYRE_FORMAT_SENINT8:
		return put_int(at, value, -0x1p7, 0x1p7, 1);
	case SPYRE_FORMAT_SENINT16:
		return put_int(at, value, -0x1p15, 0x1p15, 2);
	case SPYRE_FORMAT_IEEE_INT32:
		return put_int(at, value, -0x1p31, 0x1p31, 4);
	case SPYRE_FORMAT_IEEE_INT64:
		return put_int(at, value, -0x1p63, 0x1p63, 8);
	case SPYRE_FORMAT_UINT8:
		return put_int(at, value, 0, 0x1p8, 1);
	case SPYRE_FORMAT_BOOL:
		return put_int(at, value != 0, 0, 2, 1);
	default:
		return -1;
	}
}
