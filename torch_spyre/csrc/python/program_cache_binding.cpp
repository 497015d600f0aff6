// SPDX-License-Identifier: MIT
/* torch_spyre._C: statistics of the program cache, and the settings in its keys. */
#include "module.h"
#include "runtime/planner_settings.h"
#include "runtime/program.h"

namespace torch_spyre {

static pybind11::dict stats()
{
	ProgramCacheStats s = program_cache_stats();
	pybind11::dict result;

	result["hits"] = s.hits;
	result["misses"] = s.misses;
	result["evictions"] = s.evictions;
	result["kernels"] = s.kernels;
	result["bytes"] = s.bytes;
	result["limit_bytes"] = s.limit_bytes;
	return result;
}

static Binding binding([](pybind11::module_ &module) {
	module.def("program_cache_stats", stats,
		   "Kernels of eager operations: hits, misses, evictions, how many there are, "
		   "bytes that they take and may take (TORCH_SPYRE_PROGRAM_CACHE_MIB).");
	module.def("program_cache_clear", [] { program_cache_clear(); },
		   "Forgets all kernels of eager operations; they are built again when needed.");
	module.attr("_planner_settings") = pybind11::tuple(pybind11::cast(kPlannerSettings));
});

} // namespace torch_spyre
