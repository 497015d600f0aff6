// SPDX-License-Identifier: MIT
/* Builder: adaption of the operands of matrix products. */
#include <inttypes.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/recipes.h"

static spyre_status mismatch(const struct build_call *call, uint32_t index, uint32_t dim,
			     const struct build_use *use, int64_t want)
{
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
			   "%s: operand %u has size[%u] = %" PRId64 ", expected %" PRId64,
			   call->op->name, index, dim, use[index].view.size[dim], want);
}

/* Products with K = 1 or with a vector become pointwise products and reductions. */
static spyre_status small_matmul(const struct build_call *call, struct build_use *use, bool *done)
{
	const spyre_sdsc_operand *a = &use[0].view, *b = &use[1].view, *c = &use[2].view;
	bool given = use[2].tensor != SPYRE_SDSC_NEW;

	*done = true;
	if (b->rank == 1) {
		spyre_sdsc_attribute last = { "dim", -1 };
		uint32_t product = SPYRE_SDSC_NEW;

		if (a->size[a->rank - 1] != b->size[0])
			return mismatch(call, 1, 0, use, a->size[a->rank - 1]);
		TRY(build_add(call->graph, "mul", NULL, 0, call->in, 2, &product));
		return build_add(call->graph, "sum", &last, 1, &product, 1, call->out);
	}
	if (a->rank >= 2 && b->size[b->rank - 2] == 1 && a->size[a->rank - 1] == 1) {
		struct build_call mul = *call;

		if (given && c->rank >= 2 && c->size[c->rank - 2] != a->size[a->rank - 2])
			return mismatch(call, 2, c->rank - 2, use, a->size[a->rank - 2]);
		if (given && c->rank >= 2 && c->size[c->rank - 1] != b->size[b->rank - 1])
			return mismatch(call, 2, c->rank - 1, use, b->size[b->rank - 1]);
		mul.op = build_op_find("mul");
		return build_add_step(&mul, use);
	}
	*done = false;
	return SPYRE_SUCCESS;
}

/* Products need zeros beyond K in both factors, because padding may hold Inf or NaN. */
static spyre_status first_factor(spyre_sdsc_graph *g, struct build_use *use)
{
	const spyre_sdsc_operand *a = &use->view;
	uint32_t k = a->rank - 1;

	if (build_stick_dim(a) == (int)a->rank - 2)
		TRY(build_restick_new(g, use, (int)k));
	if (build_stick_dim(a) == (int)k && !build_is_clean(use, k))
		TRY(build_clean_lanes(g, use, k));
	return SPYRE_SUCCESS;
}

static spyre_status second_factor(spyre_sdsc_graph *g, struct build_use *use)
{
	const spyre_sdsc_operand *b = &use->view;
	uint32_t k = b->rank - 2, n = b->rank - 1;
	int64_t whole = build_whole_sticks(b->size[k], build_lanes(b));

	if (build_stick_dim(b) == (int)k && b->size[n] > 1) {
		/* Restickifying moves clean lanes to clean rows. */
		if (!build_is_clean(use, k))
			TRY(build_clean_lanes(g, use, k));
		TRY(build_restick_new(g, use, (int)n));
	}
	if (!build_is_clean(use, k) || !build_may_read(g, use, k, whole))
		TRY(build_pad_copy(g, use, 1u << k, true));
	return SPYRE_SUCCESS;
}

spyre_status build_matmul_factors(spyre_sdsc_graph *g, struct build_use *use)
{
	TRY(first_factor(g, &use[0]));
	return second_factor(g, &use[1]);
}

spyre_status build_matmul(const struct build_call *call)
{
	spyre_sdsc_graph *g = call->graph;
	struct build_use use[3] = { build_use_of(g, call->in[0]), build_use_of(g, call->in[1]),
				    build_use_of(g, *call->out) };
	spyre_sdsc_operand *a = &use[0].view, *b = &use[1].view;
	bool done;

	if (!a->rank || !b->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: ranks %u x %u; both have to be 1 or more", call->op->name,
				   a->rank, b->rank);
	if (build_attr(call, "transpose_b") != 0 && b->rank > 1)
		build_swap_dims(b, b->rank - 2, b->rank - 1);
	TRY(small_matmul(call, use, &done));
	if (done)
		return SPYRE_SUCCESS;
	if (a->rank == 1) {
		build_unsqueeze(a, 0);
		if (use[2].tensor == SPYRE_SDSC_NEW)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: a vector times a matrix needs an output that is given",
					   call->op->name);
		if (use[2].view.rank != b->rank - 1)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: the output has rank %u, expected %u",
					   call->op->name, use[2].view.rank, b->rank - 1);
		build_unsqueeze(&use[2].view, use[2].view.rank - 1);
	}
	if (a->size[a->rank - 1] != b->size[b->rank - 2])
		return build_add_step(call, use);	/* reports the error */
	TRY(build_matmul_factors(g, use));
	return build_add_step(call, use);
}
