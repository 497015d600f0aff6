// SPDX-License-Identifier: MIT
/* Pointwise operations: SFU and INT instructions. */
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/box.h"
#include "libspyre/sdsc/lower/lower_mask.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/rules.h"

static bool arithmetic(enum spyre_fmt format)
{
	return format == SPYRE_FMT_SEN169_FP16 || format == SPYRE_FMT_IEEE_FP32 ||
	       format == SPYRE_FMT_IEEE_FP16 || format == SPYRE_FMT_BFLOAT16;
}

static bool computes_on(uint32_t func, enum spyre_fmt format)
{
	return arithmetic(format) || (spyre_func_integer(func) &&
				      (format == SPYRE_FMT_IEEE_INT32 ||
				       format == SPYRE_FMT_SENINT16 ||
				       format == SPYRE_FMT_SENINT8));
}

/*
 * Lanes run along the output's stick; an input that does not vary there supplies
 * one value for all. An input with sticks along another dim is read one element
 * at a time. Along dims that the output lacks, the last element is used.
 */
struct pointwise {
	struct spyre_instr in;
	uint32_t views;
	const struct ir_tensor *tensor[SPYRE_MAX_VIEWS];
	uint32_t index[SPYRE_MAX_VIEWS];
	uint32_t lane_dim;
	uint32_t pinned;	/* bit per dim that the output does not vary along */
};

static bool splat(const struct pointwise *p, uint32_t view)
{
	return (p->pinned >> p->lane_dim & 1) ? view : !lower_varies(p->tensor[view], p->lane_dim);
}

static void set_lanes(struct pointwise *p)
{
	uint32_t d = p->lane_dim;
	bool pinned = p->pinned >> d & 1;

	p->in.lanes = p->tensor[0]->lanes;
	for (uint32_t i = 1; i < p->views && !pinned; i++) {
		const struct ir_tensor *t = p->tensor[i];

		if (!lower_varies(t, d))
			continue;
		if (t->stick != d)
			p->in.lanes = 1;
		else if (t->lanes < p->in.lanes)
			p->in.lanes = t->lanes;
	}
}

/* True if a later core writes the same output, so that this core's result is lost. */
static bool overwritten(const struct lower *l, uint32_t core)
{
	const struct address *at = l->address[l->sdsc->output];

	if (l->sdsc->tensor[l->sdsc->output].lx)
		return false;
	for (uint32_t c = core + 1; c < l->sdsc->num_cores; c++)
		if (at[c].offset == at[core].offset && !memcmp(&at[c], &at[core], sizeof(*at)))
			return true;
	return false;
}

static spyre_status emit_core(struct lower *l, const struct pointwise *p, const struct nest *model,
			      uint32_t core)
{
	const struct ir_sdsc *s = l->sdsc;
	struct nest nest;

	if (overwritten(l, core))
		return SPYRE_SUCCESS;
	nest_copy(&nest, model);
	TRY(encoder_stream(l->encoder, s->core[core]));
	for (uint32_t i = 0; i < p->views; i++) {
		lower_view(&nest.view[i], p->tensor[i], &l->address[p->index[i]][core]);
		for (uint32_t d = 0; d < s->num_dims; d++)
			if (p->pinned >> d & 1)
				nest.view[i].offset += box_bytes(p->tensor[i], d, s->el[d] - 1);
		if (splat(p, i))
			nest.view[i].lanes = SPYRE_LANES_SPLAT;
		/* exx2 leaves the mean in lane 0 and that of the squares in lane 1. */
		if (nest.in.func == SPYRE_FUNC_LAYERNORMSCALE && i == 2)
			nest.view[i].offset += p->tensor[i]->word;
	}
	TRY(nest_emit(l, &nest));
	return lower_mask(l, core, &p->in);
}

