/* SPDX-License-Identifier: MIT */
/* First pass: minimum splits, which limit the bytes of a tensor that a core addresses. Internal. */
#ifndef SPYRE_SDSC_SPAN_H
#define SPYRE_SDSC_SPAN_H

#include "libspyre/sdsc/graph/graph.h"

/* Finds the fewest slices of each dim that keep every core within the span limit. */
spyre_status plan_span(struct build_step *step, uint32_t cores, int64_t *least);
/* The largest divisor of @n that is at most @limit. */
int64_t plan_divisor(int64_t n, int64_t limit);

#endif /* SPYRE_SDSC_SPAN_H */
