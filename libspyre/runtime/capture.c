// SPDX-License-Identifier: MIT
/* Capture: operations of captured streams become steps of a graph. */
#include <stdlib.h>

#include "libspyre/base/array.h"
#include "libspyre/base/log.h"
#include "libspyre/runtime/activity.h"
#include "libspyre/runtime/graph.h"
#include "libspyre/runtime/kernel.h"

static _Atomic uint64_t graphs;

spyre_status spyre_capture_refuse(struct spyre_stream *stream, const char *function)
{
	if (!stream->capture)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_CAPTURE,
			   "%s: stream %d is captured: its work runs when the graph is launched, and "
			   "there is nothing to wait for; do this after spyre_stream_end_capture(), or "
			   "before the capture begins", function, stream->id);
}

spyre_status spyre_capture_refuse_default(struct spyre_context *context, const char *function,
					  struct spyre_stream **stream)
{
	spyre_status status = spyre_stream_get(context, SPYRE_STREAM_DEFAULT, stream);

	return status ? status : spyre_capture_refuse(*stream, function);
}

static spyre_status no_memory(const struct spyre_stream *stream)
{
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
			   "stream %d: no memory for the graph that it records", stream->id);
}

static struct spyre_graph *graph_new(struct spyre_context *context)
{
	struct spyre_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	graph->context = context;
	graph->number = atomic_fetch_add(&graphs, 1) + 1;
	atomic_init(&graph->refs, 1);
	pthread_mutex_init(&graph->capture_lock, NULL);
	pthread_mutex_init(&graph->launch_lock, NULL);
	return graph;
}

/* Adds @stream, whose lock is held, to the capture. */
static spyre_status attach(struct spyre_graph *graph, struct spyre_stream *stream)
{
	spyre_status status = SPYRE_SUCCESS;

	pthread_mutex_lock(&graph->capture_lock);
	if (graph->ended)
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "stream %d cannot join a capture that has ended",
				     stream->id);
	else if (!spyre_array_reserve(&graph->streams, &graph->max_streams, graph->num_streams + 1,
				      sizeof(*graph->streams)))
		status = no_memory(stream);
	if (!status) {
		graph->streams[graph->num_streams++] = spyre_stream_ref(stream);
		stream->capture = graph_ref(graph);
	}
	pthread_mutex_unlock(&graph->capture_lock);
	return status;
}

/* Removes all streams from the capture; false if it had ended before. Caller holds no lock. */
static bool detach(struct spyre_graph *graph, bool lost)
{
	struct spyre_stream **streams;
	uint32_t n;
	bool first;

	pthread_mutex_lock(&graph->capture_lock);
	first = !graph->ended;
	graph->ended = true;
	streams = graph->streams;
	n = graph->num_streams;
	graph->streams = NULL;
	graph->num_streams = 0;
	pthread_mutex_unlock(&graph->capture_lock);
	for (uint32_t i = 0; i < n; i++) {
		pthread_mutex_lock(&streams[i]->lock);
		streams[i]->capture = NULL;
		streams[i]->capture_lost = lost && streams[i] == graph->origin;
		pthread_mutex_unlock(&streams[i]->lock);
		spyre_stream_unref(streams[i]);
		spyre_graph_unref(graph);
	}
	free(streams);
	return first;
}

/* A reference to the graph that @stream is captured into, NULL if it is not captured. */
static struct spyre_graph *capture_of(struct spyre_stream *stream)
{
	struct spyre_graph *graph;

	pthread_mutex_lock(&stream->lock);
	graph = stream->capture;
	if (graph)
		graph_ref(graph);
	pthread_mutex_unlock(&stream->lock);
	return graph;
}

spyre_status spyre_stream_begin_capture(spyre_stream *stream)
{
	spyre_status status = spyre_stream_check(stream);
	struct spyre_graph *graph;

	if (status)
		return status;
	graph = graph_new(stream->context);
	if (!graph)
		return no_memory(stream);
	graph->origin = stream;
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, 0);
	status = spyre_stream_error(stream);
	if (!status && stream->capture)
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "spyre_stream_begin_capture: stream %d is captured already; end "
				     "that capture first", stream->id);
	if (!status)
		status = attach(graph, stream);
	if (!status)
		stream->capture_lost = false;
	pthread_mutex_unlock(&stream->lock);
	/* On success the first reference passes to the call that ends the capture. */
	if (status)
		spyre_graph_unref(graph);
	return status;
}

