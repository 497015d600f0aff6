// SPDX-License-Identifier: MIT
/* Builder: operands of products brought into form. */
#include <inttypes.h>

#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/build.h"

/*
 * The lanes beyond an intermediate's dim @k hold anything; products need zeros
 * there. By way of sticks along dim @m.
 */
spyre_status build_clean_lanes(spyre_sdsc_graph *g, struct build_use *a, uint32_t k, uint32_t m)
{
	int64_t lanes = build_lanes(&a->view), rows = a->view.size[m];

	if (!build_has_room(&a->view, m, build_whole_sticks(rows, lanes)))
		BUILD_TRY(build_pad_copy(g, a, 1u << m, true));
	a->view.size[m] = build_whole_sticks(rows, lanes);
	BUILD_TRY(build_restick_new(g, a, (int)m));
	BUILD_TRY(build_pad_copy(g, a, 1u << k, true));
	BUILD_TRY(build_restick_new(g, a, (int)k));
	a->view.size[m] = rows;
	return SPYRE_SUCCESS;
}

static spyre_status mismatch(const struct build_call *call, uint32_t index, uint32_t dim,
			     const struct build_use *use, int64_t want)
{
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
			   "%s: operand %u has size[%u] = %" PRId64 ", expected %" PRId64,
			   call->op->name, index, dim, use[index].view.size[dim], want);
}

/* Products with one element to sum over, or with a vector, are plain ones. */
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
		BUILD_TRY(build_add(call->graph, "mul", NULL, 0, call->in, 2, &product));
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
	BUILD_TRY(small_matmul(call, use, &done));
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
		return build_add_step(call, use);	/* says what is wrong */
	if (build_stick_dim(a) == (int)a->rank - 2)
		BUILD_TRY(build_restick_new(g, &use[0], (int)a->rank - 1));
	if (!g->tensor[use[0].tensor].argument) {
		if (build_stick_dim(a) == (int)a->rank - 1 && a->size[a->rank - 1] % build_lanes(a))
			BUILD_TRY(build_clean_lanes(g, &use[0], a->rank - 1, a->rank - 2));
	}
	if (build_stick_dim(b) == (int)b->rank - 2 && b->size[b->rank - 1] > 1)
		BUILD_TRY(build_restick_new(g, &use[1], (int)b->rank - 1));
	if (b->size[b->rank - 2] % build_lanes(b))
		if (!build_has_room(b, b->rank - 2,
				    build_whole_sticks(b->size[b->rank - 2], build_lanes(b))) ||
		    !g->tensor[use[1].tensor].argument)
			BUILD_TRY(build_pad_copy(g, &use[1], 1u << (b->rank - 2), true));
	return build_add_step(call, use);
}
