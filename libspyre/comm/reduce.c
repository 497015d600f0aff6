// SPDX-License-Identifier: MIT
/*
 * Contributions are combined by a kernel that the SDSC builder makes: each is converted to fp32,
 * added in the order of the ranks, and the result is rounded to the format. Floats that are
 * only compared, and integers, are combined in their own format.
 */
#include <string.h>

#include <spyre/kernel.h>
#include <spyre/sdsc.h>
#include <spyre/stream.h>

#include "libspyre/base/error.h"
#include "libspyre/comm/reduce.h"

/* Largest kernel in sticks: 1 MiB of each input. Longer tensors take several launches. */
#define MAX_STICKS 8192
/* The planner divides sticks over cores evenly, so a remainder below this has its own launch. */
#define STICKS_OF_CORES 32

struct operator {
	const char *name;
	const char *op;
	bool floats;
	bool integers;
};

static const struct operator operators[] = {
	[SPYRE_REDUCE_SUM] = { "SUM", "add", true, true },
	[SPYRE_REDUCE_AVG] = { "AVG", "add", true, false },
	[SPYRE_REDUCE_PRODUCT] = { "PRODUCT", "mul", true, true },
	[SPYRE_REDUCE_MIN] = { "MIN", "minimum", true, true },
	[SPYRE_REDUCE_MAX] = { "MAX", "maximum", true, true },
	[SPYRE_REDUCE_BAND] = { "BAND", "bitwise_and", false, true },
	[SPYRE_REDUCE_BOR] = { "BOR", "bitwise_or", false, true },
	[SPYRE_REDUCE_BXOR] = { "BXOR", "bitwise_xor", false, true },
	[SPYRE_REDUCE_PREMUL_SUM] = { "PREMUL_SUM", "add", true, false },
};

static bool is_float(spyre_format format)
{
	return format == SPYRE_FORMAT_SEN169_FP16 || format == SPYRE_FORMAT_IEEE_FP32 ||
	       format == SPYRE_FORMAT_BFLOAT16;
}

spyre_status comm_reduce_check(spyre_format format, spyre_reduction reduction)
{
	const bool integers = format == SPYRE_FORMAT_IEEE_INT32;
	const struct operator *operator = &operators[reduction.op];

	if ((unsigned int)reduction.op > SPYRE_REDUCE_PREMUL_SUM)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "unknown operator %d",
				   (int)reduction.op);
	if (!is_float(format) && !integers)
		return spyre_error(SPYRE_ERROR_FORMAT, "elements of %s cannot be reduced; convert them "
				   "to SEN169_FP16, IEEE_FP32 or IEEE_INT32",
				   spyre_format_name(format) ?: "an unknown format");
	if (integers ? !operator->integers : !operator->floats)
		return spyre_error(SPYRE_ERROR_FORMAT, "%s does not exist for %s", operator->name,
				   spyre_format_name(format));
	return SPYRE_SUCCESS;
}

/* A graph that is being built, and what has been added to it. */
struct build {
	spyre_sdsc_graph *graph;
	spyre_sdsc_operand operand;
	const struct comm_kernel *kernel;
	/* Contributions are combined in fp32 and rounded at the end. */
	bool widens;
	uint32_t out;
};

static spyre_status build_operand(struct build *build)
{
	const spyre_format format = build->kernel->format;
	const bool half = format == SPYRE_FORMAT_SEN169_FP16 || format == SPYRE_FORMAT_BFLOAT16;
	spyre_sdsc_operand *operand = &build->operand;

	operand->rank = 2;
	operand->size[0] = (int64_t)build->kernel->sticks;
	operand->size[1] = half ? 64 : 32;
	return spyre_layout_init(&operand->layout, 2, operand->size,
				 format == SPYRE_FORMAT_SEN169_FP16 ? SPYRE_FORMAT_IEEE_FP16 :
				 format);
}

static spyre_status build_scale(struct build *build, double factor, uint32_t *tensor)
{
	const spyre_sdsc_attribute other = { "other", factor };
	uint32_t scaled = SPYRE_SDSC_NEW;

	TRY(spyre_sdsc_graph_add_op(build->graph, "mul", &other, 1, tensor, 1, &scaled));
	*tensor = scaled;
	return SPYRE_SUCCESS;
}

/* Prepares one contribution: its value in the format of the sum. */
static spyre_status build_input(struct build *build, uint32_t argument, uint32_t *value)
{
	const spyre_sdsc_attribute wide = { "format", SPYRE_FORMAT_IEEE_FP32 };

	*value = argument;
	if (build->widens) {
		*value = SPYRE_SDSC_NEW;
		TRY(spyre_sdsc_graph_add_op(build->graph, "cast", &wide, 1, &argument, 1, value));
	}
	if (build->kernel->reduction.op == SPYRE_REDUCE_PREMUL_SUM)
		TRY(build_scale(build, build->kernel->reduction.factor, value));
	return SPYRE_SUCCESS;
}

