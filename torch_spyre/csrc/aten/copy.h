// SPDX-License-Identifier: MIT
/* Copies between tensors, and the warning that int64 is narrowed. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* Any view to any view, host or card, converting; ordered on the current stream. */
void copy(const at::Tensor &target, const at::Tensor &source, bool non_blocking);

/* Whether narrowing int64 to int32 warns (once); enabling lets it warn again. */
void set_downcast_warning(bool enabled);
bool get_downcast_warning();

} // namespace torch_spyre
