// SPDX-License-Identifier: MIT
/* Builder: the largest elements along a dimension, and their indices. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/cast.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/integer.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/recipes.h"
#include "libspyre/sdsc/graph/shapes.h"
#include "libspyre/sdsc/graph/topk.h"

#define NEW SPYRE_SDSC_NEW
#define MAX_RANKS 65536
#define MAX_EXACT 1024		/* integers that DL16 has without gaps */

static spyre_status ranks_of(const struct build_call *call, int64_t searched, int64_t *k)
{
	double value = build_attr(call, "k");

	if (!(value == floor(value) && value >= 1 && value <= MAX_RANKS))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s needs the attribute \"k\", a whole number from 1 to %d",
				   call->op->name, MAX_RANKS);
	*k = (int64_t)value;
	if (*k > searched)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: k is %" PRId64 ", there are %" PRId64 " elements to search",
				   call->op->name, *k, searched);
	return SPYRE_SUCCESS;
}

static spyre_status check_output(const struct build_call *call, const spyre_sdsc_operand *want,
				 const spyre_sdsc_operand *got)
{
	if (got->rank != want->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, the input %u", call->op->name,
				   got->rank, want->rank);
	for (uint32_t d = 0; d < got->rank; d++)
		if (got->size[d] != want->size[d])
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: the output has size[%u] = %" PRId64 ", expected %" PRId64,
					   call->op->name, d, got->size[d], want->size[d]);
	return SPYRE_SUCCESS;
}

/* Restickifies the input along the searched dim and the output along the ranks. */
static spyre_status topk_into(const struct build_call *call, struct build_use out)
{
	spyre_sdsc_graph *g = call->graph;
	struct build_use use[2] = { build_use_of(g, call->in[0]) }, made = { .tensor = NEW };
	bool indices = !strcmp(call->op->name, "topk_indices"), given = out.tensor != NEW, direct;
	const spyre_layout *l = &out.view.layout;
	struct build_call step = *call;
	uint32_t dim;
	int64_t k;
	int stick;

	TRY(build_attr_dim(call, "dim", build_attr(call, "dim"), use[0].view.rank, &dim));
	TRY(ranks_of(call, use[0].view.size[dim], &k));
	stick = build_stick_dim(&use[0].view);
	if (stick < 0 && use[0].view.size[dim] > 1)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "%s: operand 0 has one element per stick, sticks along dimension %u are needed here; copy it to a dense layout first",
				   call->op->name, dim);
	if (stick >= 0 && stick != (int)dim && use[0].view.size[dim] > 1)
		TRY(build_restick_new(g, &use[0], (int)dim));
	made.view = use[0].view;
	made.view.size[dim] = k;
	build_layout(&made.view, given ? l->device_format : indices ? SPYRE_FORMAT_IEEE_INT32 :
		     use[0].view.layout.device_format, k > 1 ? (int)dim : -1, 0);
	if (given)
		TRY(check_output(call, &made.view, &out.view));
	direct = given && (build_stick_dim(&out.view) == (k > 1 ? (int)dim : -1));
	if (direct)
		made = out;
	else
		TRY(build_new_tensor(g, &made.view, &made.tensor));
	use[1] = made;
	step.out = &made.tensor;
	TRY(build_add_step(&step, use));
	if (given && !direct) {
		if (k == 1)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "%s: an output for one rank has one element per stick, its sticks are along dimension %d",
					   call->op->name, build_stick_dim(&out.view));
		return build_restick(g, made, build_stick_dim(&out.view), &out);
	}
	*call->out = made.tensor;
	return SPYRE_SUCCESS;
}

spyre_status build_topk(const struct build_call *call)
{
	return topk_into(call, build_use_of(call->graph, *call->out));
}

/*
 * argmin(x) is argmax(-x) for floats: both have to find NaN, which topk orders as the largest
 * number.
 */
static spyre_status argmax_of_negative(const struct build_call *call)
{
	struct build_call argmax = *call;
	uint32_t negative = NEW;

	TRY(build_add(call->graph, "neg", NULL, 0, call->in, 1, &negative));
	argmax.op = build_op_find("argmax");
	argmax.in[0] = negative;
	return build_argmax(&argmax);
}

