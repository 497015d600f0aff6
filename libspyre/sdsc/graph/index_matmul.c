// SPDX-License-Identifier: MIT
/*
 * Builder: products of tiles, each with the matrix of a table that its index selects. The core
 * gathers the columns that it computes into LX, so that no copy of the table is in memory.
 */
#include "libspyre/sdsc/graph/index_matmul.h"

#include <inttypes.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/index.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"
#include "libspyre/sdsc/graph/shapes.h"

enum { A, B, INDEX, C };

static spyre_status mismatch(const struct build_call *call, uint32_t operand, uint32_t dim,
			     const spyre_sdsc_operand *got, int64_t want)
{
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
			   "%s: operand %u has size[%u] = %" PRId64 ", expected %" PRId64,
			   call->op->name, operand, dim, got->size[dim], want);
}

/* Checks [T, M, K] x [E, K, N] at [T] -> [T, M, N]; the output may not exist yet. */
static spyre_status check(const struct build_call *call, const struct build_use *use)
{
	const spyre_sdsc_operand *a = &use[A].view, *b = &use[B].view, *c = &use[C].view,
				 *index = &use[INDEX].view;
	const int64_t size[3] = { a->size[0], a->size[1], b->size[2] };
	spyre_format format = index->layout.device_format;

	if (a->rank != 3 || b->rank != 3 || index->rank != 1)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: ranks %u x %u at indices of rank %u; expected [T, M, K] x [E, K, N] at [T]",
				   call->op->name, a->rank, b->rank, index->rank);
	if (b->size[1] != a->size[2])
		return mismatch(call, B, 1, b, a->size[2]);
	if (index->size[0] != a->size[0])
		return mismatch(call, INDEX, 0, index, a->size[0]);
	if (format != SPYRE_FORMAT_IEEE_INT32 && format != SPYRE_FORMAT_SENUINT32)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "%s: the indices are %s on the device; use IEEE_INT32 or SENUINT32",
				   call->op->name, spyre_format_name(format));
	if (use[C].tensor == SPYRE_SDSC_NEW)
		return SPYRE_SUCCESS;
	if (c->rank != 3)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, expected 3", call->op->name, c->rank);
	for (uint32_t d = 0; d < 3; d++)
		if (c->size[d] != size[d])
			return mismatch(call, C, d, c, size[d]);
	if (build_stick_dim(c) != 2 && c->size[2] > 1)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "%s: the output has its sticks along dimension %d, dimension 2 is needed here; restickify it afterwards",
				   call->op->name, build_stick_dim(c));
	return SPYRE_SUCCESS;
}

spyre_status build_index_matmul(const struct build_call *call)
{
	struct build_use use[4];

	for (uint32_t i = 0; i < 3; i++)
		use[i] = build_use_of(call->graph, call->in[i]);
	use[C] = build_use_of(call->graph, *call->out);
	if (build_attr(call, "transpose_b") != 0 && use[B].view.rank == 3)
		build_swap_dims(&use[B].view, 1, 2);
	TRY(check(call, use));
	TRY(build_first_factor(call->graph, &use[0]));
	TRY(build_second_factor(call->graph, &use[1]));
	return build_add_step(call, use);
}

/* The dims of a step. */
struct dims {
	int tile, row, column, k, lane;
};

static spyre_status place(const struct build_call *call, struct build_step *step,
			  const struct build_use *use, int rows, int columns,
			  const struct dims *dims)
{
	int own[3] = { use->view.size[0] > 1 ? dims->tile : -1, rows, columns };

	return build_place_tensor(&step->sdsc, call->op->name, &use->view, own, (uint32_t)columns,
				  true);
}

/* The table has as many matrices as its own size says, tiles select them. */
static spyre_status place_table(const struct build_call *call, struct build_step *step,
				const struct build_use *use, const struct dims *dims)
{
	struct ir_sdsc *s = &step->sdsc;
	int64_t tiles = s->size[dims->tile];
	spyre_status status;

	s->size[dims->tile] = use->view.size[0];
	status = place(call, step, use, dims->k, dims->column, dims);
	s->size[dims->tile] = tiles;
	if (!status)
		build_index_table(s, (uint32_t)dims->tile, 1u << dims->tile, use->view.size[0]);
	return status;
}

static spyre_status place_index(const struct build_call *call, struct build_step *step,
				const struct build_use *use, const struct dims *dims)
{
	bool dense = build_stick_dim(&use->view) >= 0;
	int tile = use->view.size[0] > 1 ? dims->tile : -1;
	int own = dense && tile < 0 ? dims->lane : tile;

	return build_place_tensor(&step->sdsc, call->op->name, &use->view, &own,
				  (uint32_t)(dense ? own : dims->lane), true);
}

/*
 * Cores divide columns and rows: a core that computed other tiles would gather other matrices,
 * and sums stay whole. The index has sticks along a dim of one element, which has no points.
 */
spyre_status build_index_matmul_shapes(const struct build_call *call, struct build_use *uses,
				       struct build_step *step)
{
	const spyre_sdsc_operand *a = &uses[A].view, *c = &uses[C].view;
	struct ir_sdsc *s = &step->sdsc;
	struct dims dims = { .row = -1 };

	dims.tile = build_add_dim(step, "x", a->size[0], 2);
	if (a->size[1] > 1)
		dims.row = build_add_dim(step, "mb", a->size[1], 1);
	dims.column = build_add_dim(step, "out", build_whole_sticks(c->size[2], build_lanes(c)), 0);
	dims.k = build_add_dim(step, "in", build_whole_sticks(a->size[2], build_lanes(a)),
			       BUILD_NO_KEY);
	dims.lane = build_add_dim(step, "lane", 1, BUILD_NO_KEY);
	TRY(place(call, step, &uses[A], dims.row, dims.k, &dims));
	TRY(place_table(call, step, &uses[B], &dims));
	TRY(place_index(call, step, &uses[INDEX], &dims));
	TRY(place(call, step, &uses[C], dims.row, dims.column, &dims));
	build_share_singles(s, 0);
	build_finish(step, uses, 4, call->op->func);
	s->num_inputs = 2;	/* indices are not inputs */
	s->tensor[B].index = INDEX;
	s->indirect = true;
	step->whole = 1u << dims.tile | 1u << dims.k | 1u << dims.lane;
	return SPYRE_SUCCESS;
}
