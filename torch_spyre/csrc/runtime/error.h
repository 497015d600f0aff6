// SPDX-License-Identifier: MIT
/* Errors that are classes of Python's own. */
#pragma once

#include <string>

namespace torch_spyre {

/* torch_spyre.utils.DtypeError, a TypeError and a RuntimeError. */
[[noreturn]] void fail_dtype(const std::string &text);

} // namespace torch_spyre
