// SPDX-License-Identifier: MIT
/* Builder: reductions, one dimension after the other. */
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/recipes.h"

/* The reduced dims as bits: those that the caller names, or the last. */
static spyre_status reduced_dims(const struct build_call *call, uint32_t rank, uint32_t *mask)
{
	uint32_t dim;

	*mask = 0;
	if (!rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand 0 has rank 0, there is no last dimension to reduce",
				   call->op->name);
	for (uint32_t i = 0; i < call->num_attrs; i++) {
		if (strcmp(call->attr[i].name, "dim"))
			continue;
		TRY(build_attr_dim(call, "dim", call->attr[i].value, rank, &dim));
		if (*mask >> dim & 1)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: dimension %u is named twice", call->op->name, dim);
		*mask |= 1u << dim;
	}
	if (!*mask)
		*mask = 1u << (rank - 1);
	return SPYRE_SUCCESS;
}

/* Makes the output's view with the reduced dims kept as dims of size 1. */
static spyre_status reduced_output(const struct build_call *call, const spyre_sdsc_operand *in,
				   uint32_t mask, struct build_use *out)
{
	uint32_t count = (uint32_t)__builtin_popcount(mask);
	bool keep = build_attr(call, "keepdim") != 0;
	int stick = build_stick_dim(in);

	if (*call->out == SPYRE_SDSC_NEW) {
		out->view = (spyre_sdsc_operand){ 0 };
		for (uint32_t d = 0; d < in->rank; d++) {
			if ((int)d == build_stick_dim(in))
				stick = mask >> d & 1 ? -1 : (int)out->view.rank;
			if (keep || !(mask >> d & 1))
				out->view.size[out->view.rank++] = mask >> d & 1 ? 1 : in->size[d];
		}
		build_layout(&out->view, in->layout.device_format, stick, 0);
		TRY(build_new_tensor(call->graph, &out->view, call->out));
	}
	*out = build_use_of(call->graph, *call->out);
	if (out->view.rank == in->rank)
		return SPYRE_SUCCESS;
	if (out->view.rank != in->rank - count || keep)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, expected %u, or %u with sizes of 1",
				   call->op->name, out->view.rank, in->rank - count, in->rank);
	for (uint32_t d = 0; d < in->rank; d++)
		if (mask >> d & 1)
			build_unsqueeze(&out->view, d);
	return SPYRE_SUCCESS;
}

/* Reduces one dim after the other; the last reduction writes the output. */
spyre_status build_reduce(const struct build_call *call)
{
	struct build_use use[2] = { build_use_of(call->graph, call->in[0]) }, out;
	uint32_t mask;

	TRY(reduced_dims(call, use[0].view.rank, &mask));
	TRY(reduced_output(call, &use[0].view, mask, &out));
	if ((mask & (mask - 1)) && !strncmp(call->op->name, "exx2", 4))
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "exx2 reduces one dimension, the one along sticks");
	for (uint32_t d = use[0].view.rank; d-- > 0;) {
		const spyre_layout *l = &use[0].view.layout;
		spyre_sdsc_attribute attr = { "dim", d };
		struct build_call one = *call;
		uint32_t result;

		if (!(mask >> d & 1))
			continue;
		mask &= ~(1u << d);
		use[1] = mask ? (struct build_use){ .tensor = SPYRE_SDSC_NEW } : out;
		result = use[1].tensor;
		one.attr = &attr;
		one.num_attrs = 1;
		one.out = &result;
		if (use[0].view.size[d] == 1 && l->dim_map[l->device_rank - 1] != (int)d &&
		    strncmp(call->op->name, "exx2", 4))
			one.op = build_op_find(strcmp(call->op->name, "absmax") ? "identity" :
					       "abs");
		TRY(build_add_step(&one, use));
		use[0] = use[1];
	}
	return SPYRE_SUCCESS;
}
