// SPDX-License-Identifier: MIT
/*
 * Builder: attention, softmax(scale * q k^T + mask) v over the last two dimensions.
 *
 * The rows of the query are processed in blocks, each with all the keys that it
 * attends to. A block's scores fit in LX, and keys that a causal mask or a window
 * hides from a whole block are not read. No sum crosses blocks, so the results do
 * not depend on where they begin. Weights are divided by their sum after the product with v,
 * which has fewer elements.
 *
 * Scores are fp32 until their maximum is subtracted, because an absolute error of an exponent is
 * a relative one of the weight. The differences are small where a weight matters, so the
 * exponentials and their sum have the format of the operands.
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
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/recipes.h"

#define NEW SPYRE_SDSC_NEW
#define IN(...) ((const uint32_t[]){ __VA_ARGS__ })
#define COUNT(...) (sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define DO(g, op, out, ...) \
	TRY(build_add(g, op, NULL, 0, IN(__VA_ARGS__), COUNT(__VA_ARGS__), out))

#define BLOCK_KEYS 64		/* rows of blocks and first keys are multiples: whole sticks */
#define MOST_BLOCKS 32		/* each takes some ten of a graph's 1,024 steps */
#define CORE_ROWS 64		/* rows per core that keep the PT busy */
#define SCORE_BYTES (1u << 20)	/* of LX, for a block's scores on each core */

struct attention {
	const struct build_call *call;
	spyre_sdsc_graph *graph;
	int64_t rows, keys;
	/* Row i attends to the keys from i + offset - window + 1 to i + offset. */
	bool causal;
	int64_t offset, window;
	int64_t shared;			/* query heads per head of the keys */
	double scale;			/* of scores; 1 if q is scaled */
	/* k is [.., D, T], or [.., 1, D] if there is a single key. */
	struct build_use q, k, v, out;
	struct build_use mask, sinks;	/* tensor NEW: there is none */
};

/* Heads that share the sticks of the last dim. */
struct heads {
	int64_t count, size, width;	/* number of heads; lanes of one and of all */
	uint32_t ones;
};

/* Adds a dim of size 1 to a view, whose padding of the others stays as it is. */
static void unsqueeze(struct build_use *use, uint32_t dim)
{
	uint32_t outer = (1u << dim) - 1;

	build_unsqueeze(&use->view, dim);
	use->clean = (use->clean & outer) | (use->clean & ~outer) << 1;
}

/* Splits the heads of a view into those of the keys and those that share one. */
static bool split_heads(struct build_use *use, int64_t shared)
{
	spyre_sdsc_operand *o = &use->view;
	spyre_layout *l = &o->layout;
	uint32_t dim = o->rank - 3, at = l->device_rank, found = 0;

	for (uint32_t j = 0; j < l->device_rank; j++)
		if (l->dim_map[j] == (int)dim) {
			at = j;
			found++;
		}
	if (found != 1 || at + 1 == l->device_rank || l->device_size[at] % shared ||
	    l->device_rank == SPYRE_MAX_DEVICE_RANK)
		return false;
	unsqueeze(use, dim + 1);
	o->size[dim] /= shared;
	o->size[dim + 1] = shared;
	for (uint32_t j = l->device_rank++; j > at; j--) {
		l->device_size[j] = l->device_size[j - 1];
		l->stride_map[j] = l->stride_map[j - 1];
		l->dim_map[j] = l->dim_map[j - 1];
	}
	l->device_size[at] /= shared;
	l->device_size[at + 1] = shared;
	l->dim_map[at + 1] = (int8_t)(dim + 1);
	return true;
}

/* Adds a step on views: a product, or an operation without a recipe. */
static spyre_status add_step(const struct attention *a, const char *op, struct build_use first,
			     struct build_use second, struct build_use *out)
{
	struct build_use use[3] = { first, second, *out };
	struct build_call call = { .graph = a->graph, .op = build_op_find(op), .num_inputs = 2,
				   .out = &out->tensor };

	if (call.op->kind == BUILD_MATMUL && first.view.size[first.view.rank - 1] == 1)
		call.op = build_op_find("mul");
	if (call.op->kind == BUILD_MATMUL) {
		TRY(build_product(&call, use));
	} else {
		TRY(build_align(&call, use));
		TRY(build_add_step(&call, use));
	}
	*out = use[2];
	return SPYRE_SUCCESS;
}

