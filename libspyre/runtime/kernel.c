// SPDX-License-Identifier: MIT
/* Kernels: loading a bundle, and launching it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/runtime/kernel.h"
#include "libspyre/runtime/timeline.h"
#include "libspyre/runtime/trace.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/lower/compile.h"
#include "libspyre/sdsc/plan/compile.h"
#include "libspyre/sdsc/plan/plan.h"

struct spyre_kernel *spyre_kernel_ref(struct spyre_kernel *kernel)
{
	atomic_fetch_add_explicit(&kernel->refs, 1, memory_order_relaxed);
	return kernel;
}

void spyre_kernel_unref(struct spyre_kernel *kernel)
{
	if (atomic_fetch_sub(&kernel->refs, 1) != 1)
		return;
	kernel_variants_drop(kernel);
	if (kernel->program)
		kernel->context->ops->program_destroy(kernel->program);
	kernel_pools_drop(kernel);
	if (kernel->source)
		bundle_source_close(kernel->source);
	free(kernel->source);
	spyre_bundle_fini(&kernel->bundle);
	pthread_mutex_destroy(&kernel->variants_lock);
	pthread_mutex_destroy(&kernel->pools_lock);
	free(kernel);
}

const char *spyre_kernel_name(const struct spyre_kernel *kernel)
{
	return kernel->bundle.name;
}

struct spyre_kernel *spyre_kernel_pop(struct spyre_context *context)
{
	struct spyre_kernel *kernel;

	pthread_mutex_lock(&context->streams_lock);
	kernel = TAILQ_FIRST(&context->kernels);
	if (kernel)
		TAILQ_REMOVE(&context->kernels, kernel, link);
	pthread_mutex_unlock(&context->streams_lock);
	return kernel;
}

spyre_status kernel_check(const struct spyre_kernel *kernel)
{
	if (!kernel)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the kernel is NULL");
	return spyre_context_check(kernel->context);
}

spyre_status kernel_create_program(struct spyre_kernel *kernel, struct spyre_bundle *bundle,
				   struct spyre_program_handle **program)
{
	struct spyre_context *context = kernel->context;
	struct spyre_verify_error why = { 0 };
	const struct timeline *timeline = NULL;
	spyre_status status;

	/* Before the backend takes the image. */
	if (spyre_trace_cores_on())
		timeline = spyre_timeline_make(bundle, context->card->properties.num_cores);
	status = context->ops->program_create(context->card, &bundle->image, bundle->image_bytes,
					      program, &why);
	if (!status)
		(*program)->timeline = timeline;
	if (status != SPYRE_ERROR_VERIFY)
		return status;
	return spyre_error(status,
			   "the card's verifier refused the program of kernel \"%s\": %s at "
			   "step %u, core %u, instruction %u, view %u (value %" PRIu64
			   ", limit %" PRIu64 "); %s", bundle->name, spyre_stop_name(why.stop),
			   why.step, why.core, why.instr, why.view, why.value, why.limit,
			   bundle->cached ? "compile the bundle again" :
			   "this is a fault of the compiler, please report it with the bundle");
}

/*
 * Creates the kernel's own program. A kernel with tables keeps a copy of the image, from which
 * launches make programs for the rows that their tables have.
 */
static spyre_status create_own_program(struct spyre_kernel *kernel)
{
	struct spyre_bundle *bundle = &kernel->bundle;
	spyre_status status;
	void *kept;

	kernel->has_tables = false;
	for (uint32_t i = 0; i < bundle->num_args; i++)
		kernel->has_tables |= bundle->table[i];
	if (!kernel->has_tables)
		return kernel_create_program(kernel, bundle, &kernel->program);
	TRY(kernel_copy_image(bundle, &kept));
	status = kernel_create_program(kernel, bundle, &kernel->program);
	free(bundle->image);
	bundle->image = kept;
	return status;
}

