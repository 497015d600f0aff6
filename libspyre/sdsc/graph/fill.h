/* SPDX-License-Identifier: MIT */
/* Constants. Internal. */
#ifndef SPYRE_SDSC_FILL_H
#define SPYRE_SDSC_FILL_H

#include "libspyre/sdsc/graph/graph.h"

/* Make one element: 0, whatever memory holds, and any value computed from that. */
spyre_status build_zero(spyre_sdsc_graph *graph, spyre_format format, uint32_t *tensor);
spyre_status build_constant(spyre_sdsc_graph *graph, spyre_format format, double value,
			    uint32_t *tensor);

#endif /* SPYRE_SDSC_FILL_H */
