/* SPDX-License-Identifier: MIT */
/* Operations on 32-bit integers. Internal. */
#ifndef SPYRE_SDSC_INTEGER_H
#define SPYRE_SDSC_INTEGER_H

#include "libspyre/sdsc/graph/graph.h"

/* Number of the names that only integers have, which follow those of the table of operations. */
#define BUILD_NUM_INTEGER_NAMES 4u

/* The operation @name on IEEE_INT32, NULL if there is none. */
const struct build_op *build_integer_find(const char *name);
/* The operation of @call for the formats of its inputs: call->op, or the same of integers. */
const struct build_op *build_integer_choice(const struct build_call *call);
/* Converts a number to an integer of 32 bits; an error if it is not one. */
spyre_status build_integer_number(const char *op, double value, int32_t *number);
/* Adds a constant of IEEE_INT32 to an SDSC. */
void build_integer_constant(struct ir_sdsc *s, const char *name, int32_t value);
/* Makes one element of IEEE_INT32. */
spyre_status build_integer_fill(spyre_sdsc_graph *graph, double value, uint32_t *tensor);

#endif /* SPYRE_SDSC_INTEGER_H */
