// SPDX-License-Identifier: MIT
/* The ranges of the numbers of tensors (range.h): where they are kept and where they come from. */
#pragma once

#include "tensor.h"

namespace torch_spyre {

/* The range by the dtype; of int64 on the card, what is known of the storage. */
Range range_of(const at::Tensor &tensor);

/* The range of the numbers of a CPU tensor that is copied to the card. */
Range range_of_host(const at::Tensor &tensor);

/*
 * Notes that @tensor was overwritten by numbers of @range. Other elements of the storage, if there
 * are any, are still of the range @before.
 */
void set_range(const at::Tensor &tensor, Range range, Range before);

} // namespace torch_spyre
