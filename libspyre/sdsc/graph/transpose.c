// SPDX-License-Identifier: MIT
/* Builder: transposition, and restickification along other dims. */
#include <math.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"

spyre_status build_transpose(const struct build_call *call)
{
	struct build_use in = build_use_of(call->graph, call->in[0]), out;
	double stick = build_attr(call, "stick");
	uint32_t d0, d1, dim;

	if (!in.view.rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand 0 has rank 0, there is nothing to exchange",
				   call->op->name);
	TRY(build_attr_dim(call, "dim0", build_attr(call, "dim0"), in.view.rank, &d0));
	TRY(build_attr_dim(call, "dim1", build_attr(call, "dim1"), in.view.rank, &d1));
	build_swap_dims(&in.view, d0, d1);
	out = build_use_of(call->graph, *call->out);
	if (out.tensor == SPYRE_SDSC_NEW) {
		TRY(build_attr_dim(call, "stick", isnan(stick) ? -1 : stick, in.view.rank, &dim));
		TRY(build_restick(call->graph, in, in.view.size[dim] > 1 ? (int)dim : -1,
				  &out));
		*call->out = out.tensor;
		return SPYRE_SUCCESS;
	}
	if (out.view.rank != in.view.rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, the input %u", call->op->name,
				   out.view.rank, in.view.rank);
	for (uint32_t d = 0; d < in.view.rank; d++)
		if (out.view.size[d] != in.view.size[d])
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: the output has size[%u] = %lld, expected %lld",
					   call->op->name, d, (long long)out.view.size[d],
					   (long long)in.view.size[d]);
	return build_restick(call->graph, in, build_stick_dim(&out.view), &out);
}
