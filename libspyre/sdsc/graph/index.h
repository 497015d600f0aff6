/* SPDX-License-Identifier: MIT */
/* Rows and elements of tables at indices. Internal. */
#ifndef SPYRE_SDSC_GRAPH_INDEX_H
#define SPYRE_SDSC_GRAPH_INDEX_H

#include "libspyre/sdsc/graph/graph.h"

/*
 * Dims and tensors of a step of BUILD_INDEX. The uses are the indices, and, in the order in which
 * they are moved, the table and its selected part or the reverse.
 */
spyre_status build_index_shapes(const struct build_call *call, struct build_use *uses,
				struct build_step *step);

#endif /* SPYRE_SDSC_GRAPH_INDEX_H */
