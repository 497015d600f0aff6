// SPDX-License-Identifier: MIT
/* Builder: conversions between formats. */
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/cast.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/infer.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"

bool build_is_float(spyre_format format)
{
	return format == SPYRE_FORMAT_SEN169_FP16 || format == SPYRE_FORMAT_IEEE_FP32 ||
	       format == SPYRE_FORMAT_IEEE_FP16 || format == SPYRE_FORMAT_BFLOAT16;
}

static bool is_fp8(spyre_format format)
{
	return format == SPYRE_FORMAT_SEN143_FP8 || format == SPYRE_FORMAT_SEN152_FP8;
}

static bool is_int32(spyre_format format)
{
	return format == SPYRE_FORMAT_IEEE_INT32 || format == SPYRE_FORMAT_SENUINT32;
}

/* Operation that converts between two formats; NULL if the card has none. */
static const char *cast_name(spyre_format from, spyre_format to)
{
	if (from == to || (is_int32(from) && is_int32(to)))
		return "identity";
	if (from == SPYRE_FORMAT_SEN169_FP16 && to == SPYRE_FORMAT_IEEE_FP32)
		return "dl16tofp32";
	if (from == SPYRE_FORMAT_IEEE_FP32 && to == SPYRE_FORMAT_SEN169_FP16)
		return "fp32todl16";
	if (is_fp8(from) && build_is_float(to))
		return "fp8todl16";
	if (build_is_float(from) && is_fp8(to))
		return "qfp8ch";
	if (build_is_float(from) && to == SPYRE_FORMAT_SENINT8)
		return "csqint8ch";
	if (is_int32(from) && to == SPYRE_FORMAT_IEEE_FP32)
		return "int32tofp32";
	if (from == SPYRE_FORMAT_IEEE_FP32 && to == SPYRE_FORMAT_IEEE_INT32)
		return "fp32toint32";
	return build_is_float(from) && build_is_float(to) ? "cast" : NULL;
}

/* True if a conversion takes two steps: 16-bit floats and integers convert via fp32. */
static bool by_fp32(spyre_format from, spyre_format to)
{
	return (is_int32(from) && build_is_float(to) && to != SPYRE_FORMAT_IEEE_FP32) ||
	       (build_is_float(from) && from != SPYRE_FORMAT_IEEE_FP32 &&
		to == SPYRE_FORMAT_IEEE_INT32);
}

/* Determines the output's format from the output, the operation's name or an attribute. */
static spyre_status cast_output(const struct build_call *call, struct build_use *use)
{
	spyre_format format = SPYRE_FORMAT_INVALID;

	if (use[1].tensor != SPYRE_SDSC_NEW)
		return SPYRE_SUCCESS;
	TRY(build_infer(call, use, &use[1].view));
	if (!strcmp(call->op->name, "cast")) {
		TRY(build_attr_format(call, &format));
		if (format == SPYRE_FORMAT_INVALID)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "cast needs an output or the attribute \"format\"");
		build_layout(&use[1].view, format, build_stick_dim(&use[1].view), 0);
	}
	TRY(build_new_tensor(call->graph, &use[1].view, &use[1].tensor));
	*call->out = use[1].tensor;
	return SPYRE_SUCCESS;
}

/* One narrow stick takes two or four wide ones; a tensor with fewer gets a padded copy. */
spyre_status build_cast(const struct build_call *call)
{
	struct build_use use[2] = { build_use_of(call->graph, call->in[0]),
				    build_use_of(call->graph, *call->out) }, copy = { 0 };
	const spyre_sdsc_operand *shape = &use[0].view;
	spyre_format from = shape->layout.device_format, to;
	int stick = build_stick_dim(shape);
	struct build_use *wide;
	const char *name;
	int64_t most;
	bool widens;

	TRY(cast_output(call, use));
	to = use[1].view.layout.device_format;
	if (by_fp32(from, to) && !strcmp(call->op->name, "cast")) {
		spyre_sdsc_attribute wide_format = { "format", SPYRE_FORMAT_IEEE_FP32 };
		uint32_t middle = SPYRE_SDSC_NEW;

		TRY(build_add(call->graph, "cast", &wide_format, 1, call->in, 1, &middle));
		return build_add(call->graph, "cast", NULL, 0, &middle, 1, &use[1].tensor);
	}
	name = cast_name(from, to);
	if (!name || (strcmp(call->op->name, "cast") && strcmp(call->op->name, name)))
		return spyre_error(SPYRE_ERROR_FORMAT, "%s does not make %s of %s",
				   call->op->name, spyre_format_name(to), spyre_format_name(from));
	most = build_lanes(shape) > build_lanes(&use[1].view) ? build_lanes(shape) :
	       build_lanes(&use[1].view);
	widens = build_lanes(&use[1].view) < most;
	wide = &use[widens];
	if (build_lanes(shape) == build_lanes(&use[1].view) || stick < 0 ||
	    build_stick_dim(&wide->view) != stick ||
	    (widens ? build_may_write : build_may_read)(call->graph, wide, (uint32_t)stick,
							build_whole_sticks(shape->size[stick],
									   most)))
		return build_emit(call->graph, name, use, 1, &use[1]);
	copy.view = *shape;
	build_layout(&copy.view, wide->view.layout.device_format, stick, 0);
	for (uint32_t j = 0; j + 1 < copy.view.layout.device_rank; j++)
		if (copy.view.layout.dim_map[j] == stick)
			copy.view.layout.device_size[j] =
				build_whole_sticks(shape->size[stick], most) /
				build_lanes(&copy.view);
	TRY(build_new_tensor(call->graph, &copy.view, &copy.tensor));
	if (widens) {
		TRY(build_emit(call->graph, name, &use[0], 1, &copy));
		return build_emit(call->graph, "identity", &copy, 1, &use[1]);
	}
	TRY(build_emit(call->graph, "identity", &use[0], 1, &copy));
	return build_emit(call->graph, name, &copy, 1, &use[1]);
}