static spyre_status along_keys(const struct attention *a, const char *op, uint32_t in,
			       uint32_t *out)
{
	spyre_sdsc_attribute attr[2] = { { "dim", -1 }, { "keepdim", 1 } };

	*out = NEW;
	return build_add(a->graph, op, attr, 2, &in, 1, out);
}

static spyre_status converted(const struct attention *a, spyre_format format, uint32_t *tensor)
{
	spyre_sdsc_attribute to = { "format", format };
	uint32_t in = *tensor;

	if (build_operand(a->graph, in)->layout.device_format == format)
		return SPYRE_SUCCESS;
	*tensor = NEW;
	return build_add(a->graph, "cast", &to, 1, &in, 1, tensor);
}

static spyre_format own_format(const struct attention *a)
{
	return a->q.view.layout.device_format;
}

/* Computes scores of one key by multiplication and addition: products have whole sticks of keys. */
static spyre_status multiply_rows(const struct attention *a, struct build_use q,
				  struct build_use k, uint32_t *scores)
{
	struct build_use each = { .tensor = NEW };

	TRY(add_step(a, "mul", q, k, &each));
	return along_keys(a, "sum", each.tensor, scores);
}

/* Hides the keys after a row and, with a window, those too far before it. */
static spyre_status hide(const struct attention *a, int64_t row, int64_t rows, int64_t key,
			 int64_t keys, uint32_t *scores)
{
	int64_t offset = a->offset + row - key;
	spyre_sdsc_attribute attr[3] = { { "value", -INFINITY }, { "width", (double)a->window },
					 { "rows", -2 } };
	uint32_t index, hidden = NEW;

	if (!a->causal || (offset >= keys - 1 && (!a->window || rows + offset <= a->window)))
		return SPYRE_SUCCESS;
	TRY(build_constant(a->graph, SPYRE_FORMAT_IEEE_FP32, (double)(rows + offset), &index));
	TRY(build_add(a->graph, "mask_by_index", attr, rows > 1 ? 3 : 2, IN(*scores, index), 2,
		      &hidden));
	*scores = hidden;
	return SPYRE_SUCCESS;
}

/* The scores of some rows and keys, in fp32. */
static spyre_status make_scores(const struct attention *a, struct build_use q, struct build_use k,
				uint32_t *scores)
{
	spyre_sdsc_attribute factor = { "other", a->scale };
	struct build_use product = { .tensor = NEW };
	uint32_t plain;

	if (a->keys == 1)
		TRY(multiply_rows(a, q, k, &product.tensor));
	else
		TRY(add_step(a, own_format(a) == SPYRE_FORMAT_IEEE_FP32 ? "matmul" : "wide_matmul",
			     q, k, &product));
	TRY(converted(a, SPYRE_FORMAT_IEEE_FP32, &product.tensor));
	*scores = plain = product.tensor;
	if (a->scale == 1)
		return SPYRE_SUCCESS;
	*scores = NEW;
	return build_add(a->graph, "mul", &factor, 1, &plain, 1, scores);
}

/* Exponentials, in the format of the operands. */
static spyre_status power_of(const struct attention *a, uint32_t exponents, uint32_t *power)
{
	TRY(converted(a, own_format(a), &exponents));
	*power = NEW;
	return build_add(a->graph, "exp", NULL, 0, &exponents, 1, power);
}

/* Exponentials of the scores and their sum, to which sinks add theirs. */
static spyre_status exponentials(const struct attention *a, uint32_t scores, uint32_t *power,
				 uint32_t *sum)
{
	struct build_use top = { .tensor = NEW }, sink = top, all = top;
	uint32_t most, shifted = NEW, weight;

	TRY(along_keys(a, "amax", scores, &most));
	if (a->sinks.tensor != NEW) {
		TRY(add_step(a, "maximum", build_use_of(a->graph, most), a->sinks, &top));
		most = top.tensor;
	}
	DO(a->graph, "sub", &shifted, scores, most);
	TRY(power_of(a, shifted, power));
	TRY(along_keys(a, "sum", *power, sum));
	if (a->sinks.tensor == NEW)
		return SPYRE_SUCCESS;
	TRY(add_step(a, "sub", a->sinks, build_use_of(a->graph, most), &sink));
	TRY(power_of(a, sink.tensor, &weight));
	TRY(add_step(a, "add", build_use_of(a->graph, *sum), build_use_of(a->graph, weight), &all));
	*sum = all.tensor;
	return SPYRE_SUCCESS;
}

