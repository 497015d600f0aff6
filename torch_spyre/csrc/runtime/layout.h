// SPDX-License-Identifier: MIT
/* Placements: which host tensor a storage holds, and how it lies in sticks. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

using PlacementPtr = std::shared_ptr<const Placement>;

/* The dtype that storages of @dtype hold: that of the parts, if it is complex. */
c10::ScalarType held_dtype(c10::ScalarType dtype);
/* The placement of a dense row-major tensor. */
PlacementPtr default_placement(at::IntArrayRef size, c10::ScalarType dtype);
/* The placement of a tensor with any strides, in a storage of @elements. */
PlacementPtr strided_placement(at::IntArrayRef size, at::IntArrayRef stride,
			       c10::ScalarType dtype, int64_t elements);
/* The placement of a tensor with these strides and @layout. */
PlacementPtr explicit_placement(at::IntArrayRef size, at::IntArrayRef stride,
				c10::ScalarType dtype, const spyre_layout &layout);
/* Bytes of device memory for a placement. */
uint64_t placement_bytes(const Placement &placement);

} // namespace torch_spyre
