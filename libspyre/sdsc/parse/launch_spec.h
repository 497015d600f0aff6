/* SPDX-License-Identifier: MIT */
/*
 * launch_spec.json: the front-end's description of the arguments of a launch,
 * which is checked against the bundle when it is loaded. Internal.
 */
#ifndef SPYRE_SDSC_LAUNCH_SPEC_H
#define SPYRE_SDSC_LAUNCH_SPEC_H

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/parse/json.h"

struct symbols;
struct symbol_kinds;

struct launch_spec_arg {
	spyre_arg_role role;
	struct bundle_arg_spec spec;
	/* Fields of the layout, valid if spec.has_layout. */
	spyre_format device_format;
	uint32_t device_rank;
	int64_t device_size[SPYRE_MAX_DEVICE_RANK];
};

struct launch_spec {
	bool present;
	bool has_pool_size, has_symbolic_args, symbolic_args, has_args;
	uint64_t pool_size;
	char kernel_name[128];
	uint32_t num_args;
	struct launch_spec_arg args[SPYRE_MAX_OPERANDS];
	uint32_t num_symbols;
	struct bundle_symbol symbols[BUNDLE_MAX_SYMBOLS];
};

spyre_status launch_spec_parse(char *text, size_t size, struct launch_spec *spec,
			       struct symbol_kinds *kinds);

/* Checks a compiled bundle against the spec and adds properties that only the spec has. */
spyre_status launch_spec_apply(const struct launch_spec *spec, const struct symbols *symbols,
			       struct spyre_bundle *bundle);

#endif /* SPYRE_SDSC_LAUNCH_SPEC_H */
