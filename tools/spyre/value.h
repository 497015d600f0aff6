/* SPDX-License-Identifier: MIT */
/* Converts single elements of host formats to and from double. */
#ifndef SPYRE_TOOL_VALUE_H
#define SPYRE_TOOL_VALUE_H

#include "spyre.h"

/* True for all host formats, which are those that the functions below support. */
bool value_known(spyre_format format);

double value_get(spyre_format format, const void *at);

/* Rounds to nearest, ties to even; a bool is value != 0. Returns -1 where an
 * integer format cannot hold the value. */
int value_put(spyre_format format, void *at, double value);

#endif /* SPYRE_TOOL_VALUE_H */
