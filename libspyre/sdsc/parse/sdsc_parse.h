/* SPDX-License-Identifier: MIT */
/* The parser of SDSC files. Internal. */
#ifndef SPYRE_SDSC_SDSC_PARSE_H
#define SPYRE_SDSC_SDSC_PARSE_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/json.h"

/*
 * Parses an SDSC file into @sdsc, which the caller has zeroed. The text is parsed
 * in place (see json_open()). Errors name the file and the JSON path.
 */
spyre_status ir_parse_sdsc(const char *file, char *text, size_t size, struct ir_sdsc *sdsc);

/* Reads "Tensor0-idx0", which ends with the tensor's number. */
spyre_status ir_parse_label(const struct ir_sdsc *s, const struct json *at, uint32_t *out);

#endif /* SPYRE_SDSC_SDSC_PARSE_H */
