// SPDX-License-Identifier: MIT
/*
 * Fits loop nests to the machine: at most 6 dims of at most 65535 points. Dims are
 * put in memory order and merged if all views walk them as one, so that the cores
 * get few, long, contiguous runs.
 */
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/lower/nest.h"

#define MAX_UNROLL 4096u	/* instructions for dims beyond the sixth */
#define MAX_TRIES 256u		/* divisions in search of a factor */

static bool indirect(const struct nest *n)
{
	return n->in.opcode == SPYRE_OP_GATHER || n->in.opcode == SPYRE_OP_SCATTER;
}

static void drop_dim(struct nest *n, uint32_t i)
{
	n->num_dims--;
	memmove(&n->dim[i], &n->dim[i + 1], (n->num_dims - i) * sizeof(n->dim[0]));
}

/* Removes dims of size 1, except for one that a reduction needs. */
static void drop_ones(struct nest *n)
{
	bool keep = n->in.opcode == SPYRE_OP_REDUCE && !(n->in.flags & SPYRE_INSTR_REDUCE_LANES);

	for (uint32_t i = 0; i < n->num_dims && keep; i++)
		keep = !(n->dim[i].reduce && n->dim[i].count > 1);
	for (uint32_t i = n->num_dims; i-- > 0;) {
		if (n->dim[i].count > 1)
			continue;
		if (keep && n->dim[i].reduce) {
			keep = false;
			memset(n->dim[i].stride, 0, sizeof(n->dim[i].stride));
			continue;
		}
		drop_dim(n, i);
	}
}

/* Order of dims: kept ones outside by stride of the result, reduced ones inside by the source's. */
static bool outside(const struct nest *n, const struct nest_dim *a, const struct nest_dim *b)
{
	/* A table that is written does not vary along the dims of its indices. */
	uint32_t first = a->reduce || n->in.opcode == SPYRE_OP_SCATTER;

	if (a->reduce != b->reduce)
		return !a->reduce;
	if (a->reduce && n->ordered)
		return false;
	if (a->falls && b->falls)
		return a->falls > b->falls;
	if (a->stride[first] != b->stride[first])
		return a->stride[first] > b->stride[first];
	return a->stride[!first] > b->stride[!first];
}

static void sort_dims(struct nest *n)
{
	for (uint32_t i = 1; i < n->num_dims; i++) {
		struct nest_dim dim = n->dim[i];
		uint32_t k = i;

		for (; k > 0 && outside(n, &dim, &n->dim[k - 1]); k--)
			n->dim[k] = n->dim[k - 1];
		n->dim[k] = dim;
	}
}

/* True if all views walk @outer and @inner as one dim. */
static bool mergeable(const struct nest *n, const struct nest_dim *outer,
		      const struct nest_dim *inner)
{
	uint64_t points, step;

	/* Dims that no view moves along have unbounded counts, so the product may overflow. */
	if (outer->reduce != inner->reduce || outer->falls != inner->falls * inner->count ||
	    __builtin_mul_overflow(outer->count, inner->count, &points) ||
	    points > SPYRE_MAX_COUNT)
		return false;
	for (uint32_t v = 0; v < n->in.num_views; v++)
		if (__builtin_mul_overflow(inner->stride[v], inner->count, &step) ||
		    outer->stride[v] != step)
			return false;
	return true;
}

static void merge_dims(struct nest *n)
{
	for (uint32_t i = n->num_dims; i-- > 1;) {
		if (!mergeable(n, &n->dim[i - 1], &n->dim[i]))
			continue;
		n->dim[i].count *= n->dim[i - 1].count;
		drop_dim(n, i - 1);
	}
}

/* The dim of the index is the outermost: dims inside those of the indices share one. */
static void add_row(const struct nest *n, struct spyre_instr *in, struct spyre_view *view)
{
	memmove(&in->count[1], &in->count[0], n->num_dims * sizeof(in->count[0]));
	in->count[0] = 1;
	in->num_dims++;
	in->reduce_mask = 1;
	for (uint32_t v = 0; v < in->num_views; v++) {
		memmove(&view[v].stride[1], &view[v].stride[0],
			n->num_dims * sizeof(view[v].stride[0]));
		view[v].stride[0] = v == spyre_indirect_view(in) ? n->row : 0;
	}
}

