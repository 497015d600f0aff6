// SPDX-License-Identifier: MIT
/* Operands of operations that combine the numbers along a dimension. */
#pragma once

#include "kernels.h"

namespace torch_spyre {

/* The integers from @first on, as int32; the host does not wait for the copy of them. */
Tensor counted(int64_t first, int64_t count, c10::DeviceIndex device);

/* The dtype in which the numbers of a result of @dtype are added or multiplied. */
inline at::ScalarType computed_dtype(at::ScalarType dtype)
{
	return is_float(dtype) ? at::kFloat : dtype;
}

/*
 * The running sums of @self along @dim, or products, in @dtype. Returns false if they could need
 * more bits than the card has for integers.
 */
bool running(bool product, const Tensor &self, int64_t dim, at::ScalarType dtype, Tensor &result);

} // namespace torch_spyre
