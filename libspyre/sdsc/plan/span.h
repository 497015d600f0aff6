/* SPDX-License-Identifier: MIT */
/* First pass: splits without which a core would reach over too much of a tensor. Internal. */
#ifndef SPYRE_SDSC_SPAN_H
#define SPYRE_SDSC_SPAN_H

#include "libspyre/sdsc/graph/graph.h"

/* Finds the fewest slices of each dim with which every core's reach is in limits. */
spyre_status plan_span(struct build_step *step, uint32_t cores, int64_t *least);
/* The largest divisor of @n that is at most @limit. */
int64_t plan_divisor(int64_t n, int64_t limit);

#endif /* SPYRE_SDSC_SPAN_H */
