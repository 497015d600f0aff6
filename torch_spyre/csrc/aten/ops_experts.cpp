// SPDX-License-Identifier: MIT
/*
 * Mixtures of experts: rows that are sorted by their expert, times the weights of that expert. The
 * ends of the groups of rows stay on the card: it computes which rows are in which tile, and which
 * expert each tile has, so that the host does not wait and weights are not copied.
 */
#include "kernels.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/_grouped_mm_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/histc_ops.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include "product.h"

namespace torch_spyre {

namespace {

constexpr int64_t kMostCounted = 65536;		/* ranks of a search, which counts from 0 on */
constexpr int64_t kMostCompared = 1 << 25;	/* elements of a mask of groups and rows */

const char kFirst[] = "other", kShift[] = "shift", kMost[] = "most";

/*
 * The numbers from 0 on, as long as the output: the places of equal elements in their order. The
 * zeros do not depend on what the output's memory holds.
 */
Graph::Tensor count_up(Graph &graph, const Call &call)
{
	Graph::Tensor zeros = graph.add("ne", { graph.output(), graph.output() });
	double size = static_cast<double>(call.output().desc.size[0]);

	return graph.add("topk_indices", { graph.cast(zeros, SPYRE_FORMAT_IEEE_FP32) },
			 { { "k", size }, { "dim", -1 }, { "largest", 1 } });
}

void build_range(Graph &graph, const Call &call)
{
	graph.add("identity", { count_up(graph, call) }, {}, graph.output());
}

/* Counts the elements of the input, a column, that equal each number from the first on. */
void build_count(Graph &graph, const Call &call)
{
	Graph::Tensor number = graph.add("add", { count_up(graph, call) }, { call.attribute[0] });
	Graph::Tensor equal = graph.add("eq", { number, graph.argument(0) });

	graph.add("sum", { equal }, { { "dim", 0 } }, graph.output());
}

/*
 * Comparisons begin with the operand that has its sticks along the numbers, which become those of
 * the result; the ends of groups are columns. A tile has 2^shift rows. The tiles of expert e begin
 * at tile (s >> shift) + e, where s is its first row: that leaves enough tiles for the experts
 * before it, whatever their numbers of rows are.
 */
struct Route {
	Graph &graph;
	double shift = 0, most = 0;

