// SPDX-License-Identifier: MIT
/* Copies that a kernel of the card makes. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/*
 * Copies @source to @target, converting, by a kernel: other sticks, windows,
 * repeated dimensions. False, and nothing done, where the card cannot.
 */
bool copy_by_kernel(const at::Tensor &target, const at::Tensor &source);

} // namespace torch_spyre
