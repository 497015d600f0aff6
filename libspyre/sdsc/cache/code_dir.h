/* SPDX-License-Identifier: MIT */
/*
 * spyreCodeDir/: the cache of a compiled bundle, next to its sources or below
 * SPYRE_KERNEL_CACHE_DIR. Its files are untrusted; a bundle whose cache is
 * damaged or outdated is compiled anew. Internal.
 */
#ifndef SPYRE_SDSC_CODE_DIR_H
#define SPYRE_SDSC_CODE_DIR_H

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/parse/source.h"

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

#define CODE_DIR_MAX_PATH 4096

/* Path of spyreCodeDir of a bundle, which may be in the common cache; false if it is too long. */
bool code_dir_path(const char *directory, char *path, size_t size);
/* Reads a compiled bundle; errors mean that the bundle must be compiled. */
spyre_status code_dir_read(const char *path, const char *directory, uint32_t max_cores,
			   struct spyre_bundle *bundle);
/* Writes a compiled bundle to the directory @path, which it creates if it is missing. */
spyre_status code_dir_write(const char *path, const struct bundle_source *source,
			    const struct spyre_bundle *bundle);
/* Writes it too, but ignores failures: the next load compiles again. */
void code_dir_store(const char *path, const struct bundle_source *source,
		    const struct spyre_bundle *bundle);

#endif /* SPYRE_SDSC_CODE_DIR_H */
