/* SPDX-License-Identifier: MIT */
/* Compiler: parsed bundle -> program image. Internal. */
#ifndef SPYRE_SDSC_COMPILE_H
#define SPYRE_SDSC_COMPILE_H

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/source.h"

/* Compiles the program for values of the symbols, in their order; NULL selects the maxima. */
spyre_status spyre_bundle_lower(const struct bundle_source *source, const int64_t *values,
				uint32_t max_cores, struct spyre_bundle *bundle);
/* Compiles without files: statement i of @parsed executes @sdscs[i]. The caller owns both. */
spyre_status spyre_bundle_compile_parsed(const struct ir_bundle *parsed,
					 struct ir_sdsc *const *sdscs, uint32_t max_cores,
					 struct spyre_bundle *bundle);

#endif /* SPYRE_SDSC_COMPILE_H */