/* leakyrelufwd: reads negativeSlope, or the only constant under another name. */
static spyre_status lower_slope(struct lower *l, uint32_t *bits)
{
	const struct ir_sdsc *s = l->sdsc;

	if (s->num_constants != 1 || lower_has_constant(l, "negativeSlope"))
		return lower_constant(l, "negativeSlope", bits);
	return lower_constant(l, s->constant[0].name, bits);
}

/* Sets the immediates of a function from constantInfo_. */
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

	if (in->func == SPYRE_FUNC_INT_CLIP) {
		TRY(lower_integer_constant(l, "clipMin", &in->imm[0]));
		return lower_integer_constant(l, "clipMax", &in->imm[1]);
	}
	if (!strcmp(l->sdsc->op, "relu6fwd")) {
		in->imm[1] = 0x40c00000;	/* 6.0 */
		return SPYRE_SUCCESS;
	}
	if (in->func == SPYRE_FUNC_LEAKYRELU)
		return lower_slope(l, &in->imm[0]);
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (uint32_t k = 0; k < 2 && names[i].name[k] && !status; k++)
			if (names[i].func == in->func)
				status = lower_constant(l, names[i].name[k], &in->imm[k]);
	return status;
}

static spyre_status find_tensors(struct lower *l, struct pointwise *p)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t i = 0; i < p->views; i++) {
		p->index[i] = i ? s->input[i - 1] : s->output;
		if (p->in.func == SPYRE_FUNC_LAYERNORMSCALE && i)
			p->index[i] = s->input[0];
		p->tensor[i] = &s->tensor[p->index[i]];
		if (p->in.func == SPYRE_FUNC_LAYERNORMSCALE && i &&
		    lower_varies(p->tensor[i], p->tensor[i]->stick))
			return lower_unsupported(l, "Tensor%u varies along %s; it has to be a result of exx2",
						 p->index[i], s->dim[p->tensor[i]->stick]);
	}
	p->lane_dim = p->tensor[0]->stick;
	for (uint32_t d = 0; d < s->num_dims; d++)
		p->pinned |= lower_varies(p->tensor[0], d) ? 0 : 1u << d;
	return SPYRE_SUCCESS;
}

static spyre_status check_formats(struct lower *l, const struct pointwise *p)
{
	for (uint32_t i = 0; i < p->views; i++)
		if (!computes_on(p->in.func, p->tensor[i]->format))
			return lower_unsupported(l, "Tensor%u is %s, the SFU computes on SEN169_FP16, IEEE_FP32, IEEE_FP16 and BFLOAT16%s",
						 p->index[i],
						 spyre_format_name(
							 (spyre_format)p->tensor[i]->format),
						 spyre_func_integer(p->in.func) ?
						 ", on integers also IEEE_INT32, SENINT16 and SENINT8" :
						 "");
	return SPYRE_SUCCESS;
}

spyre_status lower_pointwise(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct pointwise p = { .in = { .opcode = spyre_func_integer(func) ? SPYRE_OP_INT :
									    SPYRE_OP_SFU,
				       .func = (uint16_t)func },
			       .views = 1 + spyre_func_inputs(func) };
	struct nest nest = { .num_dims = 0 };
	spyre_status status;

	p.in.num_views = (uint8_t)p.views;
	if (s->num_inputs >= p.views && !strcmp(s->op, "batchnormfwd"))
		return lower_unsupported(l, "%u inputs; it takes x, scale and bias, into which mean and variance are folded",
					 s->num_inputs);
	status = find_tensors(l, &p);
	if (!status)
		status = set_imms(l, &p.in);
	if (status)
		return status;
	set_lanes(&p);
	status = check_formats(l, &p);
	nest.in = p.in;
	if (!status)
		status = lower_dims(l, &nest, p.tensor, p.views, p.lane_dim, s->el, p.pinned, 0);
	for (uint32_t c = 0; c < s->num_cores && !status; c++)
		status = emit_core(l, &p, &nest, c);
	return status;
}