/* The cache is untrusted: a compiled bundle that fails the verifier is compiled anew. */
static spyre_status load_program(struct spyre_kernel *kernel, const char *directory,
				 uint32_t lx_kept)
{
	const struct bundle_options options = {
		.max_cores = kernel->context->card->properties.num_cores, .lx_kept = lx_kept,
	};
	struct spyre_error_state saved;
	enum code_cache cache;
	spyre_status status = code_cache_mode(&cache);

	/* Compiled forms lack the names of SDSCs. */
	if (spyre_trace_cores_on())
		cache = CODE_CACHE_OFF;
	if (!status)
		status = spyre_bundle_load_with(directory, &options, cache, &kernel->bundle,
						&kernel->source);
	if (status)
		return status;
	spyre_error_save(&saved);
	status = create_own_program(kernel);
	if (status == SPYRE_ERROR_VERIFY && kernel->bundle.cached) {
		spyre_error_restore(&saved);
		spyre_bundle_fini(&kernel->bundle);
		status = spyre_bundle_load_with(directory, &options, CODE_CACHE_REBUILD,
						&kernel->bundle, &kernel->source);
		if (status)
			return status;
		return create_own_program(kernel);
	}
	spyre_error_end();
	return status ? spyre_error_prefix(status, "%s", directory) : status;
}

/* Allocates the program's constants and intermediates; the kernel is usable after this. */
static spyre_status complete_kernel(struct spyre_kernel *kernel, const char *name)
{
	struct spyre_context *context = kernel->context;
	spyre_status status;

	kernel->image_bytes = kernel->bundle.image_bytes;
	if (kernel->has_tables) {
		rows_get_width(kernel->bundle.image, &kernel->bundle, kernel->width);
	} else {
		free(kernel->bundle.image);
		kernel->bundle.image = NULL;
	}
	if (kernel->bundle.pool_bytes) {
		status = kernel_pool_add(kernel);
		if (status)
			return spyre_error_prefix(status, "%s: memory for intermediates", name);
	}
	pthread_mutex_lock(&context->streams_lock);
	TAILQ_INSERT_TAIL(&context->kernels, kernel, link);
	pthread_mutex_unlock(&context->streams_lock);
	return SPYRE_SUCCESS;
}

static spyre_status alloc_kernel(struct spyre_context *context, struct spyre_kernel **out)
{
	struct spyre_kernel *kernel = calloc(1, sizeof(*kernel));

	if (!kernel)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a kernel");
	kernel->context = context;
	pthread_mutex_init(&kernel->variants_lock, NULL);
	TAILQ_INIT(&kernel->variants);
	pthread_mutex_init(&kernel->pools_lock, NULL);
	TAILQ_INIT(&kernel->pools);
	atomic_init(&kernel->refs, 1);
	*out = kernel;
	return SPYRE_SUCCESS;
}

/* Returns the kernel to the caller, or frees it after an error. */
static spyre_status finish_kernel(struct spyre_kernel *kernel, spyre_status status,
				  const char *name, struct spyre_kernel **out)
{
	if (!status)
		status = complete_kernel(kernel, name);
	if (status)
		spyre_kernel_unref(kernel);
	else
		*out = kernel;
	return status;
}

/* Copies the options that the caller's struct has; the others are 0. */
static spyre_status read_options(const char *function, const spyre_kernel_options *options,
				 spyre_kernel_options *own)
{
	memset(own, 0, sizeof(*own));
	if (!options)
		return SPYRE_SUCCESS;
	TRY(spyre_struct_check(function, "kernel_options", options));
	memcpy(own, options, options->struct_size < sizeof(*own) ? options->struct_size :
								   sizeof(*own));
	if (own->lx_kept > SPYRE_LX_BYTES || own->lx_kept % SPYRE_STICK_BYTES)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: lx_kept is %u, expected a multiple of %u of at most %u",
				   function, own->lx_kept, SPYRE_STICK_BYTES, SPYRE_LX_BYTES);
	return SPYRE_SUCCESS;
}

