// SPDX-License-Identifier: MIT
/*
 * Batch norm: on the card for inference, on the CPU for training. The CPU updates the
 * running statistics, which the schema does not declare, so the fallback alone would
 * not copy them back.
 */
#include "kernels.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/batch_norm_update_stats_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>

namespace torch_spyre {

namespace {

using MaybeTensor = const std::optional<Tensor> &;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

const Program kBatchNorm = { "aten::native_batch_norm", "batch_norm", build_one, false };

bool given(MaybeTensor t)
{
	return t && t->defined();
}

/* A running statistic, copied to the CPU while that may write it. */
class Statistic {
public:
	explicit Statistic(MaybeTensor card) : card_(card)
	{
		if (given(card_))
			host_ = card_->cpu();
	}

	MaybeTensor host() const { return host_; }

	void bring_back()
	{
		if (host_)
			torch_spyre::copy(*card_, *host_, false);
	}

private:
	std::optional<Tensor> card_, host_;
};

/* Normalises with the running statistics. */
bool normalize(const Tensor &input, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
	       MaybeTensor variance, double eps, Tensor &result)
{
	Call call(kBatchNorm);
	Tensor held[5];
	int n = 0;

	if (!given(mean) || !given(variance) || given(weight) != given(bias) || input.dim() < 2 ||
	    !is_float(input.scalar_type()) || !input.numel())
		return false;
	take_sticks(call, input, &held[n++]);
	take_sticks(call, *mean, &held[n++]);
	take_sticks(call, *variance, &held[n++]);
	if (given(weight)) {
		take_sticks(call, *weight, &held[n++]);
		take_sticks(call, *bias, &held[n++]);
	}
	result = empty(input.sizes(), input.scalar_type(), input.device().index());
	if (!operand_of(result, &call.add_operand()))
		return false;
	call.format = device_format(input.scalar_type());
	call.add("eps", eps);
	if (!launch_or_refuse(call, input.device().index()))
		return false;
	wrote(result, false);
	return true;
}

Three native_batch_norm(const Tensor &input, MaybeTensor weight, MaybeTensor bias,
			MaybeTensor mean, MaybeTensor variance, bool training, double momentum,
			double eps)
{
	Tensor result;

	if (!training && normalize(input, weight, bias, mean, variance, eps, result)) {
		Tensor none = empty({ 0 }, input.scalar_type(), input.device().index());
		return { result, none, none };
	}

	Statistic means(mean), variances(variance);
	Three results = on_cpu<at::_ops::native_batch_norm>(
		input, weight, bias, means.host(), variances.host(), training, momentum, eps);

	if (training) {
		means.bring_back();
		variances.bring_back();
	}
	return results;
}

/* New statistics are in fp32, as torch.compile is told: it rounds them where they are kept. */
Five batch_norm_functional(const Tensor &input, MaybeTensor weight, MaybeTensor bias,
			   const Tensor &mean, const Tensor &variance, bool training,
			   double momentum, double eps)
{
	Tensor new_mean = mean.clone(), new_variance = variance.clone();
	auto [result, saved_mean, saved_scale] = torch_spyre::native_batch_norm(
		input, weight, bias, new_mean, new_variance, training, momentum, eps);

	if (training)
		return { result, saved_mean, saved_scale, new_mean.to(at::kFloat),
			 new_variance.to(at::kFloat) };
	return { result, saved_mean, saved_scale, new_mean, new_variance };
}

void give(const Tensor &result, Tensor &out)
{
	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
}

std::tuple<Tensor &, Tensor &, Tensor &> native_batch_norm_out(
	const Tensor &input, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
	MaybeTensor variance, bool training, double momentum, double eps, Tensor &out,
	Tensor &saved_mean, Tensor &saved_scale)
{
	Three results = torch_spyre::native_batch_norm(input, weight, bias, mean, variance,
						       training, momentum, eps);

	give(std::get<0>(results), out);
	give(std::get<1>(results), saved_mean);
	give(std::get<2>(results), saved_scale);
	return { out, saved_mean, saved_scale };
}

Two batch_norm_update_stats(const Tensor &input, MaybeTensor mean, MaybeTensor variance,
			    double momentum)
{
	Statistic means(mean), variances(variance);
	Two results = on_cpu<at::_ops::batch_norm_update_stats>(input, means.host(),
								variances.host(), momentum);

	means.bring_back();
	variances.bring_back();
	return results;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("native_batch_norm", TORCH_FN(native_batch_norm));
	m.impl("_native_batch_norm_legit_functional", TORCH_FN(batch_norm_functional));
	m.impl("native_batch_norm.out", TORCH_FN(native_batch_norm_out));
	m.impl("batch_norm_update_stats", TORCH_FN(batch_norm_update_stats));
}

} // namespace torch_spyre
