// SPDX-License-Identifier: MIT
/* Operands of the builder as Python writes them: (size, device_size, stride_map,
 * dim_map, format). */
#pragma once

#include <tuple>
#include <vector>

#include "runtime/spyre.h"

namespace torch_spyre {

using OperandTuple = std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>,
				std::vector<int64_t>, int>;

OperandTuple to_tuple(const spyre_sdsc_operand &operand);
spyre_sdsc_operand from_tuple(const OperandTuple &tuple);

} // namespace torch_spyre
