/* SPDX-License-Identifier: MIT */
/* Matrix products as PT instructions. Internal. */
#ifndef SPYRE_SDSC_MATMUL_PT_H
#define SPYRE_SDSC_MATMUL_PT_H

#include "libspyre/sdsc/lower/lower_matmul.h"

/*
 * Adds instructions for @box of the product at @c, added to it with @accumulate (then, or
 * if K takes several instructions, @c is in the format of the sums).
 */
spyre_status matmul_emit(struct lower *l, const struct matmul *m, const struct box *box,
			 const struct stage_operand *c, bool accumulate);
/* Elements of K that one instruction takes. */
int64_t matmul_max_k(const struct matmul *m);

#endif /* SPYRE_SDSC_MATMUL_PT_H */
