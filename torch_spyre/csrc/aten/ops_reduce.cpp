// SPDX-License-Identifier: MIT
/*
 * Reductions. The card keeps reduced dimensions as dimensions of size 1; a
 * result without them is a view of that.
 */
#include "bounds.h"
#include "search.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/var_ops.h>

namespace torch_spyre {

namespace {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using MaybeDtype = std::optional<at::ScalarType>;

#define REDUCTION(ident, name, op) const Program ident = { "aten::" name, op, build_one, false }

REDUCTION(kSum, "sum", "sum");
REDUCTION(kMean, "mean", "mean");
REDUCTION(kAmax, "amax", "amax");
REDUCTION(kAmin, "amin", "amin");
REDUCTION(kVar, "var", "var");
REDUCTION(kStd, "std", "std");
REDUCTION(kVectorNorm, "linalg_vector_norm", "vector_norm");

/* Indices are integers for inputs of all dtypes. */
void build_arg(Graph &graph, const Call &call)
{
	Graph::Tensor input = graph.cast(graph.argument(0), call.format);

	graph.add(call.program->op, &input, 1, call.attribute, call.num_attributes, graph.output());
}

/* any() and all() are the largest and smallest of elements as 0 and 1. */
void build_truth(Graph &graph, const Call &call)
{
	Graph::Tensor truth = graph.add("ne", { graph.argument(0) }, { { "other", 0 } });

	graph.store(graph.add(call.program->op, &truth, 1, call.attribute, call.num_attributes));
}

/* Counts bools in fp32, which is exact up to 2^24. */
void build_count(Graph &graph, const Call &call)
{
	Graph::Tensor wide = graph.cast(graph.argument(0), SPYRE_FORMAT_IEEE_FP32);

	graph.store(graph.add("sum", &wide, 1, call.attribute, call.num_attributes));
}

const Program kAny = { "aten::any", "amax", build_truth, false };
const Program kAll = { "aten::all", "amin", build_truth, false };
const Program kCount = { "aten::sum", "sum", build_count, false };

const Program kArgmax = { "aten::argmax", "argmax", build_arg, false };
const Program kArgmin = { "aten::argmin", "argmin", build_arg, false };

struct Reduction {
	const Program &program;
	const Tensor &input;
	c10::SmallVector<int64_t, 8> dims;
	bool keep;
	at::ScalarType dtype;		/* of the result */
	spyre_sdsc_attribute extra[1] = {};
	unsigned num_extra = 0;
};

/* The dimensions as positive numbers; all if none are given. */
c10::SmallVector<int64_t, 8> wrapped_dims(const Tensor &input, OptionalIntArrayRef dims)
{
	c10::SmallVector<int64_t, 8> list;
	uint64_t seen = 0;

	if (!dims || dims->empty())
		for (int64_t d = 0; d < input.dim(); d++)
			list.push_back(d);
	else
		for (int64_t dim : *dims) {
			int64_t d = at::maybe_wrap_dim(dim, input.dim());

			TORCH_CHECK(!(seen >> d & 1), "dim ", d,
				    " appears multiple times in the list of dims");
			seen |= uint64_t(1) << d;
			if (input.dim())
				list.push_back(d);
		}
	return list;
}

/* Makes a result that has the input's sticks if their dimension is kept. */
Tensor kept_result(const Reduction &r, const Operand &in)
{
	int stick = stick_dim(in.desc);
	c10::DimVector size(r.input.sizes());
	int64_t last = r.input.dim() - 1;

	for (int64_t d : r.dims)
		size[d] = 1;
	/* One element per stick if the sticks are reduced, or for indices. */
	if (stick < 0 || size[stick] == 1 || r.program.build == build_arg)
		return size[last] == 1 ? empty(size, r.dtype, r.input.device().index()) :
					 empty_sparse(size, r.dtype, r.input.device().index());
	if (stick == last)
		return empty(size, r.dtype, r.input.device().index());
	std::swap(size[stick], size[last]);
	return empty(size, r.dtype, r.input.device().index()).transpose(stick, last);
}

Tensor squeezed(const Tensor &kept, at::ArrayRef<int64_t> dims)
{
	c10::DimVector size, stride;

	for (int64_t d = 0; d < kept.dim(); d++)
		if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
			size.push_back(kept.size(d));
			stride.push_back(kept.stride(d));
		}
	return kept.as_strided(size, stride);
}

/* The numbers that a result of int64 may have. */
Range range_of_result(const Reduction &r)
{
	int64_t count = 1;

	for (int64_t d : r.dims)
		count *= r.input.size(d);
	if (r.program.build == build_arg)
		return { 0, count - 1 };
	if (&r.program == &kAmax || &r.program == &kAmin)
		return range_of(r.input);
	return total_of(range_of(r.input), count);
}

/*
 * Extremes of int64 have 32 bits like their inputs. A sum wraps only if its dtype is int32; one of
 * int64 must be known to fit.
 */
bool reduces_integers(const Reduction &r)
{
	at::ScalarType dtype = r.input.scalar_type();

	if (&r.program == &kSum)
		return r.dtype == at::kInt ? dtype == at::kInt :
		       r.dtype == at::kLong && (dtype == at::kLong || dtype == at::kInt) &&
		       range_of_result(r).fits();
	return (&r.program == &kAmax || &r.program == &kAmin) && r.dtype == dtype &&
	       (dtype == at::kInt || dtype == at::kLong);
}

bool reduce(const Reduction &r, Tensor &result)
{
	Call call(r.program);
	Tensor held, kept;

	bool truth = r.program.build == build_truth || r.program.build == build_count;

	if (!(is_float(r.input.scalar_type()) || (truth && r.input.scalar_type() == at::kBool) ||
	      reduces_integers(r)) ||
	    !r.input.numel() || !r.input.dim() || r.input.dim() > SPYRE_MAX_RANK)
		return false;
	if (r.program.build == build_arg)
		take_searched(call, r.input, r.dims[0], &held);
	else
		take_complete(call, r.input, &held);
	kept = kept_result(r, call.operand[0]);
	if (!operand_of(kept, &call.add_operand()))
		return false;
	call.format = device_format(r.program.build == build_arg || !is_float(r.dtype) ?
				    r.input.scalar_type() : r.dtype);
	for (int64_t d : r.dims)
		call.add("dim", static_cast<double>(d));
	if (truth)
		call.add("keepdim", 1);
	for (unsigned i = 0; i < r.num_extra; i++)
		call.add(r.extra[i].name, r.extra[i].value);
	if (!launch_or_refuse(call, r.input.device().index()))
		return false;
	wrote(kept, false, range_of_result(r));
	result = r.keep ? kept : squeezed(kept, r.dims);
	return true;
}

/*
 * Copies a result to @out. An @out with a dtype that PyTorch refuses is left to the
 * CPU, which raises the error.
 */
Tensor &give(const Tensor &result, Tensor &out)
{
	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
	return out;
}

constexpr int64_t kMostCounted = int64_t(1) << 24;

/* Sums bools as counts; leaves other integers to the CPU. */
bool total(const Program &program, const Tensor &input, OptionalIntArrayRef dims, bool keep,
	   MaybeDtype dtype, Tensor &result)
{
	at::ScalarType type = dtype.value_or(input.scalar_type());

	if (input.scalar_type() == at::kBool && dtype.value_or(at::kLong) == at::kLong)
		return &program == &kSum && input.numel() <= kMostCounted &&
		       reduce({ kCount, input, wrapped_dims(input, dims), keep, at::kLong },
			      result);
	/*
	 * Without a dtype a sum of int32 is int64. Floats are truncated before they are summed as
	 * integers, which the CPU does.
	 */
	if (!dtype && type == at::kInt && &program == &kSum)
		type = at::kLong;
	bool integers = c10::isIntegralType(input.scalar_type(), false) &&
			(dtype == at::kInt || type == at::kLong);
	return (is_float(type) || integers) &&
	       reduce({ program, input, wrapped_dims(input, dims), keep, type }, result);
}

/* Sums and means. */
template <const Program &program, class New, class Out> struct Total {
	static Tensor make(const Tensor &input, OptionalIntArrayRef dims, bool keep,
			   MaybeDtype dtype)
	{
		Tensor result;
		return total(program, input, dims, keep, dtype, result) ? result :
		       on_cpu<New>(input, dims, keep, dtype);
	}
	static Tensor &into(const Tensor &input, OptionalIntArrayRef dims, bool keep,
			    MaybeDtype dtype, Tensor &out)
	{
		Tensor result;
		if (!total(program, input, dims, keep, dtype ? dtype : out.scalar_type(), result))
			return on_cpu<Out>(input, dims, keep, dtype, out);
		return give(result, out);
	}
	static void add(torch::Library &m)
	{
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

bool is_integer(const Tensor &t)
{
	return t.scalar_type() == at::kInt || t.scalar_type() == at::kLong;
}

/* any and all, of all elements or along one or several dimensions. */
template <const Program &program, class All, class Dim, class Dims, class AllOut, class DimOut,
	  class DimsOut> struct Truth {
	static bool run(const Tensor &input, OptionalIntArrayRef dims, bool keep, Tensor &result,
			bool given)
	{
		Tensor made;
		if ((dims && dims->empty()) || (given && result.scalar_type() != at::kBool))
			return false;
		Tensor truth = is_integer(input) ? at::ne(input, 0) : input;
		/* A tensor without dimensions is a row of one element. */
		if (!input.dim() && !keep)
			truth = truth.reshape({ 1 });
		if (!reduce({ program, truth, wrapped_dims(truth, dims), keep, at::kBool }, made))
			return false;
		if (given)
			give(made, result);
		else
			result = made;
		return true;
	}
	static bool all(const Tensor &input, Tensor &result, bool given)
	{
		return run(input, std::nullopt, false, result, given);
	}
	static bool dim(const Tensor &input, int64_t dim, bool keep, Tensor &result, bool given)
	{
		return run(input, at::IntArrayRef(dim), keep, result, given);
	}
	static bool dims(const Tensor &input, OptionalIntArrayRef dims, bool keep, Tensor &result,
			 bool given)
	{
		return run(input, dims, keep, result, given);
	}
	static void add(torch::Library &m)
	{
		add_forms<all, All, AllOut>(m);
		add_forms<dim, Dim, DimOut>(m);
		add_forms<dims, Dims, DimsOut>(m);
	}
};

bool extreme(const Program &program, const Tensor &input, OptionalIntArrayRef dims, bool keep,
	     Tensor &result)
{
	return reduce({ program, input, wrapped_dims(input, dims), keep, input.scalar_type() },
		      result);
}

template <const Program &program, class New, class Out> struct Extreme {
	static Tensor make(const Tensor &input, at::IntArrayRef dims, bool keep)
	{
		Tensor result;
		return extreme(program, input, dims, keep, result) ? result :
		       on_cpu<New>(input, dims, keep);
	}
	static Tensor &into(const Tensor &input, at::IntArrayRef dims, bool keep, Tensor &out)
	{
		Tensor result;
		return input.scalar_type() == out.scalar_type() &&
		       extreme(program, input, dims, keep, result) ?
		       give(result, out) : on_cpu<Out>(input, dims, keep, out);
	}
	static void add(torch::Library &m)
	{
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

Tensor max_all(const Tensor &input)
{
	Tensor result;
	return extreme(kAmax, input, std::nullopt, false, result) ? result :
	       on_cpu<at::_ops::max>(input);
}

Tensor min_all(const Tensor &input)
{
	Tensor result;
	return extreme(kAmin, input, std::nullopt, false, result) ? result :
	       on_cpu<at::_ops::min>(input);
}

bool places(const Program &program, const Tensor &input, int64_t dim, bool keep, Tensor &result)
{
	return input.dim() && reduce({ program, input, { at::maybe_wrap_dim(dim, input.dim()) },
				       keep, at::kLong }, result);
}

/* Values and indices of the largest or smallest elements along a dimension. */
template <const Program &value, const Program &place, class New, class Out> struct Searched {
	static std::tuple<Tensor, Tensor> make(const Tensor &input, int64_t dim, bool keep)
	{
		Tensor values, indices;
		if (input.dim() && extreme(value, input, at::IntArrayRef(dim), keep, values) &&
		    places(place, input, dim, keep, indices))
			return { values, indices };
		return on_cpu<New>(input, dim, keep);
	}
	static std::tuple<Tensor &, Tensor &> into(const Tensor &input, int64_t dim, bool keep,
						   Tensor &values, Tensor &indices)
	{
		Tensor v, i;
		if (input.dim() && values.scalar_type() == input.scalar_type() &&
		    indices.scalar_type() == at::kLong &&
		    extreme(value, input, at::IntArrayRef(dim), keep, v) &&
		    places(place, input, dim, keep, i))
			return { give(v, values), give(i, indices) };
		return on_cpu<Out>(input, dim, keep, values, indices);
	}
};

/* Searches all elements, as one row. */
template <const Program &program, class New, class Out> struct Place {
	static bool run(const Tensor &input, std::optional<int64_t> dim, bool keep, Tensor &result)
	{
		if (dim)
			return places(program, input, *dim, keep, result);
		return !keep && places(program, input.reshape({ -1 }), 0, false, result);
	}
	static Tensor make(const Tensor &input, std::optional<int64_t> dim, bool keep)
	{
		Tensor result;
		return run(input, dim, keep, result) ? result : on_cpu<New>(input, dim, keep);
	}
	static Tensor &into(const Tensor &input, std::optional<int64_t> dim, bool keep, Tensor &out)
	{
		Tensor result;
		return out.scalar_type() == at::kLong && run(input, dim, keep, result) ?
		       give(result, out) : on_cpu<Out>(input, dim, keep, out);
	}
	static void add(torch::Library &m)
	{
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

using MaybeScalar = const std::optional<at::Scalar> &;

bool spread(const Program &program, const Tensor &input, OptionalIntArrayRef dims,
	    MaybeScalar correction, bool keep, Tensor &result)
{
	Reduction r{ program, input, wrapped_dims(input, dims), keep, input.scalar_type() };

	r.extra[r.num_extra++] = { "correction", correction ? correction->toDouble() : 1 };
	return reduce(r, result);
}

template <const Program &program, class New, class Out> struct Spread {
	static Tensor make(const Tensor &input, OptionalIntArrayRef dims, MaybeScalar correction,
			   bool keep)
	{
		Tensor result;
		return spread(program, input, dims, correction, keep, result) ? result :
		       on_cpu<New>(input, dims, correction, keep);
	}
	static Tensor &into(const Tensor &input, OptionalIntArrayRef dims, MaybeScalar correction,
			    bool keep, Tensor &out)
	{
		Tensor result;
		return c10::canCast(input.scalar_type(), out.scalar_type()) &&
		       spread(program, input, dims, correction, keep, result) ?
		       give(result, out) : on_cpu<Out>(input, dims, correction, keep, out);
	}
	static void add(torch::Library &m)
	{
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

std::tuple<Tensor, Tensor> var_mean(const Tensor &input, OptionalIntArrayRef dims,
				    MaybeScalar correction, bool keep)
{
	return { Spread<kVar, at::_ops::var_correction, at::_ops::var_correction_out>::make(
			 input, dims, correction, keep),
		 Total<kMean, at::_ops::mean_dim, at::_ops::mean_out>::make(input, dims, keep,
									 std::nullopt) };
}

bool norm(const Tensor &input, const at::Scalar &ord, OptionalIntArrayRef dims, bool keep,
	  MaybeDtype dtype, Tensor &result)
{
	Reduction r{ kVectorNorm, input, wrapped_dims(input, dims), keep,
		     dtype.value_or(input.scalar_type()) };

	r.extra[r.num_extra++] = { "ord", ord.toDouble() };
	/* The CPU refuses a dtype that would narrow the input. */
	return is_float(r.dtype) && c10::promoteTypes(input.scalar_type(), r.dtype) == r.dtype &&
	       reduce(r, result);
}

Tensor vector_norm(const Tensor &input, const at::Scalar &ord, OptionalIntArrayRef dims, bool keep,
		   MaybeDtype dtype)
{
	Tensor result;
	return norm(input, ord, dims, keep, dtype, result) ? result :
	       on_cpu<at::_ops::linalg_vector_norm>(input, ord, dims, keep, dtype);
}

Tensor &vector_norm_out(const Tensor &input, const at::Scalar &ord, OptionalIntArrayRef dims,
			bool keep, MaybeDtype dtype, Tensor &out)
{
	Tensor result;
	return dtype.value_or(input.scalar_type()) == out.scalar_type() &&
	       norm(input, ord, dims, keep, dtype, result) ?
	       give(result, out) :
	       on_cpu<at::_ops::linalg_vector_norm_out>(input, ord, dims, keep, dtype, out);
}

/* torch.norm, which differs from torch.linalg's in its defaults only. */
Tensor &norm_out(const Tensor &input, const std::optional<at::Scalar> &p, IntArrayRef dims,
		 bool keep, Tensor &out)
{
	return torch_spyre::vector_norm_out(input, p.value_or(2), dims, keep, std::nullopt, out);
}

Tensor &norm_dtype_out(const Tensor &input, const std::optional<at::Scalar> &p, IntArrayRef dims,
		       bool keep, at::ScalarType dtype, Tensor &out)
{
	return torch_spyre::vector_norm_out(input, p.value_or(2), dims, keep, dtype, out);
}

using Max = Searched<kAmax, kArgmax, at::_ops::max_dim, at::_ops::max_dim_max>;
using Min = Searched<kAmin, kArgmin, at::_ops::min_dim, at::_ops::min_dim_min>;

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	Total<kSum, at::_ops::sum_dim_IntList, at::_ops::sum_IntList_out>::add(m);
	Total<kMean, at::_ops::mean_dim, at::_ops::mean_out>::add(m);
	Truth<kAny, at::_ops::any, at::_ops::any_dim, at::_ops::any_dims, at::_ops::any_all_out,
	      at::_ops::any_out, at::_ops::any_dims_out>::add(m);
	Truth<kAll, at::_ops::all, at::_ops::all_dim, at::_ops::all_dims, at::_ops::all_all_out,
	      at::_ops::all_out, at::_ops::all_dims_out>::add(m);
	m.impl("var_mean.correction", TORCH_FN(var_mean));
	Extreme<kAmax, at::_ops::amax, at::_ops::amax_out>::add(m);
	Extreme<kAmin, at::_ops::amin, at::_ops::amin_out>::add(m);
	m.impl("max", TORCH_FN(max_all));
	m.impl("min", TORCH_FN(min_all));
	m.impl("max.dim", TORCH_FN(Max::make));
	m.impl("max.dim_max", TORCH_FN(Max::into));
	m.impl("min.dim", TORCH_FN(Min::make));
	m.impl("min.dim_min", TORCH_FN(Min::into));
	Place<kArgmax, at::_ops::argmax, at::_ops::argmax_out>::add(m);
	Place<kArgmin, at::_ops::argmin, at::_ops::argmin_out>::add(m);
	Spread<kVar, at::_ops::var_correction, at::_ops::var_correction_out>::add(m);
	Spread<kStd, at::_ops::std_correction, at::_ops::std_correction_out>::add(m);
	m.impl("linalg_vector_norm", TORCH_FN(vector_norm));
	m.impl("linalg_vector_norm.out", TORCH_FN(vector_norm_out));
	m.impl("norm.out", TORCH_FN(norm_out));
	m.impl("norm.dtype_out", TORCH_FN(norm_dtype_out));
}

} // namespace torch_spyre
