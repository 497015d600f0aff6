/* SPDX-License-Identifier: MIT */
/* The divisions of the tensors of a shuffle. Internal. */
#ifndef SPYRE_SDSC_DIVISION_PARSE_H
#define SPYRE_SDSC_DIVISION_PARSE_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/json.h"

/*
 * Reads the slices of each tensor that each core holds, if the SDSC is a shuffle, from
 * the descriptor @dsc. Calls ir_place() again for these tensors, since a core's share of
 * them differs from that of the SDSC (docs/sdsc.md).
 */
spyre_status ir_parse_divisions(struct ir_sdsc *s, const struct json *dsc);

#endif /* SPYRE_SDSC_DIVISION_PARSE_H */
