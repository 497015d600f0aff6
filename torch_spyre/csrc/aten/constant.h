// SPDX-License-Identifier: MIT
/* The bits of a number in a format of the card. */
#pragma once

#include "element.h"

namespace torch_spyre {

/* The code of a number. Throws for a format of which there are no constants. */
int64_t encode_constant(double value, spyre_format format);

} // namespace torch_spyre
