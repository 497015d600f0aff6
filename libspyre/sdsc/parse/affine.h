/* SPDX-License-Identifier: MIT */
/* Expressions of affine maps, evaluated on addresses. Internal. */
#ifndef SPYRE_SDSC_AFFINE_H
#define SPYRE_SDSC_AFFINE_H

#include "libspyre/sdsc/ir/ir.h"

#define AFFINE_MAX_PARAMETERS 8u

/* (d0, …)[s0, …] -> (expression): the text of the expression. */
struct affine {
	const char *text, *end;
	uint32_t num_dims, num_symbols;
};

struct affine_error {
	spyre_status status;
	const char *at;		/* in the text */
	char what[128];
};

/*
 * The value for these parameters; @stop gets the end of the expression. False
 * with @error. Products need a constant factor; floordiv, ceildiv and mod a
 * constant divisor, and one that divides what a loop adds per turn.
 */
bool affine_eval(const struct affine *map, const struct ir_value *dims,
		 const struct ir_value *symbols, struct ir_value *out, const char **stop,
		 struct affine_error *error);

/* sum += scale * value; false when the numbers overflow or an address is not one any more. */
bool affine_add(struct ir_value *sum, int64_t scale, const struct ir_value *value,
		const char **why);

#endif /* SPYRE_SDSC_AFFINE_H */
