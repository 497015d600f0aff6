/* SPDX-License-Identifier: MIT */
/* The window of an SDSC file. Internal. */
#ifndef SPYRE_SDSC_WINDOW_PARSE_H
#define SPYRE_SDSC_WINDOW_PARSE_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/json.h"

/*
 * Reads the window of a convolution or of pooling from the descriptor @dsc. Calls
 * ir_place() for the first input again, whose rows and columns differ from N_
 * (docs/sdsc.md).
 */
spyre_status ir_parse_window(struct ir_sdsc *s, const struct json *dsc);

#endif /* SPYRE_SDSC_WINDOW_PARSE_H */
