// SPDX-License-Identifier: MIT
/* Views and storages changed in place: metadata over the same memory. */
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "alias.h"
#include "runtime/allocator.h"
#include "tensor.h"

namespace torch_spyre {

/* A storage that was loaded as bytes gets its dtype from the tensor that is made of it. */
static void settle_dtype(const at::Tensor &tensor)
{
	const c10::Storage &storage = tensor.storage();
	PlacementPtr held = storage.nbytes() ? block_of(storage)->placement : nullptr;

	if (!held || held->dtype == tensor.scalar_type() || held->dtype != c10::ScalarType::Byte ||
	    storage.nbytes() % tensor.itemsize())
		return;

	int64_t elements = storage.nbytes() / tensor.itemsize();
	bool whole = tensor.storage_offset() == 0 && tensor.numel() == elements;

	replace_storage(storage,
			whole ? strided_placement(tensor.sizes(), tensor.strides(),
						  tensor.scalar_type(), elements) :
				default_placement({elements}, tensor.scalar_type()),
			storage.nbytes());
}

/* Grows the storage to @bytes, with the tensor's placement if the tensor will cover it. */
static void grow(const at::Tensor &tensor, int64_t bytes)
{
	const c10::Storage &storage = tensor.storage();
	int64_t elements = bytes / tensor.itemsize();

	if (bytes <= static_cast<int64_t>(storage.nbytes()))
		return;
	TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
	replace_storage(storage,
			tensor.storage_offset() == 0 ?
				strided_placement(tensor.sizes(), tensor.strides(),
						  tensor.scalar_type(), elements) :
				default_placement({elements}, tensor.scalar_type()),
			bytes);
}

static const at::Tensor &resize_(const at::Tensor &self, at::IntArrayRef size,
				 std::optional<c10::MemoryFormat> format)
{
	c10::TensorImpl *impl = self.unsafeGetTensorImpl();

	TORCH_CHECK(!format || *format != c10::MemoryFormat::Preserve,
		    "Unsupported memory format", *format);
	at::detail::check_size_nonnegative(size);
	if (self.sizes() == size && !format)
		return self;
	impl->set_sizes_contiguous(size);
	if (format)
		impl->empty_tensor_restride(*format);
	if (self.numel())
		grow(self, at::detail::computeStorageNbytes(self.sizes(), self.strides(),
							    self.itemsize(),
							    self.storage_offset()));
	return self;
}

static at::Tensor &set_storage_offset(at::Tensor &self, at::Storage source, int64_t offset,
				      at::IntArrayRef size, at::IntArrayRef stride)
{
	c10::TensorImpl *impl = self.unsafeGetTensorImpl();

	at::native::checkSetStorage(self, std::move(source), offset, size, stride);
	impl->set_storage_offset(offset);
	if (stride.data())
		impl->set_sizes_and_strides(size, stride);
	else
		impl->set_sizes_contiguous(size);
	if (self.numel()) {
		grow(self, at::detail::computeStorageNbytes(self.sizes(), self.strides(),
							    self.itemsize(), offset));
		settle_dtype(self);
	}
	return self;
}

static at::Tensor &set_storage(at::Tensor &self, at::Storage source)
{
	int64_t elements = source.nbytes() / self.itemsize();

	return set_storage_offset(self, std::move(source), 0, {elements}, {});
}

static at::Tensor &set_nothing(at::Tensor &self)
{
	c10::Storage storage = make_storage(self.device().index(),
					    default_placement({0}, self.scalar_type()), 0);

	return set_storage_offset(self, std::move(storage), 0, {0}, {});
}

void resize_storage_bytes(const c10::Storage &storage, int64_t bytes)
{
	PlacementPtr held = block_of(storage)->placement;
	c10::ScalarType dtype = held ? held->dtype : c10::ScalarType::Byte;
	int64_t item = c10::elementSize(dtype);

	if (bytes == static_cast<int64_t>(storage.nbytes()))
		return;
	/* If the size is not a multiple of the element size, the storage holds bytes. */
	if (bytes % item) {
		dtype = c10::ScalarType::Byte;
		item = 1;
	}
	replace_storage(storage, default_placement({bytes / item}, dtype), bytes);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
	m.impl("view", TORCH_FN(at::native::view));
	m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
	m.impl("unfold", TORCH_FN(at::native::unfold));
	m.impl("resize_", TORCH_FN(resize_));
	m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
	m.impl("set_.source_Storage", TORCH_FN(set_storage));
	m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
	m.impl("set_", TORCH_FN(set_nothing));
}

} // namespace torch_spyre
