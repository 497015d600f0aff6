// SPDX-License-Identifier: MIT
/* Activations and softmax. */
#include "kernels.h"

#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/softplus_ops.h>

namespace torch_spyre {

namespace {

#define ACTIVATION(ident, name, op, keeps_zero) \
	const Pointwise ident = { { "aten::" name, op, build_one, keeps_zero }, {} }

ACTIVATION(kRelu, "relu", "relu", true);
const Pointwise kSigmoid = { { "aten::sigmoid", "sigmoid", build_one, false },
			     { .result = ResultType::kFloat } };
ACTIVATION(kSilu, "silu", "silu", true);
ACTIVATION(kMish, "mish", "mish", true);
ACTIVATION(kGelu, "gelu", "gelu", true);
ACTIVATION(kGeluTanh, "gelu", "gelu_tanh", true);
ACTIVATION(kSoftplus, "softplus", "softplus", false);
ACTIVATION(kLeakyRelu, "leaky_relu", "leaky_relu", true);
ACTIVATION(kHardtanh, "hardtanh", "clamp", false);

#define WHOLE(ident, name, op) \
	const Pointwise ident = { { "aten::" name, op, build_one, false }, { .complete = true } }

WHOLE(kSoftmax, "_softmax", "softmax");
WHOLE(kLogSoftmax, "_log_softmax", "log_softmax");

bool run_gelu(const Tensor &a, std::string_view approximate, Tensor &result, bool resize)
{
	return pointwise(approximate == "tanh" ? kGeluTanh : kGelu, { &a }, {}, result, resize);
}

Tensor gelu(const Tensor &a, std::string_view approximate)
{
	Tensor result;
	return run_gelu(a, approximate, result, false) ? result :
	       on_cpu<at::_ops::gelu>(a, approximate);
}

Tensor &gelu_in_place(Tensor &a, std::string_view approximate)
{
	return run_gelu(a, approximate, a, false) ? a : on_cpu<at::_ops::gelu_>(a, approximate);
}

Tensor &gelu_out(const Tensor &a, std::string_view approximate, Tensor &out)
{
	return run_gelu(a, approximate, out, true) ? out :
	       on_cpu<at::_ops::gelu_out>(a, approximate, out);
}

bool run_softplus(const Tensor &a, const at::Scalar &beta, const at::Scalar &threshold,
		  Tensor &result, bool resize)
{
	spyre_sdsc_attribute attributes[] = { { "beta", beta.toDouble() },
					      { "threshold", threshold.toDouble() } };

	return a.is_floating_point() && pointwise(kSoftplus, { &a }, attributes, result, resize);
}

Tensor softplus(const Tensor &a, const at::Scalar &beta, const at::Scalar &threshold)
{
	Tensor result;
	return run_softplus(a, beta, threshold, result, false) ? result :
	       on_cpu<at::_ops::softplus>(a, beta, threshold);
}

Tensor &softplus_out(const Tensor &a, const at::Scalar &beta, const at::Scalar &threshold,
		     Tensor &out)
{
	return run_softplus(a, beta, threshold, out, true) ? out :
	       on_cpu<at::_ops::softplus_out>(a, beta, threshold, out);
}

bool run_leaky_relu(const Tensor &a, const at::Scalar &slope, Tensor &result, bool resize)
{
	spyre_sdsc_attribute attribute = { "negative_slope", slope.toDouble() };

	return pointwise(kLeakyRelu, { &a }, attribute, result, resize);
}

Tensor leaky_relu(const Tensor &a, const at::Scalar &slope)
{
	Tensor result;
	return run_leaky_relu(a, slope, result, false) ? result :
	       on_cpu<at::_ops::leaky_relu>(a, slope);
}

Tensor &leaky_relu_in_place(Tensor &a, const at::Scalar &slope)
{
	return run_leaky_relu(a, slope, a, false) ? a : on_cpu<at::_ops::leaky_relu_>(a, slope);
}

Tensor &leaky_relu_out(const Tensor &a, const at::Scalar &slope, Tensor &out)
{
	return run_leaky_relu(a, slope, out, true) ? out :
	       on_cpu<at::_ops::leaky_relu_out>(a, slope, out);
}

bool run_hardtanh(const Tensor &a, const at::Scalar &min, const at::Scalar &max, Tensor &result,
		  bool resize)
{
	spyre_sdsc_attribute attributes[] = { { "min", min.toDouble() }, { "max", max.toDouble() } };

	return a.is_floating_point() && pointwise(kHardtanh, { &a }, attributes, result, resize);
}

Tensor hardtanh(const Tensor &a, const at::Scalar &min, const at::Scalar &max)
{
	Tensor result;
	return run_hardtanh(a, min, max, result, false) ? result :
	       on_cpu<at::_ops::hardtanh>(a, min, max);
}

Tensor &hardtanh_in_place(Tensor &a, const at::Scalar &min, const at::Scalar &max)
{
	return run_hardtanh(a, min, max, a, false) ? a : on_cpu<at::_ops::hardtanh_>(a, min, max);
}

Tensor &hardtanh_out(const Tensor &a, const at::Scalar &min, const at::Scalar &max, Tensor &out)
{
	return run_hardtanh(a, min, max, out, true) ? out :
	       on_cpu<at::_ops::hardtanh_out>(a, min, max, out);
}

bool along(const Pointwise &op, const Tensor &a, int64_t dim, bool to_float, Tensor &result,
	   bool resize)
{
	int64_t rank = std::max<int64_t>(a.dim(), 1);
	spyre_sdsc_attribute attribute = {
		"dim", static_cast<double>(c10::maybe_wrap_dim(dim, rank) - rank) };

	return !to_float && a.dim() && a.is_floating_point() &&
	       pointwise(op, { &a }, attribute, result, resize);
}

template <const Pointwise &op, class New, class Out> struct Softmax {
	static Tensor make(const Tensor &a, int64_t dim, bool to_float)
	{
		Tensor result;
		return along(op, a, dim, to_float, result, false) ? result :
		       on_cpu<New>(a, dim, to_float);
	}
	static Tensor &into(const Tensor &a, int64_t dim, bool to_float, Tensor &out)
	{
		return along(op, a, dim, to_float, out, true) ? out :
		       on_cpu<Out>(a, dim, to_float, out);
	}
	static void add(torch::Library &m)
	{
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

#define ADD(ident, name) \
	Unary<ident, at::_ops::name, at::_ops::name##_, at::_ops::name##_out>::add(m)

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	ADD(kRelu, relu);
	ADD(kSigmoid, sigmoid);
	ADD(kSilu, silu);
	ADD(kMish, mish);
	m.impl("gelu", TORCH_FN(gelu));
	m.impl("gelu_", TORCH_FN(gelu_in_place));
	m.impl("gelu.out", TORCH_FN(gelu_out));
	m.impl("softplus", TORCH_FN(softplus));
	m.impl("softplus.out", TORCH_FN(softplus_out));
	m.impl("leaky_relu", TORCH_FN(leaky_relu));
	m.impl("leaky_relu_", TORCH_FN(leaky_relu_in_place));
	m.impl("leaky_relu.out", TORCH_FN(leaky_relu_out));
	m.impl("hardtanh", TORCH_FN(hardtanh));
	m.impl("hardtanh_", TORCH_FN(hardtanh_in_place));
	m.impl("hardtanh.out", TORCH_FN(hardtanh_out));
	Softmax<kSoftmax, at::_ops::_softmax, at::_ops::_softmax_out>::add(m);
	Softmax<kLogSoftmax, at::_ops::_log_softmax, at::_ops::_log_softmax_out>::add(m);
}

} // namespace torch_spyre