static spyre_status not_captured(struct spyre_stream *stream)
{
	bool lost;

	pthread_mutex_lock(&stream->lock);
	lost = stream->capture_lost;
	stream->capture_lost = false;
	pthread_mutex_unlock(&stream->lock);
	if (lost)
		return spyre_error(SPYRE_ERROR_CANCELLED,
				   "spyre_stream_end_capture: the capture of stream %d was lost: the "
				   "context was reset meanwhile; capture again", stream->id);
	return spyre_error(SPYRE_ERROR_CAPTURE,
			   "spyre_stream_end_capture: stream %d is not captured", stream->id);
}

/* Ends the capture of @stream and returns its graph, which has no segments yet. */
static spyre_status take_capture(struct spyre_stream *stream, struct spyre_graph **out)
{
	struct spyre_graph *graph = capture_of(stream);
	spyre_status status = SPYRE_SUCCESS;

	if (!graph)
		return not_captured(stream);
	if (graph->origin != stream)
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "spyre_stream_end_capture: stream %d is part of a capture that began "
				     "on another stream; end it there", stream->id);
	else if (!detach(graph, false))
		status = not_captured(stream);
	else
		*out = graph;
	spyre_graph_unref(graph);
	return status;
}

spyre_status spyre_stream_end_capture(spyre_stream *stream, spyre_graph **out)
{
	spyre_status status = spyre_stream_check(stream);
	struct spyre_graph *graph = NULL;

	if (status)
		return status;
	if (!out)
		return spyre_null_argument("spyre_stream_end_capture", "graph");
	*out = NULL;
	status = take_capture(stream, &graph);
	if (!graph)
		return status;
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, 0);
	status = spyre_stream_error(stream);
	pthread_mutex_unlock(&stream->lock);
	if (!status)
		status = graph_finish(graph);
	if (status) {
		spyre_graph_unref(graph);
		return status;
	}
	pthread_mutex_lock(&graph->context->streams_lock);
	TAILQ_INSERT_TAIL(&graph->context->graphs, graph, link);
	pthread_mutex_unlock(&graph->context->streams_lock);
	spyre_log(SPYRE_LOG_INFO, "stream %d: graph of %u operations in %u submissions", stream->id,
		  graph->num_steps, graph->num_segments);
	*out = graph;
	return SPYRE_SUCCESS;
}

spyre_status spyre_stream_get_capture(spyre_stream *stream, uint64_t *capture)
{
	spyre_status status = spyre_stream_check(stream);

	if (status)
		return status;
	if (!capture)
		return spyre_null_argument("spyre_stream_get_capture", "capture");
	*capture = 0;
	if (!stream->capture)
		return SPYRE_SUCCESS;
	pthread_mutex_lock(&stream->lock);
	if (stream->capture)
		*capture = stream->capture->number;
	pthread_mutex_unlock(&stream->lock);
	return SPYRE_SUCCESS;
}

void spyre_capture_abort(struct spyre_stream *stream)
{
	struct spyre_graph *graph = capture_of(stream);

	if (!graph)
		return;
	if (detach(graph, true))
		spyre_graph_unref(graph);
	spyre_graph_unref(graph);
}

spyre_status spyre_capture_join(struct spyre_stream *stream, struct spyre_mark *mark)
{
	struct spyre_graph *graph = capture_of(mark->stream);
	spyre_status status;

	if (!graph || graph->number != mark->capture) {
		if (graph)
			spyre_graph_unref(graph);
		return spyre_error(SPYRE_ERROR_CAPTURE,
				   "stream %d cannot wait for the event: it was recorded in a capture of "
				   "stream %d that has ended; record it after spyre_graph_launch()",
				   stream->id, mark->stream->id);
	}
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, 0);
	status = spyre_stream_error(stream);
	if (!status && !stream->capture)
		status = attach(graph, stream);
	else if (!status && stream->capture != graph)
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "stream %d is captured and cannot wait for the event, which is part "
				     "of another capture, of stream %d", stream->id, mark->stream->id);
	pthread_mutex_unlock(&stream->lock);
	spyre_graph_unref(graph);
	return status;
}

static spyre_status append(struct spyre_graph *graph, struct spyre_stream *stream,
			   struct graph_step *step)
{
	spyre_status status = SPYRE_SUCCESS;