/* Attends from @rows rows of the query from @row on. */
static spyre_status attend_block(const struct attention *a, int64_t row, int64_t rows)
{
	struct build_use q = a->q, k = a->k, v = a->v, out = a->out, mask = a->mask;
	struct build_use scores = { .tensor = NEW }, masked = scores, attended = scores;
	int64_t last = a->causal ? a->offset + row + rows : a->keys;
	int64_t key = a->window ? a->offset + row - a->window + 1 : 0, keys;
	uint32_t power, sum;

	key = key > 0 ? key / BLOCK_KEYS * BLOCK_KEYS : 0;
	last = build_whole_sticks(last, BLOCK_KEYS);
	keys = (last < a->keys ? last : a->keys) - key;
	build_cut(&q, q.view.rank - 2, row, rows);
	build_cut(&out, out.view.rank - 2, row, rows);
	build_cut(&v, v.view.rank - 2, key, keys);
	if (a->keys > 1)
		build_cut(&k, k.view.rank - 1, key, keys);
	a->graph->fusing = ++a->graph->num_fused;
	TRY(make_scores(a, q, k, &scores.tensor));
	if (mask.tensor != NEW) {
		if (mask.view.rank > 1 && mask.view.size[mask.view.rank - 2] > 1)
			build_cut(&mask, mask.view.rank - 2, row, rows);
		if (mask.view.size[mask.view.rank - 1] > 1)
			build_cut(&mask, mask.view.rank - 1, key, keys);
		TRY(add_step(a, "add", build_use_of(a->graph, scores.tensor), mask, &masked));
		scores = masked;
	}
	TRY(hide(a, row, rows, key, keys, &scores.tensor));
	TRY(exponentials(a, scores.tensor, &power, &sum));
	TRY(add_step(a, "matmul", build_use_of(a->graph, power), v, &attended));
	TRY(add_step(a, "div", build_use_of(a->graph, attended.tensor),
		     build_use_of(a->graph, sum), &out));
	a->graph->fusing = 0;
	return SPYRE_SUCCESS;
}

/* Rows of a block: as many as LX has space for scores, fewer where that saves hidden keys. */
static int64_t rows_of_block(const struct attention *a)
{
	int64_t batch = 1, rows, least, word = 4;

	for (uint32_t d = 0; d + 2 < a->out.view.rank; d++)
		batch *= a->out.view.size[d];
	rows = (int64_t)SCORE_BYTES * SPYRE_MAX_CORES / word / a->keys / batch;
	if (a->causal && rows > CORE_ROWS * SPYRE_MAX_CORES / batch)
		rows = CORE_ROWS * SPYRE_MAX_CORES / batch;
	least = (a->rows + MOST_BLOCKS - 1) / MOST_BLOCKS;
	rows = rows / BLOCK_KEYS * BLOCK_KEYS;
	return build_whole_sticks(rows > least ? rows : least, BLOCK_KEYS);
}

/* Gives a view of the mask sticks along the keys, or one element per stick and row. */
static spyre_status take_mask(struct attention *a, uint32_t mask)
{
	struct build_use *use = &a->mask;
	int last, stick;

	TRY(converted(a, SPYRE_FORMAT_IEEE_FP32, &mask));
	*use = build_use_of(a->graph, mask);
	last = (int)use->view.rank - 1;
	stick = build_stick_dim(&use->view);
	if (stick < 0 || stick == last)
		return SPYRE_SUCCESS;
	return use->view.size[last] > 1 ? build_restick_new(a->graph, use, last) :
					  build_sparse(a->graph, use);
}

/* Gives the sinks, one per head, a stick each and the dims of rows and keys. */
static spyre_status take_sinks(struct attention *a, uint32_t sinks)
{
	struct build_use *use = &a->sinks;
	const spyre_sdsc_operand *o = &a->out.view;
	int64_t heads = o->rank > 2 ? o->size[o->rank - 3] : 1;

	TRY(converted(a, SPYRE_FORMAT_IEEE_FP32, &sinks));
	*use = build_use_of(a->graph, sinks);
	if (use->view.rank != 1 || use->view.size[0] != heads)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "attention: the sinks have rank %u and %" PRId64 " elements, expected one number for each of %" PRId64 " heads",
				   use->view.rank, use->view.rank ? use->view.size[0] : 1, heads);
	if (build_stick_dim(&use->view) >= 0)
		TRY(build_sparse(a->graph, use));
	build_unsqueeze(&use->view, 1);
	build_unsqueeze(&use->view, 1);
	return SPYRE_SUCCESS;
}

