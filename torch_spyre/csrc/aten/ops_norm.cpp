// SPDX-License-Identifier: MIT
/* Layer norm, its derivative, and RMS norm. */
#include "formula.h"
#include "kernels.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/layer_norm_native.h>
#include <ATen/ops/layer_norm_ops.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/rms_norm_ops.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var.h>

namespace torch_spyre {

namespace {

#define WHOLE(ident, name, op) \
	const Pointwise ident = { { "aten::" name, op, build_one, false }, { .complete = true } }

WHOLE(kLayerNorm, "native_layer_norm", "layer_norm");
WHOLE(kRmsNorm, "rms_norm", "rms_norm");

using MaybeTensor = const std::optional<Tensor> &;

bool is_given(MaybeTensor t)
{
	return t && t->defined();
}

/* Merges normalised dimensions in a copy, as the card normalises the last one only. */
Tensor as_rows(const Tensor &t, size_t normalized)
{
	return normalized == 1 ? t : t.flatten(t.dim() - static_cast<int64_t>(normalized), -1);
}

/* A copy with sticks along the last dimension, which the builder's layer norm requires. */
Tensor along_sticks(const Tensor &t)
{
	Operand o;

	if (!t.dim() || !t.numel())
		return t;
	if (operand_of(t, &o) && is_complete(t, o) &&
	    o.desc.layout.dim_map[o.desc.layout.device_rank - 1] == t.dim() - 1)
		return t;
	return dense_copy(t);
}

/* Normalises x along the last @shape dimensions; weight and bias have its dtype. */
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

void check_shape(const char *what, const Tensor &input, c10::SymIntArrayRef shape,
		 MaybeTensor weight, MaybeTensor bias)
{
	auto rank = static_cast<int64_t>(shape.size());

	TORCH_CHECK(input.dim() >= rank && input.sym_sizes().slice(input.dim() - rank) == shape,
		    "Given normalized_shape=", shape, ", expected input with shape [*", shape,
		    "], but got input of size", input.sym_sizes());
	TORCH_CHECK(!is_given(weight) || weight->sym_sizes() == shape, what,
		    ": expected weight to be of same shape as normalized_shape, but got weight of shape ",
		    weight->sym_sizes(), " and normalized_shape = ", shape);
	TORCH_CHECK(!is_given(bias) || bias->sym_sizes() == shape, what,
		    ": expected bias to be of same shape as normalized_shape, but got bias of shape ",
		    bias->sym_sizes(), " and normalized_shape = ", shape);
}

/* Also returns mean and factor of each row, which the derivative needs. */
std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor &given, at::IntArrayRef shape,
						     MaybeTensor weight, MaybeTensor bias,
						     double eps)
{
	c10::SmallVector<int64_t, 8> dims;
	Tensor input, result;

	check_shape("native_layer_norm", given, c10::fromIntArrayRefSlow(shape), weight, bias);
	input = along_sticks(given);
	if (!normalize(kLayerNorm, input, shape, weight, bias, eps, result))
		return on_cpu<at::_ops::native_layer_norm>(input, shape, weight, bias, eps);
	for (size_t d = 0; d < shape.size(); d++)
		dims.push_back(-1 - static_cast<int64_t>(d));
	/* Statistics in fp32, as on other devices, keep the derivative precise. */
	Tensor wide = input.to(at::kFloat);
	Tensor mean = at::mean(wide, dims, true);
	Tensor spread = at::var(wide, dims, std::optional<at::Scalar>(0), true);
	return { result, mean, spread.add_(eps).rsqrt_() };
}

bool wants_gradient(const Tensor &input, MaybeTensor weight, MaybeTensor bias)
{
	return at::GradMode::is_enabled() &&
	       (input.requires_grad() || (is_given(weight) && weight->requires_grad()) ||
		(is_given(bias) && bias->requires_grad()));
}

/* Computes only the result if no derivative is needed. */
Tensor layer_norm(const Tensor &input, at::IntArrayRef shape, MaybeTensor weight, MaybeTensor bias,
		  double eps, bool cudnn)
{
	Tensor result;

	check_shape("layer_norm", input, c10::fromIntArrayRefSlow(shape), weight, bias);
	if (normalize(kLayerNorm, along_sticks(input), shape, weight, bias, eps, result))
		return result;
	return std::get<0>(on_cpu<at::_ops::native_layer_norm>(input, shape, weight, bias, eps));
}

/* torch.compile traces with sizes that are symbols. */
Tensor layer_norm_autograd(c10::DispatchKeySet keys, const Tensor &input, c10::SymIntArrayRef shape,
			   MaybeTensor weight, MaybeTensor bias, double eps, bool cudnn)
{
	if (wants_gradient(input, weight, bias))
		return at::native::layer_norm_symint(input, shape, weight, bias, eps, cudnn);
	return at::_ops::layer_norm::redispatch(keys & c10::after_autograd_keyset, input, shape,
						weight, bias, eps, cudnn);
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

	check_shape("rms_norm", input, c10::fromIntArrayRefSlow(shape), weight, std::nullopt);
	if (normalize(kRmsNorm, input, shape, weight, std::nullopt,
		      eps.value_or(default_eps(input)), result))
		return result;
	return on_cpu<at::_ops::rms_norm>(input, shape, weight, eps);
}

/* Composes RMS norm of operations with derivatives. None is in place: a DTensor whose mean is
 * divided among ranks cannot change it. */
Tensor rms_norm_of_parts(const Tensor &input, c10::SymIntArrayRef shape, MaybeTensor weight,
			 double eps)
{
	c10::SmallVector<int64_t, 8> dims;

	check_shape("rms_norm", input, shape, weight, std::nullopt);
	for (size_t d = 0; d < shape.size(); d++)
		dims.push_back(-1 - static_cast<int64_t>(d));
	Tensor scale = at::mean(input.mul(input), dims, true).add(eps).rsqrt();
	return is_given(weight) ? input.mul(scale).mul(*weight) : input.mul(scale);
}

Tensor rms_norm_autograd(c10::DispatchKeySet keys, const Tensor &input, c10::SymIntArrayRef shape,
			 MaybeTensor weight, std::optional<double> eps)
{
	if (wants_gradient(input, weight, std::nullopt))
		return rms_norm_of_parts(input, shape, weight, eps.value_or(default_eps(input)));
	return at::_ops::rms_norm::redispatch(keys & c10::after_autograd_keyset, input, shape,
					      weight, eps);
}

/* With n = (x - mean) rstd and h = g w: rstd (h - mean h - n mean(h n)). */
void build_backward(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	Formula::T h = f.in(0), rstd = f.in(3);
	Formula::T n = f.op("mul", f.op("sub", f.in(1), f.in(2)), rstd);

	if (call.num_inputs() > 4)
		h = f.op("mul", h, f.in(4));
	Formula::T shared = f.op("mul", n, f.along("mean", f.op("mul", h, n)));
	f.give("mul", { f.op("sub", f.op("sub", h, f.along("mean", h)), shared), rstd });
}

/* g n, summed over the rows. */
void build_weight_backward(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	Formula::T n = f.op("mul", f.op("sub", f.in(1), f.in(2)), f.in(3));

	f.give("sum", { f.op("mul", f.in(0), n) }, { { "dim", 0 }, { "keepdim", 1 } });
}

const Pointwise kBackward = { { "aten::native_layer_norm_backward", "layer_norm", build_backward,
				false }, { .complete = true, .leading = true } };
const Program kWeightBackward = { "aten::native_layer_norm_backward", "layer_norm",
				  build_weight_backward, false };

/* Takes gradient, input, mean and factor as rows. */
bool weight_backward(const Tensor (&rows)[4], at::ScalarType dtype, Tensor &result)
{
	Call call(kWeightBackward);
	Tensor held[4];

	for (int i = 0; i < 4; i++)
		take_complete(call, rows[i], &held[i]);
	result = empty({ 1, rows[0].size(1) }, dtype, rows[0].device().index());
	if (!operand_of(result, &call.add_operand()) ||
	    !launch_or_refuse(call, rows[0].device().index()))
		return false;
	wrote(result, false);
	return true;
}

using Three = std::tuple<Tensor, Tensor, Tensor>;

bool run_backward(const Tensor &grad, const Tensor &input, at::IntArrayRef shape,
		  const Tensor &mean, const Tensor &rstd, MaybeTensor weight,
		  std::array<bool, 3> mask, Three &result)
{
	Tensor rows[4], w, gradient;
	int64_t width = c10::multiply_integers(shape);

	if (!grad.is_floating_point() || !input.numel() || grad.dtype() != input.dtype() ||
	    (is_given(weight) && weight->dtype() != input.dtype()))
		return false;
	rows[0] = grad.reshape({ -1, width });
	rows[1] = input.reshape({ -1, width });
	rows[2] = mean.reshape({ -1, 1 });
	rows[3] = rstd.reshape({ -1, 1 });
	if (mask[0]) {
		Tensor &g = rows[0], &x = rows[1], &m = rows[2], &r = rows[3];

		if (is_given(weight))
			w = weight->reshape({ width });
		bool done = w.defined() ?
			    pointwise(kBackward, { &g, &x, &m, &r, &w }, {}, gradient, false) :
			    pointwise(kBackward, { &g, &x, &m, &r }, {}, gradient, false);
		if (!done)
			return false;
		std::get<0>(result) = gradient.view(input.sizes());
	}
	if (mask[1] && is_given(weight)) {
		if (!weight_backward(rows, weight->scalar_type(), gradient))
			return false;
		std::get<1>(result) = gradient.view(shape);
	}
	if (mask[2])
		std::get<2>(result) = rows[0].sum(0).view(shape);
	return true;
}

Three native_layer_norm_backward(const Tensor &grad, const Tensor &input, at::IntArrayRef shape,
				 const Tensor &mean, const Tensor &rstd, MaybeTensor weight,
				 MaybeTensor bias, std::array<bool, 3> mask)
{
	Three result;

	if (run_backward(grad, input, shape, mean, rstd, weight, mask, result))
		return result;
	return on_cpu<at::_ops::native_layer_norm_backward>(
		grad, input, shape, mean.to(input.dtype()), rstd.to(input.dtype()), weight, bias,
		mask);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("native_layer_norm", TORCH_FN(native_layer_norm));
	m.impl("native_layer_norm_backward", TORCH_FN(native_layer_norm_backward));
	m.impl("layer_norm", TORCH_FN(layer_norm));
	m.impl("rms_norm", TORCH_FN(rms_norm));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m)
{
	m.impl("layer_norm", TORCH_FN(layer_norm_autograd));
	m.impl("rms_norm", TORCH_FN(rms_norm_autograd));
}

} // namespace torch_spyre
