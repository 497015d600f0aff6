// SPDX-License-Identifier: MIT
/* Builder: from one format to another. */
#include <string.h>

#include "libspyre/layout/stick.h"
#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/build.h"

static bool is_float(spyre_format format)
{
	return format == SPYRE_FORMAT_SEN169_FP16 || format == SPYRE_FORMAT_IEEE_FP32 ||
	       format == SPYRE_FORMAT_IEEE_FP16 || format == SPYRE_FORMAT_BFLOAT16;
}

/* The operation between two formats; NULL if there is none. */
static const char *cast_name(spyre_format from, spyre_format to)
{
	if (from == to)
		return "identity";
	if (from == SPYRE_FORMAT_SEN169_FP16 && to == SPYRE_FORMAT_IEEE_FP32)
		return "dl16tofp32";
	if (from == SPYRE_FORMAT_IEEE_FP32 && to == SPYRE_FORMAT_SEN169_FP16)
		return "fp32todl16";
	return is_float(from) && is_float(to) ? "cast" : NULL;
}

/* Given by the output, by its name or by an attribute. */
static spyre_status cast_output(const struct build_call *call, struct build_use *use)
{
	double format = build_attr(call, "format");

	if (use[1].tensor != SPYRE_SDSC_NEW)
		return SPYRE_SUCCESS;
	BUILD_TRY(build_infer(call, use, &use[1].view));
	if (!strcmp(call->op->name, "cast")) {
		if (!(format >= 0 && format < 256) ||
		    spyre_stick_elements((spyre_format)format) < 1)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "cast needs an output or the attribute \"format\"");
		build_layout(&use[1].view, (spyre_format)format, build_stick_dim(&use[1].view), 0);
	}
	BUILD_TRY(build_new_tensor(call->graph, &use[1].view, &use[1].tensor));
	*call->out = use[1].tensor;
	return SPYRE_SUCCESS;
}

/* fp32 sticks come in pairs; a tensor may have an odd number of them. */
spyre_status build_cast(const struct build_call *call)
{
	struct build_use use[2] = { build_use_of(call->graph, call->in[0]),
				    build_use_of(call->graph, *call->out) }, copy;
	const spyre_sdsc_operand *shape = &use[0].view;
	spyre_format from = shape->layout.device_format, to;
	int stick = build_stick_dim(shape);
	spyre_sdsc_operand *wide;
	const char *name;

	BUILD_TRY(cast_output(call, use));
	to = use[1].view.layout.device_format;
	name = cast_name(from, to);
	if (!name || (strcmp(call->op->name, "cast") && strcmp(call->op->name, name)))
		return spyre_error(SPYRE_ERROR_FORMAT, "%s does not make %s of %s",
				   call->op->name, spyre_format_name(to), spyre_format_name(from));
	wide = &use[to == SPYRE_FORMAT_IEEE_FP32].view;
	if (build_lanes(shape) == build_lanes(&use[1].view) || stick < 0 ||
	    build_stick_dim(wide) != stick ||
	    build_has_room(wide, (uint32_t)stick, build_whole_sticks(shape->size[stick], 64)))
		return build_emit(call->graph, name, use, 1, &use[1]);
	copy.view = *shape;
	build_layout(&copy.view, SPYRE_FORMAT_IEEE_FP32, stick, 0);
	for (uint32_t j = 0; j + 1 < copy.view.layout.device_rank; j++)
		if (copy.view.layout.dim_map[j] == stick)
			copy.view.layout.device_size[j] = (shape->size[stick] + 63) / 64 * 2;
	BUILD_TRY(build_new_tensor(call->graph, &copy.view, &copy.tensor));
	if (to == SPYRE_FORMAT_IEEE_FP32) {
		BUILD_TRY(build_emit(call->graph, name, &use[0], 1, &copy));
		return build_emit(call->graph, "identity", &copy, 1, &use[1]);
	}
	BUILD_TRY(build_emit(call->graph, "identity", &use[0], 1, &copy));
	return build_emit(call->graph, name, &copy, 1, &use[1]);
}
