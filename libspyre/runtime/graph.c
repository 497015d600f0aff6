// SPDX-License-Identifier: MIT
/* Graphs: from steps to submissions, and launching them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libspyre/base/error.h"
#include "libspyre/runtime/activity.h"
#include "libspyre/runtime/graph.h"
#include "libspyre/runtime/kernel.h"

/*
 * Steps share a submission because each one costs some microseconds. Beyond this
 * work, in bytes and macs, sharing gains nothing, delays other streams and
 * approaches the time limit of a submission.
 */
#define SEGMENT_WORK (UINT64_C(8) << 20)

struct spyre_graph *graph_ref(struct spyre_graph *graph)
{
	atomic_fetch_add_explicit(&graph->refs, 1, memory_order_relaxed);
	return graph;
}

static void step_free(struct spyre_graph *graph, struct graph_step *step)
{
	if (step->staging)
		spyre_staging_put(graph->context, step->staging, step->staging_bytes);
	if (step->kernel) {
		kernel_variant_put(step->kernel, step->variant);
		spyre_kernel_unref(step->kernel);
	}
	free(step);
}

void spyre_graph_unref(struct spyre_graph *graph)
{
	if (atomic_fetch_sub(&graph->refs, 1) != 1)
		return;
	for (uint32_t i = 0; i < graph->num_steps; i++)
		step_free(graph, graph->steps[i]);
	if (graph->arena)
		spyre_mem_free(graph->context, graph->arena);
	if (graph->last_stream)
		spyre_stream_unref(graph->last_stream);
	free(graph->steps);
	free(graph->streams);
	free(graph->commands);
	free(graph->parts);
	free(graph->segments);
	pthread_mutex_destroy(&graph->capture_lock);
	pthread_mutex_destroy(&graph->launch_lock);
	free(graph);
}

struct spyre_graph *spyre_graph_pop(struct spyre_context *context)
{
	struct spyre_graph *graph;

	pthread_mutex_lock(&context->streams_lock);
	graph = TAILQ_FIRST(&context->graphs);
	if (graph)
		TAILQ_REMOVE(&context->graphs, graph, link);
	pthread_mutex_unlock(&context->streams_lock);
	return graph;
}

void spyre_segment_ref(const struct graph_segment *segment)
{
	graph_ref(segment->graph);
}

void spyre_segment_unref(const struct graph_segment *segment)
{
	spyre_graph_unref(segment->graph);
}

const struct spyre_part *spyre_segment_parts(const struct graph_segment *segment, uint32_t *n)
{
	*n = segment->num_parts;
	return segment->parts;
}

void spyre_segment_describe(const struct graph_segment *segment, const struct spyre_part *part,
			    char *text, size_t bytes)
{
	snprintf(text, bytes, " as operation %u of %u of graph %" PRIu64,
		 segment->first_step + (uint32_t)(part - segment->parts) + 1,
		 segment->graph->num_steps, segment->graph->number);
}

static uint64_t step_work(const struct graph_step *step)
{
	const struct spyre_counters *cost;
	uint64_t work = 0;

	for (uint32_t i = 0; i < step->num_commands; i++) {
		const struct spyre_command *command = &step->commands[i];

		switch (command->type) {
		case SPYRE_COMMAND_EXEC:
			cost = &command->exec.program->cost;
			work += cost->bytes_read + cost->bytes_written + cost->macs;
			break;
		case SPYRE_COMMAND_DMA:
			work += command->dma.host_bytes;
			break;
		case SPYRE_COMMAND_COPY:
			work += command->copy.bytes;
			break;
		case SPYRE_COMMAND_FILL:
			work += command->fill.bytes;
			break;
		case SPYRE_COMMAND_PEER:
			work += command->peer.rows.rows * command->peer.rows.row_bytes;
			break;
		case SPYRE_COMMAND_TIMESTAMP:
			break;
		}
	}
	return work;
}

