/* SPDX-License-Identifier: MIT */
/*
 * An SDSC with symbolic dimensions, cut to the values that a launch binds. Cores
 * whose shares differ work in different phases, so an SDSC becomes several. The value of
 * a parameter of bundle.mlir is divided evenly instead, and the cores' starts move.
 * docs/bundles.md has the rules. Internal.
 */
#ifndef SPYRE_SDSC_SYMBOL_CUT_H
#define SPYRE_SDSC_SYMBOL_CUT_H

#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/parse/symbols.h"

struct symbol_cut {
	const struct symbols *symbols;
	int64_t values[BUNDLE_MAX_SYMBOLS];
	/* Value of each dim that is cut, 0 for the others. */
	int64_t clip[IR_MAX_DIMS];
	/* Share of each core of a dim that the cores divide evenly, 0 for the others. */
	int64_t even[IR_MAX_DIMS];
	uint32_t granule[IR_MAX_DIMS];	/* a core's share is rounded up to these */
	const struct ir_sdsc *whole;
	struct ir_sdsc part;		/* of the cores with the same share */
	uint32_t done;			/* cores (index mask) that are in earlier parts */
};

/* Cuts l->sdsc, which is symbolic. @values are in the order of @symbols, or NULL for the maxima. */
spyre_status symbol_cut_begin(struct lower *l, const struct symbols *symbols,
			      const int64_t *values, struct symbol_cut *cut);
/* Makes cut->part the next part to be lowered; false after the last one. */
bool symbol_cut_next(struct symbol_cut *cut);

#endif /* SPYRE_SDSC_SYMBOL_CUT_H */
