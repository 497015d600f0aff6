// SPDX-License-Identifier: MIT
/* Operands of operations that look for elements along a dimension. */
#pragma once

#include "kernels.h"

namespace torch_spyre {

/*
 * @t as the next operand with its dimensions in full, and sticks along one of
 * them: a search reads whole sticks, so a tensor that has one element in each
 * is copied. Where there is one element to find, each is to have its own.
 */
inline void take_searched(Call &call, const Tensor &t, int64_t dim, Tensor *held)
{
	take_complete(call, t, held);
	Operand &o = call.operand[call.num_operands - 1];
	if ((stick_dim(o.desc) < 0) != (t.size(dim) == 1))
		operand_of(*held = dense_copy(t.transpose(dim, -1)).transpose(dim, -1), &o);
}

} // namespace torch_spyre
