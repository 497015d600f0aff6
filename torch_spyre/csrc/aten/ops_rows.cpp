// SPDX-License-Identifier: MIT
/* Rows and elements at indices, read by the card: see rows.h. */
#include "rows.h"

#include "bounds.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/remainder.h>

namespace torch_spyre {

namespace {

bool is_integer(const Tensor &index)
{
	return index.scalar_type() == at::kLong || index.scalar_type() == at::kInt;
}

/* Indices of the host need no fault of the card: an error names the first wrong one. */
void check_on_host(const Tensor &index, int64_t dim, int64_t size, const char *what)
{
	Tensor host = index.to(at::kLong).contiguous();
	const int64_t *place = host.const_data_ptr<int64_t>();

	for (int64_t i = 0; i < host.numel(); i++)
		TORCH_CHECK_INDEX(place[i] >= -size && place[i] < size, what, ": index ", place[i],
				  " is out of bounds for dimension ", dim, " with size ", size);
}

void build_take(Graph &graph, const Call &call)
{
	Graph::Tensor input[] = { graph.argument(0), graph.argument(1) };

	graph.add(call.program->op, input, 2, call.attribute, call.num_attributes,
		  graph.output());
}

const Program kEmbedding = { "aten::embedding", "embedding", build_take, false };
const Program kSelect = { "aten::index_select", "index_select", build_take, false };
const Program kIndex = { "aten::index", "index_select", build_take, false };
const Program kGather = { "aten::gather", "gather", build_take, false };

/* Makes @result of @size; indices below 0 count from the end with @wrap. */
bool take(const Program &program, const Tensor &table, int64_t dim, const Tensor &index, bool wrap,
	  at::IntArrayRef size, Tensor &result)
{
	Call call(program);
	Tensor held[2];

	if (size.size() > SPYRE_MAX_RANK)
		return false;
	Tensor made = empty(size, table.scalar_type(), table.device().index());
	if (!made.numel()) {
		result = made;
		return true;
	}
	take_complete(call, table, &held[0]);
	take_complete(call, index, &held[1]);
	if (!operand_of(made, &call.add_operand()))
		return false;
	call.add("dim", static_cast<double>(dim));
	call.add("wrap", wrap);
	if (!launch_or_refuse(call, table.device().index()))
		return false;
	wrote(made, false, range_of(table));
	result = made;
	return true;
}

/* Gives a result to the caller's tensor, which the CPU would write while it reads @table. */
Tensor &into(Tensor &out, const Tensor &table, const Tensor &result)
{
	at::assert_no_overlap(out, table);
	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
	return out;
}

/*
 * Rows of a table whose sticks are along its rows, as those of a Linear that shares its weight with
 * the embedding. The card moves whole sticks: it takes the tile of @lanes rows that contains each
 * row, gives it sticks along the columns, and takes the row. The whole table has more tiles.
 */
bool take_from_tiles(const Tensor &weight, const Tensor &indices, Tensor &result)
{
	int64_t lanes = SPYRE_STICK / static_cast<int64_t>(weight.element_size());
	int64_t rows = weight.size(0), width = weight.size(1), count = indices.numel();
	Tensor tiles, place;
	Operand o;

	if (!operand_of(weight, &o) || stick_dim(o.desc) != 0 || rows % lanes || width == 1 ||
	    !weight.is_contiguous() || !count || count >= rows / lanes)
		return false;

	Tensor flat = indices.reshape({ count }).to(at::kInt);
	Tensor tile = at::floor_divide(flat, lanes);

	place = at::bitwise_and(flat, lanes - 1);
	if (count > 1)
		place = at::add(place, at::arange(0, count * lanes, lanes, place.options()));
	if (!take(kEmbedding, weight.view({ rows / lanes, lanes, width }), 0, tile, false,
		  { count, lanes, width }, tiles) ||
	    !take(kEmbedding, tiles.view({ count * lanes, width }), 0, place, false,
		  { count, width }, result))
		return false;
	result = result.view(indexed_size(weight, 0, indices));
	return true;
}

Tensor embedding(const Tensor &weight, const Tensor &indices, int64_t padding, bool scale,
		 bool sparse)
{
	Tensor result;

	if (weight.dim() == 2 && is_indexable(weight, 0, indices) &&
	    (take_from_tiles(weight, indices, result) ||
	     take(kEmbedding, weight, 0, indices, false, indexed_size(weight, 0, indices), result)))
		return result;
	return on_cpu<at::_ops::embedding>(weight, indices, padding, scale, sparse);
}

bool run_select(const Tensor &table, int64_t dim, const Tensor &index, Tensor &result)
{
	if (!table.dim() || index.dim() > 1)
		return false;
	dim = at::maybe_wrap_dim(dim, table.dim());
	if (!is_indexable(table, dim, index))
		return false;

	Tensor list = index.dim() ? index : index.unsqueeze(0);

	return take(kSelect, table, dim, list, false, indexed_size(table, dim, list), result);
}

Tensor index_select(const Tensor &table, int64_t dim, const Tensor &index)
{
	Tensor result;

	return run_select(table, dim, index, result) ? result :
	       on_cpu<at::_ops::index_select>(table, dim, index);
}

Tensor &index_select_out(const Tensor &table, int64_t dim, const Tensor &index, Tensor &out)
{
	Tensor result;

	if (out.scalar_type() == table.scalar_type() && run_select(table, dim, index, result))
		return into(out, table, result);
	return on_cpu<at::_ops::index_select_out>(table, dim, index, out);
}

using Indices = c10::List<std::optional<Tensor>>;

/* Indices of a dimension of @size that are known to be within it, made positive. */
bool within(const Tensor &index, int64_t size, Tensor *positive)
{
	Range range = range_of(index);

	if (range.least < -size || range.most >= size)
		return false;
	*positive = range.least < 0 ? at::remainder(index, size) : index;
	return true;
}

/*
 * Several indices of adjacent dimensions, which become one dimension with one index. A sum of wrong
 * indices could still be within the table, so all of them are known to be right.
 */
bool run_joint(const Tensor &table, const Indices &indices, Tensor &result)
{
	int64_t first = -1, count = static_cast<int64_t>(indices.size());
	Tensor place, flat = table;

	if (count > table.dim() || !table.is_privateuseone())
		return false;
	for (int64_t d = 0; d < count; d++) {
		std::optional<Tensor> given = indices.get(d);
		Tensor index;

		if (!given || !given->defined()) {
			if (first >= 0)
				return false;
			continue;
		}
		if (given->device() != table.device() || !is_integer(*given) ||
		    !within(*given, table.size(d), &index))
			return false;
		if (first < 0) {
			first = d;
			place = index.to(at::kLong);
			continue;
		}
		place = at::add(at::mul(place, table.size(d)), index);
		flat = flat.flatten(first, first + 1);
	}
	return first >= 0 && flat.size(first) <= INT32_MAX && is_indexable(flat, first, place) &&
	       take(kIndex, flat, first, place, false, indexed_size(flat, first, place), result);
}

bool run_index(const Tensor &table, const Indices &indices, Tensor &result)
{
	OneIndex one;

	if (!only_index(table, indices, "index", &one))
		return run_joint(table, indices, result);
	return take(kIndex, table, one.dim, one.index, true,
		    indexed_size(table, one.dim, one.index), result);
}

Tensor index(const Tensor &table, const Indices &indices)
{
	Tensor result;

	return run_index(table, indices, result) ? result :
	       on_cpu<at::_ops::index_Tensor>(table, indices);
}

Tensor &index_out(const Tensor &table, const Indices &indices, Tensor &out)
{
	Tensor result;

	if (out.scalar_type() == table.scalar_type() && run_index(table, indices, result))
		return into(out, table, result);
	return on_cpu<at::_ops::index_Tensor_out>(table, indices, out);
}

bool run_gather(const Tensor &table, int64_t dim, const Tensor &index, Tensor &result)
{
	if (!table.dim() || index.dim() != table.dim())
		return false;
	dim = at::maybe_wrap_dim(dim, table.dim());
	for (int64_t d = 0; d < table.dim(); d++)
		if (d != dim && index.size(d) > table.size(d))
			return false;
	return is_indexable(table, dim, index) &&
	       take(kGather, table, dim, index, false, index.sizes(), result);
}

Tensor gather(const Tensor &table, int64_t dim, const Tensor &index, bool sparse)
{
	Tensor result;

	return run_gather(table, dim, index, result) ? result :
	       on_cpu<at::_ops::gather>(table, dim, index, sparse);
}

Tensor &gather_out(const Tensor &table, int64_t dim, const Tensor &index, bool sparse, Tensor &out)
{
	Tensor result;

	if (out.scalar_type() == table.scalar_type() && run_gather(table, dim, index, result))
		return into(out, table, result);
	return on_cpu<at::_ops::gather_out>(table, dim, index, sparse, out);
}

} // namespace

bool is_indexable(const Tensor &table, int64_t dim, const Tensor &index)
{
	return table.is_privateuseone() && index.device() == table.device() && is_integer(index) &&
	       !table.is_complex() && (table.size(dim) || !index.numel());
}

bool only_index(const Tensor &table, const c10::List<std::optional<Tensor>> &indices,
		const char *what, OneIndex *one)
{
	Tensor found;

	if (static_cast<int64_t>(indices.size()) > table.dim() || !table.is_privateuseone())
		return false;
	for (size_t i = 0; i < indices.size(); i++) {
		std::optional<Tensor> given = indices.get(i);

		if (!given || !given->defined())
			continue;
		if (found.defined() || !is_integer(*given))
			return false;
		found = *given;
		one->dim = static_cast<int64_t>(i);
	}
	if (!found.defined())
		return false;
	if (found.is_cpu()) {
		check_on_host(found, one->dim, table.size(one->dim), what);
		found = found.to(table.device());
	}
	one->index = found;
	return is_indexable(table, one->dim, found);
}

c10::DimVector indexed_size(const Tensor &table, int64_t dim, const Tensor &index)
{
	at::IntArrayRef old = table.sizes(), added = index.sizes();
	c10::DimVector size(old.begin(), old.begin() + dim);

	size.append(added.begin(), added.end());
	size.append(old.begin() + dim + 1, old.end());
	return size;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("embedding", TORCH_FN(embedding));
	m.impl("index_select", TORCH_FN(index_select));
	m.impl("index_select.out", TORCH_FN(index_select_out));
	m.impl("index.Tensor", TORCH_FN(index));
	m.impl("index.Tensor_out", TORCH_FN(index_out));
	m.impl("gather", TORCH_FN(gather));
	m.impl("gather.out", TORCH_FN(gather_out));
}

} // namespace torch_spyre