/* Moves offsets from SPYRE_POOL_OF_GRAPH to @arena, the graph's memory. */
static void place(struct graph_step *step, uint64_t arena)
{
	const uint64_t by = arena - SPYRE_POOL_OF_GRAPH;

	for (uint32_t i = 0; i < step->num_commands; i++) {
		struct spyre_command *command = &step->commands[i];
		uint64_t *args = (uint64_t *)(uintptr_t)command->exec.args;

		if (command->type == SPYRE_COMMAND_EXEC) {
			for (uint32_t k = 0; k < command->exec.num_args; k++)
				if (args[k] >= SPYRE_POOL_OF_GRAPH)
					args[k] += by;
		} else if (command->type == SPYRE_COMMAND_DMA) {
			if (command->dma.device >= SPYRE_POOL_OF_GRAPH)
				command->dma.device += by;
		} else if (command->type == SPYRE_COMMAND_COPY) {
			if (command->copy.dst >= SPYRE_POOL_OF_GRAPH)
				command->copy.dst += by;
			if (command->copy.src >= SPYRE_POOL_OF_GRAPH)
				command->copy.src += by;
		}
	}
}

/* Returns the last segment if step @index fits in, else a new one. */
static struct graph_segment *segment_for(struct spyre_graph *graph, uint32_t index,
					 uint64_t *work, uint32_t commands)
{
	const struct graph_step *step = graph->steps[index];
	const struct graph_step *before = index ? graph->steps[index - 1] : NULL;
	struct graph_segment *segment = graph->segments + graph->num_segments;
	uint64_t more = step_work(step);

	*work += more;
	if (before && !before->fn && !before->alone && !step->fn && !step->alone &&
	    *work <= SEGMENT_WORK &&
	    segment[-1].num_commands + step->num_commands <= SPYRE_MAX_COMMANDS)
		return segment - 1;
	*work = more;
	*segment = (struct graph_segment){
		.graph = graph, .commands = graph->commands + commands,
		.parts = graph->parts + index, .first_step = index,
	};
	graph->num_segments++;
	return segment;
}

static void build_segments(struct spyre_graph *graph)
{
	uint32_t commands = 0;
	uint64_t work = 0;

	for (uint32_t i = 0; i < graph->num_steps; i++) {
		struct graph_step *step = graph->steps[i];
		struct graph_segment *segment = segment_for(graph, i, &work, commands);

		place(step, graph->arena);
		memcpy(graph->commands + commands, step->commands,
		       step->num_commands * sizeof(*step->commands));
		graph->parts[i] = (struct spyre_part){
			.what = step->what, .kernel = step->kernel, .kind = step->kind,
			.first = segment->num_commands, .count = step->num_commands,
			.timeline = spyre_activity_timeline(step->commands, step->num_commands),
		};
		segment->num_parts++;
		segment->num_commands += step->num_commands;
		commands += step->num_commands;
	}
}

spyre_status graph_finish(struct spyre_graph *graph)
{
	uint32_t commands = 0;
	spyre_status status;

	if (!graph->num_steps)
		return SPYRE_SUCCESS;
	for (uint32_t i = 0; i < graph->num_steps; i++)
		commands += graph->steps[i]->num_commands;
	graph->commands = calloc(commands ? commands : 1, sizeof(*graph->commands));
	graph->parts = calloc(graph->num_steps, sizeof(*graph->parts));
	graph->segments = calloc(graph->num_steps, sizeof(*graph->segments));
	if (!graph->commands || !graph->parts || !graph->segments)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "spyre_stream_end_capture: no memory for a graph of %u operations",
				   graph->num_steps);
	if (graph->arena_bytes) {
		status = spyre_mem_alloc(graph->context, graph->arena_bytes, &graph->arena);
		if (status)
			return spyre_error_prefix(status, "spyre_stream_end_capture: memory for "
						  "intermediates of the graph");
	}
	build_segments(graph);
	return SPYRE_SUCCESS;
}

static spyre_status graph_check(const struct spyre_graph *graph)
{
	if (!graph)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the graph is NULL");
	return spyre_context_check(graph->context);
}

/* Queues a host function as spyre_stream_host_fn() does, but gives its number in @seq. */
static spyre_status queue_host_fn(struct spyre_stream *stream, const struct graph_step *step,
				  uint64_t *seq)
{
	spyre_status status;

	pthread_mutex_lock(&stream->lock);
	status = spyre_stream_error(stream);
	if (!status)
		status = spyre_stream_defer_host_fn(stream, step->fn, step->data, seq);
	pthread_mutex_unlock(&stream->lock);
	return status;
}

static spyre_status queue_segment(struct spyre_stream *stream,
				  const struct graph_segment *segment, uint64_t *seq)
{
	const struct spyre_work work = {
		.what = "graph", .segment = segment, .commands = segment->commands,
		.num_commands = segment->num_commands,
	};
	const struct graph_step *step = segment->graph->steps[segment->first_step];

	return step->fn ? queue_host_fn(stream, step, seq) :
			  spyre_stream_enqueue(stream, &work, seq);
}

