/* SPDX-License-Identifier: MIT */
/* Strides, slices, addresses and symbols of all steps. Internal. */
#ifndef SPYRE_SDSC_BIND_H
#define SPYRE_SDSC_BIND_H

#include "libspyre/sdsc/plan/plan.h"

spyre_status plan_bind(struct plan *plan);
/* Makes the statements of bundle.mlir, whose file names are those of @plan. */
spyre_status plan_bundle(const struct plan *plan, struct ir_bundle *bundle);

#endif /* SPYRE_SDSC_BIND_H */
