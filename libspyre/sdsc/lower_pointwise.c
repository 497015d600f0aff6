// SPDX-License-Identifier: MIT
/* Pointwise operations: SFU instructions, or plain moves. */
#include <string.h>

#include "libspyre/sdsc/lower.h"

static bool arithmetic(enum spyre_fmt format)
{
	return format == SPYRE_FMT_SEN169_FP16 || format == SPYRE_FMT_IEEE_FP32 ||
	       format == SPYRE_FMT_IEEE_FP16 || format == SPYRE_FMT_BFLOAT16;
}

/* Lanes run along the output's stick; what does not vary there is one value for all. */
static spyre_status check_tensor(struct lower *l, const struct ir_tensor *t, uint32_t lane_dim,
				 uint32_t index)
{
	if (lower_varies(t, lane_dim) && t->stick != lane_dim)
		return lower_unsupported(l, "Tensor%u has its sticks along %s, the output along %s; restickify it first",
					 index, l->sdsc->dim[t->stick], l->sdsc->dim[lane_dim]);
	return SPYRE_SUCCESS;
}

static spyre_status check_output(struct lower *l, const struct ir_tensor *out)
{
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		if (l->sdsc->el[d] > 1 && !lower_varies(out, d))
			return lower_unsupported(l, "the output does not vary along %s",
						 l->sdsc->dim[d]);
	return SPYRE_SUCCESS;
}

static spyre_status emit_core(struct lower *l, const struct nest *model,
			      const struct ir_tensor *const *tensor, const uint32_t *index,
			      uint32_t core)
{
	struct nest nest = *model;
	spyre_status status;

	status = encoder_stream(l->encoder, l->sdsc->core[core]);
	if (status != SPYRE_SUCCESS)
		return status;
	for (uint32_t i = 0; i < nest.in.num_views; i++) {
		lower_view(&nest.view[i], tensor[i], &l->address[index[i]][core]);
		if (i && !lower_varies(tensor[i], tensor[0]->stick))
			nest.view[i].lanes = SPYRE_LANES_SPLAT;
		/* exx2 leaves the mean in lane 0 and that of the squares in lane 1. */
		if (nest.in.func == SPYRE_FUNC_LAYERNORMSCALE && i == 2)
			nest.view[i].offset += tensor[i]->word;
	}
	return nest_emit(l, &nest);
}

/* leakyrelufwd: negativeSlope, or what its one constant is called. */
static spyre_status lower_slope(struct lower *l, uint32_t *bits)
{
	const struct ir_sdsc *s = l->sdsc;

	if (s->num_constants != 1 || lower_has_constant(l, "negativeSlope"))
		return lower_constant(l, "negativeSlope", bits);
	return lower_constant(l, s->constant[0].name, bits);
}

/* The immediates of a function, from constantInfo_. */
static spyre_status set_imms(struct lower *l, struct spyre_instr *in)
{
	static const struct {
		uint32_t func;
		const char *name[2];
	} names[] = {
		{ SPYRE_FUNC_CLIP, { "clipMin", "clipMax" } },
		{ SPYRE_FUNC_SOFTPLUS, { "softplusBeta", "softplusThresh" } },
		{ SPYRE_FUNC_LAYERNORMSCALE, { "eps" } },
	};
	spyre_status status = SPYRE_SUCCESS;

	if (!strcmp(l->sdsc->op, "relu6fwd")) {
		in->imm[1] = 0x40c00000;	/* 6.0 */
		return SPYRE_SUCCESS;
	}
	if (in->func == SPYRE_FUNC_LEAKYRELU)
		return lower_slope(l, &in->imm[0]);
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (uint32_t k = 0; k < 2 && names[i].name[k] && status == SPYRE_SUCCESS; k++)
			if (names[i].func == in->func)
				status = lower_constant(l, names[i].name[k], &in->imm[k]);
	return status;
}

spyre_status lower_pointwise(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *tensor[SPYRE_MAX_VIEWS];
	uint32_t index[SPYRE_MAX_VIEWS], lane_dim = s->tensor[s->output].stick;
	uint32_t views = 1 + spyre_func_inputs(func);
	struct nest nest = { .in = { .opcode = SPYRE_OP_SFU, .func = (uint16_t)func,
				     .num_views = (uint8_t)views } };
	bool splat = false, raw = true;
	spyre_status status;

	for (uint32_t i = 0; i < views; i++) {
		index[i] = i ? s->input[i - 1] : s->output;
		if (func == SPYRE_FUNC_LAYERNORMSCALE && i)
			index[i] = s->input[0];
		tensor[i] = &s->tensor[index[i]];
		status = check_tensor(l, tensor[i], lane_dim, index[i]);
		if (status != SPYRE_SUCCESS)
			return status;
		if (func == SPYRE_FUNC_LAYERNORMSCALE && i && lower_varies(tensor[i], lane_dim))
			return lower_unsupported(l, "Tensor%u varies along %s; it has to be a result of exx2",
						 index[i], s->dim[lane_dim]);
		if (!lower_varies(tensor[i], lane_dim))
			splat = true;
		else if (!nest.in.lanes || tensor[i]->lanes < nest.in.lanes)
			nest.in.lanes = tensor[i]->lanes;
		raw = raw && tensor[i]->format == tensor[0]->format;
	}
	if (s->num_inputs > views && !strcmp(s->op, "batchnormfwd"))
		return lower_unsupported(l, "%u inputs; it takes x, scale and bias, into which mean and variance are folded",
					 s->num_inputs);
	status = set_imms(l, &nest.in);
	if (status == SPYRE_SUCCESS)
		status = check_output(l, tensor[0]);
	if (status != SPYRE_SUCCESS)
		return status;
	if (!nest.in.lanes)	/* one element in all: the first lane of a stick */
		nest.in.lanes = 1;
	if (func == SPYRE_FUNC_IDENTITY && raw && !splat) {
		nest.in.opcode = SPYRE_OP_MOVE;
		nest.in.func = SPYRE_FUNC_NONE;
	}
	for (uint32_t i = 0; i < views && nest.in.opcode == SPYRE_OP_SFU; i++)
		if (!arithmetic(tensor[i]->format))
			return lower_unsupported(l, "Tensor%u is %s, the SFU computes on SEN169_FP16, IEEE_FP32, IEEE_FP16 and BFLOAT16",
						 index[i],
					 spyre_format_name(
						 (spyre_format)tensor[i]->format));
	status = lower_dims(l, &nest, tensor, views, lane_dim, s->el, 0, 0);
	for (uint32_t c = 0; c < s->num_cores && status == SPYRE_SUCCESS; c++)
		status = emit_core(l, &nest, tensor, index, c);
	return status;
}
