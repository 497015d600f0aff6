// SPDX-License-Identifier: MIT
/* Whole numbers: rounding, quotients of them and their remainders. */
#include "formula.h"
#include "kernels.h"

#include <limits>

#include <ATen/ops/div_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/trunc_ops.h>

namespace torch_spyre {

namespace {

using T = Formula::T;

const Pointwise kRound = { { "aten::round", "round", build_one, true }, {} };
const Pointwise kTrunc = { { "aten::trunc", "trunc", build_one, true }, {} };

/* By a number that is not 0 and not -1; everything else is not known. */
bool divides(Range by)
{
	return by.least == by.most && by.least > 0;
}

Range range_of_remainder(const Range *in, AttributeList)
{
	return divides(in[1]) ? Range{ 0, in[1].least - 1 } : Range();
}

Range range_of_quotient(const Range *in, AttributeList)
{
	return divides(in[1]) ? united(in[0], { 0, 0 }) : Range();
}

const Pointwise kFmod = { { "aten::fmod", "fmod", build_one, false },
			  { .integers = Integers::kDivision, .number = { nullptr, "other" } } };
const Pointwise kRemainder = { { "aten::remainder", "remainder", build_one, false },
			       { .integers = Integers::kDivision, .range = range_of_remainder,
				 .number = { nullptr, "other" } } };

T is_infinite(Formula &f, T x)
{
	return f.with("eq", f.op("abs", x), std::numeric_limits<double>::infinity());
}

/*
 * The floor of a / b. If the quotient was rounded up to an integer, a - floor b, with
 * one rounding, has the opposite sign of b. As on the CPU, the remainder of a / Inf is
 * a, and an infinity has no floor, except for a quotient by zero.
 */
T floored(Formula &f, T a, T b)
{
	T quotient = f.op("div", a, b), whole = f.op("floor", quotient);
	T left = f.op("where", is_infinite(f, b), a, f.op("fnms", whole, b, a));
	T below = f.with("lt", f.op("mul", f.op("sign", left), f.op("sign", b)), 0);
	T result = f.op("where", is_infinite(f, a), f.op("sub", a, a), f.op("sub", whole, below));

	return f.op("where", f.with("eq", b, 0), quotient, result);
}

/* Adds an operation on integers, to which numbers and bools are converted; false for floats. */
bool whole(Graph &graph, const Call &call, const char *name)
{
	if (call.format != SPYRE_FORMAT_IEEE_INT32)
		return false;
	graph.add(name, { graph.cast(graph.argument(0), call.format),
			  graph.cast(graph.argument(1), call.format) }, {}, graph.output());
	return true;
}

void build_floor(Graph &graph, const Call &call)
{
	if (whole(graph, call, "floor_divide"))
		return;
	Formula f(graph, call);

	f.give("identity", { floored(f, f.in(0), f.in(1)) });
}

void build_trunc(Graph &graph, const Call &call)
{
	if (whole(graph, call, "trunc_divide"))
		return;
	Formula f(graph, call);

	f.give("trunc", { f.op("div", f.in(0), f.in(1)) });
}

const Pointwise kDivFloor = { { "aten::div", "div_floor", build_floor, false },
			      { .integers = Integers::kDivision, .range = range_of_quotient } };
const Pointwise kDivTrunc = { { "aten::div", "div_trunc", build_trunc, false },
			      { .integers = Integers::kDivision } };

using MaybeMode = std::optional<std::string_view>;

bool div_mode(const Tensor &a, const Tensor &b, MaybeMode mode, Tensor &result, bool resize)
{
	if (mode && *mode == "floor")
		return pointwise(kDivFloor, { &a, &b }, {}, result, resize);
	if (mode && *mode == "trunc")
		return pointwise(kDivTrunc, { &a, &b }, {}, result, resize);
	TORCH_CHECK(!mode, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
		    *mode, "'");
	if (!resize && !result.defined()) {
		result = at::_ops::div_Tensor::call(a, b);
		return true;
	}
	at::_ops::div_out::call(a, b, result);
	return true;
}

bool floor_divide(const Tensor &a, const Tensor &b, Tensor &result, bool resize)
{
	return pointwise(kDivFloor, { &a, &b }, {}, result, resize);
}

bool remainder_of_number(const at::Scalar &a, const Tensor &b, Tensor &result, bool resize)
{
	Tensor number = wrapped(a);

	return pointwise(kRemainder, { &number, &b }, {}, result, resize);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	Unary<kRound, at::_ops::round, at::_ops::round_, at::_ops::round_out>::add(m);
	Unary<kTrunc, at::_ops::trunc, at::_ops::trunc_, at::_ops::trunc_out>::add(m);
	Binary<kFmod, at::_ops::fmod_Tensor, at::_ops::fmod__Tensor,
	       at::_ops::fmod_Tensor_out>::add(m);
	BinaryScalar<kFmod, at::_ops::fmod_Scalar, at::_ops::fmod__Scalar,
		     at::_ops::fmod_Scalar_out>::add(m);
	Binary<kRemainder, at::_ops::remainder_Tensor, at::_ops::remainder__Tensor,
	       at::_ops::remainder_Tensor_out>::add(m);
	BinaryScalar<kRemainder, at::_ops::remainder_Scalar, at::_ops::remainder__Scalar,
		     at::_ops::remainder_Scalar_out>::add(m);
	add_forms<remainder_of_number, at::_ops::remainder_Scalar_Tensor,
		  at::_ops::remainder_Scalar_Tensor_out>(m);
	describe<at::_ops::remainder_Scalar_Tensor>(kRemainder, { "self", "other" });
	add_forms<div_mode, at::_ops::div_Tensor_mode, at::_ops::div__Tensor_mode,
		  at::_ops::div_out_mode>(m);
	describe<at::_ops::floor_divide>(kDivFloor, { "self", "other" });
	add_forms<floor_divide, at::_ops::floor_divide, at::_ops::floor_divide__Tensor,
		  at::_ops::floor_divide_out>(m);
}

} // namespace torch_spyre
