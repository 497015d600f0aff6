// SPDX-License-Identifier: MIT
/* The warning that int64 is narrowed; copies themselves are in spyre.h. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* Whether narrowing int64 to int32 warns (once); enabling lets it warn again. */
void set_downcast_warning(bool enabled);
bool get_downcast_warning();

} // namespace torch_spyre
