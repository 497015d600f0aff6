/* SPDX-License-Identifier: MIT */
/* Memory that ends before the iteration does. Internal. */
#ifndef SPYRE_SDSC_LOWER_FIT_H
#define SPYRE_SDSC_LOWER_FIT_H

#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/parse/source.h"

/*
 * Applies layouts of a launch spec that lack only padding to @sdsc, a copy of the
 * file's SDSC of l->stmt, and cuts the iteration to the memory.
 */
spyre_status lower_fit(struct lower *l, const struct bundle_source *source, struct ir_sdsc *sdsc);

#endif /* SPYRE_SDSC_LOWER_FIT_H */
