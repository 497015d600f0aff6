// SPDX-License-Identifier: MIT
/* Tensors filled with a value or with steps. */
#include <cmath>
#include <cstring>

#include <ATen/ops/scalar_tensor_native.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/arange.h>
#include <torch/library.h>

#include "bounds.h"
#include "constant.h"
#include "number.h"
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

bool has_kernels(ScalarType dtype)
{
	return dtype == at::kHalf || dtype == at::kBFloat16 || dtype == at::kFloat ||
	       dtype == at::kBool || dtype == at::kInt || dtype == at::kLong;
}

/* The range of a number of an integer dtype. */
Range range_of_number(ScalarType dtype, double value)
{
	if (!c10::isIntegralType(dtype, false))
		return {};
	return { static_cast<int64_t>(value), static_cast<int64_t>(value) };
}

bool fits_card(int64_t value)
{
	return value == static_cast<int32_t>(value);
}

/*
 * The number rounded to @dtype. Throws if it is finite and beyond the dtype, or one that no number
 * of an integer dtype is: infinity or NaN.
 */
double stored(const at::Scalar &scalar, ScalarType dtype)
{
	double value = scalar.toDouble();

	if (dtype == at::kBool)
		return value != 0;
	TORCH_CHECK(dtype != at::kLong || fits_card(scalar.to<int64_t>()), "spyre: ",
		    scalar.to<int64_t>(), " does not fit int64 as the card keeps it, in 32 bits (",
		    INT32_MIN, " to ", INT32_MAX, "); take a smaller number, or keep the tensor on "
		    "the CPU");
	if (dtype == at::kInt)
		(void)scalar.toInt();
	else if (dtype == at::kFloat)
		(void)scalar.toFloat();
	else if (dtype == at::kHalf)
		(void)scalar.toHalf();
	else if (dtype == at::kBFloat16)
		(void)scalar.toBFloat16();
	return number_in(dtype, value);
}

/* Fills a whole storage with its padding, which needs no kernel for any value. */
bool fill_storage(const Tensor &self, double value)
{
	static constexpr size_t kPattern = 16;
	const Placement &placement = placement_of(self);
	Block *block = block_of(self.storage());
	uint8_t pattern[kPattern] = {};
	bool zero = value == 0 && !std::signbit(value);

	if (c10::multiply_integers(placement.size) != self.numel() ||
	    !self.is_non_overlapping_and_dense() || placement.dtype != self.scalar_type())
		return false;
	if (!zero) {
		if (!has_kernels(placement.dtype))
			return false;

		bool wide = placement.dtype == at::kFloat || placement.dtype == at::kInt ||
			    placement.dtype == at::kLong;
		size_t width = wide ? 4 : 2;

		fill_pattern(encode_constant(value, device_format(placement.dtype)), width, pattern,
			     kPattern);
	}
	check(spyre_memset_async(current_native_stream(block->device), block->address, pattern,
				 kPattern, spyre_layout_bytes(&placement.layout)), "aten::fill_");
	block->clean_padding = zero;
	set_range(self, range_of_number(self.scalar_type(), value), Range());
	return true;
}

/* Fills a part of a storage by a kernel, which takes changing values as data. */
bool fill_by_kernel(const Tensor &self, double value)
{
	ScalarType dtype = self.scalar_type();
	Call call(kFill);

	if (!has_kernels(dtype) || !constant_for(device_format(dtype), &value) ||
	    !operand_of(self, &call.add_operand()) || !is_writable(self, call.operand[0]))
		return false;
	if (keeps_changing(kFill, 0, device_format(dtype), self.sizes(), value)) {
		Tensor one = one_element(value, device_format(dtype), self.device().index());

		torch_spyre::copy(self, one.expand(self.sizes()), true);
		return true;
	}
	call.add("value", value);
	if (!launch_or_refuse(call, self.device().index()))
		return false;
	wrote(self, false, range_of_number(dtype, value));
	return true;
}

Tensor &fill(Tensor &self, const at::Scalar &value)
{
	if (!self.numel())
		return self;
	if (!self.is_complex() && !value.isComplex() && !value.isSymbolic()) {
		double number = stored(value, self.scalar_type());

		if (fill_storage(self, number) || fill_by_kernel(self, number))
			return self;
	}
	Tensor one = at::native::scalar_tensor(value, self.scalar_type());
	Range before = block_of(self.storage())->range;
	torch_spyre::copy(self, one.expand(self.sizes()), true);
	set_range(self, range_of_host(one), before);
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

/* The CPU rounds this number without the check of fill(), which refuses what exceeds the dtype. */
Tensor scalar_tensor(const at::Scalar &value, std::optional<ScalarType> dtype,
		     std::optional<c10::Layout>, std::optional<c10::Device> device,
		     std::optional<bool>)
{
	Tensor host = at::native::scalar_tensor(value, dtype);
	bool has_index = device && device->has_index();
	Tensor result = empty({}, host.scalar_type(),
			      has_index ? device->index() : current_device());
	bool real = c10::isFloatingType(host.scalar_type());
	double number = real ? value.toDouble() : 0;

	return fill(result, fit_number(host.scalar_type(), &number) ? value : host.item());
}

/*
 * Computes the numbers on the host, in fp32 for 16 bits, so that each is rounded once.
 */
Tensor &arange_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step,
		   Tensor &out)
{
	ScalarType dtype = out.scalar_type();
	bool narrow = dtype == at::kHalf || dtype == at::kBFloat16;
	Tensor host = at::arange(start, end, step, narrow ? at::kFloat : dtype);

	at::native::resize_output(out, host.sizes());
	if (!host.numel())
		return out;
	copy_constant(out, host);
	return out;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("fill_.Scalar", TORCH_FN(fill_scalar));
	m.impl("fill_.Tensor", TORCH_FN(fill_tensor));
	m.impl("zero_", TORCH_FN(zero));
	m.impl("scalar_tensor", TORCH_FN(scalar_tensor));
	m.impl("arange.start_out", TORCH_FN(arange_out));
}

} // namespace torch_spyre
