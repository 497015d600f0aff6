/* SPDX-License-Identifier: MIT */
/* Masked elements of pointwise operations. Internal. */
#ifndef SPYRE_SDSC_LOWER_MASK_H
#define SPYRE_SDSC_LOWER_MASK_H

#include "libspyre/sdsc/lower/lower.h"

/*
 * Sets the elements of the output that coordinateMasking_ names to @op of samv-maskvalue,
 * behind the instructions of @core that have computed its share. Operations of several
 * inputs and files without the constant have nothing to set.
 */
spyre_status lower_mask(struct lower *l, uint32_t core, const struct spyre_instr *op);

#endif /* SPYRE_SDSC_LOWER_MASK_H */