static spyre_status load_directory(spyre_context *context, const char *function,
				   const char *directory, uint32_t lx_kept, spyre_kernel **out)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_kernel *kernel;
	SPYRE_TRACE_CALL(function);

	if (status)
		return status;
	if (!out || !directory)
		return spyre_null_argument(function, out ? "directory" : "kernel");
	*out = NULL;
	status = alloc_kernel(context, &kernel);
	if (status)
		return status;
	return finish_kernel(kernel, load_program(kernel, directory, lx_kept), directory, out);
}

spyre_status spyre_kernel_load(spyre_context *context, const char *directory, spyre_kernel **out)
{
	return load_directory(context, "spyre_kernel_load", directory, 0, out);
}

spyre_status spyre_kernel_load_ex(spyre_context *context, const char *directory,
				  const spyre_kernel_options *options, spyre_kernel **out)
{
	spyre_kernel_options own;

	if (out)
		*out = NULL;
	TRY(read_options("spyre_kernel_load_ex", options, &own));
	if (own.cores)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_kernel_load_ex: cores is %u, expected 0: a kernel is compiled for the card of its context",
				   own.cores);
	return load_directory(context, "spyre_kernel_load_ex", directory, own.lx_kept, out);
}

spyre_status spyre_kernel_load_image(spyre_context *context, const void *image, size_t bytes,
				     spyre_kernel **out)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_kernel *kernel;

	if (status)
		return status;
	if (!out || !image)
		return spyre_null_argument("spyre_kernel_load_image", out ? "image" : "kernel");
	*out = NULL;
	status = alloc_kernel(context, &kernel);
	if (status)
		return status;
	status = spyre_bundle_load_image(image, bytes, context->card->properties.num_cores,
					 &kernel->bundle, &kernel->source);
	if (!status)
		status = create_own_program(kernel);
	return finish_kernel(kernel, status, kernel->bundle.name, out);
}

spyre_status spyre_sdsc_graph_load(spyre_context *context, const spyre_sdsc_graph *graph,
				   uint32_t cores, spyre_kernel **out)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_kernel *kernel;
	uint32_t most;

	if (status)
		return status;
	if (!out || !graph)
		return spyre_null_argument("spyre_sdsc_graph_load", out ? "graph" : "kernel");
	*out = NULL;
	most = context->card->properties.num_cores;
	status = plan_cores(&cores);
	if (!status)
		status = alloc_kernel(context, &kernel);
	if (status)
		return status;
	status = plan_compile(graph, cores < most ? cores : most, most, &kernel->bundle);
	if (!status)
		status = create_own_program(kernel);
	return finish_kernel(kernel, status, kernel->bundle.name, out);
}

spyre_status spyre_kernel_unload(spyre_kernel *kernel)
{
	if (!kernel)
		return SPYRE_SUCCESS;
	TRY(kernel_check(kernel));
	pthread_mutex_lock(&kernel->context->streams_lock);
	TAILQ_REMOVE(&kernel->context->kernels, kernel, link);
	pthread_mutex_unlock(&kernel->context->streams_lock);
	spyre_kernel_unref(kernel);
	return SPYRE_SUCCESS;
}

static void fill_info(spyre_kernel_info *info, const struct spyre_bundle *bundle,
		      size_t image_bytes, const struct spyre_counters *cost)
{
	snprintf(info->name, sizeof(info->name), "%s", bundle->name);
	info->num_args = bundle->num_args;
	info->num_sdscs = bundle->num_sdscs;
	info->num_cores = bundle->num_cores;
	info->lx_bytes = bundle->lx_bytes;
	info->pool_bytes = bundle->pool_bytes;
	info->program_bytes = image_bytes;
	info->cycles = cost->cycles;
	info->bytes_read = cost->bytes_read;
	info->bytes_written = cost->bytes_written;
	info->macs = cost->macs;
	info->num_symbols = bundle->num_symbols;
	info->lx_kept = bundle->lx_kept;
}

