// SPDX-License-Identifier: MIT
/* Operations of others that say nothing of gradients: an error in backward, not zeros. */
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

namespace torch_spyre {

TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m)
{
	m.fallback(torch::autograd::autogradNotImplementedFallback());
}

} // namespace torch_spyre
