// SPDX-License-Identifier: MIT
/* What Python asks of formats. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

int64_t elements_per_stick(spyre_format format);

} // namespace torch_spyre
