// SPDX-License-Identifier: MIT
/* Tensors filled with a value or with steps. */
#include <cmath>
#include <cstring>

#include <ATen/ops/scalar_tensor_native.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/arange.h>
#include <torch/library.h>

#include "operand.h"
#include "pointwise.h"

namespace torch_spyre {

namespace {

using at::ScalarType;
using at::Tensor;

void build_fill(Graph &graph, const Call &call)
{
	graph.add("fill", nullptr, 0, call.attribute, call.num_attributes, graph.output());
}

const Program kFill = { "aten::fill_", "fill", build_fill, false };

/* All bytes of a storage: zeros of any dtype, padding too, without a kernel. */
bool zero_storage(const Tensor &self)
{
	static const uint8_t zero[16] = {};
	const Placement &placement = placement_of(self);
	Block *block = block_of(self.storage());

	if (c10::multiply_integers(placement.size) != self.numel() ||
	    !self.is_non_overlapping_and_dense())
		return false;
	check(spyre_memset_async(current_native_stream(block->device), block->address, zero,
				 sizeof(zero), spyre_layout_bytes(&placement.layout)),
	      "aten::zero_");
	block->clean_padding = true;
	return true;
}

/* By a kernel, for floats and bools. */
bool fill_by_kernel(const Tensor &self, double value)
{
	ScalarType dtype = self.scalar_type();
	Call call(kFill);

	if (dtype == at::kBool)
		value = value != 0;
	else if (dtype != at::kHalf && dtype != at::kBFloat16 && dtype != at::kFloat)
		return false;
	if (!constant_for(device_format(dtype), &value) || !operand_of(self, &call.add_operand()) ||
	    !is_writable(self, call.operand[0]))
		return false;
	call.add("value", value);
	if (!launch_or_refuse(call, self.device().index()))
		return false;
	wrote(self, false);
	return true;
}

Tensor &fill(Tensor &self, const at::Scalar &value)
{
	if (!self.numel())
		return self;
	if (value.isComplex() || value.isSymbolic() ||
	    !((value.toDouble() == 0 && !std::signbit(value.toDouble()) && zero_storage(self)) ||
	      fill_by_kernel(self, value.toDouble())))
		torch_spyre::copy(self, at::native::scalar_tensor(value, self.scalar_type()).expand(self.sizes()),
				  true);
	return self;
}

Tensor &fill_scalar(Tensor &self, const at::Scalar &value)
{
	return fill(self, value);
}

Tensor &fill_tensor(Tensor &self, const Tensor &value)
{
	TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
		    value.dim(), " dimensions.");
	if (value.is_cpu())
		return fill(self, value.item());
	torch_spyre::copy(self, value.expand(self.sizes()), true);
	return self;
}

Tensor &zero(Tensor &self)
{
	return fill(self, 0);
}

/* Numbers of the host, those of 16 bits from fp32: each is rounded once. */
Tensor &arange_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step,
		   Tensor &out)
{
	ScalarType dtype = out.scalar_type();
	bool narrow = dtype == at::kHalf || dtype == at::kBFloat16;
	Tensor host = at::arange(start, end, step, narrow ? at::kFloat : dtype);

	at::native::resize_output(out, host.sizes());
	torch_spyre::copy(out, host, true);
	return out;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("fill_.Scalar", TORCH_FN(fill_scalar));
	m.impl("fill_.Tensor", TORCH_FN(fill_tensor));
	m.impl("zero_", TORCH_FN(zero));
	m.impl("arange.start_out", TORCH_FN(arange_out));
}

} // namespace torch_spyre
