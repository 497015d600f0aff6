/* SPDX-License-Identifier: MIT */
/* Products with factors that indices select. Internal. */
#ifndef SPYRE_SDSC_GRAPH_INDEX_MATMUL_H
#define SPYRE_SDSC_GRAPH_INDEX_MATMUL_H

#include "libspyre/sdsc/graph/graph.h"

/* Dims and tensors of a step; the uses are both factors, the indices and the output. */
spyre_status build_index_matmul_shapes(const struct build_call *call, struct build_use *uses,
				       struct build_step *step);

#endif /* SPYRE_SDSC_GRAPH_INDEX_MATMUL_H */
