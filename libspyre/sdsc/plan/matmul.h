/* SPDX-License-Identifier: MIT */
/* Divisions of matrix products. Internal. */
#ifndef SPYRE_SDSC_PLAN_MATMUL_H
#define SPYRE_SDSC_PLAN_MATMUL_H

#include "libspyre/sdsc/graph/graph.h"

double plan_matmul_cost(const struct ir_sdsc *s, const int64_t *slices);
void plan_matmul(struct build_step *step, const int64_t *least, uint32_t whole, uint32_t cores);

#endif /* SPYRE_SDSC_PLAN_MATMUL_H */