/* Finds the index of the largest or smallest element. */
spyre_status build_argmax(const struct build_call *call)
{
	spyre_sdsc_graph *g = call->graph;
	spyre_sdsc_attribute attr[3] = { { "k", 1 }, { "dim", build_attr(call, "dim") },
					 { "largest", !strcmp(call->op->name, "argmax") } };
	/* A copy, because adding a tensor may reallocate the graph's array. */
	const spyre_sdsc_operand in = *build_operand(g, call->in[0]);
	bool keep = build_attr(call, "keepdim") != 0, given = *call->out != NEW;
	struct build_call top = *call;
	struct build_use out;
	uint32_t dim, tensor;

	if (!attr[2].value && build_is_float(in.layout.device_format))
		return argmax_of_negative(call);
	TRY(build_attr_dim(call, "dim", attr[1].value, in.rank, &dim));
	if (given)
		keep = build_operand(g, *call->out)->rank == in.rank;
	if (keep)
		return build_add(g, "topk_indices", attr, 3, call->in, 1, call->out);
	if (!given) {
		spyre_sdsc_operand shape = { 0 };

		for (uint32_t d = 0; d < in.rank; d++)
			if (d != dim)
				shape.size[shape.rank++] = in.size[d];
		build_layout(&shape, SPYRE_FORMAT_IEEE_INT32, -1, 0);
		TRY(build_new_tensor(g, &shape, &tensor));
		*call->out = tensor;
	}
	out = build_use_of(g, *call->out);
	if (out.view.rank != in.rank - 1)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, expected %u", call->op->name,
				   out.view.rank, in.rank - 1);
	build_unsqueeze(&out.view, dim);
	top.op = build_op_find("topk_indices");
	top.attr = attr;
	top.num_attrs = 3;
	return topk_into(&top, out);
}

spyre_status build_topk_shapes(const struct build_call *call, struct build_use *uses,
			       struct build_step *step)
{
	static const char *const names[] = { "mb", "x", "y", "i", "j", "ki", "kj" };
	const spyre_sdsc_operand *in = &uses[0].view, *out = &uses[1].view;
	int dim[SPYRE_MAX_RANK], lanes, searched;
	struct ir_sdsc *s = &step->sdsc;
	uint32_t search;
	int64_t k;

	TRY(build_attr_dim(call, "dim", build_attr(call, "dim"), in->rank, &search));
	TRY(ranks_of(call, in->size[search], &k));
	for (uint32_t d = 0; d < in->rank; d++)
		dim[d] = d != search && in->size[d] > 1 ?
			 build_add_dim(step, names[d], in->size[d], BUILD_NO_KEY) : -1;
	searched = build_add_dim(step, "in", build_whole_sticks(in->size[search],
								build_lanes(in)), BUILD_NO_KEY);
	lanes = build_add_dim(step, "out", build_whole_sticks(k, build_lanes(out)),
			      BUILD_NO_KEY);
	if (searched < 0 || lanes < 0)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH, "%s: more than %u dimensions",
				   call->op->name, IR_MAX_DIMS);
	step->whole = 1u << searched;
	dim[search] = in->size[search] > 1 ? searched : -1;
	TRY(build_place_tensor(s, call->op->name, in, dim, (uint32_t)searched, true));
	dim[search] = k > 1 ? lanes : -1;
	TRY(build_place_tensor(s, call->op->name, out, dim, (uint32_t)lanes, true));
	build_share_singles(s, 0);
	build_finish(step, uses, 2, call->op->func);
	if (k <= MAX_EXACT)
		build_add_constant(s, "k", (float)k);
	else
		build_integer_constant(s, "k", (int32_t)k);
	build_add_constant(s, "largest", build_attr(call, "largest") != 0);
	if (in->size[search] < s->size[searched])
		s->mask[s->num_masks++] = (struct ir_mask){ (uint32_t)searched, in->size[search],
							    s->size[searched] - in->size[search] };
	return SPYRE_SUCCESS;
}
