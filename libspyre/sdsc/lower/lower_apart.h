/* SPDX-License-Identifier: MIT */
/* Conversions whose output overlaps their inputs. Internal. */
#ifndef SPYRE_SDSC_LOWER_APART_H
#define SPYRE_SDSC_LOWER_APART_H

#include "libspyre/sdsc/lower/operations.h"

/* True if a core would store where another element still has to be read. */
bool lower_clashes(const struct lower *l);
/* Emits such an SDSC in two phases: the output is made in LX, then stored. */
spyre_status lower_apart(struct lower *l, lower_rule_fn *rule, enum spyre_func func);

#endif /* SPYRE_SDSC_LOWER_APART_H */
