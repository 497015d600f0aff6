// SPDX-License-Identifier: MIT
/* The largest or smallest elements along a dimension, or all of them in order, and their places. */
#include "search.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/argsort_ops.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/topk_ops.h>

#include "bounds.h"

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

/* Copies results to the tensors of out=. */
std::tuple<Tensor &, Tensor &> give_both(const Tensor &v, const Tensor &p, Tensor &values,
					 Tensor &places)
{
	at::native::resize_output(values, v.sizes());
	at::native::resize_output(places, p.sizes());
	torch_spyre::copy(values, v, true);
	torch_spyre::copy(places, p, true);
	return { values, places };
}

std::tuple<Tensor &, Tensor &> topk_out(const Tensor &input, int64_t k, int64_t dim, bool largest,
					bool sorted, Tensor &values, Tensor &places)
{
	Tensor v, p;

	if (!run(input, k, dim, largest, v, p))
		return on_cpu<at::_ops::topk_values>(input, k, dim, largest, sorted, values,
						     places);
	return give_both(v, p, values, places);
}

/*
 * Sorting is a search for as many elements as there are, which keeps the order of equal ones.
 * Searches compare in fp32, where not all integers of 32 bits differ, so those are sorted by
 * their lower half and then by their upper half.
 */
constexpr int64_t kMostSorted = 16384;	/* the time grows with the square of the size */
constexpr int64_t kMostExact = 1 << 24;	/* integers that fp32 has without gaps */

const char kSize[] = "k", kLargest[] = "largest";

void build_integer_order(Graph &graph, const Call &call)
{
	Graph::Tensor x = graph.argument(0);
	spyre_sdsc_attribute k = call.attribute[0], largest = call.attribute[1];
	auto places = [&](Graph::Tensor half) {
		return graph.add("topk_indices", { graph.cast(half, SPYRE_FORMAT_IEEE_FP32) },
				 { k, { "dim", -1 }, largest });
	};
	Graph::Tensor lower = graph.add("bitwise_and", { x }, { { "other", 0xffff } });
	Graph::Tensor upper = graph.add("right_shift", { x }, { { "other", 16 } });
	Graph::Tensor first = places(lower);
	Graph::Tensor second = places(graph.add("gather", { upper, first }, { { "dim", -1 } }));

	graph.add("gather", { first, second }, { { "dim", -1 } }, graph.output());
}

const Program kIntegerOrder = { "aten::sort", "topk_indices", build_integer_order, false };

/* The places of a row's integers in their order; the last dimension has several elements. */
bool order_integers(const Tensor &rows, bool descending, Tensor &places)
{
	Call call(kIntegerOrder);
	Tensor held;

	take_searched(call, rows, rows.dim() - 1, &held);
	places = empty(rows.sizes(), at::kLong, rows.device().index());
	if (!operand_of(places, &call.add_operand()))
		return false;
	call.add(kSize, static_cast<double>(rows.size(-1)));
	call.add(kLargest, descending);
	if (!launch_or_refuse(call, rows.device().index()))
		return false;
	wrote(places, false, { 0, rows.size(-1) - 1 });
	return true;
}

/* True if a search, which compares in fp32, tells apart all numbers that @t can have. */
bool is_exact_in_fp32(const Tensor &t)
{
	Range range = range_of(t);

	return t.scalar_type() == at::kBool ||
	       (range.least >= -kMostExact && range.most <= kMostExact);
}

bool run_sort(const Tensor &input, int64_t dim, bool descending, Tensor &values, Tensor &places)
{
	at::ScalarType dtype = input.scalar_type();
	bool integers = dtype == at::kInt || dtype == at::kLong || dtype == at::kBool;
	Tensor keys;

	if ((!integers && !is_float(dtype)) || !input.dim() || !input.numel() ||
	    input.dim() > SPYRE_MAX_RANK)
		return false;
	dim = at::maybe_wrap_dim(dim, input.dim());
	if (input.size(dim) > kMostSorted)
		return false;
	if (!integers)
		return run(input, input.size(dim), dim, descending, values, places);
	if (input.size(dim) == 1 || is_exact_in_fp32(input)) {
		if (!run(input.to(at::kFloat), input.size(dim), dim, descending, keys, places))
			return false;
	} else {
		if (!order_integers(input.transpose(dim, -1), descending, places))
			return false;
		places = places.transpose(dim, -1);
	}
	values = at::gather(input, dim, places);
	return true;
}

std::tuple<Tensor, Tensor> sort(const Tensor &input, std::optional<bool> stable, int64_t dim,
				bool descending)
{
	Tensor values, places;

	if (run_sort(input, dim, descending, values, places))
		return { values, places };
	return on_cpu<at::_ops::sort_stable>(input, stable, dim, descending);
}

std::tuple<Tensor &, Tensor &> sort_out(const Tensor &input, std::optional<bool> stable,
					int64_t dim, bool descending, Tensor &values,
					Tensor &places)
{
	Tensor v, p;

	if (values.scalar_type() != input.scalar_type() || places.scalar_type() != at::kLong ||
	    !run_sort(input, dim, descending, v, p))
		return on_cpu<at::_ops::sort_values_stable>(input, stable, dim, descending, values,
							    places);
	return give_both(v, p, values, places);
}

Tensor argsort(const Tensor &input, bool stable, int64_t dim, bool descending)
{
	return std::get<1>(torch_spyre::sort(input, stable, dim, descending));
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("topk", TORCH_FN(topk));
	m.impl("topk.values", TORCH_FN(topk_out));
	m.impl("sort.stable", TORCH_FN(torch_spyre::sort));
	m.impl("sort.values_stable", TORCH_FN(sort_out));
	m.impl("argsort.stable", TORCH_FN(torch_spyre::argsort));
}

} // namespace torch_spyre
