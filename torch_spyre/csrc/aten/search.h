// SPDX-License-Identifier: MIT
/* Operands of operations that look for elements along a dimension. */
#pragma once

#include "kernels.h"

namespace torch_spyre {

/*
 * Adds @t as an operand with its dimensions in full and sticks along one of them. A
 * search reads whole sticks, so a tensor with one element per stick is copied. If
 * only one element is searched, each needs its own stick.
 */
inline void take_searched(Call &call, const Tensor &t, int64_t dim, Tensor *held)
{
	take_complete(call, t, held);
	Operand &o = call.operand[call.num_operands - 1];
	if ((stick_dim(o.desc) < 0) != (t.size(dim) == 1))
		operand_of(*held = dense_copy(t.transpose(dim, -1)).transpose(dim, -1), &o);
}

} // namespace torch_spyre
