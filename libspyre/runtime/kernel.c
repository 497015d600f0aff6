/* SPDX-License-Identifier: MIT */
/* Kernels: loading a bundle, and launching it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libspyre/runtime/stream.h"
#include "libspyre/sdsc/bundle.h"
#include "libspyre/sdsc/plan.h"

struct spyre_kernel {
	TAILQ_ENTRY(spyre_kernel) link;
	struct spyre_context *context;
	_Atomic uint32_t refs;
	/* Its image is gone once the card has it. */
	struct spyre_bundle bundle;
	size_t image_bytes;
	struct spyre_program_handle *program;
	spyre_devptr pool;
};

struct spyre_kernel *spyre_kernel_ref(struct spyre_kernel *kernel)
{
	atomic_fetch_add_explicit(&kernel->refs, 1, memory_order_relaxed);
	return kernel;
}

void spyre_kernel_unref(struct spyre_kernel *kernel)
{
	if (atomic_fetch_sub(&kernel->refs, 1) != 1)
		return;
	if (kernel->program)
		kernel->context->ops->program_destroy(kernel->program);
	if (kernel->pool)
		spyre_mem_free(kernel->context, kernel->pool);
	spyre_bundle_fini(&kernel->bundle);
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

static spyre_status kernel_check(const struct spyre_kernel *kernel)
{
	if (!kernel)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the kernel is NULL");
	return spyre_context_check(kernel->context);
}

static spyre_status create_program(struct spyre_kernel *kernel, const char *directory)
{
	struct spyre_context *context = kernel->context;
	struct spyre_verify_error why = { 0 };
	spyre_status status;

	status = context->ops->program_create(context->card, kernel->bundle.image,
					      kernel->bundle.image_bytes, &kernel->program, &why);
	if (status == SPYRE_ERROR_VERIFY)
		return spyre_error(status,
				   "%s: the card's verifier refused the program of kernel \"%s\": %s at "
				   "step %u, core %u, instruction %u, view %u (value %" PRIu64
				   ", limit %" PRIu64 "); this is a fault of the compiler, please report "
				   "it with the bundle", directory, kernel->bundle.name,
				   spyre_stop_name(why.stop), why.step, why.core, why.instr,
				   why.view, why.value, why.limit);
	if (status)
		return spyre_error_prefix(status, "%s", directory);
	kernel->image_bytes = kernel->bundle.image_bytes;
	return SPYRE_SUCCESS;
}

/* The bundle's image goes to the card; the kernel takes the rest. */
static spyre_status create_kernel(struct spyre_context *context, struct spyre_bundle *bundle,
				  const char *name, struct spyre_kernel **out)
{
	struct spyre_kernel *kernel = calloc(1, sizeof(*kernel));
	spyre_status status;

	if (!kernel) {
		spyre_bundle_fini(bundle);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "kernel %s", name);
	}
	kernel->context = context;
	kernel->bundle = *bundle;
	atomic_init(&kernel->refs, 1);
	status = create_program(kernel, name);
	if (!status && kernel->bundle.pool_bytes) {
		status = spyre_mem_alloc(context, kernel->bundle.pool_bytes, &kernel->pool);
		if (status)
			spyre_error_prefix(status, "%s: memory for intermediates", name);
	}
	if (status) {
		spyre_kernel_unref(kernel);
		return status;
	}
	pthread_mutex_lock(&context->streams_lock);
	TAILQ_INSERT_TAIL(&context->kernels, kernel, link);
	pthread_mutex_unlock(&context->streams_lock);
	*out = kernel;
	return SPYRE_SUCCESS;
}

spyre_status spyre_kernel_load(spyre_context *context, const char *directory, spyre_kernel **out)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_bundle bundle;

	if (status)
		return status;
	if (!out || !directory)
		return spyre_null_argument("spyre_kernel_load", out ? "directory" : "kernel");
	*out = NULL;
	status = spyre_bundle_compile(directory, context->card->properties.num_cores, &bundle);
	return status ? status : create_kernel(context, &bundle, directory, out);
}

spyre_status spyre_sdsc_graph_load(spyre_context *context, const spyre_sdsc_graph *graph,
				   uint32_t cores, spyre_kernel **out)
{
	spyre_status status = spyre_context_check(context);
	uint32_t most;
	struct spyre_bundle bundle;

	if (status)
		return status;
	if (!out || !graph)
		return spyre_null_argument("spyre_sdsc_graph_load", out ? "graph" : "kernel");
	*out = NULL;
	most = context->card->properties.num_cores;
	status = build_cores(&cores);
	if (!status)
		status = plan_compile(graph, cores < most ? cores : most, most, &bundle);
	return status ? status : create_kernel(context, &bundle, bundle.name, out);
}

spyre_status spyre_kernel_unload(spyre_kernel *kernel)
{
	spyre_status status;

	if (!kernel)
		return SPYRE_SUCCESS;
	status = kernel_check(kernel);
	if (status)
		return status;
	pthread_mutex_lock(&kernel->context->streams_lock);
	TAILQ_REMOVE(&kernel->context->kernels, kernel, link);
	pthread_mutex_unlock(&kernel->context->streams_lock);
	spyre_kernel_unref(kernel);
	return SPYRE_SUCCESS;
}

