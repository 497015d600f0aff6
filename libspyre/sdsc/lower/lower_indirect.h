/* SPDX-License-Identifier: MIT */
/* Operations on rows of tables that indices select. Internal. */
#ifndef SPYRE_SDSC_LOWER_INDIRECT_H
#define SPYRE_SDSC_LOWER_INDIRECT_H

#include "libspyre/sdsc/lower/overlap.h"
#include "libspyre/sdsc/lower/rules.h"

/* Adds the phases of l->sdsc, which has tables; @rule and @func are those of its operation. */
spyre_status lower_indirect(struct lower *l, lower_rule_fn *rule, enum spyre_func func);

/* True if a tensor holds the indices of a table. */
bool indirect_is_index(const struct ir_sdsc *s, uint32_t tensor);
/* Finds all rows of a table that indices of a core may select. */
spyre_status indirect_rows(struct lower *l, uint32_t table, uint32_t core,
			   struct overlap_box *box);

#endif /* SPYRE_SDSC_LOWER_INDIRECT_H */
