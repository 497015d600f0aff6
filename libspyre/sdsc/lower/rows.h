/* SPDX-License-Identifier: MIT */
/*
 * The rows of tables. An instruction that accesses a table has the number of its rows as an
 * immediate, against which the card checks each index. Files do not state it: for an argument
 * it follows from the size of the memory that a launch passes, and is written into a copy of
 * the program then. docs/bundles.md has the rules. Internal.
 */
#ifndef SPYRE_SDSC_ROWS_H
#define SPYRE_SDSC_ROWS_H

#include "libspyre/sdsc/ir/bundle.h"

/*
 * End of the farthest byte that a view reaches in loops of @iters iterations, by the rule of
 * the card's verifier; false if that overflows.
 */
bool rows_view_end(const uint32_t *iters, uint32_t depth, const struct spyre_instr *in,
		   uint32_t index, const struct spyre_view *view, uint64_t *end);

/*
 * Sets the rows of a GATHER or SCATTER to those that end at or before byte @table_end of the
 * operand, and *@end to the end of the last; true if there is at least one.
 */
bool rows_set(const uint32_t *iters, uint32_t depth, struct spyre_instr *in,
	      const struct spyre_view *views, uint64_t table_end, uint64_t *end);

/*
 * Sets the rows of the tables of a program that the verifier has accepted, with @bytes of each
 * argument. An argument with less than one row keeps that one, which a launch then refuses.
 */
void rows_of_launch(void *image, const struct spyre_bundle *bundle, const uint64_t *bytes);

/* Bytes from one row of a table to the next; instructions may see it with different rows. */
struct rows_width {
	uint64_t least, most;		/* 0: no instruction accesses the table */
};

/* Gets the rows' widths of the tables of a program that the verifier has accepted, by argument. */
void rows_get_width(void *image, const struct spyre_bundle *bundle, struct rows_width *width);

#endif /* SPYRE_SDSC_ROWS_H */
