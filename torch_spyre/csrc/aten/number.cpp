// SPDX-License-Identifier: MIT
/* Which numbers of calls are constants, and how the others get to the card. */
#include "number.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/overflows.h>

#include "constant.h"
#include "tensor.h"

namespace torch_spyre {

namespace {

/* The values of one kind of call that have their own kernels. */
struct Constants {
	static constexpr unsigned kMost = 4;
	unsigned count = 0;
	double value[kMost];

	bool has(double v) const
	{
		return std::find(value, value + count, v) != value + count;
	}
};

/* Limit of kinds per thread; beyond it the record is cleared. */
constexpr size_t kKinds = 4096;

uint64_t kind_of(const Program &program, unsigned place, spyre_format format, at::IntArrayRef size)
{
	uint64_t hash = reinterpret_cast<uintptr_t>(&program) ^
			static_cast<uint64_t>(format) << 48 ^ static_cast<uint64_t>(place) << 56;

	for (int64_t n : size)
		hash = (hash ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

at::ScalarType dtype_of(spyre_format format)
{
	return format == SPYRE_FORMAT_IEEE_FP32 ? at::kFloat :
	       format == SPYRE_FORMAT_IEEE_INT32 ? at::kInt :
	       format == SPYRE_FORMAT_BFLOAT16 ? at::kBFloat16 : at::kHalf;
}

} // namespace

bool keeps_changing(const Program &program, unsigned place, spyre_format format,
		    at::IntArrayRef size, double value)
{
	static thread_local std::unordered_map<uint64_t, Constants> kinds;

	if (kinds.size() >= kKinds)
		kinds.clear();
	Constants &c = kinds[kind_of(program, place, format, size)];
	if (c.has(value))
		return false;
	if (c.count == Constants::kMost)
		return true;
	c.value[c.count++] = value;
	return false;
}

double number_in(at::ScalarType dtype, double value)
{
	constexpr float kLeastNormal = 0x1p-14f, kInfinite = 65520;
	float rounded = static_cast<float>(value), size = std::fabs(rounded);

	if (dtype != at::kHalf || (size >= kLeastNormal && size < kInfinite) || std::isnan(value))
		return value;
	return static_cast<float>(c10::Half(rounded));
}

double stored_number(at::ScalarType dtype, double value)
{
	if (dtype != at::kHalf && dtype != at::kBFloat16 && dtype != at::kFloat)
		return value;

	spyre_format format = device_format(dtype);
	uint8_t element[4];
	double number;

	store_host(encode_constant(value, format), dtype == at::kFloat ? 4 : 2, element);
	check(spyre_format_decode(format, element, 1, &number), "a number");
	return number;
}

bool fit_number(at::ScalarType dtype, double *value)
{
	bool beyond = dtype == at::kHalf ? c10::overflows<c10::Half, double>(*value) :
		      dtype == at::kBFloat16 ? c10::overflows<c10::BFloat16, double>(*value) :
		      dtype == at::kFloat && c10::overflows<float, double>(*value);

	*value = number_in(dtype, *value);
	return !beyond;
}

bool is_factor(at::ScalarType dtype, double value)
{
	/* 2^-31 (1 + 2^-9) and (2 - 3 2^-9) 2^32, the ends of DL16. */
	constexpr double kSmallest = 0x1.01p-31, kLargest = 8564768768;
	double size = std::fabs(value);

	return dtype != at::kHalf || !std::isfinite(value) || value == 0 ||
	       (size >= kSmallest && size <= kLargest);
}

at::Tensor one_element(double value, spyre_format format, c10::DeviceIndex device)
{
	at::Tensor tensor = empty({}, dtype_of(format), device);
	Block *block = block_of(tensor.storage());
	bool wide = format == SPYRE_FORMAT_IEEE_FP32 || format == SPYRE_FORMAT_IEEE_INT32;
	size_t width = wide ? 4 : 2;
	uint8_t pattern[4];

	store_constant(encode_constant(value, format), width, pattern);
	/* Fills the whole stick, whose first lane is the element. */
	check(spyre_memset_async(current_native_stream(device), block->address, pattern, width,
				 spyre_layout_bytes(&placement_of(tensor).layout)), "a number");
	block->clean_padding = false;
	return tensor;
}

} // namespace torch_spyre
