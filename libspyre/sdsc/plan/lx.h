/* SPDX-License-Identifier: MIT */
/* Selection of the tensors that LX keeps, and copies of arguments read often. Internal. */
#ifndef SPYRE_SDSC_LX_H
#define SPYRE_SDSC_LX_H

#include "libspyre/sdsc/plan/plan.h"

spyre_status plan_lx(struct plan *plan);

#endif /* SPYRE_SDSC_LX_H */
