/* SPDX-License-Identifier: MIT */
/*
 * Symbolic dimensions. The memory layout is that of a symbol's maximum; a bound
 * value cuts the work of the cores: along a dim of the output each core computes
 * its share of [0, value), along a reduced dim the rest is masked. docs/bundles.md
 * has the rules. Internal.
 */
#ifndef SPYRE_SDSC_SYMBOLS_H
#define SPYRE_SDSC_SYMBOLS_H

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/ir/ir.h"

struct launch_spec;

struct symbols {
	uint32_t num;
	struct bundle_symbol symbol[BUNDLE_MAX_SYMBOLS];
	bool ranged[BUNDLE_MAX_SYMBOLS];	/* a launch spec gives min and max */
};

/* Adds the symbols that the launch spec names, in its order. */
spyre_status symbols_from_spec(struct symbols *symbols, const struct launch_spec *spec);
/* Adds the symbol of a parameter of bundle.mlir; a range of the launch spec must lie within. */
spyre_status symbols_add_param(struct symbols *symbols, const struct ir_size_param *param);
/* Adds the symbols of an SDSC and checks that they fit its sizes. */
spyre_status symbols_add(struct symbols *symbols, const struct ir_sdsc *sdsc);
/* Numbers the values that a launch passes: parameters in their order, then other symbols. */
void symbols_number(struct symbols *symbols, const struct ir_bundle *bundle);
int symbols_find(const struct bundle_symbol *symbols, uint32_t num, const char *name);

#endif /* SPYRE_SDSC_SYMBOLS_H */
