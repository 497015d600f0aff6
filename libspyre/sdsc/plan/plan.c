// SPDX-License-Identifier: MIT
/* Planners: give the steps of a graph their divisions and addresses. */
#include "libspyre/sdsc/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/plan/bind.h"
#include "libspyre/sdsc/plan/divide.h"
#include "libspyre/sdsc/plan/group.h"
#include "libspyre/sdsc/plan/lx.h"
#include "libspyre/sdsc/plan/memory.h"

#define LX_FRACTION 0.2		/* share of LX that the planner does not use */

/* Reads SENCORES; a wrong value is an error, because a default would hide it. */
spyre_status plan_cores(uint32_t *cores)
{
	const char *text = getenv("SENCORES");
	char *end;
	long n;

	if (*cores > SPYRE_MAX_CORES)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%u cores: a card has at most %u", *cores, SPYRE_MAX_CORES);
	if (*cores)
		return SPYRE_SUCCESS;
	*cores = SPYRE_MAX_CORES;
	if (!text || !*text)
		return SPYRE_SUCCESS;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || n < 1 || n > (long)SPYRE_MAX_CORES)
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "SENCORES=%s: expected a number of cores from 1 to %u", text,
				   SPYRE_MAX_CORES);
	*cores = (uint32_t)n;
	return SPYRE_SUCCESS;
}

/* Reads a variable of the environment that is 0 or 1. */
static spyre_status flag(const char *name, bool *value)
{
	const char *text = getenv(name);

	*value = true;
	if (!text || !*text || !strcmp(text, "1"))
		return SPYRE_SUCCESS;
	if (strcmp(text, "0"))
		return spyre_error(SPYRE_ERROR_CONFIGURATION, "%s=%s: expected 0 or 1", name, text);
	*value = false;
	return SPYRE_SUCCESS;
}

static spyre_status read_environment(struct plan *p)
{
	const char *text = getenv("DXP_LX_FRAC_AVAIL");
	double fraction = LX_FRACTION;
	char *end;

	TRY(flag("LX_PLANNING", &p->use_lx));
	TRY(flag("HBM_POOL_PLANNING", &p->reuse_pool));
	TRY(flag("SPYRE_CORE_ID_K_FAST_EMISSION", &p->k_fastest));
	if (text && *text) {
		fraction = strtod(text, &end);
		if (*end || !(fraction >= 0 && fraction <= 1))
			return spyre_error(SPYRE_ERROR_CONFIGURATION,
					   "DXP_LX_FRAC_AVAIL=%s: expected a fraction from 0 to 1",
					   text);
	}
	p->lx_capacity = (uint64_t)(SPYRE_LX_BYTES * (1 - fraction)) / SPYRE_STICK_BYTES *
			 SPYRE_STICK_BYTES;
	return SPYRE_SUCCESS;
}

/* Sets the first and last step that uses each tensor. */
static void set_lifetimes(struct plan *p)
{
	for (uint32_t i = 0; i < p->num_tensors; i++) {
		p->tensor[i].first = UINT32_MAX;
		p->tensor[i].last = 0;
	}
	for (uint32_t i = 0; i < p->num_steps; i++)
		for (uint32_t k = 0; k < p->step[i].sdsc.num_tensors; k++) {
			struct plan_tensor *t = &p->tensor[p->step[i].tensor[k]];

			if (t->first == UINT32_MAX)
				t->first = i;
			t->last = i;
		}
}

static spyre_status copy_graph(struct plan *p, const spyre_sdsc_graph *g)
{
	uint32_t tensors = g->num_tensors + g->num_args;

	if (!g->num_steps)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the graph has no operations");
	p->step = calloc(g->num_steps + g->num_args, sizeof(*p->step));
	p->tensor = calloc(tensors, sizeof(*p->tensor));
	if (!p->step || !p->tensor)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to plan %u steps",
				   g->num_steps);
	memcpy(p->step, g->step, g->num_steps * sizeof(*p->step));
	p->num_steps = g->num_steps;
	p->num_tensors = g->num_tensors;
	p->num_args = g->num_args;
	for (uint32_t i = 0; i < tensors; i++)
		p->tensor[i].source = -1;
	for (uint32_t i = 0; i < g->num_tensors; i++) {
		const struct build_tensor *t = &g->tensor[i];

		p->tensor[i].place = t->argument ? SPYRE_SDSC_ARGUMENT : SPYRE_SDSC_POOL;
		p->tensor[i].at = t->argument ? t->arg : 0;
		p->tensor[i].bytes = spyre_layout_bytes(&t->operand.layout);
	}
	return SPYRE_SUCCESS;
}

static spyre_status check_forced(const struct ir_sdsc *s)
{
	int64_t product = 1;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (s->slices[d] < 1 || ir_points(s, d) % s->slices[d])
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: %lld slices do not divide %s of %lld", s->op,
					   (long long)s->slices[d], s->dim[d],
					   (long long)s->size[d]);
		product *= s->slices[d];
		if (product > (int64_t)SPYRE_MAX_CORES)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: more slices than the %u cores of a card", s->op,
					   SPYRE_MAX_CORES);
	}
	return SPYRE_SUCCESS;
}

static spyre_status divide(struct plan *p, const int64_t *forced)
{
	struct ir_sdsc *first = &p->step[0].sdsc;

	plan_groups(p);
	if (!forced)
		return plan_divide(p);
	memcpy(first->slices, forced, first->num_dims * sizeof(*forced));
	return check_forced(first);
}

static spyre_status make(struct plan *p, const spyre_sdsc_graph *graph, const int64_t *forced)
{
	TRY(plan_cores(&p->cores));
	TRY(read_environment(p));
	TRY(copy_graph(p, graph));
	set_lifetimes(p);
	TRY(divide(p, forced));
	TRY(plan_lx(p));
	set_lifetimes(p);
	TRY(plan_pool(p));
	return plan_bind(p);
}

spyre_status plan_make(struct plan *plan, const spyre_sdsc_graph *graph, uint32_t cores,
		       const int64_t *forced)
{
	spyre_status status;

	memset(plan, 0, sizeof(*plan));
	plan->cores = cores;
	status = make(plan, graph, forced);
	if (status)
		plan_fini(plan);
	return status;
}

void plan_fini(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->num_steps; i++)
		free(plan->step[i].symbols);
	free(plan->step);
	free(plan->tensor);
	memset(plan, 0, sizeof(*plan));
}
