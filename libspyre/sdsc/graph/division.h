/* SPDX-License-Identifier: MIT */
/* Divisions that a caller requests. Internal. */
#ifndef SPYRE_SDSC_DIVISION_H
#define SPYRE_SDSC_DIVISION_H

#include "libspyre/sdsc/graph/graph.h"

/* Sets the requested slices of a step from the graph's division. */
void build_ask(const spyre_sdsc_graph *graph, struct build_step *step);
/* Checks that every requested split divides at least one step from @first on. */
spyre_status build_check_division(const spyre_sdsc_graph *graph, const char *op, uint32_t first);
/* The step's dim that a split of host dim @dim divides, -1 if it has none. */
int build_split_dim(const struct build_step *step, int32_t dim);

#endif /* SPYRE_SDSC_DIVISION_H */
