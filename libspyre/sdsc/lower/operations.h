/* SPDX-License-Identifier: MIT */
/* The operations that the card has a rule for. Internal. */
#ifndef SPYRE_SDSC_OPERATIONS_H
#define SPYRE_SDSC_OPERATIONS_H

#include "libspyre/sdsc/lower/rules.h"

/* Lowers l->sdsc by the rule of its operation, in a new phase. */
spyre_status lower_sdsc(struct lower *l);
/* Adds the instructions of l->sdsc by a rule, with indirect access if it has tables. */
spyre_status operation_emit(struct lower *l, lower_rule_fn *rule, enum spyre_func func);
/* The function that lowers an operation, NULL if there is none. */
lower_rule_fn *lower_rule(const char *op);
/* True if a function can lower a part of each core's share. */
bool lower_takes_share(lower_rule_fn *rule);

#endif /* SPYRE_SDSC_OPERATIONS_H */
