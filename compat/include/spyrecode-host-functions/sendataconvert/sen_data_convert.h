/* SPDX-License-Identifier: MIT */
/* Conversions of single numbers, as csrc/module.cpp:146-150 of torch-spyre a312898 calls them. */
#ifndef SPYRE_COMPAT_SEN_DATA_CONVERT_H
#define SPYRE_COMPAT_SEN_DATA_CONVERT_H

#include <bit>
#include <cstdint>

#include "flex/export.h"

namespace deeptools
{
/* Returns the bits of @value as a @To of the same size. */
template <typename To, typename From> constexpr To BinaryConvert(From value) noexcept
{
	return std::bit_cast<To>(value);
}

/* Returns @value as DL16 (SEN169_FP16) bits, rounded as a copy to the card rounds. */
COMPAT_EXPORT std::uint32_t FloatToFp16Bin(float value);
}

#endif /* SPYRE_COMPAT_SEN_DATA_CONVERT_H */
