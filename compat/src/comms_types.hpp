/* SPDX-License-Identifier: MIT */
/* Names and sizes of the data types of tensors. */
#ifndef SPYRE_COMMS_TYPES_HPP
#define SPYRE_COMMS_TYPES_HPP

#include <spyre_comms_tensor.hpp>

#include <spyre/types.h>

namespace spyre_comms
{

/** The name of the enumerator. */
const char *name_of(TensorDataTypeEnum type);

/** Bytes of an element on the host and on the card; 0 for types that the card lacks. */
struct ElementBytes {
	uint32_t host, card;
};

ElementBytes element_bytes(TensorDataTypeEnum type);

/** The host format with which the card adds tensors of @type; INVALID if it cannot. */
spyre_format sum_format(TensorDataTypeEnum type);

/** A tensor's device memory. */
struct Memory {
	spyre_devptr address;
	uint64_t bytes;
	TensorDataTypeEnum type;
};

/**
 * Returns the memory of a tensor for @operation. Throws std::runtime_error if the tensor has
 * no device memory, a type that the card lacks, or a shape that is not that of its whole
 * allocation: an operation on a view of a tensor would change the rest of it.
 */
Memory memory_of(const flex::FlexAllocator &allocator, const Tensor &tensor, const char *operation);

} // namespace spyre_comms

#endif /* SPYRE_COMMS_TYPES_HPP */
