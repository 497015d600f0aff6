// SPDX-License-Identifier: MIT
/* Tensors: PyTorch's own, over storages whose data is on the card. */
#include "tensor.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/TensorOptions.h>
#include <torch/library.h>

#include "copy.h"
#include "runtime/allocator.h"
#include "runtime/device.h"

namespace torch_spyre {

c10::Storage make_storage(c10::DeviceIndex device, PlacementPtr placement, int64_t bytes)
{
	uint64_t device_bytes = bytes ? placement_bytes(*placement) : 0;

	return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
		c10::StorageImpl::use_byte_size_t(), c10::SymInt(bytes),
		allocate(device, device_bytes, std::move(placement)), device_allocator(), true));
}

at::Tensor make_tensor(c10::Storage storage, c10::ScalarType dtype, at::IntArrayRef size,
		       at::IntArrayRef stride, int64_t offset)
{
	auto tensor = at::detail::make_tensor<c10::TensorImpl>(
		std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
		c10::scalarTypeToTypeMeta(dtype));

	tensor.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
	return tensor;
}

at::Tensor empty(at::IntArrayRef size, c10::ScalarType dtype, c10::DeviceIndex device)
{
	PlacementPtr placement = default_placement(size, dtype);
	int64_t bytes = at::detail::computeStorageNbytesContiguous(size, c10::elementSize(dtype));
	auto tensor = at::detail::make_tensor<c10::TensorImpl>(
		make_storage(check_index(device), std::move(placement), bytes),
		c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
		c10::scalarTypeToTypeMeta(dtype));

	if (size.size() != 1 || size[0] != 0)
		tensor.unsafeGetTensorImpl()->generic_set_sizes_contiguous(size);
	return tensor;
}

at::Tensor empty_with_layout(at::IntArrayRef size, at::IntArrayRef stride, c10::ScalarType dtype,
			     const spyre_layout &layout, c10::DeviceIndex device)
{
	PlacementPtr placement = explicit_placement(size, stride, dtype, layout);
	int64_t bytes = at::detail::computeStorageNbytes(size, stride, c10::elementSize(dtype));
	c10::Storage storage = make_storage(check_index(device), std::move(placement), bytes);

	return make_tensor(std::move(storage), dtype, size, stride);
}

at::Tensor reinterpret_with_layout(const at::Tensor &tensor, at::IntArrayRef size,
				   at::IntArrayRef stride, int64_t offset,
				   const spyre_layout &layout)
{
	c10::ScalarType dtype = tensor.scalar_type();
	PlacementPtr placement = explicit_placement(size, stride, dtype, layout);
	uint64_t need = spyre_layout_bytes(&layout);
	int64_t bytes = at::detail::computeStorageNbytes(size, stride, c10::elementSize(dtype));
	Block *block = block_of(tensor.storage());

	TORCH_CHECK(offset >= 0 && offset + need <= block->bytes, "spyre: a layout of ", need,
		    " bytes at byte ", offset, " does not fit a storage of ", block->bytes,
		    " bytes");

	c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
		c10::StorageImpl::use_byte_size_t(), c10::SymInt(bytes),
		alias(tensor.storage(), offset, std::move(placement)), device_allocator(), false));

	return make_tensor(std::move(storage), dtype, size, stride);
}

/* Memory without a dtype is empty and gets the placement of its first tensor. */
static void adopt(const at::Tensor &tensor)
{
	const c10::Storage &storage = tensor.storage();
	int64_t elements = storage.nbytes() / tensor.itemsize();
	PlacementPtr placement = tensor.storage_offset() == 0 && tensor.numel() == elements ?
		strided_placement(tensor.sizes(), tensor.strides(), tensor.scalar_type(),
				  elements) :
		default_placement({elements}, tensor.scalar_type());
	Block *block = block_of(storage);

	if (placement_bytes(*placement) > block->bytes)
		storage.set_data_ptr_noswap(
			allocate(block->device, placement_bytes(*placement), placement));
	else
		block->placement = std::move(placement);
}

/* A storage that was made smaller may lack elements of its tensors. */
static void check_within(const at::Tensor &tensor, const c10::Storage &storage)
{
	int64_t item = tensor.itemsize(), offset = tensor.storage_offset();
	size_t need;

	if (__builtin_expect(tensor.numel() == 0, 0))
		return;
	if (__builtin_expect(tensor.is_non_overlapping_and_dense(), 1))
		need = (offset + tensor.numel()) * item;
	else
		need = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), item,
							offset);
	TORCH_CHECK(need <= storage.nbytes(), "spyre: the tensor reaches to byte ", need,
		    " of a storage of ", storage.nbytes(), " bytes; resize the storage first");
}

