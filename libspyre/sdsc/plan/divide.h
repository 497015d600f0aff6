/* SPDX-License-Identifier: MIT */
/* The division of each step over the cores. Internal. */
#ifndef SPYRE_SDSC_DIVIDE_H
#define SPYRE_SDSC_DIVIDE_H

#include "libspyre/sdsc/plan/plan.h"

#define PLAN_PARTIAL_BYTES (1u << 20)	/* of LX, for partial sums */

/* A division with its modelled cost. */
struct plan_choice {
	int64_t slices[IR_MAX_DIMS];
	double cost;		/* microseconds */
};

double plan_cost(const struct build_step *step, const int64_t *slices);
/*
 * Calls @visit with each division of the dims outside @whole that takes at
 * least @least slices and at most @cores cores.
 */
void plan_each(const struct ir_sdsc *s, uint32_t whole, const int64_t *least, uint32_t cores,
	       void (*visit)(void *arg, const int64_t *slices), void *arg);
/* The best others than the chosen one, cheapest first; returns their number. */
uint32_t plan_choices(const struct build_step *step, uint32_t cores, struct plan_choice *choice,
		      uint32_t room);
/* True if the partial results of one core fit beside the tensors that LX holds. */
bool plan_partial_fits(const struct build_step *step);
spyre_status plan_divide(struct plan *plan);

#endif /* SPYRE_SDSC_DIVIDE_H */
