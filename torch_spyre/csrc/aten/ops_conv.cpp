// SPDX-License-Identifier: MIT
/*
 * Convolutions of two dimensions, plain ones and those of single channels, and of
 * three if patches do not overlap.
 */
#include "kernels.h"

#include <algorithm>

#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/linear.h>

namespace torch_spyre {

namespace {

using MaybeTensor = const std::optional<Tensor> &;

const Program kConv2d = { "aten::convolution", "conv2d", build_one, false };
const Program kDepthwise = { "aten::convolution", "depthwise_conv2d", build_one, false };

int64_t extent(int64_t in, int64_t taps, int64_t stride, int64_t padding, int64_t dilation)
{
	return (in + 2 * padding - dilation * (taps - 1) - 1) / stride + 1;
}

bool convolve(const Tensor &input, const Tensor &weight, MaybeTensor bias, at::IntArrayRef stride,
	      at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups, Tensor &result)
{
	bool depthwise = groups > 1 && groups == input.size(1) && groups == weight.size(0);
	Call call(depthwise ? kDepthwise : kConv2d);
	Tensor held[3];

	if (input.dim() != 4 || (groups != 1 && !depthwise) || !is_float(input.scalar_type()) ||
	    weight.scalar_type() != input.scalar_type() || !input.numel() || !weight.numel())
		return false;
	c10::DimVector size = { input.size(0), weight.size(0), 0, 0 };
	for (int d = 0; d < 2; d++)
		size[2 + d] = extent(input.size(2 + d), weight.size(2 + d), stride[d], padding[d],
				     dilation[d]);
	take_sticks(call, input, &held[0]);
	take_sticks(call, weight, &held[1]);
	if (bias && bias->defined())
		take_sticks(call, *bias, &held[2]);
	result = empty(size, input.scalar_type(), input.device().index());
	if (!operand_of(result, &call.add_operand()))
		return false;
	call.format = call.output().desc.layout.device_format;
	for (int d = 0; d < 2; d++) {
		call.add("stride", static_cast<double>(stride[d]));
		call.add("padding", static_cast<double>(padding[d]));
		call.add("dilation", static_cast<double>(dilation[d]));
	}
	if (!launch_or_refuse(call, input.device().index()))
		return false;
	wrote(result, false);
	return true;
}

bool all_are(at::IntArrayRef list, int64_t value)
{
	return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v == value; });
}

/*
 * Patches of three dimensions that lie side by side: each becomes a row, and the convolution a
 * product with the weights as rows.
 */
bool project(const Tensor &input, const Tensor &weight, MaybeTensor bias, at::IntArrayRef stride,
	     at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups, Tensor &result)
{
	int64_t spatial = input.dim() - 2;
	c10::DimVector split = { input.size(0), input.size(1) }, order = { 0 };
	c10::DimVector back = { 0, 1 + spatial }, size = { input.size(0) };

	if (spatial != 3 || groups != 1 || !is_float(input.scalar_type()) ||
	    weight.scalar_type() != input.scalar_type() || !input.numel() || !weight.numel() ||
	    stride != weight.sizes().slice(2) || !all_are(padding, 0) || !all_are(dilation, 1))
		return false;
	Tensor part = input;
	for (int64_t d = 0; d < spatial; d++) {
		int64_t taps = weight.size(2 + d), places = input.size(2 + d) / taps;

		part = part.narrow(2 + d, 0, places * taps);
		split.push_back(places);
		split.push_back(taps);
		order.push_back(2 + 2 * d);
		size.push_back(places);
		back.push_back(1 + d);
	}
	order.push_back(1);
	for (int64_t d = 0; d < spatial; d++)
		order.push_back(3 + 2 * d);
	size.push_back(weight.size(0));
	Tensor rows = part.reshape(split).permute(order).reshape({ -1, weight[0].numel() });
	Tensor product = at::linear(rows, weight.reshape({ weight.size(0), -1 }),
				    bias && bias->defined() ? *bias : Tensor());

	result = product.reshape(size).permute(back);
	return true;
}

Tensor convolution(const Tensor &input, const Tensor &weight, MaybeTensor bias,
		   at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
		   bool transposed, at::IntArrayRef output_padding, int64_t groups)
{
	Tensor result;

	if (!transposed &&
	    (convolve(input, weight, bias, stride, padding, dilation, groups, result) ||
	     project(input, weight, bias, stride, padding, dilation, groups, result)))
		return result;
	return on_cpu<at::_ops::convolution>(input, weight, bias, stride, padding, dilation,
					     transposed, output_padding, groups);
}

std::tuple<Tensor, Tensor, Tensor>
convolution_backward(const Tensor &grad, const Tensor &input, const Tensor &weight,
		     at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
		     bool transposed, at::IntArrayRef output_padding, int64_t groups,
		     std::array<bool, 3> mask)
{
	c10::DimVector bias = { transposed ? weight.size(1) * groups : weight.size(0) };

	return on_cpu<at::_ops::convolution_backward>(grad, input, weight, at::IntArrayRef(bias),
						      stride, padding, dilation, transposed,
						      output_padding, groups, mask);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("convolution_overrideable", TORCH_FN(convolution));
	m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
}

} // namespace torch_spyre
