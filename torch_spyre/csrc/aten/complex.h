// SPDX-License-Identifier: MIT
/*
 * Complex tensors: pairs of real numbers in memory, as PyTorch defines them. A storage that is
 * made for complex elements is laid out as one of twice as many real ones, so that a tensor, its
 * real and its imaginary part are views of one memory. The card has no complex arithmetic.
 */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* copy() where at least one of both tensors is complex. */
void copy_complex(const at::Tensor &target, const at::Tensor &source, bool non_blocking);

} // namespace torch_spyre
