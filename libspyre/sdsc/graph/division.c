// SPDX-License-Identifier: MIT
/* Requested divisions: maps a caller's splits to the dims of steps (docs/planning.md). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/graph/division.h"

static spyre_status check_split(const spyre_sdsc_split *splits, uint32_t index)
{
	const spyre_sdsc_split *s = &splits[index];

	if (s->dim > SPYRE_SDSC_SUMMED || s->dim < -SPYRE_MAX_RANK)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_set_division: split %u is of dimension %d; they are -1 (the last) to -%d, or SPYRE_SDSC_SUMMED",
				   index, s->dim, SPYRE_MAX_RANK);
	if (s->slices < 1)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_set_division: %" PRId64 " slices of dimension %d; 1 is the least",
				   s->slices, s->dim);
	for (uint32_t i = 0; i < index; i++)
		if (splits[i].dim == s->dim)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "spyre_sdsc_graph_set_division: dimension %d is named twice",
					   s->dim);
	return SPYRE_SUCCESS;
}

spyre_status spyre_sdsc_graph_set_division(spyre_sdsc_graph *graph,
					   const spyre_sdsc_split *splits, uint32_t num_splits)
{
	if (!graph || (num_splits && !splits))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_set_division: graph or splits is NULL");
	if (num_splits > SPYRE_SDSC_MAX_SPLITS)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_set_division: %u splits, %d is the most",
				   num_splits, SPYRE_SDSC_MAX_SPLITS);
	for (uint32_t i = 0; i < num_splits; i++)
		TRY(check_split(splits, i));
	if (num_splits)
		memcpy(graph->split, splits, num_splits * sizeof(*splits));
	graph->num_splits = num_splits;
	return SPYRE_SUCCESS;
}

int build_split_dim(const struct build_step *step, int32_t dim)
{
	const struct ir_sdsc *s = &step->sdsc;

	if (dim == SPYRE_SDSC_SUMMED)
		return step->op->kind == BUILD_MATMUL ? (int)s->tensor[0].stick : -1;
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (step->key[d] == -1 - dim && !(step->whole >> d & 1))
			return (int)d;
	return -1;
}

void build_ask(const spyre_sdsc_graph *graph, struct build_step *step)
{
	step->helps = graph->helping;
	for (uint32_t i = 0; i < graph->num_splits && !step->helps; i++) {
		const spyre_sdsc_split *split = &graph->split[i];
		int d = build_split_dim(step, split->dim);

		if (d >= 0 && ir_points(&step->sdsc, (uint32_t)d) % split->slices == 0)
			step->asked[d] = split->slices;
	}
}

static spyre_status undivided(const struct build_step *step, const char *op,
			      const spyre_sdsc_split *split)
{
	const struct ir_sdsc *s = &step->sdsc;
	uint32_t d = (uint32_t)build_split_dim(step, split->dim);
	int64_t points = ir_points(s, d);
	char dim[32] = "what it sums over";

	if (split->dim != SPYRE_SDSC_SUMMED)
		snprintf(dim, sizeof(dim), "dimension %d", split->dim);
	if (points == s->size[d])
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: %" PRId64 " slices do not divide %s, of %" PRId64 " elements",
				   op, split->slices, dim, points);
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
			   "%s: %" PRId64 " slices do not divide %s, of %" PRId64 " sticks of %" PRId64 " elements",
			   op, split->slices, dim, points, s->size[d] / points);
}

spyre_status build_check_division(const spyre_sdsc_graph *graph, const char *op, uint32_t first)
{
	for (uint32_t k = 0; k < graph->num_splits; k++) {
		const struct build_step *has = NULL;
		bool taken = false;

		for (uint32_t i = first; i < graph->num_steps && !taken; i++) {
			const struct build_step *step = &graph->step[i];
			int d = build_split_dim(step, graph->split[k].dim);

			if (d < 0 || step->helps)
				continue;
			taken = step->asked[d];
			has = step;
		}
		if (has && !taken)
			return undivided(has, op, &graph->split[k]);
	}
	return SPYRE_SUCCESS;
}
