/* SPDX-License-Identifier: MIT */
/* Host computations, as csrc/job_plan.cpp of torch-spyre a312898 calls them. */
#ifndef SPYRE_COMPAT_PROCESS_SPYRECODE_ARTIFACTS_H
#define SPYRE_COMPAT_PROCESS_SPYRECODE_ARTIFACTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spyrecode-host-functions/spyrecode.h"

namespace deeptools
{
/*
 * Writes the output of @hcm to @output. The values of its input symbols are in a buffer of as
 * many 64-bit words, in a vector, or not needed. Throws if there are too few of them, or if
 * @hcm describes no output.
 */
COMPAT_EXPORT void processComputeOnHostCommand(const Hcm &hcm, void *output, const void *input);
COMPAT_EXPORT void processComputeOnHostCommand(const Hcm &hcm, void *output,
					       const std::vector<std::int64_t> *input);
COMPAT_EXPORT void processComputeOnHostCommand(const Hcm &hcm, void *output, std::nullptr_t input);
}

#endif /* SPYRE_COMPAT_PROCESS_SPYRECODE_ARTIFACTS_H */
