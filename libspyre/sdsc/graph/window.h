/* SPDX-License-Identifier: MIT */
/* Convolutions and pooling. Internal. */
#ifndef SPYRE_SDSC_GRAPH_WINDOW_H
#define SPYRE_SDSC_GRAPH_WINDOW_H

#include "libspyre/sdsc/graph/graph.h"

/* Dims, tensors and axes of a step of BUILD_WINDOW. */
spyre_status build_window_shapes(const struct build_call *call, struct build_use *uses,
				 struct build_step *step);

#endif /* SPYRE_SDSC_GRAPH_WINDOW_H */
