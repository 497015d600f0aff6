/* SPDX-License-Identifier: MIT */
/* Memory that ends within the padding of the iteration, although the file does not say so. */
#ifndef SPYRE_SDSC_LOWER_REACH_H
#define SPYRE_SDSC_LOWER_REACH_H

#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/parse/source.h"

/*
 * Shortens tensors of @sdsc, a copy of the SDSC of l->stmt, of which the rest of the bundle
 * shows that their memory lacks padding for the longer sticks of another tensor.
 */
void lower_reach(struct lower *l, const struct bundle_source *source, struct ir_sdsc *sdsc);

#endif /* SPYRE_SDSC_LOWER_REACH_H */
