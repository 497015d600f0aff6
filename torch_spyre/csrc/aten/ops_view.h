// SPDX-License-Identifier: MIT
/* Copies that a kernel of the card makes. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/*
 * Converts between a dtype of 8 bits and a wider one, on one card; false for other dtypes and for
 * what no kernel can read.
 */
bool convert_float8(const at::Tensor &target, const at::Tensor &source);
/*
 * Copies and converts @source to @target by a kernel: other sticks, windows, repeated
 * dimensions. Returns false, with nothing changed, if the card cannot.
 */
bool copy_by_kernel(const at::Tensor &target, const at::Tensor &source);

} // namespace torch_spyre
