// SPDX-License-Identifier: MIT
/* softmax(scale q k^T + mask) v, one kernel without a derivative to come. */
#include "kernels.h"

#include <cmath>
#include <limits>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention_ops.h>
#include <ATen/ops/where.h>

#include "operand.h"

namespace torch_spyre {

namespace {

using MaybeTensor = const std::optional<Tensor> &;

/* Score of masked elements, far below all scores and far from the limit of DL16. */
constexpr double kMasked = -4294967296.0;
/* The mask is boolean. */
const char kBoolMask[] = "bool_mask";

void build_attention(Graph &graph, const Call &call)
{
	bool masked = call.num_inputs() > 3, truth = call.num_attributes > 3;
	Graph::Tensor input[4] = {}, mask = 0;

	for (unsigned i = 0; i < call.num_inputs(); i++)
		input[i] = graph.cast(graph.argument(i), call.format);
	if (masked)
		mask = input[3];
	if (truth)
		input[3] = graph.add("where", { mask }, { { "input", 0 }, { "other", kMasked } });
	Graph::Tensor result = graph.add("attention", input, call.num_inputs(), call.attribute, 3,
					 masked ? Graph::kNew : graph.output());
	if (!masked)
		return;
	/* Rows whose mask excludes all keys, by false or by -inf, have zeros as results. */
	Graph::Tensor any = graph.add("amax", { mask }, { { "dim", -1 }, { "keepdim", 1 } });
	if (!truth)
		any = graph.add("ne", { any },
				{ { "other", -std::numeric_limits<double>::infinity() } });
	graph.add("where", { any, result }, { { "other", 0 } }, graph.output());
}

const Program kAttention = { "aten::scaled_dot_product_attention", "attention", build_attention,
			     false };

/* Takes a tensor with rows and columns in full and sticks along one of them. */
void take_matrix(const Tensor &t, Operand *o, Tensor *held)
{
	auto rank = static_cast<int>(t.dim());

	if (operand_of(t, o) && o->desc.size[rank - 1] == t.size(-1) &&
	    o->desc.size[rank - 2] == t.size(-2) &&
	    (stick_dim(o->desc) >= rank - 2 || (stick_dim(o->desc) < 0 && t.size(-1) == 1)))
		return;
	*held = dense_copy(t);
	operand_of(*held, o);
}

struct Attention {
	Tensor q, k, v, mask;
	double scale;
	bool causal;
	bool shared;		/* heads of the query may share those of the keys */
	int64_t heads = 1;	/* heads that share the last dimension */
};

/* Heads of the keys are those of the query, one for all, or a divisor if they are shared. */
bool heads_fit(const Attention &a)
{
	if (a.q.dim() < 3 || a.k.size(-3) == a.q.size(-3) || a.k.size(-3) == 1)
		return a.q.dim() < 3 || a.v.size(-3) == a.q.size(-3) || a.v.size(-3) == 1;
	return a.shared && a.q.dim() <= 4 && a.v.size(-3) == a.k.size(-3) &&
	       a.q.size(-3) % a.k.size(-3) == 0;
}

bool can_attend(const Attention &a)
{
	bool one = a.q.scalar_type() == a.k.scalar_type() && a.q.scalar_type() == a.v.scalar_type();

	return one && is_float(a.q.scalar_type()) && a.q.dim() >= 2 && a.q.dim() <= 5 &&
	       a.k.dim() == a.q.dim() && a.v.dim() == a.q.dim() && a.q.numel() && a.k.numel() &&
	       a.v.numel() && a.q.size(-1) > 1 && heads_fit(a) && std::isfinite(a.scale) &&
	       (!a.mask.defined() ||
		(a.mask.dim() <= a.q.dim() && a.mask.device() == a.q.device() &&
		 (a.mask.scalar_type() == at::kBool || a.mask.scalar_type() == a.q.scalar_type())));
}

bool attend(const Attention &a, const Tensor &target)
{
	Call call(kAttention);
	Tensor held[4];

	take_matrix(a.q, &call.add_operand(), &held[0]);
	take_matrix(a.k, &call.add_operand(), &held[1]);
	take_matrix(a.v, &call.add_operand(), &held[2]);
	if (a.mask.defined()) {
		Operand &mask = call.add_operand();
		int last = static_cast<int>(a.mask.dim()) - 1;
		bool dense = operand_of(a.mask, &mask) &&
			     (stick_dim(mask.desc) >= 0 || mask.desc.size[last] == 1);
		if (!dense)
			operand_of(held[3] = dense_copy(a.mask), &mask);
	}
	if (!operand_of(target, &call.add_operand()))
		return false;
	call.format = device_format(a.q.scalar_type());
	call.add("scale", a.scale);
	call.add("heads", static_cast<double>(a.heads));
	call.add("causal", a.causal);
	if (a.mask.defined() && a.mask.scalar_type() == at::kBool)
		call.add(kBoolMask, true);
	if (!launch_or_refuse(call, target.device().index()))
		return false;
	wrote(target, false);
	return true;
}

int64_t lanes_of(const Tensor &t)
{
	return SPYRE_STICK / c10::elementSize(t.scalar_type());
}

/* A view of [B, H, S, D] with n heads per stick as [B, H / n, S, D n], if one exists. */
std::optional<Tensor> side_by_side(const Tensor &t, int64_t n)
{
	int64_t size = t.size(3);
	Operand o;

	if (t.stride(3) != 1 || t.stride(1) != size || t.size(1) % n)
		return std::nullopt;
	Tensor wide = t.as_strided({ t.size(0), t.size(1) / n, t.size(2), size * n },
				   { t.stride(0), size * n, t.stride(2), 1 }, t.storage_offset());
	if (!operand_of(wide, &o) || stick_dim(o.desc) != 3)
		return std::nullopt;
	return wide;
}

/* Reads heads shorter than a stick in place, as a projection leaves them, and writes the
 * result in the same form, so that joining the heads is a view. */
std::optional<Tensor> attend_side_by_side(const Attention &plain)
{
	const Tensor &q = plain.q;
	int64_t size = q.size(-1), n = lanes_of(q) / size;
	Attention a = plain;

	if (q.dim() != 4 || n < 2 || lanes_of(q) % size || plain.k.size(1) != q.size(1) ||
	    plain.v.sizes() != plain.k.sizes() || plain.k.size(3) != size ||
	    (a.mask.defined() && a.mask.dim() > 2 && a.mask.size(-3) != 1))
		return std::nullopt;
	for (Tensor *t : { &a.q, &a.k, &a.v }) {
		auto wide = side_by_side(*t, n);

		if (!wide)
			return std::nullopt;
		*t = *wide;
	}
	a.heads = n;
	Tensor joined = empty({ q.size(0), q.size(2), q.size(1) * size }, q.scalar_type(),
			      q.device().index());
	Tensor result = joined.unflatten(2, { q.size(1), size }).transpose(1, 2);
	auto target = side_by_side(result, n);
	if (!target || !attend(a, *target))
		return std::nullopt;
	return result;
}

/* Composes attention of operations with derivatives. The mask is added to scores in fp32: a
 * boolean mask becomes 0 and -inf, by which rows without keys are recognised. The triangle of a
 * causal one is made from the query, so that it is a DTensor if the query is. */
Tensor attention_of_parts(const Tensor &q, const Tensor &k, const Tensor &v, MaybeTensor mask,
			  double dropout, bool causal, std::optional<double> scale, bool gqa)
{
	std::optional<Tensor> added = mask;
	bool triangle = causal && !(mask && mask->defined());

	if (triangle)
		added = q.new_ones_symint({ q.sym_size(-2), k.sym_size(-2) }, at::kBool).tril();
	if (added && added->defined() && added->scalar_type() == at::kBool)
		added = at::where(*added, 0.0,
				  at::scalar_tensor(-std::numeric_limits<double>::infinity(),
						    q.options().dtype(at::kFloat)));
	return std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, added, dropout,
								  causal && !triangle, std::nullopt,
								  scale, gqa));
}

