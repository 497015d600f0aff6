// SPDX-License-Identifier: MIT
/* Operations of integers only: shifts. */
#include "kernels.h"

#include <ATen/ops/bitwise_left_shift_ops.h>
#include <ATen/ops/bitwise_right_shift_ops.h>
#include <ATen/ops/lshift_ops.h>
#include <ATen/ops/rshift_ops.h>

namespace torch_spyre {

namespace {

/* The CPU shifts floats as well. */
const Pointwise kLeft = { { "aten::bitwise_left_shift", "left_shift", build_one, true },
			  { .logic = true, .integers = Integers::kInt32,
			    .number = { nullptr, "other" } } };
const Pointwise kRight = { { "aten::bitwise_right_shift", "right_shift", build_one, true },
			   { .logic = true, .integers = Integers::kAll,
			     .number = { nullptr, "other" } } };

bool is_integer(const Tensor &a, const Tensor &b)
{
	return c10::isIntegralType(at::result_type(a, b), false);
}

template <const Pointwise &op>
bool run(const Tensor &a, const Tensor &b, Tensor &result, bool resize)
{
	return is_integer(a, b) && pointwise(op, { &a, &b }, {}, result, resize);
}

template <const Pointwise &op>
bool run_number(const Tensor &a, const at::Scalar &b, Tensor &result, bool resize)
{
	return run<op>(a, wrapped(b), result, resize);
}

/* The forms of an operator such as <<, of a tensor or a number on its right. */
#define ADD_OPERATOR(ident, form, op) \
	do { \
		add_kernel<at::_ops::op##_Tensor>( \
			m, TORCH_FN((form<run<ident>, at::_ops::op##_Tensor>::call))); \
		add_kernel<at::_ops::op##_Scalar>( \
			m, TORCH_FN((form<run_number<ident>, at::_ops::op##_Scalar>::call))); \
	} while (0)

#define ADD_SHIFT(ident, name, symbol) \
	do { \
		add_forms<run<ident>, at::_ops::bitwise_##name##_Tensor, \
			  at::_ops::bitwise_##name##__Tensor, \
			  at::_ops::bitwise_##name##_Tensor_out>(m); \
		ADD_OPERATOR(ident, NewForm, __##symbol##__); \
		ADD_OPERATOR(ident, InPlaceForm, __i##symbol##__); \
		describe<at::_ops::bitwise_##name##_Tensor>(ident, { "self", "other" }); \
		describe<at::_ops::bitwise_##name##_Tensor_Scalar>(ident, { "self", "other" }); \
		describe<at::_ops::__##symbol##___Tensor>(ident, { "self", "other" }); \
		describe<at::_ops::__##symbol##___Scalar>(ident, { "self", "other" }); \
	} while (0)

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	ADD_SHIFT(kLeft, left_shift, lshift);
	ADD_SHIFT(kRight, right_shift, rshift);
}

} // namespace torch_spyre
