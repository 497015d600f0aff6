// SPDX-License-Identifier: MIT
/* The largest or smallest elements along a dimension, and their places. */
#include "search.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/topk_ops.h>

namespace torch_spyre {

namespace {

void build_topk(Graph &graph, const Call &call)
{
	Graph::Tensor input = graph.cast(graph.argument(0), call.format);

	graph.add(call.program->op, &input, 1, call.attribute, call.num_attributes, graph.output());
}

const Program kValues = { "aten::topk", "topk", build_topk, false };
const Program kPlaces = { "aten::topk", "topk_indices", build_topk, false };

/* Searches the last dimension; the results have sticks along it. */
bool search(const Program &program, const Tensor &input, int64_t k, bool largest,
	    at::ScalarType dtype, Tensor &result)
{
	c10::DimVector size(input.sizes());
	Call call(program);
	Tensor held;

	size.back() = k;
	take_searched(call, input, input.dim() - 1, &held);
	result = empty(size, dtype, input.device().index());
	if (!operand_of(result, &call.add_operand()))
		return false;
	call.format = device_format(input.scalar_type());
	call.add("k", static_cast<double>(k));
	call.add("dim", -1);
	call.add("largest", largest);
	if (!launch_or_refuse(call, input.device().index()))
		return false;
	wrote(result, false, { 0, input.size(-1) - 1 });
	return true;
}

bool run(const Tensor &input, int64_t k, int64_t dim, bool largest, Tensor &values, Tensor &places)
{
	at::ScalarType dtype = input.scalar_type();

	dim = at::maybe_wrap_dim(dim, input.dim());
	TORCH_CHECK(k >= 0 && k <= (input.dim() ? input.size(dim) : 1),
		    "selected index k out of range");
	if ((dtype != at::kHalf && dtype != at::kBFloat16 && dtype != at::kFloat) || !input.dim() ||
	    !input.numel() || !k || input.dim() > SPYRE_MAX_RANK)
		return false;
	Tensor rows = input.transpose(dim, -1);
	if (!search(kValues, rows, k, largest, dtype, values) ||
	    !search(kPlaces, rows, k, largest, at::kLong, places))
		return false;
	values = values.transpose(dim, -1);
	places = places.transpose(dim, -1);
	return true;
}

std::tuple<Tensor, Tensor> topk(const Tensor &input, int64_t k, int64_t dim, bool largest,
				bool sorted)
{
	Tensor values, places;

	if (run(input, k, dim, largest, values, places))
		return { values, places };
	return on_cpu<at::_ops::topk>(input, k, dim, largest, sorted);
}

std::tuple<Tensor &, Tensor &> topk_out(const Tensor &input, int64_t k, int64_t dim, bool largest,
					bool sorted, Tensor &values, Tensor &places)
{
	Tensor v, p;

	if (!run(input, k, dim, largest, v, p))
		return on_cpu<at::_ops::topk_values>(input, k, dim, largest, sorted, values,
						     places);
	at::native::resize_output(values, v.sizes());
	at::native::resize_output(places, p.sizes());
	torch_spyre::copy(values, v, true);
	torch_spyre::copy(places, p, true);
	return { values, places };
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("topk", TORCH_FN(topk));
	m.impl("topk.values", TORCH_FN(topk_out));
}

} // namespace torch_spyre
