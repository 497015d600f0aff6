/* SPDX-License-Identifier: MIT */
/* Divisions that the caller requests. Internal. */
#ifndef SPYRE_SDSC_ASKED_H
#define SPYRE_SDSC_ASKED_H

#include "libspyre/sdsc/graph/graph.h"

bool plan_is_asked(const struct build_step *step);
/* True if two steps have the same requested slices, which are along the dims in @keys only. */
bool plan_asked_alike(const struct build_step *a, const struct build_step *b, uint64_t keys);
/* Divides a step as requested and along no other dim. */
spyre_status plan_asked(struct build_step *step, uint32_t cores);

#endif /* SPYRE_SDSC_ASKED_H */
