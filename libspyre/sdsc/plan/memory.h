/* SPDX-License-Identifier: MIT */
/* Placement of tensors that live between steps. Internal. */
#ifndef SPYRE_SDSC_PLAN_MEMORY_H
#define SPYRE_SDSC_PLAN_MEMORY_H

#include "libspyre/sdsc/plan/plan.h"

struct plan_block {
	uint64_t bytes, at;
	uint32_t first, last;	/* lifetime, inclusive */
	uint32_t tensor;
	bool placed;
};
/* Bytes of one core's share of an operand. */
uint64_t plan_share(const struct build_step *step, uint32_t tensor);
/* Places the blocks that fit below @limit; returns the bytes in use. */
uint64_t plan_memory(struct plan_block *block, uint32_t count, uint64_t limit, bool smallest_first);
spyre_status plan_pool(struct plan *plan);

#endif /* SPYRE_SDSC_PLAN_MEMORY_H */
