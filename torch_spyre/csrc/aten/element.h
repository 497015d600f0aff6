// SPDX-License-Identifier: MIT
/*
 * Numbers as elements of the card: their codes, and the bytes of codes in device memory and on the
 * host. No type of torch is used here, so that tests/unit/plugin_elements.cpp compiles this for
 * every architecture.
 */
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include <spyre/types.h>

namespace torch_spyre {

inline uint32_t bits_of(float value)
{
	uint32_t bits;

	std::memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* 1-6-9, bias 31: nearest, ties away from zero; no subnormals, NaN below Inf at the end. */
inline uint16_t dl16_of(float value)
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

/* The upper half of fp32: nearest, ties to even. */
inline uint16_t bfloat16_of(float value)
{
	uint32_t bits = bits_of(value);

	if (std::isnan(value))
		return 0x7fc0;
	return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Towards zero. Numbers beyond 64 bits, and NaN, become the same one on every host. */
inline int64_t integer_of(double value)
{
	return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
}

/* The code of @value in @format, or nothing for a format of which there are no constants. */
inline std::optional<int64_t> code_of(double value, spyre_format format)
{
	switch (format) {
	case SPYRE_FORMAT_SEN169_FP16:
	case SPYRE_FORMAT_BOOL:
		return dl16_of(static_cast<float>(value));
	case SPYRE_FORMAT_IEEE_FP32:
		return bits_of(static_cast<float>(value));
	case SPYRE_FORMAT_BFLOAT16:
		return bfloat16_of(static_cast<float>(value));
	case SPYRE_FORMAT_SENINT8:
		return static_cast<uint8_t>(integer_of(value));
	case SPYRE_FORMAT_SENINT16:
		return static_cast<uint16_t>(integer_of(value));
	case SPYRE_FORMAT_IEEE_INT32:
	case SPYRE_FORMAT_SENUINT32:
		return static_cast<uint32_t>(integer_of(value));
	default:
		return std::nullopt;
	}
}

/* Writes the low @bytes of @code as device memory has them, which is little endian on any host. */
inline void store_constant(int64_t code, size_t bytes, uint8_t *to)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = static_cast<uint8_t>(static_cast<uint64_t>(code) >> 8 * i);
}

/* Fills @size bytes, a multiple of @bytes, with repetitions of an element of device memory. */
inline void fill_pattern(int64_t code, size_t bytes, uint8_t *pattern, size_t size)
{
	for (size_t i = 0; i < size; i += bytes)
		store_constant(code, bytes, pattern + i);
}

/* Writes an element of 2 or 4 @bytes in the host's order, in which libspyre decodes elements. */
inline void store_host(int64_t code, size_t bytes, void *to)
{
	const auto wide = static_cast<uint32_t>(code);
	const auto narrow = static_cast<uint16_t>(code);

	std::memcpy(to, bytes == sizeof(wide) ? static_cast<const void *>(&wide) : &narrow, bytes);
}

} // namespace torch_spyre