/* Makes an intermediate for the result, unless it can be written as it is asked for. */
static spyre_status take_output(struct attention *a, uint32_t out)
{
	const spyre_sdsc_operand *q = &a->q.view, *v = &a->v.view;
	uint32_t most = q->rank > v->rank ? q->rank : v->rank;
	spyre_sdsc_operand o = { .rank = most };

	a->out = build_use_of(a->graph, out);
	if (out != NEW && a->out.view.rank >= 2 &&
	    build_stick_dim(&a->out.view) == (int)a->out.view.rank - 1 &&
	    (a->shared == 1 || split_heads(&(struct build_use){ .view = a->out.view }, a->shared)))
		return SPYRE_SUCCESS;
	for (uint32_t d = 0; d < most; d++) {
		int64_t own = d + q->rank < most ? 1 : q->size[d + q->rank - most];

		o.size[d] = own > 1 || d + v->rank < most ? own : v->size[d + v->rank - most];
	}
	o.size[most - 2] = a->rows;
	o.size[most - 1] = v->size[v->rank - 1];
	build_layout(&o, q->layout.device_format, o.size[most - 1] > 1 ? (int)most - 1 : -1, 0);
	TRY(build_new_tensor(a->graph, &o, &a->out.tensor));
	a->out = build_use_of(a->graph, a->out.tensor);
	return SPYRE_SUCCESS;
}

/* Splits the heads of an input, or of a copy if its memory has others beyond them. */
static spyre_status split_input(const struct attention *a, struct build_use *use)
{
	struct build_use copy = { .tensor = NEW };

	if (split_heads(use, a->shared))
		return SPYRE_SUCCESS;
	TRY(build_emit(a->graph, "identity", use, 1, &copy));
	*use = copy;
	return split_heads(use, a->shared) ? SPYRE_SUCCESS :
	       spyre_error(SPYRE_ERROR_LAYOUT, "attention: no heads to split in a layout of rank %u",
			   use->view.layout.device_rank);
}

/* Gives the views a dim of the heads that share a key. */
static spyre_status share_keys(struct attention *a)
{
	uint32_t mask = a->mask.view.rank;

	TRY(split_input(a, &a->q));
	split_heads(&a->out, a->shared);
	unsqueeze(&a->k, a->k.view.rank - 2);
	unsqueeze(&a->v, a->v.view.rank - 2);
	if (a->sinks.tensor != NEW)
		TRY(split_input(a, &a->sinks));
	if (a->mask.tensor == NEW || mask < 3)
		return SPYRE_SUCCESS;
	if (a->mask.view.size[mask - 3] > 1)
		return split_input(a, &a->mask);
	unsqueeze(&a->mask, mask - 2);
	return SPYRE_SUCCESS;
}

/* Makes the views of the operands. Products have whole sticks, of a single key there is none. */
static spyre_status take_views(struct attention *a, uint32_t q, uint32_t k, uint32_t v,
			       const struct heads *h)
{
	const struct build_call *call = a->call;
	spyre_sdsc_graph *g = a->graph;
	uint32_t mask = call->num_inputs, sinks = mask;

	if (build_attr(call, "sinks") != 0)
		sinks = --mask;
	a->q = build_use_of(g, q);
	a->k = build_use_of(g, k);
	a->v = build_use_of(g, v);
	a->mask.tensor = a->sinks.tensor = NEW;
	if (a->keys > 1) {
		TRY(build_first_factor(g, &a->q));
		build_swap_dims(&a->k.view, a->k.view.rank - 2, a->k.view.rank - 1);
		TRY(build_second_factor(g, &a->k));
		TRY(build_second_factor(g, &a->v));
	}
	TRY(take_output(a, h->count > 1 ? NEW : *call->out));
	if (mask > 3)
		TRY(take_mask(a, call->in[3]));
	if (sinks < call->num_inputs)
		TRY(take_sinks(a, call->in[sinks]));
	return a->shared > 1 ? share_keys(a) : SPYRE_SUCCESS;
}

