// SPDX-License-Identifier: MIT
/* The public description of plans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/lower/compile.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/plan/compile.h"
#include "libspyre/sdsc/plan/divide.h"
#include "libspyre/sdsc/plan/memory.h"
#include "libspyre/sdsc/plan/plan.h"

static void explain_step(const struct plan *plan, uint32_t index, spyre_sdsc_plan_step *out)
{
	const struct build_step *step = &plan->step[index];
	const struct ir_sdsc *s = &step->sdsc;
	struct plan_choice other[SPYRE_SDSC_MAX_CHOICES - 1];
	uint32_t n = plan_choices(step, plan->cores, other, SPYRE_SDSC_MAX_CHOICES - 1);

	snprintf(out->op, sizeof(out->op), "%.31s", s->op);
	out->num_dims = s->num_dims;
	out->num_cores = s->num_cores;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		snprintf(out->dim[d], sizeof(out->dim[d]), "%.15s", s->dim[d]);
		out->size[d] = s->size[d];
		out->choice[0].slices[d] = s->slices[d];
		out->asked[d] = step->asked[d];
		for (uint32_t i = 0; i < n; i++)
			out->choice[i + 1].slices[d] = other[i].slices[d];
	}
	out->num_choices = n + 1;
	out->choice[0].microseconds = plan_cost(step, s->slices);
	for (uint32_t i = 0; i < n; i++)
		out->choice[i + 1].microseconds = other[i].cost;
	out->num_tensors = s->num_tensors;
	for (uint32_t k = 0; k < s->num_tensors; k++) {
		out->tensor[k] = step->tensor[k];
		out->core_bytes[k] = plan_share(step, k);
		out->core_span[k] = lower_box_bytes(s, &s->tensor[k]);
	}
}

static spyre_status add_cost(const struct plan *plan, spyre_sdsc_plan *out)
{
	struct spyre_verify_error why;
	struct spyre_program program;
	struct spyre_bundle bundle;
	spyre_status status = plan_compile_steps(plan, SPYRE_MAX_CORES, &bundle);

	if (status)
		return status;
	if (spyre_program_verify(bundle.image, bundle.image_bytes, SPYRE_MAX_CORES, &program,
				 &why)) {
		status = spyre_error(SPYRE_ERROR_VERIFY,
				     "the verifier refuses the program: %s at step %u; this is a fault of the compiler, please report it",
				     spyre_stop_name(why.stop), why.step);
	} else {
		out->cycles = program.cost.cycles;
		out->bytes_read = program.cost.bytes_read;
		out->bytes_written = program.cost.bytes_written;
		out->macs = program.cost.macs;
	}
	spyre_bundle_fini(&bundle);
	return status;
}

static spyre_status explain(const struct plan *plan, spyre_sdsc_plan *out)
{
	out->step = calloc(plan->num_steps, sizeof(*out->step));
	out->tensor = calloc(plan->num_tensors, sizeof(*out->tensor));
	if (!out->step || !out->tensor)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a plan of %u steps",
				   plan->num_steps);
	out->num_steps = plan->num_steps;
	out->num_tensors = plan->num_tensors;
	out->lx_capacity = plan->lx_capacity;
	out->lx_bytes = plan->lx_bytes;
	out->pool_bytes = plan->pool_bytes;
	for (uint32_t i = 0; i < plan->num_steps; i++)
		explain_step(plan, i, &out->step[i]);
	for (uint32_t i = 0; i < plan->num_tensors; i++) {
		const struct plan_tensor *t = &plan->tensor[i];

		out->tensor[i] = (spyre_sdsc_plan_tensor){
			.place = t->place, .at = t->at, .bytes = t->bytes,
			.first = t->first, .last = t->last };
	}
	return add_cost(plan, out);
}

spyre_status spyre_sdsc_graph_plan(const spyre_sdsc_graph *graph, uint32_t cores,
				   spyre_sdsc_plan **out)
{
	spyre_status status;
	struct plan plan;

	if (!graph || !out)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_plan: graph or plan is NULL");
	*out = NULL;
	TRY(plan_make(&plan, graph, cores, NULL));
	*out = calloc(1, sizeof(**out));
	status = *out ? explain(&plan, *out) :
		 spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a plan");
	plan_fini(&plan);
	if (status) {
		spyre_sdsc_plan_free(*out);
		*out = NULL;
	}
	return status;
}

void spyre_sdsc_plan_free(spyre_sdsc_plan *plan)
{
	if (!plan)
		return;
	free(plan->step);
	free(plan->tensor);
	free(plan);
}
