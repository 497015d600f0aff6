/* SPDX-License-Identifier: MIT */
/* Symbolic dimensions of an SDSC file. Internal. */
#ifndef SPYRE_SDSC_SYMBOLIC_H
#define SPYRE_SDSC_SYMBOLIC_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/json.h"

/*
 * Reads the symbolic dims of a file: symbolicDimInfo_ and maxSymbolicVolume_ of @el,
 * dataStageParam_'s el_; in the public form also dimToSymbolMapping_ of @dsc and
 * inputSymbolsAndTags_ of @root.
 */
spyre_status ir_parse_symbolic(struct ir_sdsc *s, const struct json *root, const struct json *dsc,
			       const struct json *el);
/* Reads a symbol's name, which must be a C identifier. */
spyre_status ir_symbol_name(const struct json *at, char *out);

#endif /* SPYRE_SDSC_SYMBOLIC_H */
