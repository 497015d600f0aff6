// SPDX-License-Identifier: MIT
/* Operands of matrix products. */
#pragma once

#include "operand.h"

namespace torch_spyre {

/*
 * Takes a factor whose last two dimensions are complete, with sticks along one of them; a copy, if
 * needed, is kept in @held.
 */
void take_factor(const at::Tensor &t, Operand *o, at::Tensor *held);

} // namespace torch_spyre
