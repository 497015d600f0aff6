// SPDX-License-Identifier: MIT
/* The loader: takes a bundle's program from the cache if that is current, else compiles it. */
#include "libspyre/sdsc/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/sdsc/cache/code_image.h"
#include "libspyre/sdsc/lower/compile.h"

/*
 * True if the options lead to this program: it differs only if it uses LX beyond what either
 * keeps.
 */
static bool keeps_same(const struct spyre_bundle *bundle, uint32_t lx_kept)
{
	return bundle->lx_kept == (lx_kept < bundle->lx_bytes ? lx_kept : bundle->lx_bytes);
}

/*
 * *@store is cleared if there is a current program that only keeps another part of LX: what
 * was compiled ahead of time for one purpose stays.
 */
static bool load_cached(const char *path, const char *directory,
			const struct bundle_options *options, struct spyre_bundle *bundle,
			bool *store)
{
	struct spyre_error_state saved;
	spyre_status status;

	spyre_error_save(&saved);
	status = code_dir_read(path, directory, options->max_cores, bundle);
	if (!status && !keeps_same(bundle, options->lx_kept)) {
		status = spyre_error(SPYRE_ERROR_UNSUPPORTED,
				     "it keeps %u bytes of LX instead of %u", bundle->lx_kept,
				     options->lx_kept);
		spyre_bundle_fini(bundle);
		*store = false;
	}
	if (status)
		spyre_log(SPYRE_LOG_INFO, "cannot use %s: %s; compiling the bundle", path,
			  spyre_last_error());
	spyre_error_restore(&saved);
	bundle->cached = !status;
	return !status;
}

/* Compiles a bundle and stores the result at @path, unless that is NULL. */
static spyre_status compile_source(const char *directory, const char *path,
				   const struct bundle_options *options,
				   struct spyre_bundle *bundle, struct bundle_source *source)
{
	spyre_status status;

	TRY(bundle_source_open(directory, path != NULL, source));
	source->lx_kept = options->lx_kept;
	status = spyre_bundle_lower(source, NULL, options->max_cores, bundle);
	if (status)
		return spyre_error_prefix(status, "bundle %s", directory);
	if (path)
		code_dir_store(path, source, bundle);
	return SPYRE_SUCCESS;
}

spyre_status spyre_bundle_load(const char *directory, uint32_t max_cores, enum code_cache cache,
			       struct spyre_bundle *bundle, struct bundle_source **out)
{
	const struct bundle_options options = { .max_cores = max_cores };

	return spyre_bundle_load_with(directory, &options, cache, bundle, out);
}

spyre_status spyre_bundle_load_with(const char *directory, const struct bundle_options *options,
				    enum code_cache cache, struct spyre_bundle *bundle,
				    struct bundle_source **out)
{
	struct bundle_source *source;
	char path[CODE_DIR_MAX_PATH];
	bool store = true;
	spyre_status status;

	memset(bundle, 0, sizeof(*bundle));
	if (out)
		*out = NULL;
	if (cache != CODE_CACHE_OFF && !code_dir_path(directory, path, sizeof(path)))
		cache = CODE_CACHE_OFF;
	if (cache == CODE_CACHE_ON && load_cached(path, directory, options, bundle, &store))
		return SPYRE_SUCCESS;
	source = malloc(sizeof(*source));
	if (!source)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to compile a bundle");
	status = compile_source(directory, cache == CODE_CACHE_OFF || !store ? NULL : path,
				options, bundle, source);
	if (!status && out && bundle->num_symbols) {
		*out = source;
		return status;
	}
	bundle_source_close(source);
	free(source);
	return status;
}

/*
 * Compiles a bundle with symbols from the files that its image holds. The image's own program
 * is for the maxima, and nothing proves that it is that of the files.
 */
static spyre_status compile_packed(const struct code_files *files, uint32_t max_cores,
				   struct spyre_bundle *bundle, struct bundle_source **out)
{
	struct bundle_source *source = malloc(sizeof(*source));
	uint32_t lx_kept = bundle->lx_asked;
	spyre_status status;

	spyre_bundle_fini(bundle);
	if (!source)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to compile a bundle");
	status = bundle_source_open_packed(files->sources, files->source_bytes, source);
	if (!status) {
		source->lx_kept = lx_kept;
		status = spyre_bundle_lower(source, NULL, max_cores, bundle);
		if (status)
			bundle_source_close(source);
	}
	if (status)
		free(source);
	else
		*out = source;
	return status;
}

spyre_status spyre_bundle_load_image(const void *image, size_t bytes, uint32_t max_cores,
				     struct spyre_bundle *bundle, struct bundle_source **source)
{
	struct spyre_error_state saved;
	struct code_files files;
	struct code_key key;
	spyre_status status;

	*source = NULL;
	/* The reason is part of the text below; it is not logged as an error of its own. */
	spyre_error_save(&saved);
	status = code_image_decode(image, bytes, bundle, &key, &files);
	if (!status) {
		free(files.list);
		status = code_image_check_cores(bundle, max_cores);
		if (status)
			spyre_bundle_fini(bundle);
		else if (files.sources)
			status = compile_packed(&files, max_cores, bundle, source);
	}
	bundle->cached = !status && !files.sources;
	if (!status) {
		spyre_error_restore(&saved);
		return status;
	}
	spyre_error_end();
	return spyre_error(status, "cannot load a kernel from an image of %zu bytes: %s; %s", bytes,
			   spyre_last_error(), status == SPYRE_ERROR_OUT_OF_HOST_MEMORY ?
			   "free host memory" :
			   "compile the bundle for this library and card, or pass its directory to spyre_kernel_load()");
}

/* Verifies the program of a bundle, which gives its cost. */
static spyre_status verify(const struct spyre_bundle *bundle, uint32_t cores,
			   struct spyre_counters *cost)
{
	struct spyre_verify_error why = { 0 };
	struct spyre_program program;

	if (spyre_program_verify(bundle->image, bundle->image_bytes, cores, &program, &why))
		return spyre_error(SPYRE_ERROR_VERIFY,
				   "the program of kernel \"%s\" does not verify: %s at step %u, "
				   "core %u, instruction %u (value %" PRIu64 ", limit %" PRIu64
				   "); this is a fault of the compiler, please report it with the bundle",
				   bundle->name, spyre_stop_name(why.stop), why.step, why.core,
				   why.instr, why.value, why.limit);
	*cost = program.cost;
	return SPYRE_SUCCESS;
}

spyre_status spyre_bundle_compile(const char *directory, const char *output,
				  const struct bundle_options *options,
				  struct spyre_bundle *bundle, struct spyre_counters *cost)
{
	struct bundle_source source;
	char path[CODE_DIR_MAX_PATH];
	spyre_status status;

	if (!output && snprintf(path, sizeof(path), "%s/spyreCodeDir", directory) >=
	    (int)sizeof(path))
		return spyre_error(SPYRE_ERROR_FILE, "%.64s…: path longer than %zu bytes",
				   directory, sizeof(path));
	TRY(bundle_source_open(directory, true, &source));
	source.lx_kept = options->lx_kept;
	status = spyre_bundle_lower(&source, NULL, options->max_cores, bundle);
	if (!status)
		status = verify(bundle, options->max_cores, cost);
	if (status)
		spyre_error_prefix(status, "bundle %s", directory);
	else
		status = code_dir_write(output ? output : path, &source, bundle);
	bundle_source_close(&source);
	return status;
}
