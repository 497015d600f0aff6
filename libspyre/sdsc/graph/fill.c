// SPDX-License-Identifier: MIT
/* Builder: constants, computed without an input. */
#include <math.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fill.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/integer.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"

spyre_status build_zero(spyre_sdsc_graph *g, spyre_format format, uint32_t *tensor)
{
	spyre_sdsc_operand scalar = { 0 };
	struct build_use use[2];

	if (format == SPYRE_FORMAT_IEEE_INT32)
		return build_integer_fill(g, 0, tensor);
	build_layout(&scalar, format, -1, 0);
	TRY(build_new_tensor(g, &scalar, tensor));
	use[0] = use[1] = build_use_of(g, *tensor);
	return build_emit(g, "gt", use, 2, &(struct build_use){ .tensor = *tensor, .view = scalar });
}

spyre_status build_constant(spyre_sdsc_graph *g, spyre_format format, double value,
			    uint32_t *tensor)
{
	spyre_sdsc_attribute range[2] = { { "min", value }, { "max", value } };
	uint32_t zero;

	if (format == SPYRE_FORMAT_IEEE_INT32)
		return build_integer_fill(g, value, tensor);
	TRY(build_zero(g, format, &zero));
	*tensor = SPYRE_SDSC_NEW;
	/* clip leaves the sign of a zero that equals its bound, so -0 is a negated zero. */
	if (value == 0 && signbit(value))
		return build_add(g, "neg", NULL, 0, &zero, 1, tensor);
	return build_add(g, "clip", range, 2, &zero, 1, tensor);
}

/* Fills other integers than IEEE_INT32, and fp8, by a conversion from fp32: clip has neither. */
static spyre_status filling(spyre_sdsc_graph *g, spyre_format format, double value,
			    uint32_t *tensor)
{
	spyre_sdsc_attribute to = { "format", format };
	uint32_t wide;

	if (format == SPYRE_FORMAT_SEN169_FP16 || format == SPYRE_FORMAT_IEEE_FP16 ||
	    format == SPYRE_FORMAT_BFLOAT16 || format == SPYRE_FORMAT_IEEE_FP32 ||
	    format == SPYRE_FORMAT_IEEE_INT32)
		return build_constant(g, format, value, tensor);
	if (isinf(value))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "fill: %s has no infinity, value is %g",
				   spyre_format_name(format), value);
	if (value != (float)value)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "fill: %.17g is not exact in fp32, through which %s is filled",
				   value, spyre_format_name(format));
	TRY(build_constant(g, SPYRE_FORMAT_IEEE_FP32, value, &wide));
	*tensor = SPYRE_SDSC_NEW;
	return build_add(g, "cast", &to, 1, &wide, 1, tensor);
}

spyre_status build_fill(const struct build_call *call)
{
	double value = build_attr(call, "value");
	spyre_format format = SPYRE_FORMAT_SEN169_FP16;
	uint32_t in = call->in[0];

	TRY(build_attr_format(call, &format));
	if (*call->out == SPYRE_SDSC_NEW && call->num_inputs)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "fill from a tensor needs an output whose shape is known");
	if (call->num_inputs && build_has_attr(call, "value"))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "fill takes a value as an input or as an attribute, not both");
	if (!call->num_inputs && isnan(value))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "fill: cannot fill with NaN, since tensors are filled by clip, which ignores such a bound; give it as an input instead");
	if (*call->out == SPYRE_SDSC_NEW)
		return filling(call->graph, format, value, call->out);
	format = build_operand(call->graph, *call->out)->layout.device_format;
	if (!call->num_inputs)
		TRY(filling(call->graph, format, value, &in));
	return build_add(call->graph, "identity", NULL, 0, &in, 1, call->out);
}
