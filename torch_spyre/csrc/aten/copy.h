// SPDX-License-Identifier: MIT
/* Copies between tensors, and the warning that int64 is narrowed. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* Copies and converts any view to any view, host or card, in the order of the current stream. */
void copy(const at::Tensor &target, const at::Tensor &source, bool non_blocking);

/* Copies a host tensor that does not change, through pinned memory, without waiting. */
void copy_constant(const at::Tensor &target, const at::Tensor &source);

/* Enables or disables the warning that int64 is narrowed to int32, which is given once. */
void set_downcast_warning(bool enabled);
bool get_downcast_warning();

} // namespace torch_spyre
