/* SPDX-License-Identifier: MIT */
/*
 * A bundle as its files say it, parsed: what programs are lowered from, more
 * than once if the bundle has symbols. Internal.
 */
#ifndef SPYRE_SDSC_SOURCE_H
#define SPYRE_SDSC_SOURCE_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/code_key.h"
#include "libspyre/sdsc/parse/launch_spec.h"
#include "libspyre/sdsc/parse/symbol_kinds.h"
#include "libspyre/sdsc/parse/symbols.h"

/* Executes of one file share one parse. */
struct bundle_unit {
	const char *file;	/* of the first statement that names it */
	struct ir_sdsc sdsc;
};

struct bundle_source {
	struct ir_bundle bundle;
	struct bundle_unit *units;
	uint32_t num_units;
	uint32_t *unit_of;	/* by statement */
	bool symbolic_args;	/* addresses are symbols, not baked */
	struct launch_spec spec;
	struct symbols symbols;
	/* A hash of the bytes of all these files, if it was asked for. */
	bool keyed;
	struct code_key_state key;
};

/* Reads and parses all files of a bundle; @keyed: with its key. Errors as spyre_kernel_load(). */
spyre_status bundle_source_open(const char *directory, bool keyed, struct bundle_source *source);
void bundle_source_close(struct bundle_source *source);

/* The SDSC that statement @stmt executes. */
const struct ir_sdsc *bundle_source_sdsc(const struct bundle_source *source, uint32_t stmt);

#endif /* SPYRE_SDSC_SOURCE_H */