static spyre_status build_steps(struct build *build, const uint32_t *arguments)
{
	const struct comm_kernel *kernel = build->kernel;
	uint32_t sum, pair[2];

	TRY(build_input(build, arguments[0], &sum));
	for (uint32_t i = 1; i < kernel->inputs; i++) {
		const bool last = i + 1 == kernel->inputs && !build->widens &&
				  kernel->reduction.op != SPYRE_REDUCE_AVG;

		pair[0] = sum;
		TRY(build_input(build, arguments[i], &pair[1]));
		sum = last ? build->out : SPYRE_SDSC_NEW;
		TRY(spyre_sdsc_graph_add_op(build->graph, operators[kernel->reduction.op].op, NULL,
					    0, pair, 2, &sum));
	}
	if (kernel->reduction.op == SPYRE_REDUCE_AVG)
		TRY(build_scale(build, 1.0 / kernel->inputs, &sum));
	if (sum == build->out)
		return SPYRE_SUCCESS;
	return spyre_sdsc_graph_add_op(build->graph, build->widens ? "cast" : "identity", NULL, 0,
				       &sum, 1, &build->out);
}

static spyre_status build_graph(struct build *build)
{
	uint32_t arguments[SPYRE_COMM_MAX_RANKS];

	TRY(build_operand(build));
	for (uint32_t i = 0; i < build->kernel->inputs; i++)
		TRY(spyre_sdsc_graph_add_argument(build->graph, &build->operand, &arguments[i]));
	TRY(spyre_sdsc_graph_add_argument(build->graph, &build->operand, &build->out));
	return build_steps(build, arguments);
}

static spyre_status kernel_build(spyre_context *context, struct comm_kernel *kernel)
{
	struct build build = { .kernel = kernel };
	spyre_status status;

	build.widens = kernel->format != SPYRE_FORMAT_IEEE_FP32 && is_float(kernel->format) &&
		       kernel->reduction.op != SPYRE_REDUCE_MIN &&
		       kernel->reduction.op != SPYRE_REDUCE_MAX;
	TRY(spyre_sdsc_graph_create(&build.graph));
	status = build_graph(&build);
	if (!status)
		status = spyre_sdsc_graph_load(context, build.graph, 0, &kernel->kernel);
	spyre_sdsc_graph_destroy(build.graph);
	return status ? spyre_error_prefix(status, "cannot make the kernel of the reduction") : status;
}

static bool kernel_matches(const struct comm_kernel *kernel, const struct comm_kernel *wanted)
{
	return kernel->kernel && kernel->format == wanted->format &&
	       kernel->reduction.op == wanted->reduction.op &&
	       kernel->inputs == wanted->inputs && kernel->sticks == wanted->sticks &&
	       (wanted->reduction.op != SPYRE_REDUCE_PREMUL_SUM ||
		!memcmp(&kernel->reduction.factor, &wanted->reduction.factor, sizeof(float)));
}

/* Returns the kernel for @wanted; the one that was unused for longest gives way. */
static spyre_status kernel_get(struct comm_reducer *reducer, spyre_context *context,
			       struct comm_kernel *wanted, spyre_kernel **kernel)
{
	struct comm_kernel *oldest = &reducer->kernels[0];

	for (uint32_t i = 0; i < COMM_KERNELS; i++) {
		struct comm_kernel *entry = &reducer->kernels[i];

		if (kernel_matches(entry, wanted)) {
			entry->used = ++reducer->uses;
			*kernel = entry->kernel;
			return SPYRE_SUCCESS;
		}
		if (entry->used < oldest->used)
			oldest = entry;
	}
	TRY(kernel_build(context, wanted));
	if (oldest->kernel)
		spyre_kernel_unload(oldest->kernel);
	*oldest = *wanted;
	oldest->used = ++reducer->uses;
	*kernel = oldest->kernel;
	return SPYRE_SUCCESS;
}

static spyre_status launch(struct comm_reducer *reducer, spyre_stream *stream,
			   struct comm_kernel *wanted, const spyre_arg *args)
{
	spyre_kernel *kernel;
	spyre_status status;

	pthread_mutex_lock(&reducer->lock);
	status = kernel_get(reducer, spyre_stream_context(stream), wanted, &kernel);
	if (!status)
		status = spyre_launch(stream, kernel, args, wanted->inputs + 1);
	pthread_mutex_unlock(&reducer->lock);
	return status;
}

spyre_status comm_reduce(struct comm_reducer *reducer, spyre_stream *stream, spyre_format format,
			 spyre_reduction reduction, const spyre_devptr *inputs, uint32_t n,
			 spyre_devptr out, uint64_t bytes)
{
	spyre_arg args[SPYRE_COMM_MAX_RANKS + 1] = { 0 };
	uint64_t left = bytes / SPYRE_STICK, at = 0;

	while (left) {
		struct comm_kernel wanted = {
			.format = format, .reduction = reduction, .inputs = n,
			.sticks = left > MAX_STICKS ? MAX_STICKS :
				  left > STICKS_OF_CORES ? left - left % STICKS_OF_CORES : left,
		};

		for (uint32_t i = 0; i < n; i++)
			args[i].address = inputs[i] + at;
		args[n].address = out + at;
		TRY(launch(reducer, stream, &wanted, args));
		at += wanted.sticks * SPYRE_STICK;
		left -= wanted.sticks;
	}
	return SPYRE_SUCCESS;
}

void comm_reducer_init(struct comm_reducer *reducer)
{
	pthread_mutex_init(&reducer->lock, NULL);
}

void comm_reducer_close(struct comm_reducer *reducer)
{
	for (uint32_t i = 0; i < COMM_KERNELS; i++)
		if (reducer->kernels[i].kernel)
			spyre_kernel_unload(reducer->kernels[i].kernel);
	pthread_mutex_destroy(&reducer->lock);
}
