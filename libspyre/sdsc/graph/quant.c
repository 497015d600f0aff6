// SPDX-License-Identifier: MIT
/* Builder: quantisation and products of scaled fp8 numbers. */
#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/cast.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/infer.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"

/* Divides x by the scale; a column of scales is broadcast along the sticks. */
spyre_status build_quantise(const struct build_call *call)
{
	struct build_use use[3] = { build_use_of(call->graph, call->in[0]) };
	struct build_use *out = &use[call->num_inputs];
	struct build_call step = *call;
	spyre_sdsc_operand shape;
	int64_t whole;
	int stick;

	if (call->num_inputs == 1)
		return build_cast(call);
	use[1] = build_use_of(call->graph, call->in[1]);
	for (uint32_t i = 0; i < 2; i++)
		if (!build_is_float(use[i].view.layout.device_format))
			return spyre_error(SPYRE_ERROR_FORMAT,
					   "%s: operand %u is %s, expected a float of 16 or 32 bits",
					   call->op->name, i,
					   spyre_format_name(use[i].view.layout.device_format));
	*out = build_use_of(call->graph, *call->out);
	TRY(build_align(call, use));
	if (out->tensor == SPYRE_SDSC_NEW) {
		TRY(build_infer(call, use, &out->view));
		TRY(build_new_tensor(call->graph, &out->view, &out->tensor));
	}
	shape = use[0].view;
	stick = build_stick_dim(&shape);
	if (stick < 0 || build_stick_dim(&out->view) != stick)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "%s: input and output need their sticks along the same dimension, they have them along %d and %d",
				   call->op->name, stick, build_stick_dim(&out->view));
	whole = build_whole_sticks(shape.size[stick], build_lanes(&out->view));
	for (uint32_t i = 0; i < 2; i++) {
		struct build_use copy = { .view = use[i].view };

		if (build_stick_dim(&use[i].view) < 0 ||
		    build_may_read(call->graph, &use[i],
				   (uint32_t)build_stick_dim(&use[i].view), whole))
			continue;
		build_layout(&copy.view, use[i].view.layout.device_format,
			     build_stick_dim(&use[i].view), 0);
		for (uint32_t j = 0; j + 1 < copy.view.layout.device_rank; j++)
			if (copy.view.layout.dim_map[j] == build_stick_dim(&use[i].view))
				copy.view.layout.device_size[j] = whole / build_lanes(&copy.view);
		TRY(build_new_tensor(call->graph, &copy.view, &copy.tensor));
		TRY(build_emit(call->graph, "identity", &use[i], 1, &copy));
		use[i] = copy;
	}
	step.out = &out->tensor;
	TRY(build_add_step(&step, use));
	*call->out = out->tensor;
	return SPYRE_SUCCESS;
}

/*
 * Products of fp8 numbers, times the scales of rows and columns, plus a bias. fp8
 * numbers are exact in the scales' format, in which all steps are computed.
 */
spyre_status build_scaled_mm(const struct build_call *call)
{
	spyre_sdsc_graph *g = call->graph;
	spyre_format scales = build_operand(g, call->in[2])->layout.device_format;
	spyre_sdsc_attribute format = { "format", scales };
	uint32_t wide[2], last = SPYRE_SDSC_NEW, next, steps = call->num_inputs - 2;
	bool casts = *call->out != SPYRE_SDSC_NEW &&
		     build_operand(g, *call->out)->layout.device_format != scales;

	for (uint32_t i = 0; i < 2; i++) {
		wide[i] = SPYRE_SDSC_NEW;
		TRY(build_add(g, "cast", &format, 1, &call->in[i], 1, &wide[i]));
	}
	TRY(build_add(g, "matmul", NULL, 0, wide, 2, &last));
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t in[2] = { last, call->in[2 + i] };

		next = i + 1 == steps && !casts ? *call->out : SPYRE_SDSC_NEW;
		TRY(build_add(g, i < 2 ? "mul" : "add", NULL, 0, in, 2, &next));
		last = next;
	}
	if (casts)
		return build_add(g, "cast", NULL, 0, &last, 1, call->out);
	*call->out = last;
	return SPYRE_SUCCESS;
}
