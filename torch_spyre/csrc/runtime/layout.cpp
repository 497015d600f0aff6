// SPDX-License-Identifier: MIT
/* Dtypes as formats, and the layouts that new tensors get. */
#include "layout.h"

#include <functional>

#include <c10/util/DimVector.h>
#include <c10/util/Exception.h>
#include <c10/util/hash.h>

#include "error.h"

namespace torch_spyre {

namespace {

spyre_format format_of(c10::ScalarType dtype)
{
	switch (dtype) {
	case c10::ScalarType::Half:
		return SPYRE_FORMAT_IEEE_FP16;
	case c10::ScalarType::Float:
		return SPYRE_FORMAT_IEEE_FP32;
	case c10::ScalarType::BFloat16:
		return SPYRE_FORMAT_BFLOAT16;
	case c10::ScalarType::Bool:
		return SPYRE_FORMAT_BOOL;
	case c10::ScalarType::Byte:
		return SPYRE_FORMAT_UINT8;
	case c10::ScalarType::Char:
		return SPYRE_FORMAT_SENINT8;
	case c10::ScalarType::Short:
		return SPYRE_FORMAT_SENINT16;
	case c10::ScalarType::Int:
		return SPYRE_FORMAT_IEEE_INT32;
	case c10::ScalarType::Long:
		return SPYRE_FORMAT_IEEE_INT64;
	case c10::ScalarType::Float8_e4m3fn:
		return SPYRE_FORMAT_SEN143_FP8;
	case c10::ScalarType::Float8_e5m2:	/* its codes; ops_float8.cpp has the numbers */
	case c10::ScalarType::Float8_e5m2fnuz:
		return SPYRE_FORMAT_SEN152_FP8;
	default:
		return SPYRE_FORMAT_INVALID;
	}
}

const char *remedy(c10::ScalarType dtype)
{
	if (dtype == c10::ScalarType::Double)
		return "Convert to torch.float32 or torch.float16 first.";
	if (dtype == c10::ScalarType::ComplexDouble)
		return "Convert to torch.complex64 first, or hold real and imaginary parts apart.";
	if (c10::isComplexType(dtype))
		return "Its real and imaginary parts have one: use torch.view_as_real().";
	return "Convert to float16, bfloat16, float32, bool, int8, int16, int32, int64 or uint8 "
	       "first.";
}

bool is_row_major(at::IntArrayRef size, at::IntArrayRef stride)
{
	int64_t step = 1;

	for (size_t d = size.size(); d-- > 0;) {
		if (size[d] != 1 && stride[d] != step)
			return false;
		step *= size[d];
	}
	return true;
}

/* The dimensions by descending stride; false if elements are left out or shared. */
bool dense_order(at::IntArrayRef size, at::IntArrayRef stride, std::vector<int64_t> *order)
{
	int64_t step = 1;

	order->resize(size.size());
	for (size_t d = 0; d < size.size(); d++)
		(*order)[d] = d;
	std::stable_sort(order->begin(), order->end(), [&](int64_t a, int64_t b) {
		return stride[a] > stride[b];
	});
	for (size_t i = size.size(); i-- > 0;) {
		int64_t d = (*order)[i];

		if (size[d] == 1)
			continue;
		if (stride[d] != step)
			return false;
		step *= size[d];
	}
	return true;
}

PlacementPtr build(at::IntArrayRef size, c10::ScalarType dtype)
{
	auto placement = std::make_shared<Placement>();
	int64_t step = 1;

	/* Layouts have at most SPYRE_MAX_RANK dimensions, so outer ones are merged. */
	placement->dtype = dtype;
	placement->size = size.vec();
	while (placement->size.size() > SPYRE_MAX_RANK) {
		placement->size[1] *= placement->size[0];
		placement->size.erase(placement->size.begin());
	}
	placement->stride.resize(placement->size.size());
	for (size_t d = placement->size.size(); d-- > 0;) {
		placement->stride[d] = step;
		step *= std::max<int64_t>(placement->size[d], 1);
	}
	placement->layout = default_layout(placement->size, dtype);
	return placement;
}

/* A cache of a thread's last placements, because shapes repeat. */
struct Remembered {
	std::vector<int64_t> size;
	c10::ScalarType dtype = c10::ScalarType::Undefined;
	PlacementPtr placement;
};

} // namespace

spyre_format host_format(c10::ScalarType dtype)
{
	spyre_format format = format_of(dtype);

	if (format == SPYRE_FORMAT_INVALID)
		fail_dtype(c10::str("spyre: ", dtype, " has no form on the card. ", remedy(dtype)));
	return format;
}

spyre_format device_format(c10::ScalarType dtype)
{
	return spyre_layout_device_format(host_format(dtype));
}

spyre_layout default_layout(at::IntArrayRef size, c10::ScalarType dtype)
{
	spyre_layout layout;

	check(spyre_layout_init(&layout, static_cast<uint32_t>(size.size()), size.data(),
				host_format(dtype)),
	      "laying out a tensor");
	return layout;
}

c10::ScalarType held_dtype(c10::ScalarType dtype)
{
	/* complex128 has parts that the card does not hold: it stays what it is, and is refused. */
	if (dtype == c10::ScalarType::ComplexFloat || dtype == c10::ScalarType::ComplexHalf)
		return c10::toRealValueType(dtype);
	return dtype;
}

/* Rows of complex elements are rows of twice as many real ones. */
static PlacementPtr placement_of_parts(at::IntArrayRef size, c10::ScalarType dtype)
{
	c10::DimVector parts(size.begin(), size.end());

	if (parts.empty())
		parts.push_back(1);
	parts.back() *= 2;
	return default_placement(parts, dtype);
}

PlacementPtr default_placement(at::IntArrayRef size, c10::ScalarType dtype)
{
	if (held_dtype(dtype) != dtype)
		return placement_of_parts(size, held_dtype(dtype));

	constexpr size_t SLOTS = 256;
	thread_local std::vector<Remembered> remembered(SLOTS);
	size_t key = static_cast<size_t>(dtype);

	for (int64_t n : size)
		key = c10::hash_combine(key, static_cast<size_t>(n));

	Remembered &slot = remembered[key % SLOTS];

	if (slot.dtype != dtype || at::IntArrayRef(slot.size) != size) {
		slot.placement = build(size, dtype);
		slot.size = size.vec();
		slot.dtype = dtype;
	}
	return slot.placement;
}

PlacementPtr strided_placement(at::IntArrayRef size, at::IntArrayRef stride,
			       c10::ScalarType dtype, int64_t elements)
{
	std::vector<int64_t> order, permuted;

	if (is_row_major(size, stride))
		return default_placement(size, dtype);
	/* Uses the elements of the storage in one dimension if no order makes the tensor dense. */
	if (!dense_order(size, stride, &order))
		return default_placement({elements}, dtype);
	for (int64_t d : order)
		permuted.push_back(size[d]);
	return default_placement(permuted, dtype);
}

/* Finds the host dimension of each device dimension, which loaded layouts lack. */
static bool find_mapping(at::IntArrayRef size, at::IntArrayRef stride, c10::ScalarType dtype,
			 spyre_layout *layout)
{
	std::vector<int32_t> order(size.size());
	spyre_layout candidate;

	for (size_t d = 0; d < size.size(); d++)
		order[d] = static_cast<int32_t>(d);
	/* Beyond rank 5 too many orders exist, so such layouts stay explicit. */
	do {
		if (spyre_layout_init_strided(&candidate, size.size(), size.data(), stride.data(),
					      host_format(dtype), order.data(), order.size()) ==
			    SPYRE_SUCCESS &&
		    spyre_layout_equal(&candidate, layout)) {
			*layout = candidate;
			return true;
		}
	} while (size.size() <= 5 && std::next_permutation(order.begin(), order.end()));
	return false;
}

PlacementPtr explicit_placement(at::IntArrayRef size, at::IntArrayRef stride,
				c10::ScalarType dtype, const spyre_layout &layout)
{
	auto placement = std::make_shared<Placement>();

	TORCH_CHECK(size.size() == stride.size(), "spyre: ", size.size(), " sizes and ",
		    stride.size(), " strides");
	TORCH_CHECK(size.size() <= SPYRE_MAX_RANK, "spyre: a layout describes up to ",
		    SPYRE_MAX_RANK, " dimensions, the tensor has ", size.size());
	placement->dtype = dtype;
	placement->size = size.vec();
	placement->stride = stride.vec();
	placement->layout = layout;
	host_format(dtype);
	if (!layout.mapped)
		find_mapping(size, stride, dtype, &placement->layout);
	return placement;
}

uint64_t placement_bytes(const Placement &placement)
{
	return spyre_layout_alloc_bytes(&placement.layout,
					static_cast<uint32_t>(placement.size.size()),
					placement.size.data(), host_format(placement.dtype));
}

} // namespace torch_spyre