/* Adds one attention; *@out is its result. */
static spyre_status attend(struct attention *a, uint32_t q, uint32_t k, uint32_t v,
			   const struct heads *h, uint32_t *out)
{
	int64_t block;

	TRY(take_views(a, q, k, v, h));
	block = rows_of_block(a);
	for (int64_t row = 0; row < a->rows; row += block)
		TRY(attend_block(a, row, a->rows - row < block ? a->rows - row : block));
	*out = a->out.tensor;
	return SPYRE_SUCCESS;
}

/* Makes ones in the lanes before @end and zeros from there on. */
static spyre_status lanes_before(const struct attention *a, const struct heads *h, int64_t end,
				 uint32_t *lanes)
{
	spyre_sdsc_attribute value = { "value", 0 };
	uint32_t index;

	TRY(build_constant(a->graph, SPYRE_FORMAT_IEEE_FP32, (double)end, &index));
	*lanes = NEW;
	return build_add(a->graph, "mask_by_index", &value, 1, IN(h->ones, index), 2, lanes);
}

/* Makes ones in the lanes of head @i and zeros in the others. */
static spyre_status lanes_of(const struct attention *a, const struct heads *h, int64_t i,
			     uint32_t *lanes)
{
	uint32_t before = NEW, to_end = h->ones;
	spyre_sdsc_attribute zero = { "input", 0 };

	if (i + 1 < h->count)
		TRY(lanes_before(a, h, (i + 1) * h->size, &to_end));
	*lanes = to_end;
	if (!i)
		return SPYRE_SUCCESS;
	TRY(lanes_before(a, h, i * h->size, &before));
	*lanes = NEW;
	return build_add(a->graph, "where", &zero, 1, IN(before, to_end), 2, lanes);
}

static spyre_status head_alone(const struct attention *a, uint32_t lanes, uint32_t tensor,
			       uint32_t *out)
{
	spyre_sdsc_attribute zero = { "other", 0 };

	*out = NEW;
	return build_add(a->graph, "where", &zero, 1, IN(lanes, tensor), 2, out);
}

static spyre_status attend_by_heads(struct attention *a, struct heads *h, uint32_t scaled)
{
	const struct build_call *call = a->call;
	spyre_sdsc_operand row = { .rank = 1, .size = { h->width } };
	spyre_sdsc_attribute one = { "value", 1 };
	uint32_t so_far = NEW, lanes, q, k;

	build_layout(&row, build_operand(a->graph, scaled)->layout.device_format, 0, 0);
	TRY(build_new_tensor(a->graph, &row, &h->ones));
	TRY(build_add(a->graph, "fill", &one, 1, NULL, 0, &h->ones));
	for (int64_t i = 0; i < h->count; i++) {
		bool last = i + 1 == h->count;
		uint32_t result = NEW, joined = NEW, *out = last ? call->out : &joined;

		TRY(lanes_of(a, h, i, &lanes));
		TRY(head_alone(a, lanes, scaled, &q));
		TRY(head_alone(a, lanes, call->in[1], &k));
		TRY(attend(a, q, k, call->in[2], h, &result));
		if (i)
			DO(a->graph, "where", out, lanes, result, so_far);
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
	if (h->count > 1 && build_attr(call, "sinks") != 0)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "attention: %g heads in the last dimension have no sinks; give the heads a dimension of their own",
				   heads);
	for (uint32_t i = 1; i < 3 && h->count > 1; i++) {
		const spyre_sdsc_operand *o = build_operand(call->graph, call->in[i]);

		if (o->size[o->rank - 1] != h->width)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "attention: operand %u has a last dimension of %" PRId64
					   ", expected %" PRId64 " for %g heads", i,
					   o->size[o->rank - 1], h->width, heads);
	}
	return SPYRE_SUCCESS;
}

