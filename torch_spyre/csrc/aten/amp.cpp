// SPDX-License-Identifier: MIT
/* Automatic mixed precision: PyTorch's own lists of operations, for this device. */
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

namespace torch_spyre {

namespace {

/* PyTorch's macros use these names without a namespace. */
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

at::Tensor binary_cross_entropy_banned(const at::Tensor &, const at::Tensor &,
				       const std::optional<at::Tensor> &, int64_t)
{
	TORCH_CHECK(false,
		    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
		    "autocast. Use torch.nn.functional.binary_cross_entropy_with_logits or "
		    "torch.nn.BCEWithLogitsLoss instead.");
}

#define SPYRE_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define SPYRE_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define SPYRE_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define SPYRE_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

} // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m)
{
	m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m)
{
	AT_FORALL_LOWER_PRECISION_FP(SPYRE_LOWER_PRECISION)
	AT_FORALL_FP32(SPYRE_FP32)
	AT_FORALL_FP32_SET_OPT_DTYPE(SPYRE_FP32_SET_OPT_DTYPE)
	AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(
		KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
	AT_FORALL_PROMOTE(SPYRE_PROMOTE)
	m.impl("binary_cross_entropy", TORCH_FN(binary_cross_entropy_banned));
}

} // namespace torch_spyre
