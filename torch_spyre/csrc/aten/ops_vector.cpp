// SPDX-License-Identifier: MIT
/* Products of vectors: those of matrices with one row or column. */
#include "kernels.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv_ops.h>

namespace torch_spyre {

namespace {

Tensor dot(const Tensor &a, const Tensor &b)
{
	TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ",
		    b.dim(), "D tensors");
	TORCH_CHECK(a.dtype() == b.dtype(), "dot : expected both vectors to have same dtype, but found ",
		    a.dtype(), " and ", b.dtype());
	TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(),
		    "] and src [", b.numel(), "] to have the same number of elements");
	if (!a.is_floating_point() || !a.numel())
		return on_cpu<at::_ops::dot>(a, b);
	return at::mm(a.unsqueeze(0), b.unsqueeze(1)).squeeze();
}

void check_vectors(const Tensor &matrix, const Tensor &vector)
{
	TORCH_CHECK(matrix.dim() == 2 && vector.dim() == 1 && matrix.size(1) == vector.size(0),
		    "size mismatch, got a matrix of ", matrix.sizes(), " and a vector of ",
		    vector.sizes());
}

Tensor matrix_vector(const Tensor &matrix, const Tensor &vector)
{
	check_vectors(matrix, vector);
	if (!matrix.is_floating_point())
		return on_cpu<at::_ops::mv>(matrix, vector);
	return at::mm(matrix, vector.unsqueeze(1)).squeeze(1);
}

bool addmv(const Tensor &self, const Tensor &matrix, const Tensor &vector, const at::Scalar &beta,
	   const at::Scalar &alpha, Tensor &result, bool resize)
{
	check_vectors(matrix, vector);
	if (!matrix.is_floating_point() || self.dim() > 1)
		return false;
	/* If beta is 0, self is ignored, also its NaN. */
	Tensor product = matrix_vector(matrix, vector);
	Tensor sum = beta.equal(0) ? product.mul(alpha) :
		     at::add(beta.equal(1) ? self : self.mul(beta), product, alpha);
	if (!result.defined()) {
		result = sum;
		return true;
	}
	if (resize)
		at::native::resize_output(result, sum.sizes());
	torch_spyre::copy(result, sum, true);
	return true;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("dot", TORCH_FN(dot));
	m.impl("mv", TORCH_FN(matrix_vector));
	add_forms<addmv, at::_ops::addmv, at::_ops::addmv_, at::_ops::addmv_out>(m);
}

} // namespace torch_spyre
