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
/*
 * Makes the last tensor of a step a table: indices take the place of coordinates along the dims
 * @indexed (bits), of which @first holds the @rows.
 */
void build_index_table(struct ir_sdsc *s, uint32_t first, uint32_t indexed, int64_t rows);

#endif /* SPYRE_SDSC_GRAPH_INDEX_H */
