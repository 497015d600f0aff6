// SPDX-License-Identifier: MIT
/* Layers of Mamba 2 in a step of decoding: taps of a convolution, then a step of the state. */
#include "decode_share.h"

/* Groups of heads whose keys and queries this card computes. */
static int64_t mamba_groups(const struct share *s)
{
	return s->m->mamba_groups > s->cards ? s->m->mamba_groups / s->cards : 1;
}

/* The newest columns are written to the cache of taps, whose weighted sum goes through silu. */
static spyre_status convolution(struct share *s, int64_t columns)
{
	const struct model *m = s->m;
	uint32_t cache, row, index, x;
	struct bundle b;

	bundle_begin(&b);
	cache = bundle_cache(&b, s->batch, m->mamba_taps, columns);
	row = bundle_tensor(&b, s->batch, 1, columns);
	index = bundle_argument(&b, SPYRE_FORMAT_IEEE_INT32, 1, SIZES(1));
	bundle_op_to(&b, "index_put", INPUTS(cache, index, row), NUMBER("dim", 1), cache);
	x = bundle_op(&b, "mul", INPUTS(cache, bundle_weight(&b, m->mamba_taps, columns)));
	x = bundle_op_with(&b, "sum", INPUTS(x), NUMBER("dim", 1));
	x = bundle_op(&b, "add", INPUTS(x, bundle_weight(&b, columns)));
	bundle_op_to(&b, "silu", INPUTS(x), NO_ATTRIBUTE, bundle_tensor(&b, s->batch, columns));
	return share_finish(s, &b, PART_MAMBA, m->mamba_layers);
}

/* Steps of time: softplus(dt + bias), and what the state decays by. */
static spyre_status times(struct share *s, int64_t heads)
{
	uint32_t dt, decay;
	struct bundle b;

	bundle_begin(&b);
	dt = bundle_op(&b, "add", INPUTS(bundle_tensor(&b, s->batch, heads),
					 bundle_weight(&b, heads)));
	decay = bundle_tensor(&b, s->batch, heads);
	bundle_op_to(&b, "softplus", INPUTS(dt), NUMBER("beta", 1), decay);
	dt = bundle_op(&b, "mul", INPUTS(decay, bundle_weight(&b, heads)));
	bundle_op_to(&b, "exp", INPUTS(dt), NO_ATTRIBUTE, bundle_tensor(&b, s->batch, heads));
	return share_finish(s, &b, PART_MAMBA, s->m->mamba_layers);
}

/* state = state * decay + (dt x) key, in place; y = state query + D x. */
static spyre_status state(struct share *s, int64_t heads)
{
	const struct model *m = s->m;
	int64_t batch = s->batch, width = m->mamba_head_dim, columns = m->mamba_state;
	/* Groups of heads share keys and queries; several groups repeat them for their heads. */
	int64_t shared = mamba_groups(s) == 1 ? 1 : heads;
	uint32_t x, y, dt, kept, added, tensor;
	struct bundle b;

	bundle_begin(&b);
	tensor = bundle_cache(&b, batch, heads, width, columns);
	x = bundle_tensor(&b, batch, heads, width, 1);
	dt = bundle_tensor(&b, batch, heads, 1, 1);
	kept = bundle_op(&b, "mul", INPUTS(tensor, bundle_tensor(&b, batch, heads, 1, 1)));
	added = bundle_op(&b, "mul", INPUTS(x, dt));
	added = bundle_op(&b, "mul", INPUTS(added, bundle_tensor(&b, batch, shared, 1, columns)));
	bundle_op_to(&b, "add", INPUTS(kept, added), NO_ATTRIBUTE, tensor);
	y = bundle_op(&b, "mul", INPUTS(tensor, bundle_tensor(&b, batch, shared, 1, columns)));
	y = bundle_op_with(&b, "sum", INPUTS(y), NUMBER("keepdim", 1));
	x = bundle_op(&b, "mul", INPUTS(x, bundle_weight(&b, heads, 1, 1)));
	bundle_op_to(&b, "add", INPUTS(y, x), NO_ATTRIBUTE,
		     bundle_tensor(&b, batch, heads, width, 1));
	return share_finish(s, &b, PART_MAMBA, m->mamba_layers);
}

/* The norm of the result, which silu of the gate has multiplied. */
static spyre_status gated_norm(struct share *s, int64_t columns)
{
	uint32_t x, gate;
	struct bundle b;

	bundle_begin(&b);
	gate = bundle_tensor(&b, s->batch, columns);
	x = bundle_op(&b, "swiglu", INPUTS(gate, bundle_tensor(&b, s->batch, columns)));
	bundle_op_to(&b, "rms_norm", INPUTS(x, bundle_weight(&b, columns)), NO_ATTRIBUTE,
		     bundle_tensor(&b, s->batch, columns));
	return share_finish(s, &b, PART_MAMBA, s->m->mamba_layers);
}

spyre_status decode_mamba(struct share *s)
{
	const struct model *m = s->m;
	int64_t heads = m->mamba_heads / s->cards, inner = heads * m->mamba_head_dim;
	int64_t taps = inner + 2 * mamba_groups(s) * m->mamba_state, layers = m->mamba_layers;
	spyre_status status;

	if (!layers)
		return SPYRE_SUCCESS;
	status = share_linear_alone(s, PART_MAMBA_PROJECTIONS, m->hidden, inner + taps + heads,
				    false, s->o->fp8, layers);
	if (!status)
		status = convolution(s, taps);
	if (!status)
		status = times(s, heads);
	if (!status)
		status = state(s, heads);
	if (!status)
		status = gated_norm(s, inner);
	if (!status)
		status = share_linear_alone(s, PART_MAMBA_PROJECTIONS, inner, m->hidden, false,
					    s->o->fp8, layers);
	return status;
}
