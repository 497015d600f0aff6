// SPDX-License-Identifier: MIT
/* Derivatives of activations, softmax and losses: one program each, fp32 inside. */
#include "formula.h"
#include "kernels.h"

#include <cmath>

#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/hardtanh_backward_ops.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>

namespace torch_spyre {

namespace {

using T = Formula::T;

/* 1 - a */
T rest(Formula &f, T a)
{
	return f.with("revsub", a, 1);
}

/* g (1 - y^2) of y = tanh x */
void build_tanh(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T y = f.in(1);

	f.give("mul", { f.in(0), rest(f, f.op("mul", y, y)) });
}

/* g (1 - y) y of y = sigmoid x */
void build_sigmoid(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T y = f.in(1);

	f.give("mul", { f.op("mul", f.in(0), rest(f, y)), y });
}

/* g s (1 + x (1 - s)), s = sigmoid x */
void build_silu(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T x = f.in(1), s = f.op("sigmoid", x);
	T slope = f.with("add", f.op("mul", x, rest(f, s)), 1);

	f.give("mul", { f.op("mul", f.in(0), s), slope });
}

/* g (c + x p), with the normal distribution c (gelu x / x) and its density p */
void build_gelu(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T x = f.in(1), below = f.op("div", f.op("gelu", x), x);
	T distribution = f.choose(f.with("eq", x, 0), 0.5, below);
	T bell = f.op("exp", f.with("mul", f.op("mul", x, x), -0.5));
	T density = f.with("mul", bell, 1 / std::sqrt(2 * M_PI));

	f.give("mul", { f.in(0), f.op("add", distribution, f.op("mul", x, density)) });
}

/* With t = tanh(a (x + b x^3)): g / 2 (1 + t + x (1 - t^2) a (1 + 3 b x^2)) */
void build_gelu_tanh(Graph &graph, const Call &call)
{
	const double a = std::sqrt(2 / M_PI), b = 0.044715;
	Formula f(graph, call);
	T x = f.in(1), square = f.op("mul", x, x);
	T inner = f.op("mul", x, f.with("add", f.with("mul", square, a * b), a));
	T t = f.op("tanh", inner);
	T slope = f.with("add", f.with("mul", square, 3 * a * b), a);
	T turn = f.op("mul", f.op("mul", x, rest(f, f.op("mul", t, t))), slope);
	T sum = f.op("add", f.with("add", t, 1), turn);

	f.give("mul", { f.in(0), f.with("mul", sum, 0.5) });
}

/* x <= threshold ? 0 : g */
void build_threshold(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give("where", { f.with("le", f.in(1), f.number()), f.in(0) }, { { "input", 0 } });
}

/* x > 0 ? g : slope g */
void build_leaky_relu(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T g = f.in(0);

	f.give("where", { f.with("gt", f.in(1), 0), g, f.with("mul", g, f.number()) });
}

/* min < x < max ? g : 0 */
void build_hardtanh(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T x = f.in(1), low = f.with("le", x, f.number(0)), high = f.with("ge", x, f.number(1));

	f.give("where", { f.op("maximum", low, high), f.in(0) }, { { "input", 0 } });
}

/* beta x > threshold ? g : g sigmoid(beta x) */
void build_softplus(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T g = f.in(0), scaled = f.with("mul", f.in(1), f.number(0));
	T bent = f.op("mul", g, f.op("sigmoid", scaled));

	f.give("where", { f.with("gt", scaled, f.number(1)), g, bent });
}

/* y (g - sum y g) of y = softmax x */
void build_softmax(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T g = f.in(0), y = f.in(1);
	T sum = f.along("sum", f.op("mul", g, y), f.number());

	f.give("mul", { f.op("sub", g, sum), y });
}

/* g - e^y sum g of y = log softmax x */
void build_log_softmax(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T g = f.in(0), y = f.op("exp", f.in(1));

	f.give("sub", { g, f.op("mul", y, f.along("sum", g, f.number())) });
}

#define DERIVATIVE(ident, name, build) \
	const Pointwise ident = { { "aten::" name "_backward", name, build, false }, {} }
#define ALONG(ident, name, build) \
	const Pointwise ident = { { "aten::" name "_backward_data", name, build, false }, \
				  { .complete = true } }

DERIVATIVE(kTanh, "tanh", build_tanh);
DERIVATIVE(kSigmoid, "sigmoid", build_sigmoid);
DERIVATIVE(kSilu, "silu", build_silu);
DERIVATIVE(kGelu, "gelu", build_gelu);
DERIVATIVE(kGeluTanh, "gelu", build_gelu_tanh);
DERIVATIVE(kThreshold, "threshold", build_threshold);
DERIVATIVE(kLeakyRelu, "leaky_relu", build_leaky_relu);
DERIVATIVE(kHardtanh, "hardtanh", build_hardtanh);
DERIVATIVE(kSoftplus, "softplus", build_softplus);
ALONG(kSoftmax, "_softmax", build_softmax);
ALONG(kLogSoftmax, "_log_softmax", build_log_softmax);

template <const Pointwise &op>
bool plain(const Tensor &grad, const Tensor &a, Tensor &result, bool resize)
{
	return pointwise(op, { &grad, &a }, {}, result, resize);
}

bool gelu(const Tensor &grad, const Tensor &a, std::string_view approximate, Tensor &result,
	  bool resize)
{
	return pointwise(approximate == "tanh" ? kGeluTanh : kGelu, { &grad, &a }, {}, result,
			 resize);
}

template <const Pointwise &op>
bool with_number(const Tensor &grad, const Tensor &a, const at::Scalar &number, Tensor &result,
		 bool resize)
{
	spyre_sdsc_attribute attribute = { "number", number.toDouble() };

	return std::isfinite(attribute.value) &&
	       pointwise(op, { &grad, &a }, attribute, result, resize);
}

bool leaky_relu(const Tensor &grad, const Tensor &a, const at::Scalar &slope, bool, Tensor &result,
		bool resize)
{
	return with_number<kLeakyRelu>(grad, a, slope, result, resize);
}

template <const Pointwise &op>
bool with_numbers(const Tensor &grad, const Tensor &a, const at::Scalar &first,
		  const at::Scalar &second, Tensor &result, bool resize)
{
	spyre_sdsc_attribute attributes[] = { { "first", first.toDouble() },
					      { "second", second.toDouble() } };

	return std::isfinite(attributes[0].value) && std::isfinite(attributes[1].value) &&
	       pointwise(op, { &grad, &a }, attributes, result, resize);
}

/* The derivative in the dtype of the softmax's input. */
template <const Pointwise &op>
bool along(const Tensor &grad, const Tensor &output, int64_t dim, at::ScalarType input_dtype,
	   Tensor &result, bool resize)
{
	int64_t rank = std::max<int64_t>(grad.dim(), 1);
	spyre_sdsc_attribute attribute = {
		"dim", static_cast<double>(c10::maybe_wrap_dim(dim, rank) - rank) };

	return grad.dim() && input_dtype == grad.scalar_type() &&
	       grad.scalar_type() == output.scalar_type() &&
	       pointwise(op, { &grad, &output }, attribute, result, resize);
}

#define ADD(run, name) \
	add_forms<run, at::_ops::name##_backward, at::_ops::name##_backward_grad_input>(m)

Parameter finite(const char *argument)
{
	return { argument, argument, Parameter::kFinite };
}

void describe_derivatives()
{
	std::vector<const char *> of_input = { "grad_output", "self" },
				  of_output = { "grad_output", "output" };
	std::vector<Parameter> along = { { "dim", "dim", Parameter::kDim },
					 { "input_dtype", nullptr, Parameter::kDtype } };

	describe<at::_ops::tanh_backward>(kTanh, of_output);
	describe<at::_ops::sigmoid_backward>(kSigmoid, of_output);
	describe<at::_ops::silu_backward>(kSilu, of_input);
	describe(Row{ "gelu_backward", &kGeluTanh, of_input, {},
		      { "approximate", "tanh" } });
	describe<at::_ops::gelu_backward>(kGelu, of_input);
	describe<at::_ops::threshold_backward>(kThreshold, of_input, { finite("threshold") });
	describe<at::_ops::leaky_relu_backward>(kLeakyRelu, of_input,
						{ finite("negative_slope") });
	describe<at::_ops::hardtanh_backward>(kHardtanh, of_input,
					      { finite("min_val"), finite("max_val") });
	describe<at::_ops::softplus_backward>(kSoftplus, of_input,
					      { finite("beta"), finite("threshold") });
	describe<at::_ops::_softmax_backward_data>(kSoftmax, of_output, along);
	describe<at::_ops::_log_softmax_backward_data>(kLogSoftmax, of_output, along);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	describe_derivatives();
	ADD(plain<kTanh>, tanh);
	ADD(plain<kSigmoid>, sigmoid);
	ADD(plain<kSilu>, silu);
	ADD(gelu, gelu);
	ADD(with_number<kThreshold>, threshold);
	ADD(leaky_relu, leaky_relu);
	ADD(with_numbers<kHardtanh>, hardtanh);
	ADD(with_numbers<kSoftplus>, softplus);
	add_forms<along<kSoftmax>, at::_ops::_softmax_backward_data,
		  at::_ops::_softmax_backward_data_out>(m);
	add_forms<along<kLogSoftmax>, at::_ops::_log_softmax_backward_data,
		  at::_ops::_log_softmax_backward_data_out>(m);
}

} // namespace torch_spyre
