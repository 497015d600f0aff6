/* SPDX-License-Identifier: MIT */
/* Places of tensors in other statements of the bundle than the current one. Internal. */
#ifndef SPYRE_SDSC_PLACE_H
#define SPYRE_SDSC_PLACE_H

#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/parse/source.h"

/* A tensor of a statement: the place is where core 0 of the SDSC starts. */
struct place {
	bool lx;
	struct ir_value value;
};

/* Finds the place of a tensor; false if an address is wrong, which its lowering reports. */
bool place_of(struct lower *l, uint32_t stmt, const struct ir_tensor *t, uint32_t core,
	      struct place *place);
bool place_same(const struct place *a, const struct place *b);
/* First and last byte (exclusive) of a tensor over all cores; false if they are in two places. */
bool place_range(struct lower *l, uint32_t stmt, const struct ir_sdsc *s,
		 const struct ir_tensor *t, struct place *base, int64_t *first, int64_t *end);

#endif /* SPYRE_SDSC_PLACE_H */