	pthread_mutex_lock(&graph->capture_lock);
	if (graph->ended)
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "stream %d: the capture is being ended; this %s is not part of the "
				     "graph and has not run", stream->id, step->what);
	else if (!spyre_array_reserve(&graph->steps, &graph->max_steps, graph->num_steps + 1,
				      sizeof(*graph->steps)))
		status = no_memory(stream);
	else
		graph->steps[graph->num_steps++] = step;
	pthread_mutex_unlock(&graph->capture_lock);
	return status;
}

static void need_arena(struct spyre_graph *graph, uint64_t bytes)
{
	pthread_mutex_lock(&graph->capture_lock);
	if (graph->arena_bytes < bytes)
		graph->arena_bytes = bytes;
	pthread_mutex_unlock(&graph->capture_lock);
}

/*
 * Operations use scratch memory of their stream and intermediates of their
 * kernel. A graph has memory of its own instead, which all its steps share,
 * because they run one after the other.
 */
static void detach_memory(struct spyre_graph *graph, struct spyre_stream *stream,
			  struct graph_step *step, uint64_t pool)
{
	uint64_t scratch = atomic_load(&stream->scratch), *fields[2];
	uint64_t pool_bytes = step->kernel ? step->kernel->bundle.pool_bytes : 0;

	for (uint32_t i = 0; i < step->num_commands; i++) {
		struct spyre_command *command = &step->commands[i];
		uint64_t *args = (uint64_t *)(uintptr_t)command->exec.args;
		uint32_t n = 0;

		if (command->type == SPYRE_COMMAND_EXEC) {
			for (uint32_t k = 0; k < command->exec.num_args; k++)
				if (args[k] - pool < pool_bytes)
					args[k] += SPYRE_POOL_OF_GRAPH - pool;
		} else if (command->type == SPYRE_COMMAND_DMA) {
			fields[n++] = &command->dma.device;
		} else if (command->type == SPYRE_COMMAND_COPY) {
			fields[n++] = &command->copy.dst;
			fields[n++] = &command->copy.src;
		}
		while (n--)
			if (scratch && *fields[n] == scratch) {
				*fields[n] = SPYRE_POOL_OF_GRAPH;
				need_arena(graph, SPYRE_STICK);
			}
	}
	if (pool_bytes)
		need_arena(graph, pool_bytes);
}

/* True if the kernel may refuse to pin a copy's memory; such a step is submitted alone. */
static bool is_pageable(struct spyre_context *context, const struct spyre_work *work)
{
	for (uint32_t i = 0; i < work->num_commands; i++) {
		const struct spyre_command *command = &work->commands[i];

		if (command->type == SPYRE_COMMAND_DMA && !work->staging &&
		    !spyre_host_is_pinned(context, command->dma.host, command->dma.host_bytes))
			return true;
	}
	return false;
}

spyre_status spyre_capture_work(struct spyre_stream *stream, const struct spyre_work *work)
{
	struct spyre_graph *graph = stream->capture;
	struct graph_step *step;
	spyre_status status;

	if (work->mark) {
		work->mark->capture = graph->number;
		return SPYRE_SUCCESS;
	}
	/* A graph would have to keep the other context and its memory. */
	if (work->commands[0].type == SPYRE_COMMAND_PEER)
		return spyre_error(SPYRE_ERROR_CAPTURE,
				   "stream %d is captured, and a graph cannot hold a copy between contexts; "
				   "queue it before or after spyre_graph_launch()", stream->id);
	step = calloc(1, sizeof(*step) + spyre_commands_bytes(work->commands, work->num_commands));
	if (!step)
		return no_memory(stream);
	step->what = work->what;
	step->kernel = work->kernel;
	step->variant = work->variant;
	step->kind = spyre_activity_kind_of(work);
	step->staging = work->staging;
	step->staging_bytes = work->staging_bytes;
	step->alone = is_pageable(stream->context, work);
	step->num_commands = work->num_commands;
	spyre_commands_copy(step->commands, work->commands, work->num_commands);
	detach_memory(graph, stream, step, work->pool);
	status = append(graph, stream, step);
	if (status) {
		free(step);
		return status;
	}
	if (step->kernel) {
		spyre_kernel_ref(step->kernel);
		kernel_variant_ref(step->kernel, step->variant);
	}
	return SPYRE_SUCCESS;
}

spyre_status spyre_capture_host_fn(struct spyre_stream *stream, spyre_host_fn fn, void *data)
{
	struct graph_step *step = calloc(1, sizeof(*step));
	spyre_status status;

	if (!step)
		return no_memory(stream);
	step->what = "host function";
	step->fn = fn;
	step->data = data;
	status = append(stream->capture, stream, step);
	if (status)
		free(step);
	return status;
}
