/* SPDX-License-Identifier: MIT */
/* The bundle.mlir of a plan. Internal. */
#ifndef SPYRE_SDSC_WRITE_MLIR_H
#define SPYRE_SDSC_WRITE_MLIR_H

#include "libspyre/sdsc/plan/plan.h"

spyre_status build_write_mlir(const struct plan *plan, const char *directory);

#endif /* SPYRE_SDSC_WRITE_MLIR_H */
