/* SPDX-License-Identifier: MIT */
/*
 * Intermediates in HBM that the SDSCs so far have written: their sizes, for a later one that uses
 * them as a table. Several SDSCs may each have written a part of a table. Internal.
 */
#ifndef SPYRE_SDSC_WRITTEN_H
#define SPYRE_SDSC_WRITTEN_H

#include "libspyre/sdsc/lower/overlap.h"
#include "libspyre/sdsc/lower/uses.h"

struct bundle_source;
struct written_output;

struct written {
	const struct bundle_source *source;
	bool enabled;			/* the bundle has tables */
	uint32_t first_stmt;		/* of the outermost loop that is open */
	struct written_output **list;	/* all, in the order of the statements; owned */
	size_t num, capacity;
	struct written_output **sorted;	/* the last ones, by their first bytes */
	size_t num_sorted, capacity_sorted;
	struct uses uses;		/* of the bundle, once it has asked for a table */
};

/* Notes the output of l->sdsc, which replaces an earlier tensor at the same address. */
spyre_status written_note(struct written *w, const struct lower *l);
/*
 * Finds the end of a table, an input of l->sdsc or its output, that begins at byte @start of an
 * operand, over all cores: that of the outputs which together are its rows. *@end is 0 if no
 * output begins there. Errors: UNSUPPORTED if a row is not written, or in another layout.
 */
spyre_status written_table(struct written *w, struct lower *l, uint32_t tensor,
			   uint16_t operand, uint64_t start, uint64_t *end);
void written_fini(struct written *w);

#endif /* SPYRE_SDSC_WRITTEN_H */
