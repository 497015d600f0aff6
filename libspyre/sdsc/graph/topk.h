/* SPDX-License-Identifier: MIT */
/* The largest elements and their indices. Internal. */
#ifndef SPYRE_SDSC_TOPK_H
#define SPYRE_SDSC_TOPK_H

#include "libspyre/sdsc/graph/graph.h"

spyre_status build_topk_shapes(const struct build_call *call, struct build_use *uses,
			       struct build_step *step);

#endif /* SPYRE_SDSC_TOPK_H */