spyre_status spyre_kernel_get_info(spyre_kernel *kernel, spyre_kernel_info *out)
{
	spyre_status status = kernel_check(kernel);
	spyre_kernel_info info = { 0 };
	const struct spyre_bundle *bundle;

	if (!status)
		status = spyre_struct_check("spyre_kernel_get_info", "kernel_info", out);
	if (status)
		return status;
	bundle = &kernel->bundle;
	snprintf(info.name, sizeof(info.name), "%s", bundle->name);
	info.num_args = bundle->num_args;
	info.num_sdscs = bundle->num_sdscs;
	info.num_cores = bundle->num_cores;
	info.lx_bytes = bundle->lx_bytes;
	info.pool_bytes = bundle->pool_bytes;
	info.program_bytes = kernel->image_bytes;
	info.cycles = kernel->program->cost.cycles;
	info.bytes_read = kernel->program->cost.bytes_read;
	info.bytes_written = kernel->program->cost.bytes_written;
	info.macs = kernel->program->cost.macs;
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
				   "kernel \"%s\" has %u arguments, there is none of index %d",
				   kernel->bundle.name, kernel->bundle.num_args, index);
	*info = kernel->bundle.args[index];
	return SPYRE_SUCCESS;
}

/* Writes "[4, 2, 64]". */
static const char *sizes_text(char *text, size_t bytes, const int64_t *size, uint32_t rank)
{
	size_t at = snprintf(text, bytes, "[");

	for (uint32_t i = 0; i < rank && at < bytes; i++)
		at += snprintf(text + at, bytes - at, "%s%" PRId64, i ? ", " : "", size[i]);
	if (at < bytes)
		snprintf(text + at, bytes - at, "]");
	return text;
}

/* Equal but for dimensions of size 1, which a bundle may leave out or add. */
static bool same_sizes(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank)
{
	uint32_t i = 0, j = 0;

	for (;;) {
		while (i < a_rank && a[i] == 1)
			i++;
		while (j < b_rank && b[j] == 1)
			j++;
		if (i == a_rank || j == b_rank)
			return i == a_rank && j == b_rank;
		if (a[i++] != b[j++])
			return false;
	}
}

static spyre_status check_layout(const struct spyre_kernel *kernel, uint32_t index,
				 const spyre_layout *layout)
{
	const spyre_arg_info *want = &kernel->bundle.args[index];
	char wants[160], has[160];

	if (!want->device_rank)		/* nothing in the bundle touches it */
		return SPYRE_SUCCESS;
	if (layout->device_format != want->format)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "kernel \"%s\", argument %u: it takes %s, the layout is %s",
				   kernel->bundle.name, index, spyre_format_name(want->format),
				   spyre_format_name(layout->device_format));
	if (layout->device_rank > SPYRE_MAX_DEVICE_RANK ||
	    !same_sizes(want->device_size, want->device_rank, layout->device_size,
			layout->device_rank))
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\", argument %u: it takes device size %s, the layout has %s",
				   kernel->bundle.name, index,
				   sizes_text(wants, sizeof(wants), want->device_size,
					      want->device_rank),
				   sizes_text(has, sizeof(has), layout->device_size,
					      layout->device_rank > SPYRE_MAX_DEVICE_RANK ? 0 :
					      layout->device_rank));
	return SPYRE_SUCCESS;
}

static spyre_status check_args(struct spyre_kernel *kernel, const spyre_arg *args,
			       uint32_t num_args)
{
	struct spyre_span spans[SPYRE_MAX_OPERANDS];
	spyre_status status;

	if (num_args != kernel->bundle.num_args)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\" takes %u arguments, the launch gives %u",
				   kernel->bundle.name, kernel->bundle.num_args, num_args);
	if (num_args && !args)
		return spyre_null_argument("spyre_launch", "args");
	for (uint32_t i = 0; i < num_args; i++) {
		if (args[i].layout) {
			status = check_layout(kernel, i, args[i].layout);
			if (status)
				return status;
		}
		if (args[i].address % SPYRE_STICK)
			return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
					   "kernel \"%s\", argument %u: 0x%" PRIx64
					   " is not 128-byte aligned", kernel->bundle.name, i,
					   args[i].address);
		spans[i] = (struct spyre_span){
			.address = args[i].address,
			.bytes = kernel->bundle.args[i].bytes,
			.what = "argument",
			.index = i,
		};
	}
	status = spyre_memory_check(kernel->context, spans, num_args);
	if (status)
		return spyre_error_prefix(status, "kernel \"%s\"", kernel->bundle.name);
	return SPYRE_SUCCESS;
}

spyre_status spyre_launch(spyre_stream *stream, spyre_kernel *kernel, const spyre_arg *args,
			  uint32_t num_args)
{
	uint64_t addresses[SPYRE_MAX_OPERANDS];
	struct spyre_command command = { .type = SPYRE_COMMAND_EXEC };
	struct spyre_work work = {
		.what = "launch", .kernel = kernel, .commands = &command, .num_commands = 1,
	};
	spyre_status status = spyre_stream_check(stream);

	if (!status)
		status = kernel_check(kernel);
	if (status)
		return status;
	if (stream->context != kernel->context)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_launch: kernel \"%s\" and the stream belong to two contexts",
				   kernel->bundle.name);
	status = check_args(kernel, args, num_args);
	if (status)
		return status;
	for (uint32_t i = 0; i < kernel->bundle.num_operands; i++) {
		const struct spyre_bundle_operand *operand = &kernel->bundle.operands[i];

		addresses[i] = operand->kind == SPYRE_OPERAND_POOL ? kernel->pool :
								     args[operand->arg].address;
	}
	command.exec.program = kernel->program;
	command.exec.args = addresses;
	command.exec.num_args = kernel->bundle.num_operands;
	return spyre_stream_enqueue(stream, &work, NULL);
}
