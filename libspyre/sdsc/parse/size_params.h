/* SPDX-License-Identifier: MIT */
/* Parameters of bundle.mlir that are sizes of dimensions. Internal. */
#ifndef SPYRE_SDSC_SIZE_PARAMS_H
#define SPYRE_SDSC_SIZE_PARAMS_H

#include "libspyre/sdsc/ir/ir.h"

/*
 * Binds the symbolic dims of @sdsc, which @stmt executes, to the parameters that are their
 * sizes, and checks that they agree. Names the dims and the parameters by the symbol. Later
 * cores may have numbers in the place of addresses (docs/bundles.md), which become addresses.
 */
spyre_status size_params_bind(struct ir_bundle *bundle, struct ir_stmt *stmt, struct ir_sdsc *sdsc);

#endif /* SPYRE_SDSC_SIZE_PARAMS_H */
