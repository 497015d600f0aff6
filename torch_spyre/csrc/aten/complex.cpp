// SPDX-License-Identifier: MIT
/* Complex tensors: views of their parts, and copies. Arithmetic runs on the CPU. */
#include "complex.h"

#include <ATen/ops/conj_physical.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/view_as_real_native.h>
#include <torch/library.h>

#include "copy.h"
#include "tensor.h"

namespace torch_spyre {

namespace {

using at::Tensor;

/* The stored numbers of a complex tensor of the card, whether or not reading it conjugates. */
Tensor stored_parts(const Tensor &tensor)
{
	c10::DimVector size(tensor.sizes().begin(), tensor.sizes().end()), stride;

	/* Memory of no dtype yet takes the form of the complex tensor. */
	placed_block(tensor);
	for (int64_t step : tensor.strides())
		stride.push_back(2 * step);
	size.push_back(2);
	stride.push_back(1);
	return make_tensor(tensor.storage(), c10::toRealValueType(tensor.scalar_type()), size,
			   stride, 2 * tensor.storage_offset());
}

/* The same on either side. */
Tensor parts_of(const Tensor &tensor)
{
	if (tensor.is_privateuseone())
		return stored_parts(tensor);
	return at::view_as_real(tensor.is_conj() ? tensor.conj() : tensor);
}

/* @source in memory of the host, with its dtype and its bit of conjugation. */
Tensor on_host(const Tensor &source)
{
	if (source.is_cpu())
		return source;
	Tensor host = at::empty(source.sizes(), at::TensorOptions().dtype(source.scalar_type()));

	if (!source.is_complex()) {
		copy(host, source, false);
		return host;
	}
	copy(at::view_as_real(host), stored_parts(source), false);
	return source.is_conj() ? host.conj() : host;
}

} // namespace

void copy_complex(const Tensor &target, const Tensor &given, bool non_blocking)
{
	Tensor source = given.sizes() == target.sizes() ? given : given.expand(target.sizes());

	if (source.is_complex() && target.is_complex() && source.is_conj() == target.is_conj() &&
	    !source.is_neg() && !target.is_neg()) {
		copy(parts_of(target), parts_of(source), non_blocking);
		return;
	}
	source = on_host(source);
	if (target.is_cpu()) {
		target.copy_(source);
		return;
	}
	source = source.to(target.scalar_type()).resolve_conj().resolve_neg();
	if (target.is_conj())
		source = at::conj_physical(source);
	if (target.is_complex())
		copy(stored_parts(target), at::view_as_real(source), false);
	else
		copy(target, source, false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
	m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

/* Copies read and write conjugated views themselves; the fallback of this key would copy first. */
TORCH_LIBRARY_IMPL(aten, Conjugate, m)
{
	m.impl("_copy_from", torch::CppFunction::makeFallthrough());
	m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

} // namespace torch_spyre