static spyre_status write_instr(struct lower *l, const struct nest *n)
{
	struct spyre_view view[SPYRE_MAX_VIEWS];
	struct spyre_instr in = n->in;

	memcpy(view, n->view, in.num_views * sizeof(view[0]));
	in.num_dims = (uint8_t)n->num_dims;
	for (uint32_t d = 0; d < n->num_dims; d++) {
		in.count[d] = (uint32_t)n->dim[d].count;
		if (n->dim[d].reduce)
			in.reduce_mask |= (uint8_t)(1u << d);
		if (n->dim[d].falls)
			in.imm[2] |= 1u << d;
		for (uint32_t v = 0; v < in.num_views; v++)
			view[v].stride[d] = n->dim[d].stride[v];
	}
	if (indirect(n))
		add_row(n, &in, view);
	return encoder_instr(l->encoder, &in, view);
}

static void advance(struct nest *n, const struct nest_dim *dim, uint64_t steps)
{
	for (uint32_t v = 0; v < n->in.num_views; v++)
		n->view[v].offset += steps * dim->stride[v];
	n->in.imm[1] -= (uint32_t)(steps * dim->falls);
}

static spyre_status unroll(struct lower *l, const struct nest *n, uint32_t *budget);

/* Emits one instruction per point of the outermost dim. */
static spyre_status unroll_first(struct lower *l, const struct nest *n, uint32_t *budget)
{
	struct nest_dim first = n->dim[0];
	spyre_status status = SPYRE_SUCCESS;
	struct nest part;

	if (first.reduce)
		return lower_unsupported(l, "the reduction needs more than %u loops",
					 SPYRE_MAX_DIMS);
	nest_copy(&part, n);
	drop_dim(&part, 0);
	for (uint64_t i = 0; i < first.count && !status; i++) {
		status = unroll(l, &part, budget);
		advance(&part, &first, 1);
	}
	return status;
}

/* A separate function, to keep the large copy of unroll_first() off the stack of most nests. */
static spyre_status unroll(struct lower *l, const struct nest *n, uint32_t *budget)
{
	if (n->num_dims > SPYRE_MAX_DIMS - indirect(n))
		return unroll_first(l, n, budget);
	if (!(*budget)--)
		return lower_unsupported(l, "the loops need more than %u instructions", MAX_UNROLL);
	return write_instr(l, n);
}

/*
 * Finds the largest factor of @count that fits a counter, as does count / factor.
 * The search starts at the smallest possible other factor, count / 65535.
 */
static uint64_t factor_of(uint64_t count)
{
	uint64_t other = (count + SPYRE_MAX_COUNT - 1) / SPYRE_MAX_COUNT;

	for (uint32_t tries = 0; tries < MAX_TRIES && other <= SPYRE_MAX_COUNT; tries++, other++)
		if (count % other == 0)
			return count / other > 64 ? count / other : 0;
	return 0;
}

/* Splits counts above the limit by a factor, or into two instructions if there is none. */
static spyre_status split(struct lower *l, struct nest *n, uint32_t *budget)
{
	uint64_t factor, whole;
	struct nest_dim dim;
	struct nest part;
	uint32_t i;

	for (i = 0; i < n->num_dims && n->dim[i].count <= SPYRE_MAX_COUNT; i++)
		;
	if (i == n->num_dims)
		return unroll(l, n, budget);
	dim = n->dim[i];
	factor = factor_of(dim.count);
	if (factor && n->num_dims < NEST_MAX_DIMS) {
		memmove(&n->dim[i + 1], &n->dim[i], (n->num_dims - i) * sizeof(dim));
		n->num_dims++;
		n->dim[i].count = dim.count / factor;
		n->dim[i + 1].count = factor;
		for (uint32_t v = 0; v < n->in.num_views; v++)
			n->dim[i].stride[v] *= factor;
		n->dim[i].falls *= factor;
		return split(l, n, budget);
	}
	if (dim.reduce)
		return lower_unsupported(l, "a reduction over %llu points, which no loops of at most %u make up",
					 (unsigned long long)dim.count, SPYRE_MAX_COUNT);
	whole = dim.count > (1ull << 30) ? dim.count & ~((1ull << 30) - 1) : dim.count & ~0x7fffull;
	if (whole == dim.count)
		return lower_unsupported(l, "a dimension of %llu points",
					 (unsigned long long)dim.count);
	nest_copy(&part, n);
	part.dim[i].count = whole;
	TRY(split(l, &part, budget));
	n->dim[i].count -= whole;
	advance(n, &dim, whole);
	return split(l, n, budget);
}

spyre_status nest_emit(struct lower *l, struct nest *nest)
{
	uint32_t budget = MAX_UNROLL;

	drop_ones(nest);
	sort_dims(nest);
	merge_dims(nest);
	return split(l, nest, &budget);
}
