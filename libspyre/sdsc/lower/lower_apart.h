/* SPDX-License-Identifier: MIT */
/*
 * SDSCs that store where they still have to read. An SDSC reads all of its inputs before it
 * stores anything, in each iteration of the loops around it, but its cores run in parallel, and
 * the groups of a symbolic one run one after the other. If its output overlaps what it reads,
 * the output is made in LX and stored behind a barrier. Internal.
 */
#ifndef SPYRE_SDSC_LOWER_APART_H
#define SPYRE_SDSC_LOWER_APART_H

#include "libspyre/sdsc/lower/operations.h"
#include "libspyre/sdsc/lower/overlap.h"

/*
 * Sets *@clash if a core would store where an element still has to be read. An output that is
 * identical to an input, element for element, does not clash if the instructions of @rule may
 * store in place.
 */
spyre_status lower_clashes(struct lower *l, lower_rule_fn *rule, bool *clash);

/* Lowers l->sdsc, or the step of it in l->pass: makes the output in LX, stores it, or both. */
spyre_status lower_apart(struct lower *l, lower_rule_fn *rule, enum spyre_func func);

/* The outputs of the groups of cores that a symbolic SDSC is cut into, in their order. */
struct apart_groups {
	uint32_t num;
	struct overlap_box output[SPYRE_MAX_CORES];
};

/* Adds the group l->sdsc; *@clash is set if it reads what an earlier one has written. */
spyre_status apart_add_group(struct apart_groups *groups, struct lower *l, bool *clash);

#endif /* SPYRE_SDSC_LOWER_APART_H */