Block *placed_block(const at::Tensor &tensor)
{
	check_within(tensor, tensor.storage());

	Block *block = block_of(tensor.storage());

	if (__builtin_expect(block->placement != nullptr, 1))
		return block;
	adopt(tensor);
	return block_of(tensor.storage());
}

const Placement &placement_of(const at::Tensor &tensor)
{
	return *placed_block(tensor)->placement;
}

void replace_storage(const c10::Storage &storage, PlacementPtr placement, int64_t bytes)
{
	c10::ScalarType dtype = placement->dtype;
	int64_t item = c10::elementSize(dtype);
	int64_t common = std::min<int64_t>(storage.nbytes(), bytes) / item;
	c10::Storage grown = make_storage(storage.device().index(), std::move(placement), bytes);

	if (common && block_of(storage)->placement)
		copy(make_tensor(grown, dtype, {common}, {1}),
		     make_tensor(storage, dtype, {common}, {1}), true);
	storage.set_data_ptr_noswap(grown.set_data_ptr(c10::DataPtr()));
	storage.set_nbytes(bytes);
}

namespace {

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory)
{
	TORCH_CHECK(!layout || *layout == c10::Layout::Strided,
		    "spyre: unsupported layout ", *layout, "; only torch.strided is supported");
	TORCH_CHECK(!pin_memory || !*pin_memory, "Only dense CPU tensors can be pinned");
}

c10::DeviceIndex index_of(std::optional<c10::Device> device)
{
	return device && device->has_index() ? device->index() : current_device();
}

at::Tensor empty_memory_format(at::IntArrayRef size, std::optional<c10::ScalarType> dtype,
			       std::optional<c10::Layout> layout,
			       std::optional<c10::Device> device, std::optional<bool> pin_memory,
			       std::optional<c10::MemoryFormat> format)
{
	c10::ScalarType type = c10::dtype_or_default(dtype);

	check_options(layout, pin_memory);
	at::detail::check_size_nonnegative(size);
	if (!format || *format == c10::MemoryFormat::Contiguous)
		return empty(size, type, index_of(device));

	std::vector<int64_t> stride;

	switch (*format) {
	case c10::MemoryFormat::ChannelsLast:
		stride = c10::get_channels_last_strides_2d(size);
		break;
	case c10::MemoryFormat::ChannelsLast3d:
		stride = c10::get_channels_last_strides_3d(size);
		break;
	default:
		TORCH_CHECK(false, "spyre: unsupported memory format ", *format);
	}
	int64_t bytes = at::detail::computeStorageNbytes(size, stride, c10::elementSize(type));

	return make_tensor(make_storage(index_of(device),
					strided_placement(size, stride, type, 0), bytes),
			   type, size, stride);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
			 std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
			 std::optional<c10::Device> device, std::optional<bool> pin_memory)
{
	c10::ScalarType type = c10::dtype_or_default(dtype);
	int64_t item = c10::elementSize(type);

	check_options(layout, pin_memory);
	at::detail::check_size_nonnegative(size);
	TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
	for (int64_t step : stride)
		TORCH_CHECK(step >= 0, "as_strided: Negative strides are not supported at the "
			    "moment, got strides: ", stride);

	int64_t bytes = at::detail::computeStorageNbytes(size, stride, item);

	return make_tensor(make_storage(index_of(device),
					strided_placement(size, stride, type, bytes / item),
					bytes),
			   type, size, stride);
}

void record_stream(at::Tensor &tensor, c10::Stream stream)
{
	device_allocator()->recordStream(tensor.storage().data_ptr(), stream);
}

/* "tensor.data = other" may take a tensor to the card and back: both are dense. */
bool has_compatible_shallow_copy_type(const at::Tensor &self, const at::Tensor &from)
{
	auto is_plain = [](const at::Tensor &tensor) {
		return tensor.layout() == c10::Layout::Strided &&
		       (tensor.is_cpu() || tensor.is_privateuseone());
	};

	return is_plain(self) && is_plain(from);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
	m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
	m.impl("record_stream", TORCH_FN(record_stream));
	m.impl("empty_strided", TORCH_FN(empty_strided));
}

/* Queries have no gradients. */
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m)
{
	m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
}

} // namespace torch_spyre