/* Queues all segments; caller holds launch_lock. */
static spyre_status queue_segments(struct spyre_graph *graph, struct spyre_stream *stream)
{
	spyre_status status = SPYRE_SUCCESS;
	uint64_t seq = 0;
	uint32_t i;

	if (graph->last_stream)
		status = spyre_stream_wait_for(stream, graph->last_stream, graph->last_seq);
	for (i = 0; i < graph->num_segments && !status; i++)
		status = queue_segment(stream, &graph->segments[i], &seq);
	if (!seq)
		return status;
	if (graph->last_stream != stream) {
		if (graph->last_stream)
			spyre_stream_unref(graph->last_stream);
		graph->last_stream = spyre_stream_ref(stream);
	}
	graph->last_seq = seq;
	if (status) {
		pthread_mutex_lock(&stream->lock);
		spyre_stream_fail(stream, status, "the rest of a graph", seq + 1);
		status = spyre_stream_error(stream);
		pthread_mutex_unlock(&stream->lock);
	}
	return status;
}

spyre_status spyre_graph_launch(spyre_graph *graph, spyre_stream *stream)
{
	spyre_status status = graph_check(graph);

	if (!status)
		status = spyre_stream_check(stream);
	if (status)
		return status;
	if (stream->context != graph->context)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_graph_launch: graph %" PRIu64 " and the stream belong to two "
				   "contexts", graph->number);
	if (stream->capture)
		return spyre_error(SPYRE_ERROR_CAPTURE,
				   "spyre_graph_launch: stream %d is captured, and graphs hold no graphs; "
				   "launch it on another stream, or capture its operations again",
				   stream->id);
	pthread_mutex_lock(&graph->launch_lock);
	status = queue_segments(graph, stream);
	pthread_mutex_unlock(&graph->launch_lock);
	return status;
}

spyre_status spyre_graph_destroy(spyre_graph *graph)
{
	if (!graph)
		return SPYRE_SUCCESS;
	TRY(graph_check(graph));
	pthread_mutex_lock(&graph->context->streams_lock);
	TAILQ_REMOVE(&graph->context->graphs, graph, link);
	pthread_mutex_unlock(&graph->context->streams_lock);
	spyre_graph_unref(graph);
	return SPYRE_SUCCESS;
}

spyre_status spyre_graph_get_info(spyre_graph *graph, spyre_graph_info *out)
{
	spyre_status status = graph_check(graph);
	spyre_graph_info info = { 0 };

	if (!status)
		status = spyre_struct_check("spyre_graph_get_info", "graph_info", out);
	if (status)
		return status;
	info.operations = graph->num_steps;
	for (uint32_t i = 0; i < graph->num_steps; i++) {
		const struct graph_step *step = graph->steps[i];

		info.launches += step->kernel != NULL;
		info.host_functions += step->fn != NULL;
		info.copies += !step->kernel && !step->fn;
		info.commands += step->num_commands;
	}
	info.submissions = graph->num_segments - info.host_functions;
	info.device_bytes = graph->arena_bytes;
	spyre_struct_write(out, out->struct_size, &info, sizeof(info));
	return SPYRE_SUCCESS;
}

spyre_status spyre_graph_get_operation(spyre_graph *graph, uint32_t index,
				       spyre_graph_operation *out)
{
	spyre_status status = graph_check(graph);
	spyre_graph_operation operation = { 0 };
	const struct graph_step *step;

	if (!status)
		status = spyre_struct_check("spyre_graph_get_operation", "graph_operation", out);
	if (status)
		return status;
	if (index >= graph->num_steps)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_graph_get_operation: index %u is out of range: "
				   "graph %" PRIu64 " has %u operations", index, graph->number, graph->num_steps);
	step = graph->steps[index];
	operation.kind = step->kind;
	while (operation.submission + 1 < graph->num_segments &&
	       graph->segments[operation.submission + 1].first_step <= index)
		operation.submission++;
	operation.commands = step->num_commands;
	snprintf(operation.name, sizeof(operation.name), "%s",
		 step->kernel ? spyre_kernel_name(step->kernel) : step->what);
	spyre_struct_write(out, out->struct_size, &operation, sizeof(operation));
	return SPYRE_SUCCESS;
}
