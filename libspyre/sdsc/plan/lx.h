/* SPDX-License-Identifier: MIT */
/* Which tensors LX keeps, with copies of arguments that are read often. Internal. */
#ifndef SPYRE_SDSC_LX_H
#define SPYRE_SDSC_LX_H

#include "libspyre/sdsc/plan/plan.h"

spyre_status plan_lx(struct plan *plan);

#endif /* SPYRE_SDSC_LX_H */
