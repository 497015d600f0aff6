// SPDX-License-Identifier: MIT
/*
 * Builder: attention, softmax(scale * q k^T + mask) v over the last two dimensions.
 *
 * Heads that are shorter than a stick share one, as projections leave them. They
 * are not separated: a head's scores are products of whole sticks in which the
 * other heads are zeros, and only the head's lanes of its weights times v are
 * kept. The sums have the same terms in the same order, plus zeros, so the
 * results equal those of heads in separate sticks.
 */
#include <inttypes.h>
#include <math.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fill.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"

#define NEW SPYRE_SDSC_NEW
#define IN(...) ((const uint32_t[]){ __VA_ARGS__ })
#define COUNT(...) (sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define DO(g, op, out, ...) \
	TRY(build_add(g, op, NULL, 0, IN(__VA_ARGS__), COUNT(__VA_ARGS__), out))

struct heads {
	const struct build_call *call;
	int64_t count, size, width;	/* number of heads; lanes of one and of all */
	uint32_t factor;
	uint32_t ones;
};

static spyre_status attend(const struct heads *h, uint32_t q, uint32_t k, uint32_t v,
			   uint32_t *out)
{
	spyre_sdsc_attribute transpose = { "transpose_b", 1 };
	struct build_call inner = *h->call;
	spyre_sdsc_graph *g = inner.graph;
	uint32_t product = NEW, scores = NEW, masked = NEW, weights = NEW;
	uint32_t shifted, power, sum;

	TRY(build_add(g, "matmul", &transpose, 1, IN(q, k), 2, &product));
	DO(g, "mul", &scores, product, h->factor);
	if (inner.num_inputs > 3)
		DO(g, "add", &masked, scores, inner.in[3]);
	inner.in[0] = inner.num_inputs > 3 ? masked : scores;
	TRY(build_exponentials(&inner, -1, &shifted, &power, &sum));
	DO(g, "div", &weights, power, sum);
	DO(g, "matmul", out, weights, v);
	return SPYRE_SUCCESS;
}

/* Makes ones in the lanes before @end and zeros from there on. */
static spyre_status lanes_before(const struct heads *h, int64_t end, uint32_t *lanes)
{
	spyre_sdsc_attribute value = { "value", 0 };
	uint32_t index;

	TRY(build_constant(h->call->graph, SPYRE_FORMAT_IEEE_FP32, (double)end, &index));
	*lanes = NEW;
	return build_add(h->call->graph, "mask_by_index", &value, 1, IN(h->ones, index), 2, lanes);
}

/* Makes ones in the lanes of head @i and zeros in the others. */
static spyre_status lanes_of(const struct heads *h, int64_t i, uint32_t *lanes)
{
	uint32_t before = NEW, to_end = h->ones;
	spyre_sdsc_attribute zero = { "input", 0 };

	if (i + 1 < h->count)
		TRY(lanes_before(h, (i + 1) * h->size, &to_end));
	*lanes = to_end;
	if (!i)
		return SPYRE_SUCCESS;
	TRY(lanes_before(h, i * h->size, &before));
	*lanes = NEW;
	return build_add(h->call->graph, "where", &zero, 1, IN(before, to_end), 2, lanes);
}

static spyre_status head_alone(const struct heads *h, uint32_t lanes, uint32_t tensor,
			       uint32_t *out)
{
	spyre_sdsc_attribute zero = { "other", 0 };

	*out = NEW;
	return build_add(h->call->graph, "where", &zero, 1, IN(lanes, tensor), 2, out);
}

static spyre_status attend_by_heads(struct heads *h)
{
	const struct build_call *call = h->call;
	spyre_sdsc_operand row = { .rank = 1, .size = { h->width } };
	spyre_sdsc_attribute one = { "value", 1 };
	uint32_t so_far = NEW, lanes, q, k;

	build_layout(&row, build_operand(call->graph, call->in[0])->layout.device_format, 0, 0);
	TRY(build_new_tensor(call->graph, &row, &h->ones));
	TRY(build_add(call->graph, "fill", &one, 1, NULL, 0, &h->ones));
	for (int64_t i = 0; i < h->count; i++) {
		bool last = i + 1 == h->count;
		uint32_t result = NEW, joined = NEW, *out = last ? call->out : &joined;

		TRY(lanes_of(h, i, &lanes));
		TRY(head_alone(h, lanes, call->in[0], &q));
		TRY(head_alone(h, lanes, call->in[1], &k));
		TRY(attend(h, q, k, call->in[2], &result));
		if (i)
			DO(call->graph, "where", out, lanes, result, so_far);
		so_far = i ? joined : result;
	}
	return SPYRE_SUCCESS;
}

static spyre_status check_heads(const struct build_call *call, struct heads *h)
{
	double heads = build_attr(call, "heads");

	if (!(heads >= 1) || heads != floor(heads) || fmod((double)h->width, heads) != 0)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "attention: %g heads in a last dimension of %" PRId64
				   " elements; it has to be a multiple of heads, 1 or more",
				   heads, h->width);
	h->count = (int64_t)heads;
	h->size = h->width / h->count;
	for (uint32_t i = 1; i < 3 && h->count > 1; i++) {
		const spyre_sdsc_operand *o = build_operand(call->graph, call->in[i]);

		if (!o->rank || o->size[o->rank - 1] != h->width)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "attention: operand %u has a last dimension of %" PRId64
					   ", expected %" PRId64 " for %g heads", i,
					   o->rank ? o->size[o->rank - 1] : 0, h->width, heads);
	}
	return SPYRE_SUCCESS;
}

spyre_status build_attention(const struct build_call *call)
{
	const spyre_sdsc_operand *q = build_operand(call->graph, call->in[0]);
	double scale = build_attr(call, "scale");
	struct heads h = { .call = call };

	if (q->rank < 2)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "attention: the query has rank %u, expected 2 or more", q->rank);
	h.width = q->size[q->rank - 1];
	TRY(check_heads(call, &h));
	if (isnan(scale))
		scale = 1 / sqrt((double)h.size);
	TRY(build_constant(call->graph, q->layout.device_format, scale, &h.factor));
	if (h.count == 1)
		return attend(&h, call->in[0], call->in[1], call->in[2], call->out);
	return attend_by_heads(&h);
}
