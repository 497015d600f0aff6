// SPDX-License-Identifier: MIT
/* The bits of a number in a format of the card. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

int64_t encode_constant(double value, spyre_format format);

} // namespace torch_spyre
