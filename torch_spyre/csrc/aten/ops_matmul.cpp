// SPDX-License-Identifier: MIT
/*
 * Matrix products. Batches stay dimensions of their own: flattening them would
 * be another order of sticks. A bias is added in the same kernel.
 */
#include <ATen/core/Tensor.h>

#include <cmath>

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/linear_backward_ops.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/matmul_backward_ops.h>
#include <ATen/ops/matmul_native.h>
#include <ATen/ops/mm_ops.h>
#include <torch/library.h>

#include "number.h"
#include "operand.h"
#include "pointwise.h"
#include "product.h"

namespace torch_spyre {

using at::Tensor;

namespace {

constexpr uint32_t kMaxRank = 5;	/* limit of the builder's matmul */

bool is_complete_matrix(const Tensor &t, const spyre_sdsc_operand &d)
{
	return d.size[d.rank - 1] == t.size(-1) && d.size[d.rank - 2] == t.size(-2);
}

} // namespace

void take_factor(const Tensor &t, Operand *o, Tensor *held)
{
	auto fits = [&] {
		const spyre_sdsc_operand &d = o->desc;
		int stick = stick_dim(d), rank = static_cast<int>(d.rank);

		/* A single column has one element per stick. */
		return d.rank <= kMaxRank && is_complete_matrix(t, d) &&
		       (t.size(-1) == 1 ? stick < 0 : stick >= rank - 2);
	};

	if (operand_of(t, o) && fits())
		return;
	*held = dense_copy(t);
	operand_of(*held, o);
}

namespace {

const char kTransposeB[] = "transpose_b", kAlpha[] = "alpha", kBeta[] = "beta";

/* a b, or alpha a b + beta bias. */
void build_product(Graph &graph, const Call &call)
{
	double transpose = 0, alpha = 1, beta = 1;
	bool has_bias = call.num_inputs() > 2;

	for (unsigned i = 0; i < call.num_attributes; i++) {
		const spyre_sdsc_attribute &a = call.attribute[i];
		(a.name == kTransposeB ? transpose : a.name == kAlpha ? alpha : beta) = a.value;
	}
	bool last = !has_bias && alpha == 1;
	Graph::Tensor product = graph.add("matmul", { graph.argument(0), graph.argument(1) },
					  { { "transpose_b", transpose } },
					  last ? graph.output() : Graph::kNew);
	if (alpha != 1)
		product = graph.add("mul", { product }, { { "other", alpha } },
				    has_bias ? Graph::kNew : graph.output());
	if (!has_bias)
		return;
	Graph::Tensor bias = graph.argument(2);
	if (beta != 1)
		bias = graph.add("mul", { bias }, { { "other", beta } });
	graph.add("add", { product, bias }, {}, graph.output());
}

const Program kMm = { "aten::mm", "matmul", build_product, false };
const Program kBmm = { "aten::bmm", "matmul", build_product, false };
const Program kMatmul = { "aten::matmul", "matmul", build_product, false };
const Program kLinear = { "aten::linear", "linear", build_product, false };
const Program kAddmm = { "aten::addmm", "addmm", build_product, false };
const Program kBaddbmm = { "aten::baddbmm", "matmul", build_product, false };

struct Product {
	const Program &program;
	const Tensor &a, &b;
	const Tensor *bias = nullptr;
	bool transpose_b = false;
	double alpha = 1, beta = 1;
};

/*
 * Both factors repeat the elements of a dimension of the batches, so that the product of one
 * element would fill the others. Its plan differs from the plan of as many products, and with it
 * the order of sums: compiled programs, whose results have all elements, need the latter.
 */
bool repeats_batches(const Tensor &target, const spyre_sdsc_operand &a, const spyre_sdsc_operand &b)
{
	auto size = [](const spyre_sdsc_operand &o, int64_t from_last) {
		return from_last <= o.rank ? o.size[o.rank - from_last] : 1;
	};

	for (int64_t d = 3; d <= target.dim(); d++)
		if (size(a, d) == 1 && size(b, d) == 1 && target.size(-d) > 1)
			return true;
	return false;
}

void take_factors(const Product &p, const Tensor &target, Call *call, Tensor held[2])
{
	Operand &a = call->add_operand(), &b = call->add_operand();

	take_factor(p.a, &a, &held[0]);
	take_factor(p.b, &b, &held[1]);
	if (!repeats_batches(target, a.desc, b.desc))
		return;
	if (!p.a.is_non_overlapping_and_dense())
		operand_of(held[0] = dense_copy(p.a), &a);
	if (!p.b.is_non_overlapping_and_dense())
		operand_of(held[1] = dense_copy(p.b), &b);
}

bool run_product(const Product &p, const Tensor &target)
{
	Tensor held[4];
	Call call(p.program);

	take_factors(p, target, &call, held);
	if (p.bias) {
		Operand &bias = call.add_operand();
		bool plain = operand_of(*p.bias, &bias) &&
			     (stick_dim(bias.desc) >= 0 || !p.bias->dim() || p.bias->size(-1) == 1);
		if (!plain)
			operand_of(held[2] = dense_copy(*p.bias), &bias);
	}
	operand_of(target, &call.add_operand());
	call.format = call.output().desc.layout.device_format;
	call.add(kTransposeB, p.transpose_b);
	if (p.alpha != 1)
		call.add(kAlpha, p.alpha);
	if (p.bias && p.beta != 1)
		call.add(kBeta, p.beta);
	if (!launch_or_refuse(call, target.device().index()))
		return false;
	wrote(target, false);
	return true;
}

/* Computes into @out, or into a tensor that is then copied to it. */
bool product_into(const Product &p, at::IntArrayRef size, Tensor &out)
{
	bool given = out.defined();
	Tensor target = out;
	Operand o;

	if (!is_float(p.a.scalar_type()) || p.a.size(-1) == 0 || c10::multiply_integers(size) == 0)
		return false;
	if (given) {
		at::native::resize_output(out, size);
		int last = static_cast<int>(size.size()) - 1;
		bool direct = operand_of(out, &o) && is_writable(out, o) && !out.is_alias_of(p.a) &&
			      !out.is_alias_of(p.b) && !(p.bias && out.is_alias_of(*p.bias)) &&
			      (out.size(-1) == 1 || stick_dim(o.desc) == last);
		if (!direct)
			target = Tensor();
	}
	if (!target.defined())
		target = empty(size, p.a.scalar_type(), p.a.device().index());
	if (!run_product(p, target))
		return false;
	if (!given)
		out = target;
	else if (!target.is_same(out))
		torch_spyre::copy(out, target, true);
	return true;
}

void check_same(const char *what, const Tensor &a, const Tensor &b)
{
	TORCH_CHECK(a.device() == b.device(),
		    "Expected all tensors to be on the same device, but found at least two devices, ",
		    a.device(), " and ", b.device(), "! (when checking arguments of ", what, ")");
	TORCH_CHECK(a.scalar_type() == b.scalar_type(),
		    "expected m1 and m2 to have the same dtype, but got: ", a.dtype(), " != ",
		    b.dtype());
}

void check_mm(const char *what, const Tensor &a, const Tensor &b)
{
	TORCH_CHECK(a.dim() == 2, what, ": mat1 must be a matrix, got ", a.dim(), "-D tensor");
	TORCH_CHECK(b.dim() == 2, what, ": mat2 must be a matrix, got ", b.dim(), "-D tensor");
	TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0),
		    "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
	check_same(what, a, b);
}

void check_bmm(const char *what, const Tensor &a, const Tensor &b)
{
	TORCH_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
	TORCH_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
	TORCH_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1),
		    "Expected size for first two dimensions of batch2 tensor to be: [", a.size(0),
		    ", ", a.size(2), "] but got: [", b.size(0), ", ", b.size(1), "].");
	check_same(what, a, b);
}