	Route(Graph &graph, const Call &call) : graph(graph)
	{
		for (unsigned i = 0; i < call.num_attributes; i++)
			(call.attribute[i].name == kShift ? shift : most) = call.attribute[i].value;
	}
	Graph::Tensor op(const char *name, Graph::Tensor x, double other) const
	{
		return graph.add(name, { x }, { { "other", other } });
	}
	Graph::Tensor op(const char *name, Graph::Tensor x, Graph::Tensor y) const
	{
		return graph.add(name, { x, y });
	}
	Graph::Tensor along_groups(const char *name, Graph::Tensor x) const
	{
		return graph.add(name, { x }, { { "dim", 0 } });
	}
	/* The first tile behind each group: a column. */
	Graph::Tensor ends() const
	{
		Graph::Tensor tile = op("right_shift", graph.argument(0), shift);

		return op("add", op("add", tile, graph.argument(1)), 1.0);
	}
	/* The first row of a group minus that of its tiles, of @expert that begins at @start. */
	Graph::Tensor offset(Graph::Tensor start, Graph::Tensor expert) const
	{
		Graph::Tensor tile = op("add", op("right_shift", start, shift), expert);

		return op("sub", start, op("left_shift", tile, shift));
	}
	void limit(Graph::Tensor x) const
	{
		graph.add("clip", { x }, { { "min", 0 }, { "max", most } }, graph.output());
	}
};

/* The expert of each tile. */
void build_tile_expert(Graph &graph, const Call &call)
{
	Route route(graph, call);
	Graph::Tensor before = route.op("ge", count_up(graph, call), route.ends());

	route.limit(route.along_groups("sum", before));
}

/* The row of the input for each row of the tiles. */
void build_tile_row(Graph &graph, const Call &call)
{
	Route route(graph, call);
	Graph::Tensor place = count_up(graph, call);
	Graph::Tensor tile = route.op("right_shift", place, route.shift);
	Graph::Tensor before = route.op("ge", tile, route.ends());
	Graph::Tensor expert = route.along_groups("sum", before);
	Graph::Tensor start = route.along_groups("amax", route.op("mul", before,
								  graph.argument(0)));

	route.limit(route.op("add", route.offset(start, expert), place));
}

/* The row of the tiles for each row of the output. */
void build_place(Graph &graph, const Call &call)
{
	Route route(graph, call);
	Graph::Tensor row = count_up(graph, call);
	Graph::Tensor before = route.op("ge", row, graph.argument(0));
	Graph::Tensor expert = route.along_groups("sum", before);
	Graph::Tensor start = route.along_groups("amax", route.op("mul", before,
								  graph.argument(0)));

	route.limit(route.op("sub", row, route.offset(start, expert)));
}

/* The expert of each row. */
void build_row_expert(Graph &graph, const Call &call)
{
	Route route(graph, call);
	Graph::Tensor before = route.op("ge", count_up(graph, call), graph.argument(0));

	route.limit(route.along_groups("sum", before));
}

void build_tiles(Graph &graph, const Call &)
{
	graph.add("index_matmul", { graph.argument(0), graph.argument(1), graph.argument(2) }, {},
		  graph.output());
}

const Program kRange = { "aten::_grouped_mm", "topk_indices", build_range, false };
const Program kCount = { "aten::histc", "eq", build_count, false };
const Program kTileExpert = { "aten::_grouped_mm", "ge", build_tile_expert, false };
const Program kTileRow = { "aten::_grouped_mm", "ge", build_tile_row, false };
const Program kPlace = { "aten::_grouped_mm", "ge", build_place, false };
const Program kRowExpert = { "aten::_grouped_mm", "ge", build_row_expert, false };
const Program kTiles = { "aten::_grouped_mm", "index_matmul", build_tiles, false };

bool finish(Call &call, const Tensor &out, Range range = {})
{
	if (!operand_of(out, &call.add_operand()) ||
	    !launch_or_refuse(call, out.device().index()))
		return false;
	wrote(out, false, range);
	return true;
}

/* Groups of rows that end at the elements of a vector. */
struct Groups {
	Tensor ends, numbers;	/* columns */
	int64_t shift;

