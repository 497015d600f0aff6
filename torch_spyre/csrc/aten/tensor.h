// SPDX-License-Identifier: MIT
/* Tensors and their storages. */
#pragma once

#include "runtime/layout.h"
#include "runtime/spyre.h"

namespace torch_spyre {

c10::Storage make_storage(c10::DeviceIndex device, PlacementPtr placement, int64_t bytes);
at::Tensor make_tensor(c10::Storage storage, c10::ScalarType dtype, at::IntArrayRef size,
		       at::IntArrayRef stride, int64_t offset = 0);

const Placement &placement_of(const at::Tensor &tensor);
at::Tensor empty(at::IntArrayRef size, c10::ScalarType dtype, c10::DeviceIndex device = -1);
at::Tensor empty_with_layout(at::IntArrayRef size, at::IntArrayRef stride,
			     c10::ScalarType dtype, const spyre_layout &layout,
			     c10::DeviceIndex device = -1);

/* The block of a tensor; memory without a dtype gets the tensor's placement. */
Block *placed_block(const at::Tensor &tensor);

/* A tensor in the same memory, @offset bytes on, with @layout. */
at::Tensor reinterpret_with_layout(const at::Tensor &tensor, at::IntArrayRef size,
				   at::IntArrayRef stride, int64_t offset,
				   const spyre_layout &layout);

/* Replaces the block of a storage and copies its contents as far as they fit, read as
 * elements of @placement's dtype. */
void replace_storage(const c10::Storage &storage, PlacementPtr placement, int64_t bytes);

} // namespace torch_spyre
