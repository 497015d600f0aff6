// SPDX-License-Identifier: MIT
/* The warning that an operation runs on the CPU, which Python gives its category. */
#pragma once

#include <string>

namespace torch_spyre {

/* Sets the function that warns; without one the warning is PyTorch's own. */
void set_fallback_warning(void (*warn)(const std::string &text));

} // namespace torch_spyre
