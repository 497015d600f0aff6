// SPDX-License-Identifier: MIT
/* Rows and elements at indices, written by the card without a copy of the indices to the host. */
#include "rows.h"

#include "bounds.h"

#include <mutex>

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_copy_ops.h>
#include <ATen/ops/scatter_ops.h>

namespace torch_spyre {

namespace {

/* The output is the table itself. */
void build_put(Graph &graph, const Call &call)
{
	Graph::Tensor input[] = { graph.output(), graph.argument(0), graph.argument(1) };

	graph.add(call.program->op, input, 3, call.attribute, call.num_attributes,
		  graph.output());
}

const Program kIndexCopy = { "aten::index_copy_", "index_put", build_put, false };
const Program kIndexPut = { "aten::index_put_", "index_put", build_put, false };
const Program kScatter = { "aten::scatter_", "scatter", build_put, false };

/* Writes @source to a table that is an operand by itself. */
bool put_directly(const Program &program, const Tensor &table, int64_t dim, const Tensor &index,
		  bool wrap, const Tensor &source)
{
	Call call(program);
	Tensor held[2];

	take_complete(call, index, &held[0]);
	take_complete(call, source, &held[1]);
	Operand &out = call.add_operand();
	if (!operand_of(table, &out) || !is_writable(table, out))
		return false;
	call.add("dim", static_cast<double>(dim));
	call.add("wrap", wrap);
	if (!launch_or_refuse(call, table.device().index()))
		return false;
	wrote(table, false, united(range_of(table), range_of(source)));
	return true;
}

/* A table that no kernel can write in place, such as a slice with a step, is copied. */
bool put(const Program &program, Tensor &table, int64_t dim, const Tensor &index, bool wrap,
	 const Tensor &source)
{
	Operand operand;

	at::assert_no_internal_overlap(table);
	at::assert_no_overlap(table, index);
	at::assert_no_overlap(table, source);
	if (!source.numel())
		return true;
	if (operand_of(table, &operand) && is_writable(table, operand))
		return put_directly(program, table, dim, index, wrap, source);

	Tensor dense = dense_copy(table);

	if (!put_directly(program, dense, dim, index, wrap, source))
		return false;
	torch_spyre::copy(table, dense, true);
	return true;
}

/* index_copy_: @source has the rows of a list of indices, in the dtype of @self. */
bool run_copy(Tensor &self, int64_t dim, const Tensor &index, const Tensor &source)
{
	if (!self.dim() || source.dim() != self.dim() || self.dtype() != source.dtype() ||
	    index.dim() > 1 || index.scalar_type() != at::kLong ||
	    source.device() != self.device())
		return false;
	dim = at::maybe_wrap_dim(dim, self.dim());
	for (int64_t d = 0; d < self.dim(); d++)
		if (source.size(d) != (d == dim ? index.numel() : self.size(d)))
			return false;
	return is_indexable(self, dim, index) &&
	       put(kIndexCopy, self, dim, index.dim() ? index : index.unsqueeze(0), false, source);
}

Tensor &index_copy_in_place(Tensor &self, int64_t dim, const Tensor &index, const Tensor &source)
{
	return run_copy(self, dim, index, source) ? self :
	       on_cpu<at::_ops::index_copy_>(self, dim, index, source);
}

Tensor index_copy(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source)
{
	if (!self.is_privateuseone())
		return on_cpu<at::_ops::index_copy>(self, dim, index, source);

	Tensor result = self.clone();

	return run_copy(result, dim, index, source) ? result :
	       on_cpu<at::_ops::index_copy>(self, dim, index, source);
}

/* A list of indices, so that of equal ones the last in the order of the indices remains. */
bool put_list(Tensor &self, const OneIndex &one, const Tensor &values)
{
	c10::DimVector size = indexed_size(self, one.dim, one.index);

	if (!at::is_expandable_to(values.sizes(), size) || size.size() > SPYRE_MAX_RANK)
		return false;

	at::assert_no_overlap(self, values);
	Tensor source = values.expand(size), list = one.index.reshape({ -1 });

	if (one.index.dim() != 1)
		source = source.reshape(indexed_size(self, one.dim, list));
	return put(kIndexPut, self, one.dim, list, true, source);
}

/*
 * Makes PyTorch add one element after the other in index_put_, which it does in parallel, and in
 * any order, where its global setting does not ask for the same bits each time.
 */
class InOrder {
public:
	InOrder()
	{
		std::lock_guard<std::mutex> lock(mutex);
		at::Context &context = at::globalContext();

		if (users++)
			return;
		before = context.deterministicAlgorithms();
		warned = context.deterministicAlgorithmsWarnOnly();
		context.setDeterministicAlgorithms(true, true);
	}
	InOrder(const InOrder &) = delete;
	InOrder &operator=(const InOrder &) = delete;
	~InOrder()
	{
		std::lock_guard<std::mutex> lock(mutex);

		if (!--users)
			at::globalContext().setDeterministicAlgorithms(before, warned);
	}

private:
	static inline std::mutex mutex;
	static inline unsigned users;
	static inline bool before, warned;
};

using Indices = c10::List<std::optional<Tensor>>;

Tensor &index_put(Tensor &self, const Indices &indices, const Tensor &values, bool accumulate,
		  bool unsafe)
{
	OneIndex one;

	/* PyTorch warns of an expanded tensor, which other operations refuse. */
	if (!accumulate && self.is_privateuseone() && self.dtype() == values.dtype() &&
	    at::has_internal_overlap(self) != at::MemOverlap::Yes &&
	    (values.device() == self.device() || (values.is_cpu() && !values.dim())) &&
	    only_index(self, indices, "index_put_", &one) &&
	    put_list(self, one, values.to(self.device())))
		return self;
	if (!accumulate)
		return on_cpu<at::_ops::_index_put_impl_>(self, indices, values, false, unsafe);

	InOrder in_order;

	return on_cpu<at::_ops::_index_put_impl_>(self, indices, values, true, unsafe);
}

/* True if the indices fit both tensors, along the other dimensions also the table. */
bool fits(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &source)
{
	if (!self.dim() || index.dim() != self.dim() || source.dim() != self.dim())
		return false;
	for (int64_t d = 0; d < self.dim(); d++)
		if (index.size(d) > source.size(d) || (d != dim && index.size(d) > self.size(d)))
			return false;
	return true;
}

bool run_scatter(Tensor &self, int64_t dim, const Tensor &index, const Tensor &source)
{
	Tensor part = source;

	if (!self.dim())
		return false;
	dim = at::maybe_wrap_dim(dim, self.dim());
	if (!fits(self, dim, index, source) || self.dtype() != source.dtype() ||
	    source.device() != self.device() || !is_indexable(self, dim, index))
		return false;
	for (int64_t d = 0; d < self.dim(); d++)
		part = part.narrow(d, 0, index.size(d));
	return put(kScatter, self, dim, index, false, part);
}

bool run_scatter_value(Tensor &self, int64_t dim, const Tensor &index, const at::Scalar &value)
{
	if (!self.dim() || index.dim() != self.dim() || value.isComplex() ||
	    !self.is_privateuseone() || self.is_complex())
		return false;
	return run_scatter(self, dim, index, at::full({}, value, self.options())
				    .expand(index.sizes()));
}

/* The three forms of an operation that writes a copy, a tensor in place, or a copy in @out. */
template <auto run, class New, class InPlace, class Out, class Source> struct Scatter {
	static Tensor make(const Tensor &self, int64_t dim, const Tensor &index, Source source)
	{
		Tensor result = self.is_privateuseone() ? self.clone() : self;

		return result.is_privateuseone() && run(result, dim, index, source) ? result :
		       on_cpu<New>(self, dim, index, source);
	}
	static Tensor &in_place(Tensor &self, int64_t dim, const Tensor &index, Source source)
	{
		return run(self, dim, index, source) ? self :
		       on_cpu<InPlace>(self, dim, index, source);
	}
	static Tensor &into(const Tensor &self, int64_t dim, const Tensor &index, Source source,
			    Tensor &out)
	{
		if (out.scalar_type() != self.scalar_type())
			return on_cpu<Out>(self, dim, index, source, out);

		Tensor result = make(self, dim, index, source);

		at::native::resize_output(out, result.sizes());
		torch_spyre::copy(out, result, true);
		return out;
	}
	static void add(torch::Library &m)
	{
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<InPlace>(m, TORCH_FN(in_place));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("index_copy", TORCH_FN(index_copy));
	m.impl("index_copy_", TORCH_FN(index_copy_in_place));
	m.impl("_index_put_impl_", TORCH_FN(index_put));
	Scatter<run_scatter, at::_ops::scatter_src, at::_ops::scatter__src,
		at::_ops::scatter_src_out, const Tensor &>::add(m);
	Scatter<run_scatter_value, at::_ops::scatter_value, at::_ops::scatter__value,
		at::_ops::scatter_value_out, const at::Scalar &>::add(m);
}

} // namespace torch_spyre
