/* SPDX-License-Identifier: MIT */
/*
 * Data formats, under the names that torch-spyre a312898 uses: the formats that
 * csrc/module.cpp:351 binds, the stick sizes of csrc/spyre_tensor_impl.cpp:38, the names of
 * csrc/spyre_tensor_impl.cpp:207 and the macro of csrc/spyre_tensor_impl.h:71.
 */
#ifndef SPYRE_COMPAT_SENDEFS_H
#define SPYRE_COMPAT_SENDEFS_H

#include <cstdint>
#include <string>

#include "flex/export.h"

/* The numbers are those of spyre_format. Pickled layouts contain them. */
enum class DataFormats : std::int32_t {
	INVALID = 0,
	SEN169_FP16 = 1,
	IEEE_FP32 = 2,
	SEN143_FP8 = 3,
	SEN152_FP8 = 4,
	SEN153_FP9 = 5,
	SEN18F_FP24 = 6,
	SENINT2 = 7,
	SENINT4 = 8,
	SENINT8 = 9,
	SENINT16 = 10,
	SENINT24 = 11,
	SENUINT2 = 12,
	SENUINT32 = 13,
	IEEE_INT32 = 14,
	IEEE_INT64 = 15,
	IEEE_FP16 = 16,
	BFLOAT16 = 17,
	BOOL = 18,
};

/* Elements of a format in a stick of 128 bytes; 0 for those that do not fill one evenly. */
struct COMPAT_EXPORT DataFormatToStickSize {
	std::int64_t operator[](DataFormats format) const noexcept;
};

inline constexpr DataFormatToStickSize dataFormatToStickSize{};

struct COMPAT_EXPORT EnumsConversion {
	/* Returns the public name, such as "SEN169_FP16", or "INVALID". */
	static std::string dataFormatsToString(DataFormats format);
};

namespace deeptools
{
/* Throws std::runtime_error with @text and its place in the source. */
[[noreturn]] COMPAT_EXPORT void raise_error(const std::string &text, const char *file, int line);
}

#define DT_ERROR(text) ::deeptools::raise_error((text), __FILE__, __LINE__)

#endif /* SPYRE_COMPAT_SENDEFS_H */
