// SPDX-License-Identifier: MIT
/* Tensors as operands of kernels. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* A dtype whose arithmetic all of the card's operations have. */
inline bool is_float(at::ScalarType dtype)
{
	return dtype == at::kHalf || dtype == at::kBFloat16 || dtype == at::kFloat;
}

/* False if no layout says where the view lies (strided slices, parts of sticks). */
bool operand_of(const at::Tensor &tensor, Operand *operand);
/* A copy in the default layout, on the tensor's card. */
at::Tensor dense_copy(const at::Tensor &tensor);
/* @tensor if operand_of() takes it, else dense_copy(). */
at::Tensor readable(const at::Tensor &tensor, Operand *operand);

/* The dimension along sticks, -1 if each element leads a stick of its own. */
int stick_dim(const spyre_sdsc_operand &desc);

/* Has the operand all dimensions in full, expanded ones too? */
bool is_complete(const at::Tensor &tensor, const Operand &operand);

/* May a kernel write it: every element has a place, and nothing else has a part of it. */
bool is_writable(const at::Tensor &tensor, const Operand &operand);

} // namespace torch_spyre