spyre_status spyre_kernel_get_info(spyre_kernel *kernel, spyre_kernel_info *out)
{
	spyre_status status = kernel_check(kernel);
	spyre_kernel_info info = { 0 };

	if (!status)
		status = spyre_struct_check("spyre_kernel_get_info", "kernel_info", out);
	if (status)
		return status;
	fill_info(&info, &kernel->bundle, kernel->image_bytes, &kernel->program->cost);
	spyre_struct_write(out, out->struct_size, &info, sizeof(info));
	return SPYRE_SUCCESS;
}

spyre_status spyre_kernel_get_arg(spyre_kernel *kernel, int index, spyre_arg_info *info)
{
	spyre_status status = kernel_check(kernel);

	if (status)
		return status;
	if (!info)
		return spyre_null_argument("spyre_kernel_get_arg", "info");
	if (index < 0 || (uint32_t)index >= kernel->bundle.num_args)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "argument index %d is out of range: kernel \"%s\" has %u "
				   "arguments",
				   index, kernel->bundle.name, kernel->bundle.num_args);
	*info = kernel->bundle.args[index];
	return SPYRE_SUCCESS;
}

spyre_status spyre_kernel_get_symbol(spyre_kernel *kernel, int index, spyre_symbol_info *info)
{
	spyre_status status = kernel_check(kernel);

	if (status)
		return status;
	if (!info)
		return spyre_null_argument("spyre_kernel_get_symbol", "info");
	if (index < 0 || (uint32_t)index >= kernel->bundle.num_symbols)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "symbol index %d is out of range: kernel \"%s\" has %u symbols",
				   index, kernel->bundle.name, kernel->bundle.num_symbols);
	memset(info, 0, sizeof(*info));
	memcpy(info->name, kernel->bundle.symbols[index].name, sizeof(info->name));
	info->min = kernel->bundle.symbols[index].min;
	info->max = kernel->bundle.symbols[index].max;
	info->granularity = kernel->bundle.symbols[index].granularity;
	return SPYRE_SUCCESS;
}

static spyre_status compile_directory(const char *function, const char *directory,
				      const char *output, uint32_t cores, uint32_t lx_kept,
				      spyre_kernel_info *info)
{
	const struct bundle_options options = {
		.max_cores = cores ? cores : SPYRE_MAX_CORES, .lx_kept = lx_kept,
	};
	struct spyre_counters cost = { 0 };
	struct spyre_bundle *bundle;
	spyre_kernel_info own = { 0 };
	spyre_status status;

	if (!directory)
		return spyre_null_argument(function, "directory");
	if (cores > SPYRE_MAX_CORES)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: %u cores, a card has at most %u", function, cores,
				   SPYRE_MAX_CORES);
	status = info ? spyre_struct_check(function, "kernel_info", info) :
			SPYRE_SUCCESS;
	if (status)
		return status;
	bundle = calloc(1, sizeof(*bundle));
	if (!bundle)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory to compile the bundle %s", directory);
	status = spyre_bundle_compile(directory, output, &options, bundle, &cost);
	if (!status && info) {
		fill_info(&own, bundle, bundle->image_bytes, &cost);
		spyre_struct_write(info, info->struct_size, &own, sizeof(own));
	}
	spyre_bundle_fini(bundle);
	free(bundle);
	return status;
}

spyre_status spyre_kernel_compile(const char *directory, const char *output, uint32_t cores,
				  spyre_kernel_info *info)
{
	return compile_directory("spyre_kernel_compile", directory, output, cores, 0, info);
}

spyre_status spyre_kernel_compile_ex(const char *directory, const char *output,
				     const spyre_kernel_options *options, spyre_kernel_info *info)
{
	spyre_kernel_options own;

	TRY(read_options("spyre_kernel_compile_ex", options, &own));
	return compile_directory("spyre_kernel_compile_ex", directory, output, own.cores,
				 own.lx_kept, info);
}
