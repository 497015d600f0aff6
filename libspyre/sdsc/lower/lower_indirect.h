/* SPDX-License-Identifier: MIT */
/* Operations on rows of tables that indices select. Internal. */
#ifndef SPYRE_SDSC_LOWER_INDIRECT_H
#define SPYRE_SDSC_LOWER_INDIRECT_H

#include "libspyre/sdsc/lower/rules.h"

/* Adds the phases of l->sdsc, which has tables; @rule and @func are those of its operation. */
spyre_status lower_indirect(struct lower *l, lower_rule_fn *rule, enum spyre_func func);

#endif /* SPYRE_SDSC_LOWER_INDIRECT_H */