	/* A vector of @size numbers up to @most that @program computes. */
	bool map(const Program &program, int64_t size, int64_t most, Tensor *out) const
	{
		Tensor held[2];
		Call call(program);

		take_complete(call, ends, &held[0]);
		if (numbers.defined())
			take_complete(call, numbers, &held[1]);
		call.add(kShift, static_cast<double>(shift));
		call.add(kMost, static_cast<double>(most));
		*out = empty({ size }, at::kInt, ends.device().index());
		return finish(call, *out);
	}
};

/* Each tile times the weights of its expert. */
bool multiply(const Tensor &tiles, const Tensor &weights, const Tensor &expert, Tensor *result)
{
	Call call(kTiles);
	Tensor held[3];

	take_factor(tiles, &call.add_operand(), &held[0]);
	take_factor(weights, &call.add_operand(), &held[1]);
	take_complete(call, expert, &held[2]);
	*result = empty({ tiles.size(0) * tiles.size(1), weights.size(2) }, tiles.scalar_type(),
			tiles.device().index());
	return finish(call, result->view({ tiles.size(0), tiles.size(1), weights.size(2) }));
}

/* Computes the most tiles that there can be; rows of the last ones are not used. */
bool by_tiles(Groups &groups, const Tensor &rows, const Tensor &weights, Tensor *result)
{
	int64_t experts = weights.size(0), tile = int64_t(1) << groups.shift;
	int64_t tiles = rows.size(0) / tile + experts;
	Tensor expert, source, place, made;
	Call call(kRange);

	groups.numbers = empty({ experts }, at::kInt, rows.device().index());
	if (!finish(call, groups.numbers))
		return false;
	groups.numbers = groups.numbers.unsqueeze(1);
	if (!groups.map(kTileExpert, tiles, experts - 1, &expert) ||
	    !groups.map(kTileRow, tiles * tile, rows.size(0) - 1, &source))
		return false;
	groups.numbers.reset();

	Tensor taken = at::index_select(rows, 0, source).view({ tiles, tile, rows.size(1) });

	if (!groups.map(kPlace, rows.size(0), tiles * tile - 1, &place) ||
	    !multiply(taken, weights, expert, &made))
		return false;
	*result = at::index_select(made, 0, place);
	return true;
}

bool by_rows(const Groups &groups, const Tensor &rows, const Tensor &weights, Tensor *result)
{
	Tensor expert;

	return groups.map(kRowExpert, rows.size(0), weights.size(0) - 1, &expert) &&
	       multiply(rows.unsqueeze(1), weights, expert, result);
}

/* The tile that fits groups of average size, from the passes of the matrix unit up to a stick. */
int64_t tile_shift(int64_t rows, int64_t groups)
{
	int64_t shift = 3;

	while (shift < 6 && groups << shift < rows)
		shift++;
	return shift;
}

bool is_routed(const Tensor &rows, const Tensor &weights, const std::optional<Tensor> &ends)
{
	return rows.dim() == 2 && weights.dim() == 3 && ends && ends->defined() &&
	       ends->dim() == 1 && ends->scalar_type() == at::kInt &&
	       ends->device() == rows.device() && weights.device() == rows.device() &&
	       rows.scalar_type() == weights.scalar_type() && is_float(rows.scalar_type()) &&
	       ends->size(0) == weights.size(0) && rows.size(1) == weights.size(1) &&
	       rows.numel() && weights.numel() && rows.size(0) > 1 && weights.size(0) > 1;
}

bool grouped(const Tensor &rows, const Tensor &weights, const Tensor &ends, Tensor *result)
{
	int64_t count = rows.size(0), experts = weights.size(0);
	int64_t shift = tile_shift(count, experts), tiles = (count >> shift) + experts;
	Groups groups{ ends.unsqueeze(1), Tensor(), shift };

	if (tiles << shift > kMostCounted || experts * (tiles << shift) > kMostCompared)
		return false;
	return count <= tiles ? by_rows(groups, rows, weights, result) :
	       by_tiles(groups, rows, weights, result);
}

Tensor grouped_mm(const Tensor &rows, const Tensor &weights, const std::optional<Tensor> &ends,
		  const std::optional<Tensor> &bias, std::optional<at::ScalarType> dtype)
{
	Tensor result;

	if (is_routed(rows, weights, ends) && !(bias && bias->defined()) &&
	    dtype.value_or(rows.scalar_type()) == rows.scalar_type() &&
	    grouped(rows, weights, *ends, &result))
		return result;
	return at::compositeexplicitautograd::_grouped_mm(rows, weights, ends, bias, dtype);
}

/* True if each of @bins bins from @least to @most holds one integer. */
bool one_each(int64_t bins, const at::Scalar &least, const at::Scalar &most)
{
	return bins > 1 && bins <= kMostCounted &&
	       least.isIntegral(false) && fits_integer(least.toDouble()) &&
	       most.isIntegral(false) && fits_integer(most.toDouble()) &&
	       most.to<int64_t>() - least.to<int64_t>() == bins - 1;
}

/* Counts integers too, as other devices do; the CPU has it for floats only. */
Tensor histc(const Tensor &input, int64_t bins, const at::Scalar &least, const at::Scalar &most)
{
	at::ScalarType dtype = input.scalar_type();
	Tensor held, result;

	if (input.is_floating_point())
		return on_cpu<at::_ops::histc>(input, bins, least, most);
	if ((dtype == at::kInt || dtype == at::kLong) && input.numel() &&
	    one_each(bins, least, most) && input.numel() <= kMostCompared / bins) {
		Call call(kCount);

		take_complete(call, input.reshape({ -1, 1 }), &held);
		call.add(kFirst, least.toDouble());
		result = empty({ bins }, dtype, input.device().index());
		if (finish(call, result, { 0, input.numel() }))
			return result;
	}
	return on_cpu<at::_ops::histc>(input.to(at::kFloat), bins, least, most).to(dtype);
}

Tensor &histc_out(const Tensor &input, int64_t bins, const at::Scalar &least,
		  const at::Scalar &most, Tensor &out)
{
	if (input.is_floating_point())
		return on_cpu<at::_ops::histc_out>(input, bins, least, most, out);

	Tensor result = torch_spyre::histc(input, bins, least, most);

	at::native::resize_output(out, result.sizes());
	return out.copy_(result);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("_grouped_mm", TORCH_FN(grouped_mm));
	m.impl("histc", TORCH_FN(histc));
	m.impl("histc.out", TORCH_FN(histc_out));
}

} // namespace torch_spyre
