// SPDX-License-Identifier: MIT
/* Activations, softmax and normalisations. */
#include "kernels.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/layer_norm_native.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/layer_norm_ops.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rms_norm_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/var.h>

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
WHOLE(kLayerNorm, "native_layer_norm", "layer_norm");
WHOLE(kRmsNorm, "rms_norm", "rms_norm");

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

using MaybeTensor = const std::optional<Tensor> &;

bool is_given(MaybeTensor t)
{
	return t && t->defined();
}

/* The card normalises the last dimension: several are one of a copy. */
Tensor as_rows(const Tensor &t, size_t normalized)
{
	return normalized == 1 ? t : t.flatten(t.dim() - static_cast<int64_t>(normalized), -1);
}

/* x, weight and bias of one dtype, normalised along the last @shape dimensions. */
bool normalize(const Pointwise &op, const Tensor &input, at::IntArrayRef shape, MaybeTensor weight,
	       MaybeTensor bias, double eps, Tensor &result)
{
	spyre_sdsc_attribute attribute = { "eps", eps };
	bool weighted = is_given(weight), shifted = is_given(bias), ok;
	Tensor x, w, b;

	if (shape.empty() || !input.numel() || (shifted && !weighted) ||
	    (weighted && weight->scalar_type() != input.scalar_type()) ||
	    (shifted && bias->scalar_type() != input.scalar_type()))
		return false;
	x = as_rows(input, shape.size());
	if (weighted)
		w = as_rows(*weight, shape.size());
	if (shifted)
		b = as_rows(*bias, shape.size());
	ok = shifted ? pointwise(op, { &x, &w, &b }, attribute, result, false) :
	     weighted ? pointwise(op, { &x, &w }, attribute, result, false) :
			pointwise(op, { &x }, attribute, result, false);
	if (ok && shape.size() > 1)
		result = result.reshape(input.sizes());
	return ok;
}

void check_shape(const char *what, const Tensor &input, at::IntArrayRef shape, MaybeTensor weight,
		 MaybeTensor bias)
{
	auto rank = static_cast<int64_t>(shape.size());

	TORCH_CHECK(input.dim() >= rank && input.sizes().slice(input.dim() - rank) == shape,
		    "Given normalized_shape=", shape, ", expected input with shape [*", shape,
		    "], but got input of size", input.sizes());
	TORCH_CHECK(!is_given(weight) || weight->sizes() == shape, what,
		    ": expected weight to be of same shape as normalized_shape, but got weight of shape ",
		    weight->sizes(), " and normalized_shape = ", shape);
	TORCH_CHECK(!is_given(bias) || bias->sizes() == shape, what,
		    ": expected bias to be of same shape as normalized_shape, but got bias of shape ",
		    bias->sizes(), " and normalized_shape = ", shape);
}

/* With the mean and the factor of each row, which its derivative takes. */
std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor &input, at::IntArrayRef shape,
						     MaybeTensor weight, MaybeTensor bias,
						     double eps)
{
	c10::SmallVector<int64_t, 8> dims;
	Tensor result;

	check_shape("native_layer_norm", input, shape, weight, bias);
	if (!normalize(kLayerNorm, input, shape, weight, bias, eps, result))
		return on_cpu<at::_ops::native_layer_norm>(input, shape, weight, bias, eps);
	for (size_t d = 0; d < shape.size(); d++)
		dims.push_back(-1 - static_cast<int64_t>(d));
	Tensor mean = at::mean(input, dims, true);
	Tensor spread = at::var(input, dims, std::optional<at::Scalar>(0), true);
	return { result, mean, spread.add_(eps).rsqrt_() };
}

bool wants_gradient(const Tensor &input, MaybeTensor weight, MaybeTensor bias)
{
	return at::GradMode::is_enabled() &&
	       (input.requires_grad() || (is_given(weight) && weight->requires_grad()) ||
		(is_given(bias) && bias->requires_grad()));
}

/* Without a derivative to come, nothing but the result is computed. */
Tensor layer_norm(const Tensor &input, at::IntArrayRef shape, MaybeTensor weight, MaybeTensor bias,
		  double eps, bool cudnn)
{
	Tensor result;

	check_shape("layer_norm", input, shape, weight, bias);
	if (normalize(kLayerNorm, input, shape, weight, bias, eps, result))
		return result;
	return std::get<0>(on_cpu<at::_ops::native_layer_norm>(input, shape, weight, bias, eps));
}

Tensor layer_norm_autograd(c10::DispatchKeySet keys, const Tensor &input, at::IntArrayRef shape,
			   MaybeTensor weight, MaybeTensor bias, double eps, bool cudnn)
{
	if (wants_gradient(input, weight, bias))
		return at::native::layer_norm_symint(input, c10::fromIntArrayRefSlow(shape), weight,
						     bias, eps, cudnn);
	return at::_ops::layer_norm::redispatch(keys & c10::after_autograd_keyset, input,
						c10::fromIntArrayRefSlow(shape), weight, bias, eps,
						cudnn);
}

double default_eps(const Tensor &input)
{
	switch (input.scalar_type()) {
	case at::kHalf:
		return 0x1p-10;
	case at::kBFloat16:
		return 0x1p-7;
	default:
		return 0x1p-23;
	}
}

Tensor rms_norm(const Tensor &input, at::IntArrayRef shape, MaybeTensor weight,
		std::optional<double> eps)
{
	Tensor result;

	check_shape("rms_norm", input, shape, weight, std::nullopt);
	if (normalize(kRmsNorm, input, shape, weight, std::nullopt,
		      eps.value_or(default_eps(input)), result))
		return result;
	return on_cpu<at::_ops::rms_norm>(input, shape, weight, eps);
}

/* Of operations that have derivatives. */
Tensor rms_norm_of_parts(const Tensor &input, at::IntArrayRef shape, MaybeTensor weight, double eps)
{
	c10::SmallVector<int64_t, 8> dims;

	check_shape("rms_norm", input, shape, weight, std::nullopt);
	for (size_t d = 0; d < shape.size(); d++)
		dims.push_back(-1 - static_cast<int64_t>(d));
	Tensor scale = at::mean(input.mul(input), dims, true).add_(eps).rsqrt_();
	return is_given(weight) ? input.mul(scale).mul(*weight) : input.mul(scale);
}

Tensor rms_norm_autograd(c10::DispatchKeySet keys, const Tensor &input, at::IntArrayRef shape,
			 MaybeTensor weight, std::optional<double> eps)
{
	if (wants_gradient(input, weight, std::nullopt))
		return rms_norm_of_parts(input, shape, weight, eps.value_or(default_eps(input)));
	return at::_ops::rms_norm::redispatch(keys & c10::after_autograd_keyset, input,
					      c10::fromIntArrayRefSlow(shape), weight, eps);
}

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
	m.impl("native_layer_norm", TORCH_FN(native_layer_norm));
	m.impl("layer_norm", TORCH_FN(layer_norm));
	m.impl("rms_norm", TORCH_FN(rms_norm));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m)
{
	m.impl("layer_norm", TORCH_FN(layer_norm_autograd));
	m.impl("rms_norm", TORCH_FN(rms_norm_autograd));
}

} // namespace torch_spyre
