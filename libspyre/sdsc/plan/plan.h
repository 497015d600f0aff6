/* SPDX-License-Identifier: MIT */
/*
 * Planners: divide the work of each step over the cores and place the
 * intermediates (docs/planning.md). Internal.
 */
#ifndef SPYRE_SDSC_PLAN_H
#define SPYRE_SDSC_PLAN_H

#include "libspyre/sdsc/graph/graph.h"

struct plan_tensor {
	spyre_sdsc_place place;
	uint64_t at;		/* argument number, or byte offset */
	uint64_t bytes;		/* total; in LX, of one core */
	/* Steps in which it is used; first > last if it is unused. */
	uint32_t first, last;
	int32_t source;		/* argument that this is an LX copy of, or -1 */
};

struct plan {
	uint32_t cores;
	bool use_lx, reuse_pool, k_fastest;
	uint64_t lx_capacity;
	/* Copies of the graph's steps, and steps that the planner adds. */
	struct build_step *step;
	uint32_t num_steps;
	struct plan_tensor *tensor;
	uint32_t num_tensors;
	uint32_t num_args;
	uint64_t lx_bytes, pool_bytes;
};

/* Makes a plan; @forced has slices of the first step's dims, or is NULL. */
spyre_status plan_make(struct plan *plan, const spyre_sdsc_graph *graph, uint32_t cores,
		       const int64_t *forced);
void plan_fini(struct plan *plan);

/* The number of cores to plan for: @cores, or SENCORES if it is 0. */
spyre_status plan_cores(uint32_t *cores);

#endif /* SPYRE_SDSC_PLAN_H */
