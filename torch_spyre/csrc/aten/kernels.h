// SPDX-License-Identifier: MIT
/*
 * The three forms of an operation that PyTorch dispatches (new result, in
 * place, into a given tensor), made of one description and registered by the
 * names that the schemas have; the description becomes a row of the table.
 */
#pragma once

#include <string>

#include <ATen/ops/result_type.h>
#include <torch/library.h>

#include "number.h"
#include "operand.h"
#include "table.h"

namespace torch_spyre {

using at::Tensor;

template <class Op, class Function> void add_kernel(torch::Library &m, Function function)
{
	m.impl(schema_name<Op>().c_str(), function);
}

/* Adds @t as an operand with all dimensions in full; a copy, if needed, is kept in @held. */
inline void take_complete(Call &call, const Tensor &t, Tensor *held)
{
	Operand &o = call.add_operand();

	if (!operand_of(t, &o) || !is_complete(t, o))
		operand_of(*held = dense_copy(t), &o);
}

/* Adds @t with dense sticks, because windows do not support one element per stick. */
inline void take_sticks(Call &call, const Tensor &t, Tensor *held)
{
	take_complete(call, t, held);
	Operand &o = call.operand[call.num_operands - 1];
	if (stick_dim(o.desc) < 0 && t.numel() > 1)
		operand_of(*held = dense_copy(t), &o);
}

inline void find_card(const Tensor &t, c10::Device *device)
{
	if (t.defined() && t.is_privateuseone())
		*device = t.device();
}
template <class Other> void find_card(const Other &, c10::Device *) {}

/*
 * Moves a result of the CPU to the card of the operands. PyTorch's fallback leaves it where the
 * first tensor is, which is the CPU if that is a number.
 */
template <class... Args> Tensor placed(const Tensor &result, const Args &...args)
{
	c10::Device device = result.device();

	if (result.is_cpu())
		(find_card(args, &device), ...);
	return result.to(device);
}

template <const Pointwise &op, class New, class InPlace, class Out> struct Unary {
	static Tensor make(const Tensor &a)
	{
		Tensor result;
		return pointwise(op, { &a }, {}, result, false) ? result : on_cpu<New>(a);
	}
	static Tensor &in_place(Tensor &a)
	{
		return pointwise(op, { &a }, {}, a, false) ? a : on_cpu<InPlace>(a);
	}
	static Tensor &into(const Tensor &a, Tensor &out)
	{
		return pointwise(op, { &a }, {}, out, true) ? out : on_cpu<Out>(a, out);
	}
	static void add(torch::Library &m)
	{
		describe<New>(op, { "self" });
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<InPlace>(m, TORCH_FN(in_place));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

template <const Pointwise &op, class New, class InPlace, class Out> struct Binary {
	static Tensor make(const Tensor &a, const Tensor &b)
	{
		Tensor result;
		return pointwise(op, { &a, &b }, {}, result, false) ? result :
		       placed(on_cpu<New>(a, b), a, b);
	}
	static Tensor &in_place(Tensor &a, const Tensor &b)
	{
		return pointwise(op, { &a, &b }, {}, a, false) ? a : on_cpu<InPlace>(a, b);
	}
	static Tensor &into(const Tensor &a, const Tensor &b, Tensor &out)
	{
		return pointwise(op, { &a, &b }, {}, out, true) ? out : on_cpu<Out>(a, b, out);
	}
	static void add(torch::Library &m)
	{
		describe<New>(op, { "self", "other" });
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<InPlace>(m, TORCH_FN(in_place));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

/* a + alpha b and the like. */
template <const Pointwise &op, class New, class InPlace, class Out> struct BinaryAlpha {
	static bool run(const Tensor &a, const Tensor &b, const at::Scalar &alpha, Tensor &result,
			bool resize)
	{
		if (alpha.equal(1) && (alpha.isIntegral(false) || is_float(at::result_type(a, b))))
			return pointwise(op, { &a, &b }, {}, result, resize);
		if (alpha.isComplex())
			return false;
		spyre_sdsc_attribute attribute = { "alpha", alpha.toDouble() };
		at::ScalarType dtype = at::result_type(a, b);
		/* Beside integers PyTorch refuses an alpha that is no integer, even 1.0. */
		return (alpha.isIntegral(false) || !c10::isIntegralType(dtype, true)) &&
		       fit_parameter(Parameter::kRounded, dtype, &attribute.value) &&
		       pointwise(op, { &a, &b }, attribute, result, resize);
	}
	static Tensor make(const Tensor &a, const Tensor &b, const at::Scalar &alpha)
	{
		Tensor result;
		return run(a, b, alpha, result, false) ? result :
		       placed(on_cpu<New>(a, b, alpha), a, b);
	}
	static Tensor &in_place(Tensor &a, const Tensor &b, const at::Scalar &alpha)
	{
		return run(a, b, alpha, a, false) ? a : on_cpu<InPlace>(a, b, alpha);
	}
	static Tensor &into(const Tensor &a, const Tensor &b, const at::Scalar &alpha, Tensor &out)
	{
		return run(a, b, alpha, out, true) ? out : on_cpu<Out>(a, b, alpha, out);
	}
	static void add(torch::Library &m)
	{
		describe<New>(op, { "self", "other" },
			      { { "alpha", "alpha", Parameter::kRounded, 1 } });
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<InPlace>(m, TORCH_FN(in_place));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

/*
 * Operations with any arguments: @run takes them, the result and whether that is
 * resized. If it returns false, the CPU computes the operation.
 */
template <auto run, class Op, class Schema = typename Op::schema> struct NewForm;
template <auto run, class Op, class... Args> struct NewForm<run, Op, Tensor(Args...)> {
	static Tensor call(Args... args)
	{
		Tensor result;
		return run(args..., result, false) ? result : placed(on_cpu<Op>(args...), args...);
	}
};

template <auto run, class Op, class Schema = typename Op::schema> struct OutForm;
template <auto run, class Op, class... Args> struct OutForm<run, Op, Tensor &(Args...)> {
	static Tensor &call(Args... args)
	{
		Tensor &out = std::get<sizeof...(Args) - 1>(std::tie(args...));
		return run(args..., true) ? out : on_cpu<Op>(args...);
	}
};

template <auto run, class Op, class Schema = typename Op::schema> struct InPlaceForm;
template <auto run, class Op, class... Args>
struct InPlaceForm<run, Op, Tensor &(Tensor &, Args...)> {
	static Tensor &call(Tensor &self, Args... args)
	{
		return run(self, args..., self, false) ? self : on_cpu<Op>(self, args...);
	}
};

template <auto run, class New, class Out> void add_forms(torch::Library &m)
{
	add_kernel<New>(m, TORCH_FN((NewForm<run, New>::call)));
	add_kernel<Out>(m, TORCH_FN((OutForm<run, Out>::call)));
}

template <auto run, class New, class InPlace, class Out> void add_forms(torch::Library &m)
{
	add_forms<run, New, Out>(m);
	add_kernel<InPlace>(m, TORCH_FN((InPlaceForm<run, InPlace>::call)));
}

/* A scalar as the tensor that PyTorch makes of numbers. */
Tensor wrapped(const at::Scalar &scalar);

template <const Pointwise &op, class New, class InPlace, class Out> struct BinaryScalar {
	static Tensor make(const Tensor &a, const at::Scalar &b)
	{
		Tensor result;
		return pointwise(op, { &a, &(const Tensor &)wrapped(b) }, {}, result, false) ?
		       result : on_cpu<New>(a, b);
	}
	static Tensor &in_place(Tensor &a, const at::Scalar &b)
	{
		return pointwise(op, { &a, &(const Tensor &)wrapped(b) }, {}, a, false) ?
		       a : on_cpu<InPlace>(a, b);
	}
	static Tensor &into(const Tensor &a, const at::Scalar &b, Tensor &out)
	{
		return pointwise(op, { &a, &(const Tensor &)wrapped(b) }, {}, out, true) ?
		       out : on_cpu<Out>(a, b, out);
	}
	static void add(torch::Library &m)
	{
		describe<New>(op, { "self", "other" });
		add_kernel<New>(m, TORCH_FN(make));
		add_kernel<InPlace>(m, TORCH_FN(in_place));
		add_kernel<Out>(m, TORCH_FN(into));
	}
};

} // namespace torch_spyre
