// SPDX-License-Identifier: MIT
/* Builder: shapes and layouts of intermediates that the caller does not give. */
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/infer.h"
#include "libspyre/sdsc/graph/layout.h"

/* Broadcasts the shapes of all inputs; sticks are those of the first input that has any. */
static void infer_pointwise(const struct build_call *call, const struct build_use *uses,
			    spyre_sdsc_operand *out)
{
	spyre_format format = uses[0].view.layout.device_format;
	int stick = -1;

	for (uint32_t i = 0; i < call->num_inputs; i++)
		if (uses[i].view.rank > out->rank)
			out->rank = uses[i].view.rank;
	for (uint32_t d = 0; d < out->rank; d++)
		out->size[d] = 1;
	for (uint32_t i = 0; i < call->num_inputs; i++) {
		const spyre_sdsc_operand *in = &uses[i].view;
		uint32_t lead = out->rank - in->rank;

		for (uint32_t d = 0; d < in->rank; d++)
			if (in->size[d] > 1)
				out->size[lead + d] = in->size[d];
		if (stick < 0 && build_stick_dim(in) >= 0)
			stick = (int)lead + build_stick_dim(in);
	}
	if (!strcmp(call->op->name, "dl16tofp32"))
		format = SPYRE_FORMAT_IEEE_FP32;
	else if (!strcmp(call->op->name, "fp32todl16"))
		format = SPYRE_FORMAT_SEN169_FP16;
	else if (!strcmp(call->op->name, "fp8todl16"))
		format = SPYRE_FORMAT_SEN169_FP16;
	else if (!strcmp(call->op->name, "int32tofp32"))
		format = SPYRE_FORMAT_IEEE_FP32;
	else if (!strcmp(call->op->name, "fp32toint32"))
		format = SPYRE_FORMAT_IEEE_INT32;
	else if (!strcmp(call->op->name, "qfp8ch"))
		format = SPYRE_FORMAT_SEN143_FP8;
	else if (!strcmp(call->op->name, "csqint8ch"))
		format = SPYRE_FORMAT_SENINT8;
	build_layout(out, format, stick, 0);
}

/* With a third input, the second is a table of factors, which has no batch of the output. */
static void infer_matmul(const struct build_call *call, const struct build_use *uses,
			 spyre_sdsc_operand *out)
{
	const spyre_sdsc_operand *a = &uses[0].view, *b = &uses[1].view;
	const spyre_sdsc_operand *longer = a->rank > b->rank ? a : b;

	out->rank = longer->rank;
	for (uint32_t d = 0; d < out->rank; d++)
		out->size[d] = 1;
	for (uint32_t i = 0; i < (call->num_inputs == 3 ? 1 : 2); i++) {
		const spyre_sdsc_operand *o = &uses[i].view;
		uint32_t lead = out->rank - o->rank;

		for (uint32_t d = 0; d + 2 < o->rank; d++)
			if (o->size[d] > 1)
				out->size[lead + d] = o->size[d];
	}
	out->size[out->rank - 2] = a->size[a->rank - 2];
	out->size[out->rank - 1] = b->size[b->rank - 1];
	/* A step that converts has the sums themselves, of fp32. */
	build_layout(out, call->op->flags & BUILD_CONVERTS ? SPYRE_FORMAT_IEEE_FP32 :
							     a->layout.device_format,
		     (int)out->rank - 1, 0);
	/* All sticks of the second factor's columns. */
	out->layout.device_size[out->rank - 2] =
		build_whole_sticks(out->size[out->rank - 1], build_lanes(b)) / build_lanes(out);
}

static void infer_reduce(const struct build_call *call, const struct build_use *uses,
			 spyre_sdsc_operand *out)
{
	uint32_t reduced = (uint32_t)build_attr(call, "dim");
	const spyre_sdsc_operand *in = &uses[0].view;
	int stick = build_stick_dim(in);

	*out = *in;
	out->size[reduced] = 1;
	build_layout(out, in->layout.device_format, stick == (int)reduced ? -1 : stick, 0);
}

spyre_status build_infer(const struct build_call *call, const struct build_use *uses,
			 spyre_sdsc_operand *out)
{
	memset(out, 0, sizeof(*out));
	if (call->op->kind == BUILD_REDUCE)
		infer_reduce(call, uses, out);
	else if (call->op->kind == BUILD_MATMUL)
		infer_matmul(call, uses, out);
	else
		infer_pointwise(call, uses, out);
	return SPYRE_SUCCESS;
}