/* Reads causal, offset and window; each row has to attend to a key. */
static spyre_status check_causal(struct attention *a)
{
	double offset = build_attr(a->call, "offset"), window = build_attr(a->call, "window");
	const char *wrong = !(offset >= 0 && offset <= 1 << 24) || offset != floor(offset) ?
			    "offset" :
			    !(window >= 0 && window <= 1 << 24) || window != floor(window) ?
			    "window" : NULL;

	a->causal = build_attr(a->call, "causal") != 0;
	if (wrong)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "attention: the %s is %g, expected an integer from 0 to %u",
				   wrong, build_attr(a->call, wrong), 1u << 24);
	if ((offset > 0 || window > 0) && !a->causal)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "attention: offset and window need causal=1");
	a->offset = (int64_t)offset;
	a->window = (int64_t)window;
	if (a->window && a->rows + a->offset - a->window >= a->keys)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "attention: the last row is at key %" PRId64 " of %" PRId64 " and has none in a window of %" PRId64,
				   a->rows - 1 + a->offset, a->keys, a->window);
	return SPYRE_SUCCESS;
}

/* Finds how many heads of the query share one of the keys; 1 if there are as many. */
static spyre_status check_shared(struct attention *a, const struct heads *h)
{
	const spyre_sdsc_operand *o[3];
	int64_t heads, groups;

	a->shared = 1;
	for (uint32_t i = 0; i < 3; i++) {
		o[i] = build_operand(a->graph, a->call->in[i]);
		if (o[i]->rank < 3)
			return SPYRE_SUCCESS;
	}
	heads = o[0]->size[o[0]->rank - 3];
	groups = o[1]->size[o[1]->rank - 3];
	if (heads == groups || groups == 1 || heads == 1 || h->count > 1)
		return SPYRE_SUCCESS;
	if (o[0]->rank > 4)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "attention: heads share keys in tensors of rank %u, expected 3 or 4",
				   o[0]->rank);
	if (heads % groups || o[2]->size[o[2]->rank - 3] != groups || o[1]->rank != o[2]->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "attention: %" PRId64 " heads cannot share %" PRId64 " heads of keys and %" PRId64 " of values; both have to be the same divisor",
				   heads, groups, o[2]->size[o[2]->rank - 3]);
	a->shared = heads / groups;
	return SPYRE_SUCCESS;
}

static spyre_status check_operands(struct attention *a, struct heads *h)
{
	static const char *const names[] = { "query", "key", "value" };

	for (uint32_t i = 0; i < 3; i++) {
		const spyre_sdsc_operand *o = build_operand(a->graph, a->call->in[i]);

		if (o->rank < 2)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "attention: the %s has rank %u, expected 2 or more",
					   names[i], o->rank);
		if (!i) {
			h->width = o->size[o->rank - 1];
			a->rows = o->size[o->rank - 2];
		} else if (i == 1) {
			a->keys = o->size[o->rank - 2];
		} else if (o->size[o->rank - 2] != a->keys) {
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "attention: %" PRId64 " keys and %" PRId64 " values",
					   a->keys, o->size[o->rank - 2]);
		}
	}
	TRY(check_heads(a->call, h));
	TRY(check_causal(a));
	return check_shared(a, h);
}

/* A power of two scales q without an error, which has fewer elements than the scores. */
static spyre_status scale_query(struct attention *a, double scale, uint32_t *q)
{
	spyre_sdsc_attribute factor = { "other", scale };
	uint32_t in = *q;
	int exponent;

	a->scale = 1;
	if (fabs(frexp(scale, &exponent)) != 0.5) {
		a->scale = scale;
		return SPYRE_SUCCESS;
	}
	*q = NEW;
	return build_add(a->graph, "mul", &factor, 1, &in, 1, q);
}

spyre_status build_attention(const struct build_call *call)
{
	struct attention a = { .call = call, .graph = call->graph };
	double scale = build_attr(call, "scale");
	struct heads h = { .count = 1 };
	uint32_t scaled = call->in[0], result;
	struct build_use out;

	TRY(check_operands(&a, &h));
	if (isnan(scale))
		scale = 1 / sqrt((double)h.size);
	TRY(scale_query(&a, scale, &scaled));
	if (h.count > 1)
		return attend_by_heads(&a, &h, scaled);
	TRY(attend(&a, scaled, call->in[1], call->in[2], &h, &result));
	if (*call->out == NEW)
		*call->out = result;
	if (*call->out == result)
		return SPYRE_SUCCESS;
	out = build_use_of(a.graph, *call->out);
	return build_restick(a.graph, build_use_of(a.graph, result), build_stick_dim(&out.view),
			     &out);
}
