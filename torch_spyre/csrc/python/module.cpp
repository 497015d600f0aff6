// SPDX-License-Identifier: MIT
/* torch_spyre._C: what Python needs besides PyTorch's own interfaces. */
#include "module.h"

#include <vector>

namespace torch_spyre {

static std::vector<void (*)(pybind11::module_ &)> &bindings()
{
	static std::vector<void (*)(pybind11::module_ &)> list;

	return list;
}

Binding::Binding(void (*define)(pybind11::module_ &))
{
	bindings().push_back(define);
}

} // namespace torch_spyre

PYBIND11_MODULE(_C, module)
{
	module.doc() = "PyTorch on Spyre devices: what torch.spyre is made of";
	for (auto define : torch_spyre::bindings())
		define(module);
}
