/* SPDX-License-Identifier: MIT */
/* Groups of steps with one division, so that LX may keep their intermediates. Internal. */
#ifndef SPYRE_SDSC_GROUP_H
#define SPYRE_SDSC_GROUP_H

#include "libspyre/sdsc/plan/plan.h"

bool plan_same_walk(const struct build_step *a, uint32_t ta, const struct build_step *b,
		    uint32_t tb);
void plan_groups(struct plan *plan);

#endif /* SPYRE_SDSC_GROUP_H */
