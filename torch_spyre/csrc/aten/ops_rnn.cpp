// SPDX-License-Identifier: MIT
/*
 * Cells of recurrent modules. PyTorch calls whole cells on extension devices, for
 * which the CPU has no kernels; they are composed of the card's functions here.
 */
#include "kernels.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>

namespace torch_spyre {

namespace {

using MaybeTensor = const std::optional<Tensor> &;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

bool is_given(MaybeTensor t)
{
	return t && t->defined();
}

Tensor biased(const Tensor &gates, MaybeTensor bias)
{
	return is_given(bias) ? gates.add(*bias) : gates;
}

/* Checks that both products have @count gates of the state's width. */
void check_gates(const char *name, const Tensor &input_gates, const Tensor &hidden_gates,
		 const Tensor &state, int64_t count)
{
	TORCH_CHECK(input_gates.dim() == 2 && state.dim() == 2 &&
		    input_gates.sizes() == hidden_gates.sizes() &&
		    input_gates.size(0) == state.size(0) &&
		    input_gates.size(1) == count * state.size(1), name, ": gates of ",
		    input_gates.sizes(), " and ", hidden_gates.sizes(),
		    " do not fit a state of ", state.sizes(), "; expected ", count,
		    " gates of its width in both");
}

/* Derivative of sigmoid from its result y. */
Tensor slope_of_sigmoid(const Tensor &y)
{
	return y.sub(y.mul(y));
}

Tensor slope_of_tanh(const Tensor &y)
{
	return y.mul(y).neg_().add_(1);
}

/* Also returns the gates, which the derivative needs. */
Three lstm_cell(const Tensor &input_gates, const Tensor &hidden_gates, const Tensor &cx,
		MaybeTensor input_bias, MaybeTensor hidden_bias)
{
	check_gates("_thnn_fused_lstm_cell", input_gates, hidden_gates, cx, 4);
	std::vector<Tensor> gate =
		biased(input_gates, input_bias).add(biased(hidden_gates, hidden_bias)).chunk(4, 1);

	for (int i : { 0, 1, 3 })
		gate[i] = at::sigmoid(gate[i]);
	gate[2] = at::tanh(gate[2]);
	Tensor cy = gate[1].mul(cx).add_(gate[0].mul(gate[2]));
	return { gate[3].mul(at::tanh(cy)), cy, at::cat(gate, 1) };
}

/* Returns the derivatives of the gates, the cell and the bias. */
Three lstm_cell_backward(MaybeTensor grad_hy, MaybeTensor grad_cy, const Tensor &cx,
			 const Tensor &cy, const Tensor &workspace, bool has_bias)
{
	if (!is_given(grad_hy) && !is_given(grad_cy))
		return {};
	std::vector<Tensor> gate = workspace.chunk(4, 1), grad(4);
	Tensor cell = at::tanh(cy), grad_cell;

	if (is_given(grad_hy)) {
		grad[3] = grad_hy->mul(cell).mul_(slope_of_sigmoid(gate[3]));
		grad_cell = grad_hy->mul(gate[3]).mul_(slope_of_tanh(cell));
		if (is_given(grad_cy))
			grad_cell.add_(*grad_cy);
	} else {
		grad[3] = at::zeros_like(cell);
		grad_cell = *grad_cy;
	}
	grad[0] = grad_cell.mul(gate[2]).mul_(slope_of_sigmoid(gate[0]));
	grad[1] = grad_cell.mul(cx).mul_(slope_of_sigmoid(gate[1]));
	grad[2] = grad_cell.mul(gate[0]).mul_(slope_of_tanh(gate[2]));
	Tensor gates = at::cat(grad, 1);
	return { gates, grad_cell.mul(gate[1]), has_bias ? at::sum(gates, 0) : Tensor() };
}

/* Also returns a workspace: reset, update and new gates, the state, its part of the new gate. */
std::tuple<Tensor, Tensor> gru_cell(const Tensor &input_gates, const Tensor &hidden_gates,
				    const Tensor &hx, MaybeTensor input_bias,
				    MaybeTensor hidden_bias)
{
	check_gates("_thnn_fused_gru_cell", input_gates, hidden_gates, hx, 3);
	std::vector<Tensor> in = biased(input_gates, input_bias).chunk(3, 1);
	std::vector<Tensor> hidden = biased(hidden_gates, hidden_bias).chunk(3, 1);
	Tensor reset = at::sigmoid(in[0].add(hidden[0]));
	Tensor update = at::sigmoid(in[1].add(hidden[1]));
	Tensor fresh = at::tanh(reset.mul(hidden[2]).add_(in[2]));

	return { hx.sub(fresh).mul_(update).add_(fresh),
		 at::cat({ reset, update, fresh, hx, hidden[2] }, 1) };
}

/* Returns the derivatives of the input's gates, hidden gates, state and both biases. */
Five gru_cell_backward(const Tensor &grad_hy, const Tensor &workspace, bool has_bias)
{
	std::vector<Tensor> part = workspace.chunk(5, 1);
	const Tensor &reset = part[0], &update = part[1], &fresh = part[2];
	Tensor kept = grad_hy.mul(update);
	Tensor grad_fresh = grad_hy.sub(kept).mul_(slope_of_tanh(fresh));
	Tensor grad_update = grad_hy.mul(part[3].sub(fresh)).mul_(slope_of_sigmoid(update));
	Tensor grad_reset = grad_fresh.mul(part[4]).mul_(slope_of_sigmoid(reset));
	Tensor in = at::cat({ grad_reset, grad_update, grad_fresh }, 1);
	Tensor hidden = at::cat({ grad_reset, grad_update, grad_fresh.mul(reset) }, 1);

	return { in, hidden, kept, has_bias ? at::sum(in, 0) : Tensor(),
		 has_bias ? at::sum(hidden, 0) : Tensor() };
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
	m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
	m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
	m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

} // namespace torch_spyre
