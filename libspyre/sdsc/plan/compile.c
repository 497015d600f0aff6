// SPDX-License-Identifier: MIT
/* Planned graphs compiled without files. */
#include <stdlib.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/compile.h"
#include "libspyre/sdsc/plan/bind.h"
#include "libspyre/sdsc/plan/compile.h"

spyre_status plan_compile_steps(const struct plan *plan, uint32_t max_cores,
				struct spyre_bundle *bundle)
{
	struct ir_sdsc **sdscs = calloc(plan->num_steps, sizeof(*sdscs));
	struct ir_bundle parsed;
	spyre_status status;

	if (!sdscs)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to compile %u steps",
				   plan->num_steps);
	for (uint32_t i = 0; i < plan->num_steps; i++)
		sdscs[i] = &plan->step[i].sdsc;
	status = plan_bundle(plan, &parsed);
	if (!status) {
		status = spyre_bundle_compile_parsed(&parsed, sdscs, max_cores, bundle);
		ir_bundle_fini(&parsed);
	}
	free(sdscs);
	return status;
}

spyre_status plan_compile(const spyre_sdsc_graph *graph, uint32_t cores, uint32_t max_cores,
			  struct spyre_bundle *bundle)
{
	spyre_status status;
	struct plan plan;

	TRY(plan_make(&plan, graph, cores, NULL));
	status = plan_compile_steps(&plan, max_cores, bundle);
	plan_fini(&plan);
	return status;
}