Tensor mm_new(const Tensor &a, const Tensor &b)
{
	Tensor out;

	check_mm("mm", a, b);
	return product_into({ kMm, a, b }, { a.size(0), b.size(1) }, out) ? out :
	       on_cpu<at::_ops::mm>(a, b);
}

Tensor &mm_out(const Tensor &a, const Tensor &b, Tensor &out)
{
	check_mm("mm", a, b);
	check_same("mm", a, out);
	return product_into({ kMm, a, b }, { a.size(0), b.size(1) }, out) ? out :
	       on_cpu<at::_ops::mm_out>(a, b, out);
}

Tensor bmm(const Tensor &a, const Tensor &b)
{
	Tensor out;

	check_bmm("bmm", a, b);
	return product_into({ kBmm, a, b }, { a.size(0), a.size(1), b.size(2) }, out) ? out :
	       on_cpu<at::_ops::bmm>(a, b);
}

Tensor &bmm_out(const Tensor &a, const Tensor &b, Tensor &out)
{
	check_bmm("bmm", a, b);
	check_same("bmm", a, out);
	return product_into({ kBmm, a, b }, { a.size(0), a.size(1), b.size(2) }, out) ? out :
	       on_cpu<at::_ops::bmm_out>(a, b, out);
}

/* beta bias + alpha a b; the bias is not read if beta is 0. */
bool biased(const Program &program, const Tensor &bias, const Tensor &a, const Tensor &b,
	    const at::Scalar &beta, const at::Scalar &alpha, at::IntArrayRef size, Tensor &out)
{
	Product p{ program, a, b };

	if (alpha.isComplex() || beta.isComplex())
		return false;
	p.alpha = alpha.toDouble();
	p.beta = beta.toDouble();
	if (p.beta != 0) {
		check_same(program.aten, a, bias);
		TORCH_CHECK(at::is_expandable_to(bias.sizes(), size),
			    "The expanded size of the tensor ", size,
			    " must match the existing size ", bias.sizes());
		p.bias = &bias;
	}
	return std::isfinite(p.alpha) && std::isfinite(p.beta) &&
	       is_factor(a.scalar_type(), p.alpha) && is_factor(a.scalar_type(), p.beta) &&
	       product_into(p, size, out);
}

