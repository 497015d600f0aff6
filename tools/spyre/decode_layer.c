// SPDX-License-Identifier: MIT
/* Attention and MLP of a step of decoding. */
#include "decode_share.h"

/* Rotates the halves of @heads heads: x cos - y sin, y cos + x sin. */
static void rotate(struct share *s, struct bundle *b, int64_t heads, uint32_t cosine,
		   uint32_t sine)
{
	int64_t half = s->m->head_dim / 2;
	uint32_t x = bundle_tensor(b, s->batch, heads, half);
	uint32_t y = bundle_tensor(b, s->batch, heads, half);

	bundle_op_to(b, "sub", INPUTS(bundle_op(b, "mul", INPUTS(x, cosine)),
				      bundle_op(b, "mul", INPUTS(y, sine))), NO_ATTRIBUTE,
		     bundle_tensor(b, s->batch, heads, half));
	bundle_op_to(b, "add", INPUTS(bundle_op(b, "mul", INPUTS(y, cosine)),
				      bundle_op(b, "mul", INPUTS(x, sine))), NO_ATTRIBUTE,
		     bundle_tensor(b, s->batch, heads, half));
}

static spyre_status rotary(struct share *s, int64_t layers)
{
	int64_t half = s->m->head_dim / 2;
	uint32_t cosine, sine;
	struct bundle b;

	if (!s->m->rotary)
		return SPYRE_SUCCESS;
	bundle_begin(&b);
	cosine = bundle_tensor(&b, s->batch, 1, half);
	sine = bundle_tensor(&b, s->batch, 1, half);
	rotate(s, &b, s->heads, cosine, sine);
	rotate(s, &b, s->kv_heads, cosine, sine);
	return share_finish(s, &b, PART_ATTENTION, layers);
}

/*
 * Layers that attend to @keys keys: the new ones are written to the cache, in place, then
 * the queries attend to all of it. The cache is a dense [batch, heads, keys, columns].
 */
static spyre_status attend(struct share *s, int64_t layers, int64_t keys)
{
	int64_t batch = s->batch, columns = s->m->head_dim;
	uint32_t in[4], row, index, count = 3;
	struct bundle b;

	if (!layers)
		return SPYRE_SUCCESS;
	bundle_begin(&b);
	in[0] = bundle_tensor(&b, batch, s->heads, 1, columns);
	index = bundle_argument(&b, SPYRE_FORMAT_IEEE_INT32, 1, SIZES(1));
	for (int i = 1; i <= 2; i++) {
		in[i] = bundle_cache(&b, batch, s->kv_heads, keys, columns);
		row = bundle_tensor(&b, batch, s->kv_heads, 1, columns);
		bundle_op_to(&b, "index_put", INPUTS(in[i], index, row), NUMBER("dim", 2), in[i]);
	}
	if (s->m->sinks)
		in[count++] = bundle_weight(&b, s->heads);
	bundle_op_to(&b, "attention", in, count, NUMBER("sinks", s->m->sinks),
		     bundle_tensor(&b, batch, s->heads, 1, columns));
	return share_finish(s, &b, PART_ATTENTION, layers);
}

spyre_status decode_attention(struct share *s)
{
	const struct model *m = s->m;
	int64_t layers = m->full_layers + m->window_layers, context = s->o->context;
	int64_t in_window = m->window && m->window < context ? m->window : context;
	int64_t columns = s->heads * m->head_dim;
	spyre_status status;

	if (!layers)
		return SPYRE_SUCCESS;
	status = share_linear_alone(s, PART_PROJECTIONS, m->hidden, columns, m->qkv_bias, s->o->fp8,
				    layers);
	/* Keys and values. */
	if (!status)
		status = share_linear_alone(s, PART_PROJECTIONS, m->hidden,
					    s->kv_heads * m->head_dim, m->qkv_bias, s->o->fp8,
					    2 * layers);
	if (!status)
		status = rotary(s, layers);
	if (!status)
		status = attend(s, m->full_layers, context);
	if (!status)
		status = attend(s, m->window_layers, in_window);
	if (!status)
		status = share_linear_alone(s, PART_PROJECTIONS, columns, m->hidden, m->out_bias,
					    s->o->fp8, layers);
	return status;
}

spyre_status decode_mlp(struct share *s)
{
	int64_t hidden = s->m->hidden, columns = s->m->mlp / s->cards;
	uint32_t x, gate, up;
	struct bundle b;

	if (!columns)
		return SPYRE_SUCCESS;
	bundle_begin(&b);
	x = bundle_tensor(&b, s->batch, hidden);
	gate = share_linear(s, &b, x, hidden, columns, false, s->o->fp8, SPYRE_SDSC_NEW);
	up = share_linear(s, &b, x, hidden, columns, false, s->o->fp8, SPYRE_SDSC_NEW);
	x = bundle_op(&b, "swiglu", INPUTS(gate, up));
	share_linear(s, &b, x, columns, hidden, false, s->o->fp8,
		     bundle_tensor(&b, s->batch, hidden));
	return share_finish(s, &b, PART_MLP, s->m->layers);
}
