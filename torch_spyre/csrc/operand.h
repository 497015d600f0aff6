// SPDX-License-Identifier: MIT
/* Questions that operations ask of operands. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

/* True for dtypes in which all operations of the card compute. */
inline bool is_float(at::ScalarType dtype)
{
	return dtype == at::kHalf || dtype == at::kBFloat16 || dtype == at::kFloat;
}

/* The dimension along sticks, -1 if each element has its own stick. */
int stick_dim(const spyre_sdsc_operand &desc);

/* True if the operand has all dimensions in full, also expanded ones. */
bool is_complete(const at::Tensor &tensor, const Operand &operand);

/* True if a kernel may write it: elements are distinct and share no stick with others. */
bool is_writable(const at::Tensor &tensor, const Operand &operand);

} // namespace torch_spyre
