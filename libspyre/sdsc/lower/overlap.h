/* SPDX-License-Identifier: MIT */
/*
 * Overlap in memory: whether the sticks that one core reads share bytes with those that one
 * core writes, in the same iteration of the loops around an SDSC. Internal.
 */
#ifndef SPYRE_SDSC_OVERLAP_H
#define SPYRE_SDSC_OVERLAP_H

#include "libspyre/sdsc/lower/lower.h"

/* Sticks of 128 bytes from an address on, in steps along each dim. */
struct overlap_box {
	struct address at;
	uint32_t num_dims;
	struct {
		uint64_t stride, last;	/* bytes, steps behind the first stick */
	} dim[IR_MAX_DIMS + 1];		/* one more for the rows of a table */
};

/* Finds the sticks of a core's share of a tensor; rows of a table are not among them. */
void overlap_box(const struct lower *l, uint32_t tensor, uint32_t core, struct overlap_box *box);

/*
 * True if two boxes have a byte in common in an iteration of @depth loops of @iters iterations.
 * The decision is exact, except after 65,536 steps of the search, which then assumes overlap.
 */
bool overlap_boxes(const struct overlap_box *a, const struct overlap_box *b,
		   const uint32_t *iters, uint32_t depth);

#endif /* SPYRE_SDSC_OVERLAP_H */
