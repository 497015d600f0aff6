// SPDX-License-Identifier: MIT
/* Constants as the card codes them, for SDSC fields; docs/numerics.md has the rules. */
#include "constant.h"

#include <cmath>
#include <cstring>

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>

namespace torch_spyre {

namespace {

uint32_t bits_of(float value)
{
	uint32_t bits;

	std::memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* 1-6-9, bias 31: nearest, ties away from zero; no subnormals, NaN below Inf at the end. */
uint16_t dl16_of(float value)
{
	constexpr uint32_t NAN_CODE = 0x7ffe, INF_CODE = 0x7fff, BIAS_GAP = (127 - 31) << 9;
	uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
	uint32_t magnitude = bits & 0x7fffffff;

	if (std::isnan(value))
		return NAN_CODE;

	uint32_t code = (magnitude + 0x2000) >> 14;

	if (code < BIAS_GAP)
		return static_cast<uint16_t>(sign);
	code -= BIAS_GAP;
	return static_cast<uint16_t>(sign | (code < NAN_CODE ? code : INF_CODE));
}

} // namespace

int64_t encode_constant(double value, spyre_format format)
{
	switch (format) {
	case SPYRE_FORMAT_SEN169_FP16:
	case SPYRE_FORMAT_BOOL:
		return dl16_of(static_cast<float>(value));
	case SPYRE_FORMAT_IEEE_FP32:
		return bits_of(static_cast<float>(value));
	case SPYRE_FORMAT_BFLOAT16:
		return c10::BFloat16(static_cast<float>(value)).x;
	case SPYRE_FORMAT_SENINT8:
		return static_cast<uint8_t>(static_cast<int64_t>(value));
	case SPYRE_FORMAT_SENINT16:
		return static_cast<uint16_t>(static_cast<int64_t>(value));
	case SPYRE_FORMAT_IEEE_INT32:
	case SPYRE_FORMAT_SENUINT32:
		return static_cast<uint32_t>(static_cast<int64_t>(value));
	default:
		TORCH_CHECK(false, "spyre: cannot encode a constant in format ",
			    spyre_format_name(format) ? spyre_format_name(format) : "INVALID");
	}
}

void store_constant(int64_t code, size_t bytes, uint8_t *to)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = static_cast<uint8_t>(static_cast<uint64_t>(code) >> 8 * i);
}

} // namespace torch_spyre
