/* SPDX-License-Identifier: MIT */
/* The prepared form of a host computation, as csrc/job_plan.h of torch-spyre a312898 uses it. */
#ifndef SPYRE_COMPAT_FAST_PROCESS_HCM_H
#define SPYRE_COMPAT_FAST_PROCESS_HCM_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spyrecode-host-functions/spyrecode.h"

namespace deeptools
{
struct FastHcmPatchPlan {
	bool valid = false;
	/* Bytes of the output. */
	std::uint32_t output_size = 0;
	std::vector<HcmPatch> patches;
	std::uint32_t num_input_symbols = 0;
};

/* Fills @plan from @hcm and returns true; false if @hcm describes no output. */
COMPAT_EXPORT bool buildFastHcmPatchPlan(FastHcmPatchPlan &plan, const Hcm &hcm);

/*
 * Writes the output of @hcm for the @count values at @input to @output. Returns true if @plan
 * was valid, otherwise false, with the same output.
 */
COMPAT_EXPORT bool processComputeOnHostCommandFast(FastHcmPatchPlan &plan, const Hcm &hcm,
						   void *output, const std::int64_t *input,
						   std::size_t count);
}

#endif /* SPYRE_COMPAT_FAST_PROCESS_HCM_H */
