// SPDX-License-Identifier: MIT
/* Losses and their derivatives. */
#include "formula.h"
#include "kernels.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/sum.h>
#include <ATen/native/Resize.h>

namespace torch_spyre {

namespace {

using T = Formula::T;

void build_square_error(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T error = f.op("sub", f.in(0), f.in(1));

	f.give("mul", { error, error });
}

/* 2 / n (x - y) g */
void build_square_error_backward(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T error = f.with("mul", f.op("sub", f.in(1), f.in(2)), f.number());

	f.give("mul", { error, f.in(0) });
}

/* -softplus(-x), which is exactly x beyond the threshold. */
void build_log_sigmoid(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give("neg", { f.op("softplus", f.op("neg", f.in(0))) });
}

/* g sigmoid(-x) */
void build_log_sigmoid_backward(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give("mul", { f.in(0), f.op("sigmoid", f.op("neg", f.in(1))) });
}

const Pointwise kSquareError = { { "aten::mse_loss", "mse_loss", build_square_error, false }, {} };
const Pointwise kSquareErrorBackward = { { "aten::mse_loss_backward", "mse_loss",
					   build_square_error_backward, false }, {} };
const Pointwise kLogSigmoid = { { "aten::log_sigmoid_forward", "log_sigmoid", build_log_sigmoid,
				  false }, {} };
const Pointwise kLogSigmoidBackward = { { "aten::log_sigmoid_backward", "log_sigmoid",
					  build_log_sigmoid_backward, false }, {} };

/* Errors of half precision are squared and added in fp32. */
bool mse_loss(const Tensor &a, const Tensor &b, int64_t reduction, Tensor &result, bool resize)
{
	Tensor errors;

	if (reduction == at::Reduction::None)
		return pointwise(kSquareError, { &a, &b }, {}, result, resize);
	if (!a.is_floating_point() || a.dtype() != b.dtype() ||
	    (resize && result.dtype() != a.dtype()))
		return false;
	Tensor wide = a.to(at::kFloat);
	if (!pointwise(kSquareError, { &wide, &b }, {}, errors, false))
		return false;
	Tensor total = reduction == at::Reduction::Mean ? at::mean(errors) : at::sum(errors);
	if (!resize) {
		result = total.to(a.scalar_type());
		return true;
	}
	at::native::resize_output(result, total.sizes());
	torch_spyre::copy(result, total, true);
	return true;
}

bool mse_loss_backward(const Tensor &grad, const Tensor &a, const Tensor &b, int64_t reduction,
		       Tensor &result, bool resize)
{
	bool mean = reduction == at::Reduction::Mean && a.numel();
	spyre_sdsc_attribute attribute = {
		"norm", mean ? 2.0 / static_cast<double>(a.numel()) : 2.0 };

	return pointwise(kSquareErrorBackward, { &grad, &a, &b }, attribute, result, resize);
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor &a)
{
	Tensor result;

	/* The second result has the shape that torch.compile is told of; it is not used. */
	if (pointwise(kLogSigmoid, { &a }, {}, result, false))
		return { result, empty(a.sizes(), a.scalar_type(), a.device().index()) };
	return on_cpu<at::_ops::log_sigmoid_forward>(a);
}

/* The CPU's buffer of the forward pass is not needed. */
bool log_sigmoid_backward(const Tensor &grad, const Tensor &a, const Tensor &, Tensor &result,
			  bool resize)
{
	return pointwise(kLogSigmoidBackward, { &grad, &a }, {}, result, resize);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	/* Eager mode and torch.compile each add the reduction in code of their own. */
	describe<at::_ops::mse_loss>(kSquareError, { "self", "target" });
	describe<at::_ops::mse_loss_backward>(kSquareErrorBackward,
					      { "grad_output", "self", "target" });
	describe<at::_ops::log_sigmoid_backward>(kLogSigmoidBackward, { "grad_output", "self" });
	add_forms<mse_loss, at::_ops::mse_loss, at::_ops::mse_loss_out>(m);
	add_forms<mse_loss_backward, at::_ops::mse_loss_backward,
		  at::_ops::mse_loss_backward_grad_input>(m);
	m.impl("log_sigmoid_forward", TORCH_FN(log_sigmoid_forward));
	add_forms<log_sigmoid_backward, at::_ops::log_sigmoid_backward,
		  at::_ops::log_sigmoid_backward_grad_input>(m);
}

} // namespace torch_spyre
