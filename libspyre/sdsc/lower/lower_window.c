// SPDX-License-Identifier: MIT
/*
 * Pooling and depthwise convolution: reductions over the taps of a window, one
 * instruction for each set of outputs that see the same taps.
 */
#include <string.h>

#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/rules.h"
#include "libspyre/sdsc/lower/window.h"

#define MAX_RUNS 4096u		/* instructions of one core */

struct pool {
	enum spyre_func func;
	uint32_t index[3];		/* out, in, weights */
	const struct ir_tensor *tensor[3];
	uint32_t views;
	uint32_t imm;
};

static spyre_status check_tensors(struct lower *l, const struct pool *p)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = p->tensor[0];
	uint32_t taps = 0;

	for (uint32_t k = 0; k < 2; k++) {
		const struct ir_axis *a = &s->axis[k];

		if (a->tap == IR_NO_DIM)
			continue;
		taps |= 1u << a->tap;
		if (lower_varies(out, a->tap))
			return lower_unsupported(l, "the output varies along %s, over which the window runs",
						 s->dim[a->tap]);
		if (s->slices[a->tap] > 1)
			return lower_unsupported(l, "%s is divided over %lld cores; divide another dimension",
						 s->dim[a->tap], (long long)s->slices[a->tap]);
	}
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (s->el[d] > 1 && !lower_varies(out, d) && d != s->axis[0].tap &&
		    d != s->axis[1].tap)
			return lower_unsupported(l, "the output does not vary along %s", s->dim[d]);
	for (uint32_t i = 0; i < p->views; i++)
		if (p->tensor[i]->stick != out->stick &&
		    (i == 1 || lower_varies(p->tensor[i], out->stick)))
			return lower_unsupported(l, "Tensor%u has its sticks along %s, the output along %s; restickify it first",
						 p->index[i], s->dim[p->tensor[i]->stick],
						 s->dim[out->stick]);
	if (out->stick == s->axis[0].dim || out->stick == s->axis[1].dim)
		return lower_unsupported(l, "sticks along %s, along which the window moves",
					 s->dim[out->stick]);
	return lower_unmasked(l, taps);
}

/* Padding counts as zeros in averages, so one factor serves all windows. */
static spyre_status set_factor(struct lower *l, struct pool *p)
{
	const struct ir_sdsc *s = l->sdsc;
	double taps = 1;	/* sizes of a file, whose product may overflow integers */
	float factor;

	if (p->func != SPYRE_FUNC_MEAN)
		return SPYRE_SUCCESS;
	if (lower_has_constant(l, "nmap"))
		return lower_constant(l, "nmap", &p->imm);
	if (lower_has_constant(l, "scaling_factor"))
		return lower_constant(l, "scaling_factor", &p->imm);
	for (uint32_t k = 0; k < 2; k++)
		taps *= (double)window_taps(s, &s->axis[k]);
	factor = (float)(1 / taps);
	memcpy(&p->imm, &factor, sizeof(factor));
	return SPYRE_SUCCESS;
}

/* Sets the views and dims of @run[], without the taps. */
static spyre_status start_nest(struct lower *l, const struct pool *p, uint32_t core,
			       const struct window_run *run, struct nest *nest)
{
	const struct ir_sdsc *s = l->sdsc;
	uint32_t lane_dim = p->tensor[0]->stick, skip = 0;
	spyre_status status;

	for (uint32_t i = 0; i < p->views; i++) {
		lower_view(&nest->view[i], p->tensor[i], &l->address[p->index[i]][core]);
		if (!lower_varies(p->tensor[i], lane_dim))
			nest->view[i].lanes = SPYRE_LANES_SPLAT;
		else if (!nest->in.lanes || p->tensor[i]->lanes < nest->in.lanes)
			nest->in.lanes = p->tensor[i]->lanes;
	}
	if (!nest->in.lanes)
		nest->in.lanes = 1;
	for (uint32_t k = 0; k < 2; k++) {
		skip |= s->axis[k].dim == IR_NO_DIM ? 0 : 1u << s->axis[k].dim;
		skip |= s->axis[k].tap == IR_NO_DIM ? 0 : 1u << s->axis[k].tap;
	}
	status = lower_dims(l, nest, p->tensor, p->views, lane_dim, s->el, skip, 0);
	for (uint32_t k = 0; k < 2 && !status; k++) {
		const struct ir_axis *a = &s->axis[k];
		struct nest_dim *dim = &nest->dim[nest->num_dims];

		if (a->dim == IR_NO_DIM)
			continue;
		*dim = (struct nest_dim){ .count = (uint64_t)run[k].count };
		for (uint32_t i = 0; i < p->views; i++) {
			const struct ir_tensor *t = p->tensor[i];
			uint64_t stride = lower_varies(t, a->dim) ? t->stride[a->dim] : 0;

			dim->stride[i] = i == 1 ? stride * (uint64_t)a->stride : stride;
			nest->view[i].offset += stride * (uint64_t)(i == 1 ? run[k].at :
								    run[k].first);
		}
		nest->num_dims++;
	}
	return status;
}