/* Repeats the checks of the composite, which the card's kernel replaces. */
void check_mask(const Tensor &q, MaybeTensor mask, bool causal)
{
	if (!mask || !mask->defined())
		return;
	TORCH_CHECK(!causal, "scaled_dot_product_attention: attn_mask and is_causal=True exclude "
		    "each other; put the triangle into the mask");
	TORCH_CHECK(mask->scalar_type() == at::kBool || mask->scalar_type() == at::kFloat ||
			    mask->scalar_type() == q.scalar_type(),
		    "scaled_dot_product_attention: attn_mask has to be of dtype bool, float32 or "
		    "the query's, ", q.scalar_type(), "; got ", mask->scalar_type());
}

bool derives(const Tensor &t)
{
	return (at::GradMode::is_enabled() && t.requires_grad()) || t._fw_grad(0).defined();
}

Tensor attention(const Tensor &q, const Tensor &k, const Tensor &v, MaybeTensor mask,
		 double dropout, bool causal, std::optional<double> scale, bool gqa)
{
	Attention a{ q, k, v, mask ? *mask : Tensor(),
		     scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1)))), causal, gqa };

	if (dropout == 0 && !(causal && a.mask.defined()) && can_attend(a)) {
		if (auto result = attend_side_by_side(a))
			return *result;
		c10::DimVector size(q.sizes());
		size.back() = v.size(-1);
		Tensor result = empty(size, q.scalar_type(), q.device().index());
		if (attend(a, result))
			return result;
	}
	return attention_of_parts(q, k, v, mask, dropout, causal, scale, gqa);
}

Tensor attention_autograd(c10::DispatchKeySet keys, const Tensor &q, const Tensor &k,
			  const Tensor &v, MaybeTensor mask, double dropout, bool causal,
			  std::optional<double> scale, bool gqa)
{
	check_mask(q, mask, causal);
	if (derives(q) || derives(k) || derives(v) || (mask && mask->defined() && derives(*mask)))
		return attention_of_parts(q, k, v, mask, dropout, causal, scale, gqa);
	return at::_ops::scaled_dot_product_attention::redispatch(
		keys & c10::after_autograd_keyset, q, k, v, mask, dropout, causal, scale, gqa);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("scaled_dot_product_attention", TORCH_FN(attention));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m)
{
	m.impl("scaled_dot_product_attention", TORCH_FN(attention_autograd));
}

} // namespace torch_spyre
