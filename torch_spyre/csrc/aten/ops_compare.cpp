// SPDX-License-Identifier: MIT
/* Comparisons and logic, whose results are bools, 0 and 1 in DL16 on the card. */
#include "formula.h"
#include "kernels.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/any.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/isfinite_ops.h>
#include <ATen/ops/isin_ops.h>
#include <ATen/ops/isinf_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/ne_ops.h>

namespace torch_spyre {

namespace {

#define COMPARISON(ident, name, other) \
	const Pointwise ident = { { "aten::" name, name, build_one, false }, \
				  { .result = ResultType::kBool, .bools = true, \
				    .integers = Integers::kAll, .number = { nullptr, "other" }, .swapped = &other } }

extern const Pointwise kGt, kGe;
COMPARISON(kEq, "eq", kEq);
COMPARISON(kNe, "ne", kNe);
COMPARISON(kLt, "lt", kGt);
COMPARISON(kGt, "gt", kLt);
COMPARISON(kLe, "le", kGe);
COMPARISON(kGe, "ge", kLe);

#define LOGIC(ident, name) \
	const Pointwise ident = { { "aten::" name, name, build_one, false }, \
				  { .result = ResultType::kBool, .bools = true } }

LOGIC(kLogicalNot, "logical_not");
LOGIC(kLogicalAnd, "logical_and");
LOGIC(kLogicalOr, "logical_or");
LOGIC(kLogicalXor, "logical_xor");

/* Only NaN differs from itself. */
void build_isnan(Graph &graph, const Call &call)
{
	graph.store(graph.add("ne", { graph.argument(0), graph.argument(0) }));
}

const Pointwise kIsNan = { { "aten::isnan", "ne", build_isnan, true },
			   { .result = ResultType::kBool, .bools = true } };

bool isnan(const Tensor &a, Tensor &result, bool resize)
{
	return pointwise(kIsNan, { &a }, {}, result, resize);
}

/* Smallest number of DL16 that reads back as infinite in fp16. */
constexpr double kInfiniteHalf = 65536;

bool is_half(const Call &call)
{
	return call.format == SPYRE_FORMAT_SEN169_FP16;
}

/* x - x is 0 of finite numbers and NaN of others. */
void build_isinf(Graph &graph, const Call &call)
{
	Formula f(graph, call, call.format);
	Formula::T x = f.in(0);

	graph.store(is_half(call) ? f.with("ge", f.op("abs", x), kInfiniteHalf) :
		    f.op("mul", f.with("ne", f.op("sub", x, x), 0), f.op("eq", x, x)));
}

void build_isfinite(Graph &graph, const Call &call)
{
	Formula f(graph, call, call.format);
	Formula::T x = f.in(0);

	graph.store(is_half(call) ? f.with("lt", f.op("abs", x), kInfiniteHalf) :
				    f.with("eq", f.op("sub", x, x), 0));
}

const Pointwise kIsInf = { { "aten::isinf", "isinf", build_isinf, true },
			   { .result = ResultType::kBool } };
const Pointwise kIsFinite = { { "aten::isfinite", "isfinite", build_isfinite, false },
			      { .result = ResultType::kBool } };

/* Integers and bools are finite. */
template <const Pointwise &op, class Op, bool of_integers> Tensor is(const Tensor &a)
{
	Tensor result;

	if (c10::isIntegralType(a.scalar_type(), true))
		return at::full_like(a, of_integers, a.options().dtype(at::kBool));
	return pointwise(op, { &a }, {}, result, false) ? result : on_cpu<Op>(a);
}

constexpr int64_t kMostCompared = 1 << 22;

/* Compares each element with each one of @test. */
bool run_isin(const Tensor &elements, const Tensor &test, bool invert, Tensor &result)
{
	if (!elements.is_privateuseone() || test.device() != elements.device() ||
	    !elements.numel() || !test.numel() ||
	    elements.numel() > kMostCompared / test.numel() || elements.is_complex() ||
	    test.is_complex())
		return false;

	Tensor found = at::any(at::eq(elements.reshape({ -1, 1 }), test.reshape({ 1, -1 })), 1)
			       .view(elements.sizes());

	result = invert ? at::logical_not(found) : found;
	return true;
}

Tensor &isin_out(const Tensor &elements, const Tensor &test, bool unique, bool invert, Tensor &out)
{
	Tensor result;

	if (!run_isin(elements, test, invert, result))
		return on_cpu<at::_ops::isin_Tensor_Tensor_out>(elements, test, unique, invert,
								out);
	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
	return out;
}

#define ADD_COMPARISON(ident, name) \
	do { \
		Binary<ident, at::_ops::name##_Tensor, at::_ops::name##__Tensor, \
		       at::_ops::name##_Tensor_out>::add(m); \
		BinaryScalar<ident, at::_ops::name##_Scalar, at::_ops::name##__Scalar, \
			     at::_ops::name##_Scalar_out>::add(m); \
	} while (0)
#define ADD_LOGIC(ident, name) \
	Binary<ident, at::_ops::name, at::_ops::name##_, at::_ops::name##_out>::add(m)

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	ADD_COMPARISON(kEq, eq);
	ADD_COMPARISON(kNe, ne);
	ADD_COMPARISON(kLt, lt);
	ADD_COMPARISON(kGt, gt);
	ADD_COMPARISON(kLe, le);
	ADD_COMPARISON(kGe, ge);
	Unary<kLogicalNot, at::_ops::logical_not, at::_ops::logical_not_,
	      at::_ops::logical_not_out>::add(m);
	ADD_LOGIC(kLogicalAnd, logical_and);
	ADD_LOGIC(kLogicalOr, logical_or);
	ADD_LOGIC(kLogicalXor, logical_xor);
	m.impl("isinf", TORCH_FN((is<kIsInf, at::_ops::isinf, false>)));
	m.impl("isfinite", TORCH_FN((is<kIsFinite, at::_ops::isfinite, true>)));
	m.impl("isin.Tensor_Tensor_out", TORCH_FN(isin_out));
	add_forms<isnan, at::_ops::isnan, at::_ops::isnan_out>(m);
}

} // namespace torch_spyre