Tensor addmm(const Tensor &bias, const Tensor &a, const Tensor &b, const at::Scalar &beta,
	     const at::Scalar &alpha)
{
	Tensor out;

	check_mm("addmm", a, b);
	return biased(kAddmm, bias, a, b, beta, alpha, { a.size(0), b.size(1) }, out) ? out :
	       on_cpu<at::_ops::addmm>(bias, a, b, beta, alpha);
}

Tensor &addmm_out(const Tensor &bias, const Tensor &a, const Tensor &b, const at::Scalar &beta,
		  const at::Scalar &alpha, Tensor &out)
{
	check_mm("addmm", a, b);
	check_same("addmm", a, out);
	return biased(kAddmm, bias, a, b, beta, alpha, { a.size(0), b.size(1) }, out) ? out :
	       on_cpu<at::_ops::addmm_out>(bias, a, b, beta, alpha, out);
}

Tensor &addmm_in_place(Tensor &bias, const Tensor &a, const Tensor &b, const at::Scalar &beta,
		       const at::Scalar &alpha)
{
	return addmm_out(bias, a, b, beta, alpha, bias);
}

Tensor baddbmm(const Tensor &bias, const Tensor &a, const Tensor &b, const at::Scalar &beta,
	       const at::Scalar &alpha)
{
	Tensor out;

	check_bmm("baddbmm", a, b);
	return biased(kBaddbmm, bias, a, b, beta, alpha, { a.size(0), a.size(1), b.size(2) }, out) ?
	       out : on_cpu<at::_ops::baddbmm>(bias, a, b, beta, alpha);
}

Tensor &baddbmm_out(const Tensor &bias, const Tensor &a, const Tensor &b, const at::Scalar &beta,
		    const at::Scalar &alpha, Tensor &out)
{
	check_bmm("baddbmm", a, b);
	check_same("baddbmm", a, out);
	return biased(kBaddbmm, bias, a, b, beta, alpha, { a.size(0), a.size(1), b.size(2) }, out) ?
	       out : on_cpu<at::_ops::baddbmm_out>(bias, a, b, beta, alpha, out);
}

Tensor &baddbmm_in_place(Tensor &bias, const Tensor &a, const Tensor &b, const at::Scalar &beta,
			 const at::Scalar &alpha)
{
	return baddbmm_out(bias, a, b, beta, alpha, bias);
}

Tensor linear(const Tensor &input, const Tensor &weight, const std::optional<Tensor> &bias)
{
	bool has_bias = bias && bias->defined();
	Tensor out, rows = input;

	TORCH_CHECK(weight.dim() == 2, "linear: weight must be a matrix, got ", weight.dim(),
		    "-D tensor");
	TORCH_CHECK(input.dim() >= 1 && input.size(-1) == weight.size(1),
		    "mat1 and mat2 shapes cannot be multiplied (", input.sizes(), " and ",
		    weight.size(1), "x", weight.size(0), ")");
	check_same("linear", input, weight);
	if (has_bias)
		check_same("linear", input, *bias);
	if (input.dim() == 1)
		rows = input.unsqueeze(0);
	else if (input.dim() > kMaxRank)
		rows = input.flatten(0, input.dim() - static_cast<int64_t>(kMaxRank));
	c10::DimVector size(rows.sizes());
	size.back() = weight.size(0);
	Product p{ kLinear, rows, weight };
	p.transpose_b = true;
	p.bias = has_bias ? &*bias : nullptr;
	if (!product_into(p, size, out))
		return on_cpu<at::_ops::linear>(input, weight, bias);
	size.assign(input.sizes().begin(), input.sizes().end());
	size.back() = weight.size(0);
	return out.sizes() == at::IntArrayRef(size) ? out : out.view(size);
}

