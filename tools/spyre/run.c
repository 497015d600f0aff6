// SPDX-License-Identifier: MIT
/* Runs a launch on the card. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"

/*
 * Fills outputs before the launch, so that elements which a kernel leaves unwritten
 * are recognisable: 23224 in DL16, 1.5e16 in fp32.
 */
static const uint8_t unwritten[2] = {0x5a, 0x5a};

static int open_card(struct run *run, const struct run_options *options)
{
	spyre_status status = spyre_context_create(options->device, 0, &run->context);

	if (status)
		return complain_status(status, "cannot open card %d", options->device);
	run->device.struct_size = sizeof(run->device);
	status = spyre_context_get_properties(run->context, &run->device);
	if (!status)
		status = spyre_stream_get(run->context, options->stream, &run->stream);
	if (status)
		return complain_status(status, "cannot use card %d, stream %d", options->device,
				       options->stream);
	status = spyre_kernel_load(run->context, options->directory, &run->kernel);
	if (status)
		return complain_status(status, "cannot load %s", options->directory);
	run->kernel_info.struct_size = sizeof(run->kernel_info);
	status = spyre_kernel_get_info(run->kernel, &run->kernel_info);
	return status ? complain_status(status, "cannot query the kernel of %s", options->directory)
		      : EXIT_OK;
}

/* Sizes of a device tensor without the dimensions of 1 that bundles drop. */
static uint32_t essential_sizes(uint32_t rank, const int64_t *size, int64_t *essential)
{
	uint32_t count = 0;

	for (uint32_t k = 0; k < rank; k++)
		if (size[k] != 1)
			essential[count++] = size[k];
	return count;
}

static bool layout_fits(const spyre_layout *layout, const spyre_arg_info *arg)
{
	int64_t a[SPYRE_MAX_DEVICE_RANK], b[SPYRE_MAX_DEVICE_RANK];
	uint32_t n = essential_sizes(layout->device_rank, layout->device_size, a);

	return n == essential_sizes(arg->device_rank, arg->device_size, b) &&
	       !memcmp(a, b, n * sizeof(a[0]));
}

/*
 * Pads a dimension outside the stick of the dense layout to whole sticks, as for a
 * matmul's K or both dimensions of a transposition. With @symbols a dimension may
 * also be longer, since memory is allocated for the largest values.
 */
static bool layout_padded(const spyre_layout *dense, const spyre_arg_info *arg, bool symbols,
			  spyre_layout *padded)
{
	uint32_t rank = dense->device_rank;
	int64_t lanes = dense->device_size[rank - 1];

	if (arg->device_rank != rank || arg->device_size[rank - 1] != lanes)
		return false;
	for (uint32_t k = 0; k + 1 < rank; k++) {
		int64_t own = dense->device_size[k], want = arg->device_size[k];
		bool tiles = dense->dim_map[k] == dense->dim_map[rank - 1];
		bool whole = !tiles && want == (own + lanes - 1) / lanes * lanes;

		if (symbols ? want < own : want != own && !whole)
			return false;
	}
	return !spyre_layout_init_explicit(padded, rank, arg->device_size, dense->stride_map,
					   dense->device_format, SPYRE_EA_STANDARD);
}

/*
 * A shape does not determine its layout in sticks. The default is dense; if the
 * kernel expects one element per stick (a reduction's result) or more padding, that
 * layout is used. A shape that fits neither stays dense, and the launch reports the
 * mismatch.
 */
static spyre_status choose_layout(struct run *run, struct tensor *tensor)
{
	const spyre_host_tensor *host = &tensor->host;
	struct shape_spec spec = {.rank = host->rank, .format = host->format};
	spyre_arg_info arg;
	spyre_layout other;
	spyre_status status;

	memcpy(spec.size, host->size, sizeof(spec.size));
	status = shape_layout(&spec, &tensor->layout);
	if (status || spyre_kernel_get_arg(run->kernel, tensor->arg_index, &arg) ||
	    layout_fits(&tensor->layout, &arg))
		return status;
	spec.order = SHAPE_ORDER_SPARSE;
	if (!shape_layout(&spec, &other) && layout_fits(&other, &arg))
		tensor->layout = other;
	else if (layout_padded(&tensor->layout, &arg, run->kernel_info.num_symbols, &other))
		tensor->layout = other;
	return SPYRE_SUCCESS;
}

static spyre_status place(struct run *run, struct tensor *tensor)
{
	const spyre_host_tensor *host = &tensor->host;
	spyre_status status;
	uint64_t bytes;

	bytes = spyre_layout_alloc_bytes(&tensor->layout, host->rank, host->size, host->format);
	status = spyre_mem_alloc(run->context, bytes, &tensor->address);
	if (status || !bytes)
		return status;
	if (tensor->output)
		return spyre_memset_async(run->stream, tensor->address, unwritten,
					  sizeof(unwritten), (bytes + 127) / 128 * 128);
	return spyre_copy_h2d_async(run->stream, tensor->address, &tensor->layout, host);
}

/* The cause of a cancellation is the copy before it that failed first. */
static spyre_status place_or_cause(struct run *run, struct tensor *tensor)
{
	spyre_status status = place(run, tensor), first = SPYRE_SUCCESS;

	if (status == SPYRE_ERROR_CANCELLED)
		first = spyre_stream_synchronize(run->stream);
	return first ? first : status;
}

static void sizes_text(char *text, size_t bytes, uint32_t rank, const int64_t *size)
{
	size_t used = 0;

	*text = '\0';
	for (uint32_t k = 0; k < rank && used < bytes; k++)
		used += snprintf(text + used, bytes - used, "%s%lld", k ? ", " : "",
				 (long long)size[k]);
}

