// SPDX-License-Identifier: MIT
/* Pooling over windows of two dimensions. */
#include "kernels.h"

#include <ATen/core/grad_mode.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/max_pool2d_ops.h>
#include <ATen/ops/max_pool2d_with_indices.h>

namespace torch_spyre {

namespace {

using at::IntArrayRef;

const Program kMaxPool = { "aten::max_pool2d", "max_pool2d", build_one, false };
const Program kAvgPool = { "aten::avg_pool2d", "avg_pool2d", build_one, false };

struct Windows {
	const Tensor &input;
	IntArrayRef kernel, stride, padding, dilation;
	bool ceil;

	/* One number applies to both directions; a missing stride is the window's size. */
	static int64_t of(IntArrayRef list, int d) { return list[list.size() > 1 ? d : 0]; }
	int64_t step(int d) const { return of(stride.empty() ? kernel : stride, d); }
	int64_t reach(int d) const { return of(dilation, d) * (of(kernel, d) - 1) + 1; }
	int64_t count(int d) const;
};

/* Number of windows; a last one that begins in the padding does not count. */
int64_t Windows::count(int d) const
{
	int64_t room = input.size(d - 2) + 2 * of(padding, d) - reach(d), n = room / step(d) + 1;

	if (ceil && room % step(d) && n * step(d) < input.size(d - 2) + of(padding, d))
		n++;
	return room < 0 ? 0 : n;
}

bool pool(Call &call, const Windows &w, Tensor &result)
{
	int64_t rank = w.input.dim();
	Tensor image = rank == 3 ? w.input.unsqueeze(0) : w.input, held;

	if ((rank != 3 && rank != 4) || !is_float(w.input.scalar_type()) || !w.input.numel() ||
	    w.count(0) < 1 || w.count(1) < 1)
		return false;
	take_sticks(call, image, &held);
	Tensor pooled = empty({ image.size(0), image.size(1), w.count(0), w.count(1) },
			      w.input.scalar_type(), w.input.device().index());
	if (!operand_of(pooled, &call.add_operand()))
		return false;
	call.format = device_format(w.input.scalar_type());
	for (int d = 0; d < 2; d++) {
		call.add("kernel_size", static_cast<double>(Windows::of(w.kernel, d)));
		call.add("stride", static_cast<double>(w.step(d)));
		call.add("padding", static_cast<double>(Windows::of(w.padding, d)));
	}
	call.add("ceil_mode", w.ceil);
	if (!launch_or_refuse(call, w.input.device().index()))
		return false;
	wrote(pooled, false);
	result = rank == 3 ? pooled.squeeze(0) : pooled;
	return true;
}

Tensor max_pool2d(const Tensor &input, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
		  IntArrayRef dilation, bool ceil)
{
	Call call(kMaxPool);
	Tensor result;

	if (Windows::of(dilation, 0) == 1 && Windows::of(dilation, 1) == 1 &&
	    pool(call, { input, kernel, stride, padding, dilation, ceil }, result))
		return result;
	return std::get<0>(at::max_pool2d_with_indices(input, kernel, stride, padding, dilation,
						       ceil));
}

/* If a derivative is needed, keeps the indices of the largest elements. */
Tensor max_pool2d_autograd(c10::DispatchKeySet keys, const Tensor &input, IntArrayRef kernel,
			   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil)
{
	if (at::GradMode::is_enabled() && input.requires_grad())
		return std::get<0>(at::max_pool2d_with_indices(input, kernel, stride, padding,
							       dilation, ceil));
	return at::_ops::max_pool2d::redispatch(keys & c10::after_autograd_keyset, input, kernel,
						stride, padding, dilation, ceil);
}

bool avg_pool2d(const Tensor &input, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
		bool ceil, bool count_padding, std::optional<int64_t> divisor, Tensor &result,
		bool resize)
{
	static const int64_t one = 1;
	Call call(kAvgPool);
	Tensor pooled;

	call.add("count_include_pad", count_padding);
	if (divisor) {
		TORCH_CHECK(*divisor, "divisor must be not zero");
		call.add("divisor_override", static_cast<double>(*divisor));
	}
	if (!pool(call, { input, kernel, stride, padding, IntArrayRef(one), ceil }, pooled))
		return false;
	if (!resize) {
		result = pooled;
		return true;
	}
	at::native::resize_output(result, pooled.sizes());
	torch_spyre::copy(result, pooled, true);
	return true;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("max_pool2d", TORCH_FN(max_pool2d));
	add_forms<avg_pool2d, at::_ops::avg_pool2d, at::_ops::avg_pool2d_out>(m);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m)
{
	m.impl("max_pool2d", TORCH_FN(max_pool2d_autograd));
}

} // namespace torch_spyre
