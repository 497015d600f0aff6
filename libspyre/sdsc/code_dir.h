/* SPDX-License-Identifier: MIT */
/*
 * spyreCodeDir/: where a compiled bundle is kept, beside its sources or below
 * SPYRE_KERNEL_CACHE_DIR. Nothing in it is trusted; what does not fit is
 * compiled anew. Internal.
 */
#ifndef SPYRE_SDSC_CODE_DIR_H
#define SPYRE_SDSC_CODE_DIR_H

#include "libspyre/sdsc/bundle.h"
#include "libspyre/sdsc/source.h"

enum code_cache {
	CODE_CACHE_OFF,		/* neither read nor written */
	CODE_CACHE_ON,
	CODE_CACHE_REBUILD,	/* written, not read */
};

/*
 * The value of SPYRE_KERNEL_CACHE: 0 or 1 (the default). An error if the
 * directory that SPYRE_KERNEL_CACHE_DIR names is open to other users.
 */
spyre_status code_cache_mode(enum code_cache *mode);

/*
 * A bundle, from the cache if that is current, else compiled and put there.
 * @source: NULL, or gets the parsed bundle if it has symbols, to lower it again.
 */
spyre_status spyre_bundle_load(const char *directory, uint32_t max_cores, enum code_cache cache,
			       struct spyre_bundle *bundle, struct bundle_source **source);

/* Writes a compiled bundle to the directory @path, made if it is missing. */
spyre_status code_dir_write(const char *path, const struct bundle_source *source,
			    const struct spyre_bundle *bundle);

/* spyrecode.json for a binary of @binary bytes; to be freed, NULL without memory. */
char *spyrecode_text(const struct spyre_bundle *bundle, size_t binary, size_t *size);

#endif /* SPYRE_SDSC_CODE_DIR_H */
