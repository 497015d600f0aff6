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
		/* A transposed column has one element per stick. */
		if (b->size[b->rank - 1] > 1 && build_stick_dim(b) < 0)
			TRY(build_restick_new(call->graph, &use[1], (int)b->rank - 1));
		return build_add_step(&mul, use);
	}
	*done = false;
	return SPYRE_SUCCESS;
}

/* Products need zeros beyond K in both factors, because padding may hold Inf or NaN. */
spyre_status build_first_factor(spyre_sdsc_graph *g, struct build_use *use)
{
	const spyre_sdsc_operand *a = &use->view;
	uint32_t k = a->rank - 1;

	if (build_stick_dim(a) == (int)a->rank - 2)
		TRY(build_restick_new(g, use, (int)k));
	if (build_stick_dim(a) == (int)k && !build_is_clean(use, k))
		TRY(build_clean_lanes(g, use, k));
	return SPYRE_SUCCESS;
}

spyre_status build_second_factor(spyre_sdsc_graph *g, struct build_use *use)
{
	const spyre_sdsc_operand *b = &use->view;
	uint32_t k = b->rank - 2, n = b->rank - 1;
	int64_t whole = build_whole_sticks(b->size[k], build_lanes(b));

	if (build_stick_dim(b) == (int)k) {
		/* Restickifying moves clean lanes to clean rows. */
		if (!build_is_clean(use, k))
			TRY(build_clean_lanes(g, use, k));
		/* Elements of a single column have a stick each. */
		TRY(build_restick_new(g, use, b->size[n] > 1 ? (int)n : -1));
	}
	if (!build_is_clean(use, k) || !build_may_read(g, use, k, whole))
		TRY(build_pad_copy(g, use, 1u << k, true));
	return SPYRE_SUCCESS;
}

/* Adds the step. An fp32 output with fewer columns than the second factor's sticks gets a copy. */
static spyre_status add_product(const struct build_call *call, struct build_use *use)
{
	uint32_t n = use[1].view.rank - 1;
	int64_t columns = build_whole_sticks(use[1].view.size[n], build_lanes(&use[1].view));
	struct build_use uses[3] = { use[0], use[1], { .tensor = SPYRE_SDSC_NEW } };
	struct build_call step = *call;

	if (use[2].tensor == SPYRE_SDSC_NEW || !use[2].view.rank ||
	    build_lanes(&use[2].view) >= build_lanes(&use[1].view) ||
	    build_may_write(call->graph, &use[2], use[2].view.rank - 1, columns))
		return build_add_step(call, use);
	step.out = &uses[2].tensor;
	TRY(build_add_step(&step, uses));
	return build_emit(call->graph, "identity", &uses[2], 1, &use[2]);
}

spyre_status build_product(const struct build_call *call, struct build_use *use)
{
	const spyre_sdsc_operand *a = &use[0].view, *b = &use[1].view;

	if (a->size[a->rank - 1] != b->size[b->rank - 2])
		return build_add_step(call, use);	/* reports the error */
	TRY(build_first_factor(call->graph, &use[0]));
	TRY(build_second_factor(call->graph, &use[1]));
	return add_product(call, use);
}

/* Sums in fp32 that the PT does not compute are those of factors in fp32. */
static spyre_status widen_factors(const struct build_call *call)
{
	spyre_sdsc_attribute wide = { "format", SPYRE_FORMAT_IEEE_FP32 };
	uint32_t in[2];

	for (uint32_t i = 0; i < 2; i++) {
		in[i] = SPYRE_SDSC_NEW;
		TRY(build_add(call->graph, "cast", &wide, 1, &call->in[i], 1, &in[i]));
	}
	return build_add(call->graph, "matmul", call->attr, call->num_attrs, in, 2, call->out);
}

static bool is_small(const spyre_sdsc_operand *a, const spyre_sdsc_operand *b)
{
	return a->rank == 1 || b->rank == 1 || a->size[a->rank - 1] == 1;
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
	if ((call->op->flags & BUILD_CONVERTS) &&
	    a->layout.device_format != SPYRE_FORMAT_IEEE_FP32 &&
	    is_small(a, b))
		return widen_factors(call);
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
	return build_product(call, use);
}
