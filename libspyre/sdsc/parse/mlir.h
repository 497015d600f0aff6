/* SPDX-License-Identifier: MIT */
/* The parser of bundle.mlir. Internal. */
#ifndef SPYRE_SDSC_MLIR_H
#define SPYRE_SDSC_MLIR_H

#include "libspyre/sdsc/ir/ir.h"

/* Parses bundle.mlir. Errors name the line. */
spyre_status ir_parse_mlir(const char *file, const char *text, size_t size,
			   struct ir_bundle *bundle);

#endif /* SPYRE_SDSC_MLIR_H */
