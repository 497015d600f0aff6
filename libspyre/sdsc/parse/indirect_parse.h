/* SPDX-License-Identifier: MIT */
/* Indirect access of an SDSC: tables, and the tensors of indices into them. Internal. */
#ifndef SPYRE_SDSC_INDIRECT_PARSE_H
#define SPYRE_SDSC_INDIRECT_PARSE_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/json.h"

/*
 * Reads which tensors are tables and which hold indices, from scheduleTree_ of @dsc and
 * indirectAccessIndexLabeledDs of @op; all tensors, inputs and the output are parsed.
 */
spyre_status ir_parse_indirect(struct ir_sdsc *s, const struct json *dsc, const struct json *op);

#endif /* SPYRE_SDSC_INDIRECT_PARSE_H */
