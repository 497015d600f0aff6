/* SPDX-License-Identifier: MIT */
/* The table of operations by name. Internal. */
#ifndef SPYRE_SDSC_OPS_H
#define SPYRE_SDSC_OPS_H

#include "libspyre/sdsc/graph/graph.h"

const struct build_op *build_op_find(const char *name);

#endif /* SPYRE_SDSC_OPS_H */
