/* SPDX-License-Identifier: MIT */
/*
 * symbol_kinds: the meaning of each symbol id of the SDSC files, from
 * symbol_kinds.json or the member of launch_spec.json. The operands in bundle.mlir
 * give the same information and take precedence: the kinds are checked against
 * them, and used for executes without operands. Internal.
 */
#ifndef SPYRE_SDSC_SYMBOL_KINDS_H
#define SPYRE_SDSC_SYMBOL_KINDS_H

#include "libspyre/sdsc/ir/ir.h"

struct json;

struct symbol_kind {
	int64_t id;
	enum ir_base base;	/* ARG or POOL */
	uint32_t arg;
	int64_t offset;
};

struct symbol_kinds {
	const char *file;	/* source of the kinds; NULL if the bundle has none */
	struct symbol_kind *list;	/* by ascending id */
	uint32_t num;
};

/* Parses symbol_kinds.json. */
spyre_status symbol_kinds_parse(char *text, size_t size, struct symbol_kinds *kinds);
/* Reads the list from a member of another file. */
spyre_status symbol_kinds_read(const struct json *at, struct symbol_kinds *kinds);
void symbol_kinds_fini(struct symbol_kinds *kinds);

/* Checks an execute's operands against the kinds, or makes them from the kinds. */
spyre_status symbol_kinds_bind(const struct symbol_kinds *kinds, struct ir_bundle *bundle,
			       struct ir_stmt *stmt, const struct ir_sdsc *sdsc);

#endif /* SPYRE_SDSC_SYMBOL_KINDS_H */
