// SPDX-License-Identifier: MIT
/*
 * Operations that the CPU computes as a whole. Composites of PyTorch that use float64
 * intermediates would fail on the card halfway, and those that reject 16 bits before they
 * call anything (Fourier transforms) at once, although the card can store their results.
 */
#include "kernels.h"

#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/log_softmax_native.h>
#include <ATen/ops/log_softmax_ops.h>
#include <ATen/ops/native_group_norm_native.h>
#include <ATen/ops/softmax_native.h>
#include <ATen/ops/softmax_ops.h>
#include <c10/core/DispatchKeySet.h>

#include "fallback.h"

namespace torch_spyre {

namespace {

using at::ScalarType;
using torch::jit::Stack;

/* Device and dtype of the arguments. */
struct Origin {
	std::optional<c10::Device> device;
	std::optional<ScalarType> narrow;
	bool wide = false;
};

Tensor to_host(const Tensor &t, Origin *from)
{
	if (!t.defined() || !t.is_privateuseone())
		return t;
	from->device = t.device();
	ScalarType real = c10::toRealValueType(t.scalar_type());

	if (real != at::kHalf && real != at::kBFloat16) {
		from->wide = from->wide || (c10::isFloatingType(real) && t.dim());
		return t.to(at::kCPU);
	}
	from->narrow = real;
	return t.to(at::kCPU).to(t.is_complex() ? at::kComplexFloat : at::kFloat);
}

Tensor to_card(const Tensor &t, const Origin &from)
{
	ScalarType dtype = t.scalar_type();

	if (from.narrow && !from.wide && dtype == at::kFloat)
		dtype = *from.narrow;
	else if (from.narrow == at::kHalf && !from.wide && dtype == at::kComplexFloat)
		dtype = at::kComplexHalf;
	/* A float64 result is rounded once, to the widest floating-point dtype of the card. */
	else if (dtype == at::kDouble)
		dtype = at::kFloat;
	else if (dtype == at::kComplexDouble)
		dtype = at::kComplexFloat;
	return t.to(dtype).to(*from.device);
}

/* Runs the operation on the CPU. The copies and the operation have derivatives. */
void whole(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack)
{
	Origin from;
	size_t arguments = op.schema().arguments().size(), base = stack->size() - arguments;

	note_fallback(op, *stack);
	for (size_t i = base; i < stack->size(); i++)
		if ((*stack)[i].isTensor())
			(*stack)[i] = to_host((*stack)[i].toTensor(), &from);
	op.callBoxed(stack);
	for (size_t i = base; i < stack->size(); i++)
		if ((*stack)[i].isTensor() && from.device)
			(*stack)[i] = to_card((*stack)[i].toTensor(), from);
}

const char *const kWhole[] = {
	"ctc_loss.IntList", "ctc_loss.Tensor", "float_power.Scalar", "float_power.Tensor_Scalar",
	"float_power.Tensor_Tensor",
	"linalg_matrix_rank", "linalg_matrix_rank.atol_rtol_float",
	"linalg_matrix_rank.atol_rtol_tensor", "linalg_matrix_rank.tol_tensor", "linalg_pinv",
	"linalg_pinv.atol_rtol_float", "linalg_pinv.atol_rtol_tensor", "linalg_pinv.rcond_tensor",
	"fft_fft", "fft_fft2", "fft_fftn", "fft_hfft", "fft_hfft2", "fft_hfftn", "fft_ifft",
	"fft_ifft2", "fft_ifftn", "fft_ihfft", "fft_ihfft2", "fft_ihfftn", "fft_irfft",
	"fft_irfft2", "fft_irfftn", "fft_rfft", "fft_rfft2", "fft_rfftn", "istft",
	"nanquantile", "nanquantile.scalar", "quantile", "quantile.scalar", "stft", "stft.center",
};

/* These check the dtype before the fallback could retry them in fp32, or look for a kernel
 * of the card. */
const char *const kUnchecked[] = {
	"_linalg_slogdet", "_linalg_slogdet.sign", "linalg_inv_ex", "linalg_inv_ex.inverse",
	"conj_physical_",
};

void unchecked(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack)
{
	cpu_fallback(op, stack);
}

/* ATen would make the empty statistics in float64. */
Tensor batch_norm(const Tensor &input, const std::optional<Tensor> &weight,
		  const std::optional<Tensor> &bias, const std::optional<Tensor> &mean,
		  const std::optional<Tensor> &variance, bool training, double momentum, double eps,
		  bool cudnn)
{
	if (input.sym_numel() != 0)
		return at::native::batch_norm(input, weight, bias, mean, variance, training,
					      momentum, eps, cudnn);

	Tensor result = input.clone();

	/* Uses one element of the parameters, so that they are in the autograd graph. */
	if (weight && weight->defined())
		result = result.mul(weight->select(0, 0));
	if (bias && bias->defined())
		result = result.add(bias->select(0, 0));
	return result;
}

/* Reduces along a dimension in the requested dtype: float64 on the CPU, others on the card. */
template <class Op, auto native>
Tensor softmax(const Tensor &input, int64_t dim, std::optional<at::ScalarType> dtype)
{
	if (dtype != at::kDouble || input.scalar_type() == at::kDouble)
		return native(input, dim, dtype);
	note_fallback(c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name),
		      { input, dim, dtype });
	return Op::call(input.to(at::kCPU), dim, dtype).to(at::kFloat).to(input.device());
}

/* ATen's implementation takes views of its input. */
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor &input,
						     const std::optional<Tensor> &weight,
						     const std::optional<Tensor> &bias, int64_t n,
						     int64_t c, int64_t hxw, int64_t groups,
						     double eps)
{
	return at::native::math_group_norm(input.contiguous(), weight, bias, n, c, hxw, groups,
					   eps);
}

void add_softmax(torch::Library &m)
{
	m.impl("softmax.int", TORCH_FN((softmax<at::_ops::softmax_int, at::native::softmax>)));
	m.impl("log_softmax.int",
	       TORCH_FN((softmax<at::_ops::log_softmax_int, at::native::log_softmax>)));
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	for (const char *name : kWhole)
		m.impl(name, torch::CppFunction::makeFromBoxedFunction<&whole>());
	for (const char *name : kUnchecked)
		m.impl(name, torch::CppFunction::makeFromBoxedFunction<&unchecked>());
	m.impl("batch_norm", TORCH_FN(batch_norm));
	m.impl("native_group_norm", TORCH_FN(native_group_norm));
	add_softmax(m);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m)
{
	for (const char *name : kWhole)
		m.impl(name, torch::CppFunction::makeFromBoxedFunction<&whole>());
	m.impl("batch_norm", TORCH_FN(batch_norm));
	add_softmax(m);
}

} // namespace torch_spyre
