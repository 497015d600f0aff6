// SPDX-License-Identifier: MIT
/* Mixtures of experts in a step of decoding: every token takes the matrices of its own. */
#include "decode_share.h"

/* Columns of the router, the best of them, and their weights. */
static spyre_status router(struct share *s)
{
	const struct model *m = s->m;
	uint32_t x, score;
	struct bundle b;

	bundle_begin(&b);
	x = bundle_tensor(&b, s->batch, m->hidden);
	score = share_linear(s, &b, x, m->hidden, m->experts, m->clamped, false, SPYRE_SDSC_NEW);
	bundle_op_to(&b, "topk_indices", INPUTS(score), NUMBER("k", m->chosen),
		     bundle_argument(&b, SPYRE_FORMAT_IEEE_INT32, 2, SIZES(s->batch, m->chosen)));
	x = bundle_op_with(&b, "topk", INPUTS(score), NUMBER("k", m->chosen));
	bundle_op_to(&b, "softmax", INPUTS(x), NUMBER("dim", -1),
		     bundle_tensor(&b, s->batch, m->chosen));
	return share_finish(s, &b, PART_EXPERTS, m->layers);
}

/* A row for each expert that a token takes, times the matrices [rows, columns] of the experts. */
static spyre_status product(struct share *s, int64_t rows, int64_t columns)
{
	const struct model *m = s->m;
	int64_t tiles = s->batch * m->chosen;
	uint32_t x, table, indices, result;
	struct bundle b;

	bundle_begin(&b);
	x = bundle_tensor(&b, tiles, 1, rows);
	table = bundle_table(&b, m->experts, rows, columns, tiles);
	indices = bundle_argument(&b, SPYRE_FORMAT_IEEE_INT32, 1, SIZES(tiles));
	result = bundle_tensor(&b, tiles, 1, columns);
	bundle_op_to(&b, "index_matmul", INPUTS(x, table, indices), NO_ATTRIBUTE, result);
	if (m->clamped) {
		uint32_t bias = bundle_weight(&b, m->experts, 1, columns);

		if (m->experts > tiles)
			b.bytes.needed -= 2.0 * columns * (m->experts - tiles);
		bias = bundle_op_with(&b, "index_select", INPUTS(bias, indices), NUMBER("dim", 0));
		bundle_op_to(&b, "add", INPUTS(result, bias), NO_ATTRIBUTE,
			     bundle_tensor(&b, tiles, 1, columns));
	}
	return share_finish(s, &b, PART_EXPERTS, m->layers);
}

/* Between the products: swiglu, or GPT-OSS's clamped form of it, and at the end the sum. */
static spyre_status functions(struct share *s)
{
	const struct model *m = s->m;
	int64_t tiles = s->batch * m->chosen, columns = m->expert_mlp / s->cards;
	uint32_t gate, up, x, result;
	struct bundle b;

	bundle_begin(&b);
	gate = bundle_tensor(&b, tiles, columns);
	up = bundle_tensor(&b, tiles, columns);
	result = bundle_tensor(&b, tiles, columns);
	if (m->clamped) {
		gate = bundle_op_with(&b, "clip", INPUTS(gate), NUMBER("max", 7));
		up = bundle_op_with(&b, "clip", INPUTS(up), NUMBER("max", 7));
		up = bundle_op_with(&b, "add", INPUTS(up), NUMBER("other", 1));
		x = bundle_op_with(&b, "mul", INPUTS(gate), NUMBER("other", 1.702));
		x = bundle_op(&b, "mul", INPUTS(gate, bundle_op(&b, "sigmoid", INPUTS(x))));
		bundle_op_to(&b, "mul", INPUTS(x, up), NO_ATTRIBUTE, result);
	} else {
		bundle_op_to(&b, "swiglu", INPUTS(gate, up), NO_ATTRIBUTE, result);
	}
	x = bundle_op(&b, "mul", INPUTS(bundle_tensor(&b, s->batch, m->chosen, m->hidden),
					bundle_tensor(&b, s->batch, m->chosen, 1)));
	bundle_op_to(&b, "sum", INPUTS(x), NUMBER("dim", 1),
		     bundle_tensor(&b, s->batch, m->hidden));
	return share_finish(s, &b, PART_EXPERTS, m->layers);
}

spyre_status decode_experts(struct share *s)
{
	int64_t columns = s->m->expert_mlp / s->cards;
	spyre_status status;

	if (!s->m->experts)
		return SPYRE_SUCCESS;
	status = router(s);
	if (!status)
		status = product(s, s->m->hidden, 2 * columns);
	if (!status)
		status = product(s, columns, s->m->hidden);
	if (!status)
		status = functions(s);
	return status;
}
