// SPDX-License-Identifier: MIT
/*
 * Whole layers, which torch.nn's attention and encoder modules call without gradients.
 * A fallback would copy all weights to the CPU, so they are composed of the card's
 * operations here.
 */
#include "kernels.h"

#include <cmath>
#include <limits>

#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>

namespace torch_spyre {

namespace {

using MaybeTensor = const std::optional<Tensor> &;
using Two = std::tuple<Tensor, Tensor>;

/* Kinds of masks of merge_masks() of torch.nn.MultiheadAttention. */
enum MaskType : int64_t { kOfScores = 0, kOfKeys = 1, kOfAll = 2 };

struct Attention {
	int64_t width, heads;
	const Tensor &in_weight, &in_bias, &out_weight, &out_bias;
	MaybeTensor mask;
	std::optional<int64_t> mask_type;
};

void check(const Attention &a, const Tensor &query, const Tensor &key, const Tensor &value)
{
	for (const Tensor *t : { &query, &key, &value })
		TORCH_CHECK(t->dim() == 3 && t->size(2) == a.width, "spyre: attention of width ",
			    a.width, " got a tensor of ", t->sizes(),
			    "; expected [batch, length, ", a.width, "]");
	TORCH_CHECK(key.size(0) == query.size(0) && value.sizes() == key.sizes(),
		    "spyre: attention of a query of ", query.sizes(), ", a key of ", key.sizes(),
		    " and a value of ", value.sizes(), ": batches and lengths do not fit");
	TORCH_CHECK(a.heads > 0 && a.width % a.heads == 0, "spyre: a width of ", a.width,
		    " cannot be split into ", a.heads, " heads");
	TORCH_CHECK(a.in_weight.dim() == 2 && a.in_weight.size(0) == 3 * a.width,
		    "spyre: the weight of query, key and value is of ", a.in_weight.sizes(),
		    "; expected [", 3 * a.width, ", ", a.width, "]");
}

/* [batch, length, width] as [batch, heads, length, width / heads]. */
Tensor split(const Tensor &t, int64_t heads)
{
	return t.unflatten(2, { heads, -1 }).transpose(1, 2);
}

std::vector<Tensor> project(const Attention &a, const Tensor &query, const Tensor &key,
			    const Tensor &value)
{
	std::vector<Tensor> result;

	if (query.is_same(key) && key.is_same(value)) {
		result = at::linear(query, a.in_weight, a.in_bias).chunk(3, 2);
	} else {
		std::vector<Tensor> weight = a.in_weight.chunk(3), bias = a.in_bias.chunk(3);
		const Tensor *input[] = { &query, &key, &value };

		for (int i = 0; i < 3; i++)
			result.push_back(at::linear(*input[i], weight[i], bias[i]));
	}
	for (Tensor &t : result)
		t = split(t, a.heads);
	return result;
}

/* The mask of excluded elements, for scores of [batch, heads, length, keys]. */
std::optional<Tensor> hidden(const Attention &a)
{
	if (!a.mask || !a.mask->defined())
		return std::nullopt;

	Tensor mask = a.mask->to(at::kBool);

	TORCH_CHECK(a.mask_type && *a.mask_type >= kOfScores && *a.mask_type <= kOfAll,
		    "spyre: mask_type is missing or out of range: expected 0 (of scores), 1 (of "
		    "keys) or 2 (of both)");
	if (*a.mask_type == kOfKeys && mask.dim() == 2)
		return mask.unsqueeze(1).unsqueeze(1);
	return mask;
}

/* Returns the result and the weights of each head, or an undefined tensor for these. */
Two attend(const Attention &a, const Tensor &query, const Tensor &key, const Tensor &value,
	   bool need_weights)
{
	check(a, query, key, value);
	std::vector<Tensor> in = project(a, query, key, value);
	std::optional<Tensor> mask = hidden(a);
	Tensor weights, mixed;

	if (need_weights) {
		double scale = 1 / std::sqrt(static_cast<double>(a.width / a.heads));

		weights = at::matmul(in[0], in[1].mT()).mul_(scale);
		if (mask)
			weights.masked_fill_(*mask, -std::numeric_limits<double>::infinity());
		weights = weights.softmax(-1);
		mixed = at::matmul(weights, in[2]);
	} else {
		if (mask)
			mask = mask->logical_not();
		mixed = at::scaled_dot_product_attention(in[0], in[1], in[2], mask);
	}
	mixed = mixed.transpose(1, 2).flatten(2);
	return { at::linear(mixed, a.out_weight, a.out_bias), weights };
}

Two multi_head_attention(const Tensor &query, const Tensor &key, const Tensor &value,
			 int64_t width, int64_t heads, const Tensor &in_weight,
			 const Tensor &in_bias, const Tensor &out_weight, const Tensor &out_bias,
			 MaybeTensor mask, bool need_weights, bool average,
			 std::optional<int64_t> mask_type)
{
	auto [result, weights] = attend({ width, heads, in_weight, in_bias, out_weight, out_bias,
					  mask, mask_type }, query, key, value, need_weights);

	if (need_weights && average)
		weights = weights.mean(1);
	return { result, weights };
}

Tensor encoder_layer(const Tensor &src, int64_t width, int64_t heads, const Tensor &in_weight,
		     const Tensor &in_bias, const Tensor &out_weight, const Tensor &out_bias,
		     bool gelu, bool norm_first, double eps, const Tensor &norm_weight_1,
		     const Tensor &norm_bias_1, const Tensor &norm_weight_2,
		     const Tensor &norm_bias_2, const Tensor &up_weight, const Tensor &up_bias,
		     const Tensor &down_weight, const Tensor &down_bias, MaybeTensor mask,
		     std::optional<int64_t> mask_type)
{
	Attention attention = { width, heads, in_weight, in_bias, out_weight, out_bias, mask,
				mask_type };
	auto norm_1 = [&](const Tensor &x) {
		return at::layer_norm(x, { width }, norm_weight_1, norm_bias_1, eps);
	};
	auto norm_2 = [&](const Tensor &x) {
		return at::layer_norm(x, { width }, norm_weight_2, norm_bias_2, eps);
	};
	auto feed = [&](const Tensor &x) {
		Tensor up = at::linear(x, up_weight, up_bias);

		return at::linear(gelu ? at::gelu(up) : at::relu(up), down_weight, down_bias);
	};
	Tensor x = norm_first ? norm_1(src) : src;

	x = src.add(std::get<0>(attend(attention, x, x, x, false)));
	if (norm_first)
		return x.add(feed(norm_2(x)));
	x = norm_1(x);
	return norm_2(x.add(feed(x)));
}

/* Modules query this before they make a nested tensor; false makes them use a mask. */
bool may_be_nested(const Tensor &, const Tensor &)
{
	return false;
}

Tensor nested_from_mask(const Tensor &, const Tensor &, bool)
{
	TORCH_CHECK_NOT_IMPLEMENTED(
		false, "spyre: nested tensors of strided layout do not lie on the card; make "
		"torch.nn.TransformerEncoder with enable_nested_tensor=False, or use "
		"torch.nested with layout=torch.jagged");
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("_native_multi_head_attention", TORCH_FN(multi_head_attention));
	m.impl("_transformer_encoder_layer_fwd", TORCH_FN(encoder_layer));
	m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(may_be_nested));
	m.impl("_nested_tensor_from_mask", TORCH_FN(nested_from_mask));
}

} // namespace torch_spyre
