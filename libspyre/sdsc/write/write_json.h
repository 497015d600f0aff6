/* SPDX-License-Identifier: MIT */
/* The SDSC file of a step. Internal. */
#ifndef SPYRE_SDSC_WRITE_JSON_H
#define SPYRE_SDSC_WRITE_JSON_H

#include "libspyre/sdsc/graph/graph.h"

spyre_status build_write_json(const struct build_step *step, const char *directory);

#endif /* SPYRE_SDSC_WRITE_JSON_H */
