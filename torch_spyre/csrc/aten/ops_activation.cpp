// SPDX-License-Identifier: MIT
/* Activations and softmax. */
#include "formula.h"
#include "kernels.h"
#include "number.h"

#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/hardswish_ops.h>
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

/* 6 times hardsigmoid(x), which is linear from -3 to 3. */
Formula::T hard(Formula &f, Formula::T x)
{
	return f.op("clip", f.with("add", x, 3), { { "min", 0 }, { "max", 6 } });
}

void build_hardsigmoid(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give_with("div", hard(f, f.in(0)), 6);
}

void build_hardswish(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	Formula::T x = f.in(0);

	f.give_with("div", f.op("mul", x, hard(f, x)), 6);
}

const Pointwise kHardsigmoid = { { "aten::hardsigmoid", "hardsigmoid", build_hardsigmoid, false },
				 {} };
const Pointwise kHardswish = { { "aten::hardswish", "hardswish", build_hardswish, true }, {} };

#define WHOLE(ident, name, op) \
	const Pointwise ident = { { "aten::" name, op, build_one, false }, { .complete = true } }

WHOLE(kSoftmax, "_softmax", "softmax");
WHOLE(kLogSoftmax, "_log_softmax", "log_softmax");

bool gelu(const Tensor &a, std::string_view approximate, Tensor &result, bool resize)
{
	return pointwise(approximate == "tanh" ? kGeluTanh : kGelu, { &a }, {}, result, resize);
}

bool softplus(const Tensor &a, const at::Scalar &beta, const at::Scalar &threshold,
		  Tensor &result, bool resize)
{
	spyre_sdsc_attribute attributes[] = { { "beta", beta.toDouble() },
					      { "threshold", threshold.toDouble() } };

	return a.is_floating_point() && is_factor(a.scalar_type(), attributes[0].value) &&
	       pointwise(kSoftplus, { &a }, attributes, result, resize);
}

bool leaky_relu(const Tensor &a, const at::Scalar &slope, Tensor &result, bool resize)
{
	spyre_sdsc_attribute attribute = { "negative_slope", slope.toDouble() };

	return is_factor(a.scalar_type(), attribute.value) &&
	       pointwise(kLeakyRelu, { &a }, attribute, result, resize);
}

bool hardtanh(const Tensor &a, const at::Scalar &min, const at::Scalar &max, Tensor &result,
		  bool resize)
{
	spyre_sdsc_attribute attributes[] = { { "min", min.toDouble() }, { "max", max.toDouble() } };

	return a.is_floating_point() && fit_number(a.scalar_type(), &attributes[0].value) &&
	       fit_number(a.scalar_type(), &attributes[1].value) &&
	       pointwise(kHardtanh, { &a }, attributes, result, resize);
}

template <const Pointwise &op>
bool along(const Tensor &a, int64_t dim, bool to_float, Tensor &result, bool resize)
{
	int64_t rank = std::max<int64_t>(a.dim(), 1);
	spyre_sdsc_attribute attribute = {
		"dim", static_cast<double>(c10::maybe_wrap_dim(dim, rank) - rank) };

	return !to_float && a.dim() && a.is_floating_point() &&
	       pointwise(op, { &a }, attribute, result, resize);
}

#define ADD(ident, name) \
	Unary<ident, at::_ops::name, at::_ops::name##_, at::_ops::name##_out>::add(m)

void describe_others()
{
	Parameter dim = { "dim", "dim", Parameter::kDim };
	Parameter to_float = { "half_to_float", nullptr, Parameter::kOff };

	describe(Row{ "gelu", &kGeluTanh, { "self" }, {}, { "approximate", "tanh" } });
	describe<at::_ops::gelu>(kGelu, { "self" });
	describe<at::_ops::softplus>(kSoftplus, { "self" },
				     { { "beta", "beta", Parameter::kFactor },
				       { "threshold", "threshold" } });
	describe<at::_ops::leaky_relu>(kLeakyRelu, { "self" },
				       { { "negative_slope", "negative_slope",
					   Parameter::kFactor } });
	describe<at::_ops::hardtanh>(kHardtanh, { "self" },
				     { { "min_val", "min", Parameter::kBound },
				       { "max_val", "max", Parameter::kBound } });
	describe<at::_ops::_softmax>(kSoftmax, { "self" }, { dim, to_float });
	describe<at::_ops::_log_softmax>(kLogSoftmax, { "self" }, { dim, to_float });
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	describe_others();
	ADD(kRelu, relu);
	ADD(kSigmoid, sigmoid);
	ADD(kSilu, silu);
	ADD(kMish, mish);
	ADD(kHardsigmoid, hardsigmoid);
	ADD(kHardswish, hardswish);
	add_forms<gelu, at::_ops::gelu, at::_ops::gelu_, at::_ops::gelu_out>(m);
	add_forms<softplus, at::_ops::softplus, at::_ops::softplus_out>(m);
	add_forms<leaky_relu, at::_ops::leaky_relu, at::_ops::leaky_relu_,
		  at::_ops::leaky_relu_out>(m);
	add_forms<hardtanh, at::_ops::hardtanh, at::_ops::hardtanh_, at::_ops::hardtanh_out>(m);
	add_forms<along<kSoftmax>, at::_ops::_softmax, at::_ops::_softmax_out>(m);
	add_forms<along<kLogSoftmax>, at::_ops::_log_softmax, at::_ops::_log_softmax_out>(m);
}

} // namespace torch_spyre
