// SPDX-License-Identifier: MIT
/* Tensors as operands of kernels. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* True for dtypes in which all operations of the card compute. */
inline bool is_float(at::ScalarType dtype)
{
	return dtype == at::kHalf || dtype == at::kBFloat16 || dtype == at::kFloat;
}

/*
 * Dtypes of 8 bits, which the card holds by their codes and kernels convert: its own format with
 * five bits of exponent has no infinities.
 */
inline bool is_float8(at::ScalarType dtype)
{
	return dtype == at::ScalarType::Float8_e4m3fn || dtype == at::ScalarType::Float8_e5m2;
}

/* False if no layout describes the view (strided slices, parts of sticks). */
bool operand_of(const at::Tensor &tensor, Operand *operand);
/* A copy in the default layout, on the tensor's card. */
at::Tensor dense_copy(const at::Tensor &tensor);
/* @tensor if operand_of() takes it, else dense_copy(). */
at::Tensor readable(const at::Tensor &tensor, Operand *operand);

/* The dimension along sticks, -1 if each element has its own stick. */
int stick_dim(const spyre_sdsc_operand &desc);

/* True if the operand has all dimensions in full, also expanded ones. */
bool is_complete(const at::Tensor &tensor, const Operand &operand);

/* True if a kernel may write it: elements are distinct and share no stick with others. */
bool is_writable(const at::Tensor &tensor, const Operand &operand);

} // namespace torch_spyre
