// SPDX-License-Identifier: MIT
/* The planner's settings, which are variables of the environment (docs/planning.md). */
#pragma once

#include <array>
#include <cstdint>

namespace torch_spyre {

inline constexpr std::array kPlannerSettings = {
	"SENCORES",
	"LX_PLANNING",
	"HBM_POOL_PLANNING",
	"DXP_LX_FRAC_AVAIL",
	"SPYRE_CORE_ID_K_FAST_EMISSION",
};

/* Returns a number that identifies their present values, for the keys of plans. */
uint64_t planner_settings();

} // namespace torch_spyre
