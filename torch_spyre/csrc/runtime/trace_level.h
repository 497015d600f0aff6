// SPDX-License-Identifier: MIT
#pragma once

namespace torch_spyre {

/*
 * profiler_rows.cpp: reads TORCH_SPYRE_TRACE, and with "cores" makes kernels that are loaded from
 * now on keep the time of their cores. Throws ValueError for an unknown value.
 */
void read_trace_level();

} // namespace torch_spyre
