// SPDX-License-Identifier: MIT
/* Arithmetic and functions, element by element. */
#include "formula.h"
#include "kernels.h"

#include <cstring>

#include <ATen/ScalarOps.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/where_ops.h>

namespace torch_spyre {

Tensor wrapped(const at::Scalar &scalar)
{
	Tensor tensor = at::native::wrapped_scalar_tensor(scalar);
	return tensor;
}

namespace {

constexpr ResultType kSame = ResultType::kSame, kFloat = ResultType::kFloat;

/* Ranges of results of int64. */

Range range_of_sum(const Range *in, AttributeList alpha)
{
	Range by;

	if (alpha.empty())
		return sum_of(in[0], in[1]);
	by.least = by.most = static_cast<int64_t>(alpha[0].value);
	return sum_of(in[0], product_of(in[1], by));
}

Range range_of_difference(const Range *in, AttributeList alpha)
{
	Range other[] = { in[0], negated(in[1]) };

	return range_of_sum(other, alpha);
}

Range range_of_reversed(const Range *in, AttributeList)
{
	return sum_of(in[1], negated(in[0]));
}

Range range_of_product(const Range *in, AttributeList)
{
	return product_of(in[0], in[1]);
}

Range range_of_negative(const Range *in, AttributeList)
{
	return negated(in[0]);
}

Range range_of_size(const Range *in, AttributeList)
{
	return { 0, std::max(-in[0].least, in[0].most) };
}

Range range_of_sign(const Range *, AttributeList)
{
	return { -1, 1 };
}

Range range_of_larger(const Range *in, AttributeList)
{
	return { std::max(in[0].least, in[1].least), std::max(in[0].most, in[1].most) };
}

Range range_of_smaller(const Range *in, AttributeList)
{
	return { std::min(in[0].least, in[1].least), std::min(in[0].most, in[1].most) };
}

Range range_of_either(const Range *in, AttributeList)
{
	return united(in[1], in[2]);
}

/* A bound applies to all numbers, the upper one last. */
Range range_of_clamp(const Range *in, AttributeList bounds)
{
	Range range = in[0];

	for (const spyre_sdsc_attribute &b : bounds) {
		double least = static_cast<double>(range.least);
		double most = static_cast<double>(range.most);
		bool lower = !std::strcmp(b.name, "min");

		range.least = static_cast<int64_t>(lower ? std::max(least, b.value) :
							   std::min(least, b.value));
		range.most = static_cast<int64_t>(lower ? std::max(most, b.value) :
							  std::min(most, b.value));
	}
	return range;
}

#define UNARY(ident, name, op, type, keeps_zero) \
	const Pointwise ident = { { "aten::" name, op, build_one, keeps_zero }, { .result = type } }

const Pointwise kAbs = { { "aten::abs", "abs", build_one, true },
			 { .integers = Integers::kInt32, .range = range_of_size } };
const Pointwise kNeg = { { "aten::neg", "neg", build_one, true },
			 { .integers = Integers::kInt32, .range = range_of_negative } };
UNARY(kExp, "exp", "exp", kFloat, false);
UNARY(kLog, "log", "log", kFloat, false);
UNARY(kSqrt, "sqrt", "sqrt", kFloat, true);
UNARY(kRsqrt, "rsqrt", "rsqrt", kFloat, false);
UNARY(kReciprocal, "reciprocal", "reciprocal", kFloat, false);
UNARY(kTanh, "tanh", "tanh", kFloat, true);
UNARY(kSin, "sin", "sin", kFloat, true);
UNARY(kCos, "cos", "cos", kFloat, false);
UNARY(kErf, "erf", "erf", kFloat, true);
UNARY(kFloor, "floor", "floor", kSame, true);
UNARY(kCeil, "ceil", "ceil", kSame, true);
const Pointwise kSign = { { "aten::sign", "sign", build_one, true },
			  { .integers = Integers::kAll, .range = range_of_sign } };
UNARY(kPow, "pow", "pow", kSame, false);
const Pointwise kPowTensor = { { "aten::pow", "pow", build_one, false }, {} };
const Pointwise kClamp = { { "aten::clamp", "clamp", build_one, false },
			   { .integers = Integers::kAll, .range = range_of_clamp } };

/* The builder's bitwise_not of bools is logical_not. */
void build_bitwise_not(Graph &graph, const Call &call)
{
	bool integer = call.format == SPYRE_FORMAT_IEEE_INT32;

	graph.add(integer ? "bitwise_not" : "logical_not", { graph.argument(0) }, {},
		  graph.output());
}

const Pointwise kBitwiseNot = { { "aten::bitwise_not", "bitwise_not", build_bitwise_not, false },
				{ .logic = true, .integers = Integers::kAll } };

/* a + alpha b with alpha as an operand, in the steps that the builder uses for a constant. */
void build_add_by(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give("fnms", { f.op("neg", f.in(2)), f.in(1), f.in(0) });
}

void build_sub_by(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give("fnms", { f.in(2), f.in(1), f.in(0) });
}

Range range_of_excess(const Range *, AttributeList)
{
	return { 0, 1 };
}

/*
 * 1 where a sum or difference of int32 exceeds 32 bits, else 0: both operands of such a sum have
 * another sign than it, those of such a difference have two signs, and it has the second one's.
 */
void build_excess(Graph &graph, const Call &call)
{
	Formula f(graph, call, call.format);
	Formula::T a = f.in(0), b = f.in(1), result = f.op(call.program->op, a, b);
	bool sum = !std::strcmp(call.program->op, "add");
	Formula::T first = f.op("bitwise_xor", a, result);
	Formula::T second = f.op("bitwise_xor", b, sum ? result : a);
	Formula::T sign = f.with("right_shift", f.op("bitwise_and", first, second), 31);

	f.give("neg", { sign });
}

const Pointwise kSumExcess = { { "aten::add", "add", build_excess, false },
			       { .integers = Integers::kAll, .range = range_of_excess } };
const Pointwise kDifferenceExcess = { { "aten::sub", "sub", build_excess, false },
				      { .integers = Integers::kAll, .range = range_of_excess } };
const Pointwise kAddBy = { { "aten::add", "add", build_add_by, false }, {} };
const Pointwise kSubBy = { { "aten::sub", "sub", build_sub_by, false }, {} };
extern const Pointwise kRevSub;
const Pointwise kAdd = { { "aten::add", "add", build_one, true },
			 { .integers = Integers::kInt32, .range = range_of_sum,
			   .excess = &kSumExcess, .number = { nullptr, "other" }, .swapped = &kAdd,
			   .varying = &kAddBy } };
const Pointwise kSub = { { "aten::sub", "sub", build_one, true },
			 { .integers = Integers::kInt32, .range = range_of_difference,
			   .excess = &kDifferenceExcess, .number = { nullptr, "other" },
			   .swapped = &kRevSub, .varying = &kSubBy } };
const Pointwise kRevSub = { { "aten::sub", "revsub", build_one, true },
			    { .integers = Integers::kInt32, .range = range_of_reversed,
			      .number = { nullptr, "other" }, .swapped = &kSub } };
const Pointwise kSgn = { { "aten::sgn", "sign", build_one, true },
			 { .integers = Integers::kAll, .range = range_of_sign } };
const Pointwise kMul = { { "aten::mul", "mul", build_one, true },
			 { .bools = true, .scales = true, .factor = true,
			   .integers = Integers::kInt32, .range = range_of_product,
			   .number = { nullptr, "other" }, .swapped = &kMul } };
const Pointwise kDiv = { { "aten::div", "div", build_one, false },
			 { .result = kFloat, .factor = true, .number = { nullptr, "other" } } };
const Pointwise kMaximum = { { "aten::maximum", "maximum", build_one, true },
			     { .bools = true, .integers = Integers::kAll, .range = range_of_larger,
			       .number = { nullptr, "other" }, .swapped = &kMaximum } };
const Pointwise kMinimum = { { "aten::minimum", "minimum", build_one, true },
			     { .bools = true, .integers = Integers::kAll,
			       .range = range_of_smaller, .number = { nullptr, "other" },
			       .swapped = &kMinimum } };
const Pointwise kWhere = { { "aten::where", "where", build_one, false },
			   { .bools = true, .condition = true, .integers = Integers::kAll,
			     .range = range_of_either, .number = { nullptr, "input", "other" } } };

/*
 * Of bools, the builder's bitwise operations are valid for 0 and 1 only, which they are in any
 * format; of integers, bools convert to integers first.
 */
void build_bitwise(Graph &graph, const Call &call)
{
	Graph::Tensor a = graph.argument(0), b = graph.argument(1);

	if (call.format == SPYRE_FORMAT_IEEE_INT32) {
		a = graph.cast(a, call.format);
		b = graph.cast(b, call.format);
	}
	graph.add(call.program->op, { a, b }, {}, graph.output());
}

const Pointwise kBitwiseAnd = { { "aten::bitwise_and", "bitwise_and", build_bitwise, true },
				{ .logic = true, .integers = Integers::kAll } };
const Pointwise kBitwiseOr = { { "aten::bitwise_or", "bitwise_or", build_bitwise, true },
			       { .logic = true, .integers = Integers::kAll } };
const Pointwise kBitwiseXor = { { "aten::bitwise_xor", "bitwise_xor", build_bitwise, true },
				{ .logic = true, .integers = Integers::kAll } };

bool is_bool(const Tensor &t)
{
	return t.scalar_type() == at::kBool;
}

bool bitwise_not(const Tensor &a, Tensor &result, bool resize)
{
	return pointwise(kBitwiseNot, { &a }, {}, result, resize);
}

template <const Pointwise &op>
bool bitwise(const Tensor &a, const Tensor &b, Tensor &result, bool resize)
{
	return pointwise(op, { &a, &b }, {}, result, resize);
}

bool pow_number(const Tensor &a, const at::Scalar &exponent, Tensor &result, bool resize)
{
	spyre_sdsc_attribute attribute = { "exponent", 0 };

	if (exponent.isComplex() || !a.is_floating_point())
		return false;
	attribute.value = exponent.toDouble();
	return fit_parameter(Parameter::kExponent, a.scalar_type(), &attribute.value) &&
	       pointwise(kPow, { &a }, attribute, result, resize);
}

bool pow_of_number(const at::Scalar &a, const Tensor &exponent, Tensor &result, bool resize)
{
	Tensor base = wrapped(a);

	return pointwise(kPowTensor, { &base, &exponent }, {}, result, resize);
}

using PowTensor = Binary<kPowTensor, at::_ops::pow_Tensor_Tensor, at::_ops::pow__Tensor,
			 at::_ops::pow_Tensor_Tensor_out>;

/* b - alpha a */
using Sub = BinaryAlpha<kSub, at::_ops::sub_Tensor, at::_ops::sub__Tensor, at::_ops::sub_out>;

Tensor rsub(const Tensor &a, const Tensor &b, const at::Scalar &alpha)
{
	return Sub::make(b, a, alpha);
}

Tensor rsub_scalar(const Tensor &a, const at::Scalar &b, const at::Scalar &alpha)
{
	return Sub::make(wrapped(b), a, alpha);
}

using MaybeScalar = const std::optional<at::Scalar> &;

bool clamp_numbers(const Tensor &a, MaybeScalar min, MaybeScalar max, Tensor &result, bool resize)
{
	spyre_sdsc_attribute attribute[2];
	unsigned count = 0;

	TORCH_CHECK(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
	/* A bound with a fraction makes the result of integers a float. */
	if (!a.is_floating_point() && ((min && !min->isIntegral(false)) ||
				       (max && !max->isIntegral(false))))
		return false;
	if (min)
		attribute[count++] = { "min", min->toDouble() };
	if (max)
		attribute[count++] = { "max", max->toDouble() };
	for (unsigned i = 0; i < count; i++)
		if (!fit_parameter(Parameter::kBound, a.scalar_type(), &attribute[i].value))
			return false;
	/* If min exceeds max the result is max, as in PyTorch. */
	return pointwise(kClamp, { &a }, { attribute, count }, result, resize);
}

using MaybeTensor = const std::optional<Tensor> &;

/* Applies one bound after the other: NaN stays NaN; if min exceeds max the result is max. */
bool clamp_tensor(const Tensor &a, MaybeTensor min, MaybeTensor max, Tensor &result, bool resize)
{
	Tensor raised;

	TORCH_CHECK(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
	if (!min || !max)
		return min ? pointwise(kMaximum, { &a, &*min }, {}, result, resize) :
			     pointwise(kMinimum, { &a, &*max }, {}, result, resize);
	return pointwise(kMaximum, { &a, &*min }, {}, raised, false) &&
	       pointwise(kMinimum, { &raised, &*max }, {}, result, resize);
}

bool clamp_min(const Tensor &a, const at::Scalar &min, Tensor &result, bool resize)
{
	return clamp_numbers(a, min, std::nullopt, result, resize);
}

bool clamp_max(const Tensor &a, const at::Scalar &max, Tensor &result, bool resize)
{
	return clamp_numbers(a, std::nullopt, max, result, resize);
}

bool clamp_min_tensor(const Tensor &a, const Tensor &min, Tensor &result, bool resize)
{
	return pointwise(kMaximum, { &a, &min }, {}, result, resize);
}

bool clamp_max_tensor(const Tensor &a, const Tensor &max, Tensor &result, bool resize)
{
	return pointwise(kMinimum, { &a, &max }, {}, result, resize);
}

bool where(const Tensor &condition, const Tensor &a, const Tensor &b, Tensor &result,
	       bool resize)
{
	return is_bool(condition) && condition.device().type() == c10::DeviceType::PrivateUse1 &&
	       pointwise(kWhere, { &condition, &a, &b }, {}, result, resize);
}

/* A tensor is converted to the dtype of the result, a number is rounded to the card's format. */
bool masked_fill(const Tensor &a, const Tensor &mask, const Tensor &value, Tensor &result, bool)
{
	TORCH_CHECK(value.dim() == 0,
		    "masked_fill only supports a 0-dimensional value tensor, but got tensor with ",
		    value.dim(), " dimension(s).");
	double number;
	bool integers = c10::isIntegralType(a.scalar_type(), false);
	if (integers && !c10::isIntegralType(value.scalar_type(), true))
		return false;
	if (number_of(value, &number) && !fit_number(a.scalar_type(), &number))
		return false;
	bool fits = value.scalar_type() == a.scalar_type() ||
		    value.unsafeGetTensorImpl()->is_wrapped_number();
	Tensor fitting = fits ? value : value.to(a.scalar_type());
	return (a.is_floating_point() || integers) && where(mask, fitting, a, result, false);
}

bool masked_fill_scalar(const Tensor &a, const Tensor &mask, const at::Scalar &value,
			Tensor &result, bool resize)
{
	return masked_fill(a, mask, wrapped(value), result, resize);
}

#define ADD_UNARY(ident, name) \
	Unary<ident, at::_ops::name, at::_ops::name##_, at::_ops::name##_out>::add(m)
#define ADD_BINARY(kind, ident, name) \
	kind<ident, at::_ops::name##_Tensor, at::_ops::name##__Tensor, at::_ops::name##_out>::add(m)

#define ADD_BITWISE(ident, name) \
	do { \
		add_forms<bitwise<ident>, at::_ops::bitwise_##name##_Tensor, \
			  at::_ops::bitwise_##name##__Tensor, \
			  at::_ops::bitwise_##name##_Tensor_out>(m); \
		describe<at::_ops::bitwise_##name##_Tensor>(ident, { "self", "other" }); \
	} while (0)

/* Rows of operations with functions of their own above. */
void describe_others()
{
	std::vector<Parameter> alpha = { { "alpha", "alpha", Parameter::kRounded, 1 } };
	Parameter min = { "min", "min", Parameter::kBound };
	Parameter max = { "max", "max", Parameter::kBound };

	/* Eager mode makes tensors of the numbers first. */
	describe<at::_ops::add_Scalar>(kAdd, { "self", "other" }, alpha);
	describe<at::_ops::sub_Scalar>(kSub, { "self", "other" }, alpha);
	describe<at::_ops::mul_Scalar>(kMul, { "self", "other" });
	describe<at::_ops::div_Scalar>(kDiv, { "self", "other" });
	describe<at::_ops::rsub_Tensor>(kSub, { "other", "self" }, alpha);
	describe<at::_ops::rsub_Scalar>(kSub, { "other", "self" }, alpha);
	describe<at::_ops::maximum>(kMaximum, { "self", "other" });
	describe<at::_ops::minimum>(kMinimum, { "self", "other" });
	describe<at::_ops::bitwise_not>(kBitwiseNot, { "self" });
	describe<at::_ops::pow_Tensor_Scalar>(
		kPow, { "self" }, { { "exponent", "exponent", Parameter::kExponent } });
	describe<at::_ops::pow_Tensor_Tensor>(kPowTensor, { "self", "exponent" });
	describe<at::_ops::pow_Scalar>(kPowTensor, { "self", "exponent" });
	describe<at::_ops::clamp>(kClamp, { "self" }, { min, max });
	describe<at::_ops::clamp_min>(kClamp, { "self" }, { min });
	describe<at::_ops::clamp_max>(kClamp, { "self" }, { max });
	describe<at::_ops::where_self>(kWhere, { "condition", "self", "other" });
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	describe_others();
	ADD_UNARY(kAbs, abs);
	ADD_UNARY(kNeg, neg);
	ADD_UNARY(kExp, exp);
	ADD_UNARY(kLog, log);
	ADD_UNARY(kSqrt, sqrt);
	ADD_UNARY(kRsqrt, rsqrt);
	ADD_UNARY(kReciprocal, reciprocal);
	ADD_UNARY(kTanh, tanh);
	ADD_UNARY(kSin, sin);
	ADD_UNARY(kCos, cos);
	ADD_UNARY(kErf, erf);
	ADD_UNARY(kFloor, floor);
	ADD_UNARY(kCeil, ceil);
	ADD_UNARY(kSign, sign);
	ADD_UNARY(kSgn, sgn);
	m.impl("rsub.Tensor", TORCH_FN(rsub));
	m.impl("rsub.Scalar", TORCH_FN(rsub_scalar));
	ADD_BINARY(BinaryAlpha, kAdd, add);
	ADD_BINARY(BinaryAlpha, kSub, sub);
	ADD_BINARY(Binary, kMul, mul);
	ADD_BINARY(Binary, kDiv, div);
	m.impl("maximum", TORCH_FN((Binary<kMaximum, at::_ops::maximum, at::_ops::maximum,
					   at::_ops::maximum_out>::make)));
	m.impl("maximum.out", TORCH_FN((Binary<kMaximum, at::_ops::maximum, at::_ops::maximum,
					       at::_ops::maximum_out>::into)));
	m.impl("minimum", TORCH_FN((Binary<kMinimum, at::_ops::minimum, at::_ops::minimum,
					   at::_ops::minimum_out>::make)));
	m.impl("minimum.out", TORCH_FN((Binary<kMinimum, at::_ops::minimum, at::_ops::minimum,
					       at::_ops::minimum_out>::into)));
	ADD_BITWISE(kBitwiseAnd, and);
	ADD_BITWISE(kBitwiseOr, or);
	ADD_BITWISE(kBitwiseXor, xor);
	add_forms<bitwise_not, at::_ops::bitwise_not, at::_ops::bitwise_not_,
		  at::_ops::bitwise_not_out>(m);
	add_forms<pow_number, at::_ops::pow_Tensor_Scalar, at::_ops::pow__Scalar,
		  at::_ops::pow_Tensor_Scalar_out>(m);
	m.impl("pow.Tensor_Tensor", TORCH_FN(PowTensor::make));
	m.impl("pow_.Tensor", TORCH_FN(PowTensor::in_place));
	m.impl("pow.Tensor_Tensor_out", TORCH_FN(PowTensor::into));
	add_forms<pow_of_number, at::_ops::pow_Scalar, at::_ops::pow_Scalar_out>(m);
	add_forms<clamp_numbers, at::_ops::clamp, at::_ops::clamp_, at::_ops::clamp_out>(m);
	add_forms<clamp_min, at::_ops::clamp_min, at::_ops::clamp_min_, at::_ops::clamp_min_out>(m);
	add_forms<clamp_max, at::_ops::clamp_max, at::_ops::clamp_max_, at::_ops::clamp_max_out>(m);
	add_forms<clamp_tensor, at::_ops::clamp_Tensor, at::_ops::clamp__Tensor,
		  at::_ops::clamp_Tensor_out>(m);
	add_forms<clamp_min_tensor, at::_ops::clamp_min_Tensor, at::_ops::clamp_min__Tensor,
		  at::_ops::clamp_min_Tensor_out>(m);
	add_forms<clamp_max_tensor, at::_ops::clamp_max_Tensor, at::_ops::clamp_max__Tensor,
		  at::_ops::clamp_max_Tensor_out>(m);
	add_forms<where, at::_ops::where_self, at::_ops::where_self_out>(m);
	add_kernel<at::_ops::masked_fill_Scalar>(
		m, TORCH_FN((NewForm<masked_fill_scalar, at::_ops::masked_fill_Scalar>::call)));
	add_kernel<at::_ops::masked_fill__Scalar>(
		m,
		TORCH_FN((InPlaceForm<masked_fill_scalar, at::_ops::masked_fill__Scalar>::call)));
	add_kernel<at::_ops::masked_fill_Tensor>(
		m, TORCH_FN((NewForm<masked_fill, at::_ops::masked_fill_Tensor>::call)));
	add_kernel<at::_ops::masked_fill__Tensor>(
		m, TORCH_FN((InPlaceForm<masked_fill, at::_ops::masked_fill__Tensor>::call)));
}

} // namespace torch_spyre
