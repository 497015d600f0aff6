/* SPDX-License-Identifier: MIT */
/*
 * A parsed bundle, from which programs are lowered; several ones if the bundle has
 * symbols. Internal.
 */
#ifndef SPYRE_SDSC_SOURCE_H
#define SPYRE_SDSC_SOURCE_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/code_key.h"
#include "libspyre/sdsc/parse/launch_spec.h"
#include "libspyre/sdsc/parse/packed_files.h"
#include "libspyre/sdsc/parse/symbol_kinds.h"
#include "libspyre/sdsc/parse/symbols.h"

/* Executes of one file share one parse. */
struct bundle_unit {
	const char *file;	/* name in the first statement that executes it */
	struct ir_sdsc *sdsc;	/* in the bundle's memory */
};

struct bundle_source {
	struct ir_bundle bundle;
	struct bundle_unit *units;
	uint32_t num_units;
	uint32_t *unit_of;	/* by statement */
	bool symbolic_args;	/* addresses are symbols, not baked */
	uint32_t lx_kept;	/* spyre_kernel_options.lx_kept; set by the loader */
	struct launch_spec spec;
	struct symbols symbols;
	/* Hash of all files, and the files of a bundle with symbols, if the caller requested it. */
	bool keyed;
	struct code_key_state key;
	struct packed_files files;
};

/* Reads and parses all files of a bundle; sets its key if @keyed. Errors as spyre_kernel_load(). */
spyre_status bundle_source_open(const char *directory, bool keyed, struct bundle_source *source);
/* Parses packed files. Errors as spyre_kernel_load_image(). */
spyre_status bundle_source_open_packed(const uint8_t *data, size_t bytes,
				       struct bundle_source *source);
void bundle_source_close(struct bundle_source *source);

/* The SDSC that statement @stmt executes. */
const struct ir_sdsc *bundle_source_sdsc(const struct bundle_source *source, uint32_t stmt);

#endif /* SPYRE_SDSC_SOURCE_H */
