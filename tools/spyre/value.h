/* SPDX-License-Identifier: MIT */
/* Single elements of host formats, by way of double. */
#ifndef SPYRE_TOOL_VALUE_H
#define SPYRE_TOOL_VALUE_H

#include "spyre.h"

/* True if the two functions below know a format, as they do all host formats. */
bool value_known(spyre_format format);

double value_get(spyre_format format, const void *at);

/* Rounds to nearest, ties to even; a bool is value != 0. Returns -1 where an
 * integer format cannot hold the value. */
int value_put(spyre_format format, void *at, double value);

#endif /* SPYRE_TOOL_VALUE_H */
