/* SPDX-License-Identifier: MIT */
/* The loader: bundle directory -> compiled bundle. Internal. */
#ifndef SPYRE_SDSC_LOAD_H
#define SPYRE_SDSC_LOAD_H

#include "libspyre/sdsc/cache/code_dir.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/parse/source.h"

struct bundle_options {
	uint32_t max_cores;	/* cores of the card */
	uint32_t lx_kept;	/* as in spyre_kernel_options, checked */
};

/*
 * Loads a bundle, from the cache if that is current; else it is compiled and put
 * there. @source: NULL, or gets the parsed bundle if it has symbols, to lower it again.
 * Errors as spyre_kernel_load().
 */
spyre_status spyre_bundle_load_with(const char *directory, const struct bundle_options *options,
				    enum code_cache cache, struct spyre_bundle *bundle,
				    struct bundle_source **source);
/* The same for a card of @max_cores, without options. */
spyre_status spyre_bundle_load(const char *directory, uint32_t max_cores, enum code_cache cache,
			       struct spyre_bundle *bundle, struct bundle_source **source);

/*
 * Decodes a compiled bundle, of which it keeps copies only; one with symbols is compiled
 * from the files that it holds. @max_cores: cores of the card. @source as above. Errors
 * as spyre_kernel_load_image().
 */
spyre_status spyre_bundle_load_image(const void *image, size_t bytes, uint32_t max_cores,
				     struct spyre_bundle *bundle, struct bundle_source **source);

/*
 * Compiles a bundle and verifies its program, which gives
 * @cost. Writes it to the directory @output, NULL: spyreCodeDir next to the sources.
 */
spyre_status spyre_bundle_compile(const char *directory, const char *output,
				  const struct bundle_options *options,
				  struct spyre_bundle *bundle, struct spyre_counters *cost);

#endif /* SPYRE_SDSC_LOAD_H */
