// SPDX-License-Identifier: MIT
/* Copies that a kernel of the card makes. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/*
 * Copies and converts @source to @target by a kernel: other sticks, windows, repeated
 * dimensions. Returns false, with nothing changed, if the card cannot.
 */
bool copy_by_kernel(const at::Tensor &target, const at::Tensor &source);

} // namespace torch_spyre
