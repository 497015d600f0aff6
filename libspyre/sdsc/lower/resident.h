/* SPDX-License-Identifier: MIT */
/* Tensors that stay in LX between the SDSCs of a bundle. Internal. */
#ifndef SPYRE_SDSC_RESIDENT_H
#define SPYRE_SDSC_RESIDENT_H

#include "libspyre/sdsc/parse/source.h"

/*
 * Refuses an SDSC that reads memory of LX which neither the bundle has written nor an earlier
 * kernel can have: beyond the part that the bundle keeps, LX is zero when a program starts.
 */
spyre_status resident_check(const struct bundle_source *source);

#endif /* SPYRE_SDSC_RESIDENT_H */