static double elements(uint32_t rank, const int64_t *size)
{
	double n = 1;

	for (uint32_t k = 0; k < rank; k++)
		n *= (double)size[k];
	return n;
}

/*
 * The launch repeats this check in full, but only after the copies. This one
 * compares sizes; with symbols, argument sizes are known at the launch only.
 */
static int check_operand(const struct run *run, const struct tensor *tensor)
{
	const spyre_layout *layout = &tensor->layout;
	const char *kind = tensor->output ? "output" : "input";
	char wants[256], has[256], shape[160];
	spyre_arg_info arg;

	if (run->kernel_info.num_symbols ||
	    spyre_kernel_get_arg(run->kernel, tensor->arg_index, &arg) || !arg.device_rank ||
	    elements(arg.device_rank, arg.device_size) ==
		    elements(layout->device_rank, layout->device_size))
		return EXIT_OK;
	sizes_text(wants, sizeof(wants), arg.device_rank, arg.device_size);
	sizes_text(has, sizeof(has), layout->device_rank, layout->device_size);
	shape_format(tensor->host.rank, tensor->host.size, shape, sizeof(shape));
	return complain(EXIT_USAGE,
			"%s %u (argument %u): %s@%s has device size [%s], the bundle takes [%s]; give the shape that the bundle was built for",
			kind, tensor->position, tensor->arg_index, shape,
			shape_format_name(tensor->host.format), has, wants);
}

int run_open(struct run *run, const struct run_options *options, struct tensor_list *list)
{
	int code;

	memset(run, 0, sizeof(*run));
	code = open_card(run, options);
	if (!code && list->count != run->kernel_info.num_args)
		code = complain(
			EXIT_USAGE,
			"%s takes %u operands, but %u inputs and %u outputs were given (-i, -o)",
			options->directory, run->kernel_info.num_args, list->inputs,
			list->count - list->inputs);
	for (uint32_t i = 0; i < list->count && !code; i++) {
		struct tensor *tensor = &list->at[i];
		spyre_status status = SPYRE_SUCCESS;

		if (!tensor->layout_given)
			status = choose_layout(run, tensor);
		code = status ? complain_status(status, "cannot place %s %u",
						tensor->output ? "output" : "input",
						tensor->position)
			      : check_operand(run, tensor);
	}
	return code;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static spyre_status launch_once(struct run *run, const spyre_launch_params *params,
				struct run_sample *sample)
{
	spyre_stream_stats before = {.struct_size = sizeof(before)}, after = before;
	spyre_status status = spyre_stream_get_stats(run->stream, &before);
	uint64_t start = now_ns();

	if (!status)
		status = spyre_launch_ex(run->stream, run->kernel, params);
	if (!status)
		status = spyre_stream_synchronize(run->stream);
	sample->wall_ns = now_ns() - start;
	if (!status)
		status = spyre_stream_get_stats(run->stream, &after);
	sample->host_ns = after.host_ns - before.host_ns;
	sample->cycles = after.cycles - before.cycles;
	return status;
}

static int launch_all(struct run *run, const struct run_options *options,
		      const struct tensor_list *list)
{
	spyre_launch_arg args[TENSOR_MAX];
	const spyre_launch_params params = {
		.struct_size = sizeof(params),
		.args = args,
		.num_args = list->count,
		.num_bindings = options->num_bindings,
		.bindings = options->bindings,
	};

	for (uint32_t i = 0; i < list->count; i++) {
		spyre_launch_arg *arg = &args[list->at[i].arg_index];

		arg->address = list->at[i].address;
		arg->layout = &list->at[i].layout;
		arg->host = &list->at[i].host;
	}
	run->samples = calloc(options->repeat, sizeof(*run->samples));
	if (!run->samples)
		return complain(EXIT_DEVICE, "no memory for %zu bytes of samples; lower --repeat",
				options->repeat * sizeof(*run->samples));
	while (run->launches < options->repeat) {
		spyre_status status =
			launch_once(run, &params, &run->samples[run->launches]);

		if (status)
			return complain_status(status, "cannot complete launch %u of %u",
					       run->launches + 1, options->repeat);
		run->launches++;
	}
	return EXIT_OK;
}

int run_bundle(struct run *run, const struct run_options *options, struct tensor_list *list)
{
	spyre_status status = SPYRE_SUCCESS;
	int code;

	for (uint32_t i = 0; i < list->count; i++) {
		struct tensor *tensor = &list->at[i];

		status = place_or_cause(run, tensor);
		if (status)
			return complain_status(status, "cannot copy %s %u to the card",
					       tensor->output ? "output" : "input",
					       tensor->position);
	}
	/* Waits for the copies so that they do not count in the first launch's time. */
	status = spyre_stream_synchronize(run->stream);
	if (status)
		return complain_status(status, "cannot copy the inputs to the card");
	code = launch_all(run, options, list);
	if (code)
		return code;
	for (uint32_t i = list->inputs; i < list->count && !status; i++)
		status = spyre_copy_d2h_async(run->stream, &list->at[i].host, list->at[i].address,
					      &list->at[i].layout);
	if (!status)
		status = spyre_stream_synchronize(run->stream);
	return status ? complain_status(status, "cannot copy the outputs from the card") : EXIT_OK;
}

void run_close(struct run *run)
{
	spyre_kernel_unload(run->kernel);
	/* This frees the device memory as well. */
	spyre_context_destroy(run->context);
	free(run->samples);
	memset(run, 0, sizeof(*run));
}