static void add_taps(const struct lower *l, const struct pool *p, const struct window_run *run,
		     struct nest *nest)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t k = 0; k < 2; k++) {
		const struct ir_axis *a = &s->axis[k];
		struct nest_dim *dim = &nest->dim[nest->num_dims++];

		*dim = (struct nest_dim){ .count = (uint64_t)run[k].taps, .reduce = true };
		if (a->dim == IR_NO_DIM || a->tap == IR_NO_DIM)
			continue;
		dim->stride[1] = p->tensor[1]->stride[a->dim] * (uint64_t)a->dilation;
		if (p->views == 3 && lower_varies(p->tensor[2], a->tap)) {
			dim->stride[2] = p->tensor[2]->stride[a->tap];
			nest->view[2].offset += dim->stride[2] * (uint64_t)run[k].tap;
		}
	}
}

/* Emits zeros for windows that lie in padding: x < x is 0 also for NaN. */
static spyre_status emit_zeros(struct lower *l, const struct pool *p, uint32_t core,
			       struct nest *nest)
{
	if (p->func == SPYRE_FUNC_AMAX)
		return lower_unsupported(l, "some windows cover only padding, so they have no maximum; reduce the padding");
	nest->in = (struct spyre_instr){ .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_LT,
					 .num_views = 3, .lanes = nest->in.lanes };
	for (uint32_t d = 0; d < nest->num_dims; d++)
		nest->dim[d].stride[1] = nest->dim[d].stride[2] = 0;
	lower_view(&nest->view[1], p->tensor[1], &l->address[p->index[1]][core]);
	nest->view[1].lanes = SPYRE_LANES_SPLAT;
	nest->view[2] = nest->view[1];
	return nest_emit(l, nest);
}

static spyre_status emit_run(struct lower *l, const struct pool *p, uint32_t core,
			     const struct window_run *run)
{
	struct nest nest = { .in = { .opcode = SPYRE_OP_REDUCE, .func = (uint16_t)p->func,
				     .num_views = (uint8_t)p->views, .imm = { p->imm } },
			     .ordered = true };
	spyre_status status = start_nest(l, p, core, run, &nest);

	if (status)
		return status;
	if (!run[0].taps || !run[1].taps)
		return emit_zeros(l, p, core, &nest);
	add_taps(l, p, run, &nest);
	return nest_emit(l, &nest);
}

static spyre_status emit_core(struct lower *l, const struct pool *p, uint32_t core)
{
	const struct ir_sdsc *s = l->sdsc;
	spyre_status status = encoder_stream(l->encoder, s->core[core]);
	struct window_run run[2];
	uint32_t runs = 0;

	for (int64_t i = 0; i < window_outputs(s, &s->axis[0]); i += run[0].count) {
		window_run(s, &s->axis[0], core, i, &run[0]);
		for (int64_t j = 0; j < window_outputs(s, &s->axis[1]); j += run[1].count) {
			window_run(s, &s->axis[1], core, j, &run[1]);
			if (!status && runs++ == MAX_RUNS)
				status = lower_unsupported(l, "the borders of the input need more than %u instructions of a core",
							   MAX_RUNS);
			if (!status)
				status = emit_run(l, p, core, run);
			if (status)
				return status;
		}
	}
	return status;
}

spyre_status lower_window(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct pool p = { .func = func, .views = func == SPYRE_FUNC_MULSUM ? 3 : 2 };
	spyre_status status;

	for (uint32_t i = 0; i < p.views; i++) {
		p.index[i] = i ? s->input[i - 1] : s->output;
		p.tensor[i] = &s->tensor[p.index[i]];
	}
	status = check_tensors(l, &p);
	if (!status)
		status = set_factor(l, &p);
	for (uint32_t c = 0; c < s->num_cores && !status; c++)
		status = emit_core(l, &p, c);
	return status;
}
