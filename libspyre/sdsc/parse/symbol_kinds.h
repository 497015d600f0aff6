/* SPDX-License-Identifier: MIT */
/*
 * symbol_kinds: what each symbol id of the SDSC files stands for, from
 * symbol_kinds.json or the member of launch_spec.json. bundle.mlir's operands
 * say the same and win; the kinds are held against them, and stand in for
 * them where an execute has none. Internal.
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
	const char *file;	/* that they are from; NULL: there are none */
	struct symbol_kind *list;	/* by ascending id */
	uint32_t num;
};

/* symbol_kinds.json */
spyre_status symbol_kinds_parse(char *text, size_t size, struct symbol_kinds *kinds);
/* A list of them in another file. */
spyre_status symbol_kinds_read(const struct json *at, struct symbol_kinds *kinds);
void symbol_kinds_fini(struct symbol_kinds *kinds);

/* Checks an execute's operands against the kinds, or makes them from the kinds. */
spyre_status symbol_kinds_bind(const struct symbol_kinds *kinds, struct ir_bundle *bundle,
			       struct ir_stmt *stmt, const struct ir_sdsc *sdsc);

#endif /* SPYRE_SDSC_SYMBOL_KINDS_H */