/* Multiplies with broadcast batches; vectors become a row and a column. */
Tensor matmul_new(const Tensor &a, const Tensor &b)
{
	Tensor rows = a.dim() == 1 ? a.unsqueeze(0) : a;
	Tensor columns = b.dim() == 1 ? b.unsqueeze(1) : b;
	Tensor out;

	TORCH_CHECK(a.dim() && b.dim(), "both arguments to matmul need to be at least 1D, but they are ",
		    a.dim(), "D and ", b.dim(), "D");
	if (rows.dim() > kMaxRank || columns.dim() > kMaxRank)
		return at::native::matmul(a, b);
	TORCH_CHECK(rows.size(-1) == columns.size(-2), "mat1 and mat2 shapes cannot be multiplied (",
		    a.sizes(), " and ", b.sizes(), ")");
	check_same("matmul", a, b);
	c10::DimVector size(at::infer_size_dimvector(rows.sizes().slice(0, rows.dim() - 2),
						     columns.sizes().slice(0, columns.dim() - 2)));
	size.push_back(rows.size(-2));
	size.push_back(columns.size(-1));
	if (!product_into({ kMatmul, rows, columns }, size, out))
		return on_cpu<at::_ops::matmul>(a, b);
	if (b.dim() == 1)
		out = out.squeeze(-1);
	return a.dim() == 1 ? out.squeeze(b.dim() == 1 ? -1 : -2) : out;
}

Tensor &matmul_out(const Tensor &a, const Tensor &b, Tensor &out)
{
	Tensor result = matmul_new(a, b);

	TORCH_CHECK(out.scalar_type() == result.scalar_type(), "Expected out tensor to have dtype ",
		    result.dtype(), ", but got ", out.dtype(), " instead");
	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
	return out;
}

/* Sums a gradient along broadcast dimensions. */
Tensor reduced_to(const Tensor &gradient, const Tensor &like)
{
	return at::sum_to(gradient, like.sizes());
}

std::tuple<Tensor, Tensor> matmul_backward(const Tensor &grad, const Tensor &a, const Tensor &b,
					   std::array<bool, 2> mask)
{
	Tensor ga, gb;

	if (!grad.defined())
		return { ga, gb };
	Tensor rows = a.dim() == 1 ? a.unsqueeze(0) : a;
	Tensor columns = b.dim() == 1 ? b.unsqueeze(1) : b;
	Tensor g = b.dim() == 1 ? grad.unsqueeze(-1) : grad;
	if (a.dim() == 1)
		g = g.unsqueeze(-2);
	if (mask[0])
		ga = reduced_to(matmul_new(g, columns.mT()), rows).view_as(a);
	if (mask[1])
		gb = reduced_to(matmul_new(rows.mT(), g), columns).view_as(b);
	return { ga, gb };
}

std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor &input, const Tensor &grad,
						   const Tensor &weight, std::array<bool, 3> mask)
{
	Tensor gi, gw, gb;

	if (!grad.defined())
		return { gi, gw, gb };
	Tensor rows = input.reshape({ -1, input.size(-1) });
	Tensor g = grad.reshape({ -1, grad.size(-1) });
	if (mask[0])
		gi = matmul_new(grad, weight);
	if (mask[1])
		gw = mm_new(g.t(), rows);
	if (mask[2])
		gb = g.sum(0);
	return { gi, gw, gb };
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("mm", TORCH_FN(mm_new));
	m.impl("mm.out", TORCH_FN(mm_out));
	m.impl("bmm", TORCH_FN(bmm));
	m.impl("bmm.out", TORCH_FN(bmm_out));
	m.impl("addmm", TORCH_FN(addmm));
	m.impl("addmm.out", TORCH_FN(addmm_out));
	m.impl("addmm_", TORCH_FN(addmm_in_place));
	m.impl("baddbmm", TORCH_FN(baddbmm));
	m.impl("baddbmm.out", TORCH_FN(baddbmm_out));
	m.impl("baddbmm_", TORCH_FN(baddbmm_in_place));
	m.impl("linear", TORCH_FN(linear));
	m.impl("linear_backward", TORCH_FN(linear_backward));
	m.impl("matmul", TORCH_FN(matmul_new));
	m.impl("matmul.out", TORCH_FN(matmul_out));
	m.impl("matmul_backward", TORCH_FN(matmul_backward));
}

} // namespace torch_spyre
