// SPDX-License-Identifier: MIT
/* Reductions in the card's formats. */
#include "reduction.h"

#include <ATen/ATen.h>

#include "aten/copy.h"
#include "aten/tensor.h"

namespace torch_spyre {

namespace {

using at::ScalarType;
using at::Tensor;
using Op = c10d::ReduceOp;

const char *name_of(const Op &op)
{
	switch (op.op_) {
	case Op::SUM:
		return "SUM";
	case Op::AVG:
		return "AVG";
	case Op::PRODUCT:
		return "PRODUCT";
	case Op::MIN:
		return "MIN";
	case Op::MAX:
		return "MAX";
	case Op::BAND:
		return "BAND";
	case Op::BOR:
		return "BOR";
	case Op::BXOR:
		return "BXOR";
	case Op::PREMUL_SUM:
		return "PREMUL_SUM";
	default:
		return "UNUSED";
	}
}

[[noreturn]] void refuse(const Op &op, ScalarType dtype, const char *remedy)
{
	TORCH_CHECK(false, "spyreccl: cannot use ReduceOp.", name_of(op), " with ", dtype, ": ",
		    remedy);
}

spyre_reduce_op native_op(const Op &op)
{
	switch (op.op_) {
	case Op::SUM:
		return SPYRE_REDUCE_SUM;
	case Op::AVG:
		return SPYRE_REDUCE_AVG;
	case Op::PRODUCT:
		return SPYRE_REDUCE_PRODUCT;
	case Op::MIN:
		return SPYRE_REDUCE_MIN;
	case Op::MAX:
		return SPYRE_REDUCE_MAX;
	case Op::BAND:
		return SPYRE_REDUCE_BAND;
	case Op::BOR:
		return SPYRE_REDUCE_BOR;
	case Op::BXOR:
		return SPYRE_REDUCE_BXOR;
	case Op::PREMUL_SUM:
		return SPYRE_REDUCE_PREMUL_SUM;
	default:
		TORCH_CHECK(false, "spyreccl: unknown reduction ", static_cast<int>(op.op_));
	}
}

/* Bools are 0.0 and 1.0, so that an operator of integers is one of both. */
spyre_reduce_op bool_op(const Op &op)
{
	switch (op.op_) {
	case Op::SUM:
	case Op::MAX:
	case Op::BOR:
		return SPYRE_REDUCE_MAX;
	case Op::PRODUCT:
	case Op::MIN:
	case Op::BAND:
		return SPYRE_REDUCE_MIN;
	default:
		refuse(op, ScalarType::Bool, "use SUM or MAX for or, PRODUCT or MIN for and");
	}
}

float factor_of(const Op &op)
{
	auto *data = dynamic_cast<c10d::PreMulSumSupplement *>(op.supplement_.get());

	TORCH_CHECK(data, "spyreccl: PREMUL_SUM without a factor; make the operator with "
		    "torch.distributed._make_nccl_premul_sum()");
	return static_cast<float>(data->tensor_factor.defined() ?
					  data->tensor_factor.item().toDouble() :
					  data->double_factor);
}

void check_integer(const Op &op, ScalarType dtype)
{
	if (op == Op::AVG || op == Op::PREMUL_SUM)
		refuse(op, dtype, "use SUM, or convert to a float");
	if (op == Op::PRODUCT && dtype == ScalarType::Long)
		refuse(op, dtype, "the card holds 32 bits of int64, which a product may exceed; "
		       "convert to int32 or float32");
}

/* The value of int32 @x in an integer of @bits bits. */
Tensor wrap(const Tensor &x, ScalarType dtype)
{
	int64_t size = int64_t(1) << 8 * c10::elementSize(dtype);

	if (dtype == ScalarType::Byte)
		return at::bitwise_and(x, size - 1);
	return at::sub(at::bitwise_and(at::add(x, size / 2), size - 1), size / 2);
}

/* A fault of the context, as for an index out of range, unless all numbers of @x are 0. */
void require_zeros(const Tensor &x)
{
	Tensor most = at::amax(at::abs(x).reshape({ -1 }));

	at::index_select(at::zeros({ 1, 1 }, x.options()), 0, most.reshape({ 1 }));
}

/* Sums of the upper and of the lower halves as one number. */
Tensor join_halves(const Tensor &high, const Tensor &low)
{
	Tensor upper = at::add(high, at::bitwise_right_shift(low, 16));

	require_zeros(at::bitwise_right_shift(at::add(upper, 1 << 15), 16));
	return at::bitwise_or(at::bitwise_left_shift(upper, 16), at::bitwise_and(low, 0xffff));
}

} // namespace

Reduction::Reduction(const Op &op, ScalarType dtype)
	: native_{ native_op(op), op == Op::PREMUL_SUM ? factor_of(op) : 0.0f }
{
	switch (dtype) {
	case ScalarType::Half:
	case ScalarType::BFloat16:
	case ScalarType::Float:
		if (op == Op::BAND || op == Op::BOR || op == Op::BXOR)
			refuse(op, dtype, "only integers have bits");
		break;
	case ScalarType::ComplexFloat:
	case ScalarType::ComplexHalf:
		if (!c10d::isComplexViewAsRealAllowed(op))
			refuse(op, dtype, "only SUM, AVG and PREMUL_SUM are defined");
		break;
	case ScalarType::Bool:
		native_.op = bool_op(op);
		break;
	case ScalarType::Int:
		check_integer(op, dtype);
		break;
	case ScalarType::Long:
		check_integer(op, dtype);
		form_ = op == Op::SUM ? Form::kHalves : Form::kDirect;
		break;
	case ScalarType::Byte:
	case ScalarType::Char:
	case ScalarType::Short:
		check_integer(op, dtype);
		form_ = Form::kInt32;
		break;
	default:
		refuse(op, dtype, "the card does not add these; convert to float16 or bfloat16");
	}
}

std::vector<Tensor> Reduction::split(const Tensor &tensor) const
{
	if (direct())
		return { tensor };

	Tensor x = tensor.to(ScalarType::Int);

	if (form_ == Form::kInt32)
		return { x };
	return { at::bitwise_right_shift(x, 16), at::bitwise_and(x, 0xffff) };
}

std::vector<Tensor> Reduction::empty(const Tensor &like) const
{
	std::vector<Tensor> made;

	if (direct())
		return { like };
	for (int i = 0; i < (form_ == Form::kHalves ? 2 : 1); i++)
		made.push_back(torch_spyre::empty(like.sizes(), ScalarType::Int,
						  like.device().index()));
	return made;
}

void Reduction::join(const std::vector<Tensor> &parts, const Tensor &tensor) const
{
	if (direct() || !tensor.numel())
		return;
	torch_spyre::copy(tensor, form_ == Form::kHalves ? join_halves(parts[0], parts[1]) :
					      wrap(parts[0], tensor.scalar_type()), true);
}

} // namespace torch_spyre
