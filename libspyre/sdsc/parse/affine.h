/* SPDX-License-Identifier: MIT */
/* Expressions of affine maps, evaluated on addresses. Internal. */
#ifndef SPYRE_SDSC_AFFINE_H
#define SPYRE_SDSC_AFFINE_H

#include "libspyre/sdsc/ir/ir.h"

#define AFFINE_MAX_PARAMETERS 8u

/* A map "(d0, …)[s0, …] -> (expression)". */
struct affine {
	const char *text, *end;
	uint32_t num_dims, num_symbols;
};

struct affine_error {
	spyre_status status;
	const char *at;		/* position in the text */
	char what[128];
};

/*
 * Evaluates the map for these parameters; @stop gets the end of the expression.
 * False with @error. Products need a constant factor; floordiv, ceildiv and mod
 * need a constant divisor that divides the amount a loop adds per iteration.
 */
bool affine_eval(const struct affine *map, const struct ir_value *dims,
		 const struct ir_value *symbols, struct ir_value *out, const char **stop,
		 struct affine_error *error);

/* sum += scale * value; false if numbers overflow or the result is not a valid address. */
bool affine_add(struct ir_value *sum, int64_t scale, const struct ir_value *value,
		const char **why);

#endif /* SPYRE_SDSC_AFFINE_H */
