// SPDX-License-Identifier: MIT
/* Dropout: the mask is drawn on the host, as the CPU draws it, and applied by the card. */
#include "formula.h"
#include "kernels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_dropout_ops.h>
#include <ATen/ops/ones_like.h>

#include "runtime/generator.h"
#include "runtime/graph.h"

namespace torch_spyre {

namespace {

/* x mask scale, rounded once. */
void build_masked(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give_with("mul", f.op("mul", f.in(0), f.in(1)), f.number());
}

const Pointwise kDropout = { { "aten::native_dropout", "dropout", build_masked, false },
			     { .leading = true } };

bool apply(const Tensor &a, const Tensor &mask, double scale, Tensor &result, bool resize)
{
	spyre_sdsc_attribute attribute = { "scale", scale };

	return a.is_floating_point() &&
	       pointwise(kDropout, { &a, &mask }, attribute, result, resize);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor &input, double p, std::optional<bool> train)
{
	double kept = 1 - p;
	Tensor result;

	if (!input.is_floating_point())
		return on_cpu<at::_ops::native_dropout>(input, p, train);
	if (!input.numel() || !train.value_or(true))
		return { input.clone(), at::ones_like(input, at::kBool) };
	not_in_graph(input.device().index(), "aten::native_dropout",
		     "the host draws the mask, which would be the same in every replay; call eval() on "
		     "the model, or draw a mask into a tensor before each replay");
	Tensor drawn = at::empty(input.sizes(), at::kBool)
			       .bernoulli_(kept, host_generator(std::nullopt,
								input.device().index()));
	Tensor mask = drawn.to(input.device());
	if (!apply(input, mask, kept == 0 ? 0 : 1 / kept, result, false))
		result = input.mul(mask).mul_(kept == 0 ? 0 : 1 / kept);
	return { result, mask };
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	describe<at::_ops::native_dropout_backward>(kDropout, { "grad_output", "mask" },
						    { { "scale", "scale", Parameter::kFinite } });
	m.impl("native_dropout", TORCH_FN(native_dropout));
	add_forms<apply, at::_ops::native_dropout_backward,
		  at::_ops::native_dropout_backward_out>(m);
}

} // namespace torch_spyre
