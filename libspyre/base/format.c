// SPDX-License-Identifier: MIT
/* Names and sizes of data formats. */
#include <string.h>
#include <strings.h>

#include <spyre/types.h>

#include "model/format.h"

/* Model, library and kernel ABI must number the formats alike; no code translates them. */
_Static_assert(SPYRE_FORMAT_SEN169_FP16 == (int)SPYRE_FMT_SEN169_FP16, "DL16");
_Static_assert(SPYRE_FORMAT_SENINT8 == (int)SPYRE_FMT_SENINT8, "int8");
_Static_assert(SPYRE_FORMAT_BFLOAT16 == (int)SPYRE_FMT_BFLOAT16, "bf16");
_Static_assert(SPYRE_FORMAT_UINT8 == (int)SPYRE_FMT_UINT8, "uint8");
_Static_assert(SPYRE_FORMAT_COUNT == (int)SPYRE_FMT_COUNT, "formats");

static const char *const format_names[SPYRE_FORMAT_COUNT] = {
	[SPYRE_FORMAT_SEN169_FP16] = "SEN169_FP16",
	[SPYRE_FORMAT_IEEE_FP32] = "IEEE_FP32",
	[SPYRE_FORMAT_SEN143_FP8] = "SEN143_FP8",
	[SPYRE_FORMAT_SEN152_FP8] = "SEN152_FP8",
	[SPYRE_FORMAT_SEN153_FP9] = "SEN153_FP9",
	[SPYRE_FORMAT_SEN18F_FP24] = "SEN18F_FP24",
	[SPYRE_FORMAT_SENINT2] = "SENINT2",
	[SPYRE_FORMAT_SENINT4] = "SENINT4",
	[SPYRE_FORMAT_SENINT8] = "SENINT8",
	[SPYRE_FORMAT_SENINT16] = "SENINT16",
	[SPYRE_FORMAT_SENINT24] = "SENINT24",
	[SPYRE_FORMAT_SENUINT2] = "SENUINT2",
	[SPYRE_FORMAT_SENUINT32] = "SENUINT32",
	[SPYRE_FORMAT_IEEE_INT32] = "IEEE_INT32",
	[SPYRE_FORMAT_IEEE_INT64] = "IEEE_INT64",
	[SPYRE_FORMAT_IEEE_FP16] = "IEEE_FP16",
	[SPYRE_FORMAT_BFLOAT16] = "BFLOAT16",
	[SPYRE_FORMAT_BOOL] = "BOOL",
	[SPYRE_FORMAT_UINT8] = "UINT8",
	[SPYRE_FORMAT_FP64] = "FP64",
};

static const struct {
	const char *name;
	spyre_format format;
} short_names[] = {
	{ "dl16", SPYRE_FORMAT_SEN169_FP16 },	{ "fp16", SPYRE_FORMAT_IEEE_FP16 },
	{ "fp32", SPYRE_FORMAT_IEEE_FP32 },	{ "bf16", SPYRE_FORMAT_BFLOAT16 },
	{ "fp64", SPYRE_FORMAT_FP64 },		{ "int8", SPYRE_FORMAT_SENINT8 },
	{ "int16", SPYRE_FORMAT_SENINT16 },	{ "int32", SPYRE_FORMAT_IEEE_INT32 },
	{ "int64", SPYRE_FORMAT_IEEE_INT64 },	{ "uint8", SPYRE_FORMAT_UINT8 },
	{ "bool", SPYRE_FORMAT_BOOL },		{ "int4", SPYRE_FORMAT_SENINT4 },
	{ "fp8_e4m3", SPYRE_FORMAT_SEN143_FP8 },
	{ "float8_e4m3fn", SPYRE_FORMAT_SEN143_FP8 },
	{ "fp8_e5m2", SPYRE_FORMAT_SEN152_FP8 },
	{ "float8_e5m2fnuz", SPYRE_FORMAT_SEN152_FP8 },
};

const char *spyre_format_name(spyre_format format)
{
	if ((unsigned int)format >= SPYRE_FORMAT_COUNT)
		return NULL;
	return format_names[format];
}

spyre_format spyre_format_from_name(const char *name)
{
	if (!name)
		return SPYRE_FORMAT_INVALID;
	for (int i = 1; i < SPYRE_FORMAT_COUNT; i++)
		if (format_names[i] && !strcmp(format_names[i], name))
			return i;
	for (size_t i = 0; i < sizeof(short_names) / sizeof(short_names[0]); i++)
		if (!strcasecmp(short_names[i].name, name))
			return short_names[i].format;
	return SPYRE_FORMAT_INVALID;
}

size_t spyre_format_bytes(spyre_format format)
{
	if ((unsigned int)format >= SPYRE_FORMAT_COUNT)
		return 0;
	return spyre_fmt_bytes((enum spyre_fmt)format);
}
