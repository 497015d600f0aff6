// SPDX-License-Identifier: MIT
/* The bits of a number in a format of the card. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

int64_t encode_constant(double value, spyre_format format);

/* Writes the low @bytes of @code as device memory has them, which is little endian on any host. */
void store_constant(int64_t code, size_t bytes, uint8_t *to);

} // namespace torch_spyre
