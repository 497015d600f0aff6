// SPDX-License-Identifier: MIT
/*
 * DLPack gives a tensor an address. A view's is that of its storage and as many
 * bytes on as the host counts; memory that lies in sticks has nothing there, but
 * the storage and the offset are found again by it.
 */
#include "module.h"

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include "runtime/allocator.h"
#include "aten/tensor.h"

namespace torch_spyre {

namespace {

/* True if take_back() finds @tensor by its address. */
bool has_address(const at::Tensor &tensor)
{
	if (!tensor.numel())
		return tensor.storage_offset() == 0;

	Block *block = placed_block(tensor);

	/* The caller may write to the address. */
	block->shared = true;
	return find_block(block->device, block->address) == block &&
	       static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize() < block->bytes;
}

/* Number of elements of the host tensor in a storage. */
int64_t extent(const Placement &placement)
{
	int64_t elements = placement.storage_offset + 1;

	for (size_t d = 0; d < placement.size.size(); d++) {
		if (!placement.size[d])
			return 0;
		elements += (placement.size[d] - 1) * placement.stride[d];
	}
	return elements;
}

/* Rebuilds an imported tensor as a view of the storage at its address. */
at::Tensor take_back(const at::Tensor &tensor)
{
	auto address = reinterpret_cast<spyre_devptr>(tensor.storage().data());

	if (!tensor.numel())
		return tensor;

	Block *block = find_block(tensor.device().index(), address);

	TORCH_CHECK(block && block->placement, "spyre: ", tensor.storage().data(),
		    " is not the start of a tensor's memory on ", tensor.device());
	TORCH_CHECK(block->placement->dtype == tensor.scalar_type(), "spyre: the memory at ",
		    tensor.storage().data(), " holds ", block->placement->dtype, ", not ",
		    tensor.scalar_type());

	block->shared = true;

	int64_t item = static_cast<int64_t>(tensor.itemsize());
	int64_t offset = static_cast<int64_t>(address - block->address) / item;
	c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
		c10::StorageImpl::use_byte_size_t(), c10::SymInt(extent(*block->placement) * item),
		alias_block(*block, tensor.storage()), device_allocator(), false));

	return make_tensor(std::move(storage), tensor.scalar_type(), tensor.sizes(),
			   tensor.strides(), offset);
}

const Binding binding([](pybind11::module_ &m) {
	m.def("_dlpack_has_address", has_address);
	m.def("_dlpack_take_back", take_back);
});

} // namespace

} // namespace torch_spyre
