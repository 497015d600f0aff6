// SPDX-License-Identifier: MIT
/* Comparisons and logic: results are bools, 0 and 1 in DL16 on the card. */
#include "kernels.h"

#include <ATen/ops/eq_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/ne_ops.h>

namespace torch_spyre {

namespace {

#define COMPARISON(ident, name, other) \
	const Pointwise ident = { { "aten::" name, name, build_one, false }, \
				  { .result = ResultType::kBool, .bools = true, \
				    .number = { nullptr, "other" }, .swapped = &other } }

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
}

} // namespace torch_spyre
