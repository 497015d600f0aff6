// SPDX-License-Identifier: MIT
/* The warning that int64 is narrowed; copies themselves are in spyre.h. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

/* Enables or disables the warning that int64 is narrowed to int32, which is given once. */
void set_downcast_warning(bool enabled);
bool get_downcast_warning();

} // namespace torch_spyre
