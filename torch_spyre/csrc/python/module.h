// SPDX-License-Identifier: MIT
/* How a file adds to torch_spyre._C: a static Binding with a function. */
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_spyre {

struct Binding {
	explicit Binding(void (*define)(pybind11::module_ &module));
};

} // namespace torch_spyre
