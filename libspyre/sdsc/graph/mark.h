/* SPDX-License-Identifier: MIT */
/* Builder: states of a graph to which it can return. Internal. */
#ifndef SPYRE_SDSC_GRAPH_MARK_H
#define SPYRE_SDSC_GRAPH_MARK_H

#include "libspyre/sdsc/graph/graph.h"

/* The state of a graph between two calls; tensors and steps are only ever appended. */
struct build_mark {
	uint32_t tensors, steps, args, changes, splits;
	spyre_sdsc_split split[SPYRE_SDSC_MAX_SPLITS];
};

/* The padding that a tensor had before it was changed. */
struct build_change {
	uint32_t tensor;
	spyre_sdsc_padding padding;
};

struct build_mark build_state(const spyre_sdsc_graph *graph);
void build_return_to(spyre_sdsc_graph *graph, const struct build_mark *mark);
/* Sets the padding of a tensor, so that build_return_to() can undo it. */
spyre_status build_change_padding(spyre_sdsc_graph *graph, uint32_t tensor,
				  spyre_sdsc_padding padding);

#endif /* SPYRE_SDSC_GRAPH_MARK_H */
