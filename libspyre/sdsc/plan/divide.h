/* SPDX-License-Identifier: MIT */
/* The division of each step over the cores. Internal. */
#ifndef SPYRE_SDSC_DIVIDE_H
#define SPYRE_SDSC_DIVIDE_H

#include "libspyre/sdsc/plan/plan.h"

#define PLAN_PARTIAL_BYTES (1u << 20)	/* limit of partial sums in LX */

/* A division with its modelled cost. */
struct plan_choice {
	int64_t slices[IR_MAX_DIMS];
	double cost;		/* microseconds */
};

double plan_cost(const struct build_step *step, const int64_t *slices);
/*
 * Calls @visit with each division of the dims outside @whole that has at least
 * @least slices and uses at most @cores cores.
 */
void plan_each(const struct ir_sdsc *s, uint32_t whole, const int64_t *least, uint32_t cores,
	       void (*visit)(void *arg, const int64_t *slices), void *arg);
/* Finds the best alternatives to the chosen division, cheapest first; returns their number. */
uint32_t plan_choices(const struct build_step *step, uint32_t cores, struct plan_choice *choice,
		      uint32_t capacity);
/* True if one core's partial results fit in LX next to the tensors that it holds. */
bool plan_partial_fits(const struct build_step *step);
spyre_status plan_divide(struct plan *plan);

#endif /* SPYRE_SDSC_DIVIDE_H */
