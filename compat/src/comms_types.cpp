// SPDX-License-Identifier: MIT
/* Names and sizes of the data types of tensors, and the check of a tensor. */
#include "comms_types.hpp"

#include <stdexcept>
#include <string>

namespace spyre_comms
{

namespace
{

constexpr uint64_t STICK = SPYRE_STICK;

struct Type {
	const char *name;
	ElementBytes bytes;
	spyre_format sum;
};

/* By number. The sizes on the card are those of torch-spyre's table of types. */
const Type TYPES[] = {
	{"dt_undef", {}, {}},
	{"boolean", {1, 2}, {}},
	{"string", {}, {}},
	{"float8", {1, 1}, {}},
	{"float16", {2, 2}, SPYRE_FORMAT_IEEE_FP16},
	{"float32", {4, 4}, SPYRE_FORMAT_IEEE_FP32},
	{"float64", {}, {}},
	{"float128", {}, {}},
	{"float256", {}, {}},
	{"decimal32", {}, {}},
	{"decimal64", {}, {}},
	{"decimal128", {}, {}},
	{"bfloat16", {2, 2}, SPYRE_FORMAT_IEEE_FP16},
	{"int1", {}, {}},
	{"int2", {}, {}},
	{"int4", {}, {}},
	{"int8", {1, 1}, {}},
	{"int16", {2, 2}, {}},
	{"int32", {4, 4}, {}},
	{"int64", {8, 4}, {}},
	{"uint1", {}, {}},
	{"uint2", {}, {}},
	{"uint4", {}, {}},
	{"uint8", {1, 4}, {}},
	{"uint16", {}, {}},
	{"uint32", {}, {}},
	{"uint64", {}, {}},
	{"qint1", {}, {}},
	{"qint2", {}, {}},
	{"qint4", {}, {}},
	{"qint8", {1, 1}, {}},
	{"qint16", {}, {}},
	{"qint32", {}, {}},
	{"qint64", {}, {}},
	{"quint1", {}, {}},
	{"quint2", {}, {}},
	{"quint4", {}, {}},
	{"quint8", {1, 4}, {}},
	{"quint16", {}, {}},
	{"quint32", {}, {}},
	{"quint64", {}, {}},
	{"complex64", {}, {}},
	{"complex128", {}, {}},
	{"sen_fp8", {1, 1}, {}},
	{"sen_fp16", {2, 2}, SPYRE_FORMAT_IEEE_FP16},
	{"sen_int1", {}, {}},
	{"sen_int2", {}, {}},
	{"sen_int4", {}, {}},
	{"sen_int8", {1, 1}, {}},
	{"sen_int16", {2, 2}, {}},
	{"sen_int24", {}, {}},
	{"sen_int32", {4, 4}, {}},
	{"sen_uint1", {}, {}},
	{"sen_uint2", {}, {}},
	{"sen_uint4", {}, {}},
	{"sen_uint8", {1, 1}, {}},
	{"sen_uint16", {2, 2}, {}},
	{"sen_uint24", {}, {}},
	{"sen_uint32", {4, 4}, {}},
};

static_assert(std::size(TYPES) == static_cast<size_t>(TensorDataTypeEnum::sen_uint32) + 1);

const Type &row(TensorDataTypeEnum type)
{
	size_t number = static_cast<size_t>(type);

	return TYPES[number < std::size(TYPES) ? number : 0];
}

uint64_t whole_sticks(uint64_t bytes)
{
	return (bytes + STICK - 1) / STICK * STICK;
}

/* Elements of a shape; false if it is negative or too large for any memory. */
bool count_of(const std::vector<int64_t> &sizes, uint64_t &count)
{
	count = 1;
	for (int64_t size : sizes)
		if (size < 0 ||
		    __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count) ||
		    count > UINT64_C(1) << 48)
			return false;
	return true;
}

/*
 * Returns whether a whole tensor of this shape can occupy @total bytes: any dimension may be
 * the one that sticks hold, or none of them, and programs also pass the padded tensor as one
 * dimension of host elements.
 */
bool fits(const std::vector<int64_t> &sizes, uint64_t count, ElementBytes element, uint64_t total)
{
	if (total == whole_sticks(count * element.host) || total == count * STICK)
		return true;
	for (int64_t size : sizes)
		if (size && total == count / size * whole_sticks(size * element.card))
			return true;
	return false;
}

std::string text_of(const std::vector<int64_t> &sizes)
{
	std::string text = "[";

	for (int64_t size : sizes)
		text += (text.size() > 1 ? ", " : "") + std::to_string(size);
	return text + "]";
}

} // namespace

const char *name_of(TensorDataTypeEnum type)
{
	return row(type).name;
}

ElementBytes element_bytes(TensorDataTypeEnum type)
{
	return row(type).bytes;
}

spyre_format sum_format(TensorDataTypeEnum type)
{
	return row(type).sum;
}

Memory memory_of(const flex::FlexAllocator &allocator, const Tensor &tensor, const char *operation)
{
	std::string cannot = std::string("cannot ") + operation + ": ";
	TensorDataTypeEnum type = tensor.info().type();
	const std::vector<int64_t> &sizes = tensor.info().shape().sizes();
	ElementBytes element = element_bytes(type);
	uint64_t count;

	if (!element.card)
		throw std::runtime_error(cannot + "the card does not support the data type " +
					 name_of(type) + "; convert the tensor");
	if (!tensor.address())
		throw std::runtime_error(cannot + "the tensor has no device address");

	uint64_t total = tensor.address()->total_size();

	if (!count_of(sizes, count) || !count || !fits(sizes, count, element, total))
		throw std::runtime_error(cannot + "a tensor of " + text_of(sizes) + " " +
					 name_of(type) + " does not occupy the " +
					 std::to_string(total) + " bytes of its allocation" +
					 "; copy a view of a larger tensor first");
	return {allocator.compositeAddressToDmva(*tensor.address()), total, type};
}

} // namespace spyre_comms
