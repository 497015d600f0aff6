/* SPDX-License-Identifier: MIT */
/* Planned graphs compiled without files. Internal. */
#ifndef SPYRE_SDSC_PLAN_COMPILE_H
#define SPYRE_SDSC_PLAN_COMPILE_H

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/plan/plan.h"

spyre_status plan_compile_steps(const struct plan *plan, uint32_t max_cores,
				struct spyre_bundle *bundle);
/* Plans and compiles a graph without files, for a card of @max_cores. */
spyre_status plan_compile(const spyre_sdsc_graph *graph, uint32_t cores, uint32_t max_cores,
			  struct spyre_bundle *bundle);

#endif /* SPYRE_SDSC_PLAN_COMPILE_H */
