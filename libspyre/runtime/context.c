// SPDX-License-Identifier: MIT
/* Contexts: opening a card, and releasing all resources when it is closed. */
#include <stdlib.h>
#include <unistd.h>

#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/runtime/peer.h"
#include "libspyre/runtime/stream.h"
#include "libspyre/runtime/trace.h"
#include "libspyre/telemetry/metrics.h"

static _Atomic uint32_t fork_generation = 1;
static _Atomic uint64_t contexts;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	atomic_fetch_add(&fork_generation, 1);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

uint32_t spyre_fork_generation(void)
{
	return atomic_load_explicit(&fork_generation, memory_order_relaxed);
}

spyre_status spyre_context_error(const spyre_context *context)
{
	if (!context)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the context is NULL");
	return spyre_error(SPYRE_ERROR_FORKED,
			   "card %d was opened before fork(); process %d is a child and cannot use it: "
			   "create a context here, or start workers with exec (\"spawn\")",
			   context->index, getpid());
}

static struct spyre_context *context_new(int index, const struct spyre_backend_ops *ops)
{
	struct spyre_context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	atomic_init(&context->refs, 1);
	context->ops = ops;
	context->index = index;
	context->fork_generation = spyre_fork_generation();
	context->number = atomic_fetch_add(&contexts, 1) + 1;
	context->next_own = SPYRE_STREAM_HIGH_LAST + 1;
	pthread_mutex_init(&context->streams_lock, NULL);
	pthread_mutex_init(&context->fault_lock, NULL);
	pthread_mutex_init(&context->staging.lock, NULL);
	TAILQ_INIT(&context->streams);
	TAILQ_INIT(&context->events);
	TAILQ_INIT(&context->kernels);
	TAILQ_INIT(&context->graphs);
	return context;
}

void spyre_context_unref(struct spyre_context *context)
{
	if (atomic_fetch_sub(&context->refs, 1) != 1)
		return;
	if (context->measured)
		spyre_metrics_release(&context->card->properties);
	if (context->card)
		context->ops->close(context->card);

	pthread_mutex_destroy(&context->fault_lock);
	pthread_mutex_destroy(&context->streams_lock);
	free(context);
}

spyre_status spyre_context_create(int index, uint32_t flags, spyre_context **out)
{
	const struct spyre_backend_ops *ops;
	struct spyre_context *context;
	spyre_status status;
	int physical;

	if (!out)
		return spyre_null_argument("spyre_context_create", "context");
	*out = NULL;
	if (flags)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_context_create: flags must be 0, got 0x%x", flags);
	pthread_once(&fork_once, watch_forks);
	spyre_trace_start();
	status = spyre_device_resolve(index, &ops, &physical);
	if (status)
		return status;
	context = context_new(index, ops);
	if (!context)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a context of card %d", index);
	status = ops->open(physical, &context->card);
	if (!status)
		status = spyre_memory_init(context);
	if (status)
		goto err_unref;
	spyre_host_memory_init(context);
	context->card->properties.index = index;
	context->card->properties.physical_index = physical;
	spyre_log(SPYRE_LOG_INFO, "card %d (%s) open, %u cores, unit %s", index,
		  context->card->properties.bus_id, context->card->properties.num_cores,
		  context->card->properties.unit);
	spyre_trace_context(context);
	spyre_metrics_hold(&context->card->properties);
	context->measured = true;
	*out = context;
	return SPYRE_SUCCESS;

err_unref:
	spyre_context_unref(context);
	return status;
}

struct spyre_stream **spyre_context_streams(struct spyre_context *context, uint32_t *count)
{
	struct spyre_stream **streams;
	struct spyre_stream *stream;
	uint32_t n = 0;

	pthread_mutex_lock(&context->streams_lock);
	TAILQ_FOREACH(stream, &context->streams, link)
		n++;
	streams = malloc((n ? n : 1) * sizeof(*streams));
	*count = 0;
	TAILQ_FOREACH(stream, &context->streams, link)
		if (streams)
			streams[(*count)++] = spyre_stream_ref(stream);
	pthread_mutex_unlock(&context->streams_lock);
	return streams;
}

spyre_status spyre_context_synchronize(spyre_context *context)
{
	spyre_status status = spyre_context_check(context), one;
	struct spyre_stream **streams;
	uint32_t n, failed = 0;
	SPYRE_TRACE_CALL("spyre_context_synchronize");

	if (status)
		return status;
	streams = spyre_context_streams(context, &n);
	if (!streams)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "spyre_context_synchronize: no memory for a list of the streams");
	for (uint32_t i = 0; i < n; i++) {
		one = spyre_stream_synchronize(streams[i]);
		/* A real failure replaces a cancellation, which only reports another one. */
		if (one && (!status || (status == SPYRE_ERROR_CANCELLED &&
					one != SPYRE_ERROR_CANCELLED))) {
			status = one;
			failed = i;
		}
	}
	/* A later stream may have replaced the error's text; asking the failed one restores it. */
	if (status && status != SPYRE_ERROR_BUSY)
		status = spyre_stream_synchronize(streams[failed]);
	for (uint32_t i = 0; i < n; i++)
		spyre_stream_unref(streams[i]);
	free(streams);
	spyre_memory_reclaim(context);
	spyre_host_memory_reclaim(context);
	return status;
}

int spyre_context_calling_stream(struct spyre_context *context)
{
	struct spyre_stream *stream;
	int id = -1;

	pthread_mutex_lock(&context->streams_lock);
	TAILQ_FOREACH(stream, &context->streams, link)
		if (spyre_in_stream_thread(stream))
			id = stream->id;
	pthread_mutex_unlock(&context->streams_lock);
	return id;
}

/*
 * Waits until no stream has work. Host functions may queue more, also on other
 * or new streams, so this repeats until no stream had work.
 */
static void streams_settle(struct spyre_context *context)
{
	bool again = true;

	while (again) {
		uint32_t n;
		struct spyre_stream **streams = spyre_context_streams(context, &n);

		again = false;
		for (uint32_t i = 0; i < n; i++) {
			uint64_t tail = atomic_load(&streams[i]->tail);

			/* Streams of a lost card make no progress: an error ends the loop. */
			if (!spyre_stream_reached(streams[i], tail))
				again |= !spyre_stream_wait_seq(streams[i], tail, INT64_MAX);
			spyre_stream_unref(streams[i]);
		}
		free(streams);
	}
}

spyre_status spyre_context_destroy(spyre_context *context)
{
	struct spyre_stream *stream;
	struct spyre_event *event;
	struct spyre_kernel *kernel;
	struct spyre_graph *graph;
	int caller;

	if (!context)
		return SPYRE_SUCCESS;
	TRY(spyre_context_check(context));
	caller = spyre_context_calling_stream(context);
	if (caller >= 0)
		return spyre_error(SPYRE_ERROR_BUSY,
				   "spyre_context_destroy: called in a host function of stream %d "
				   "of this context; call it from another thread", caller);
	TRY(spyre_peer_check_caller(context));
	TAILQ_FOREACH(stream, &context->streams, link)
		spyre_capture_abort(stream);
	streams_settle(context);
	TAILQ_FOREACH(stream, &context->streams, link)
		spyre_stream_drain(stream);
	spyre_peer_settle(context);
	spyre_trace_context_gone(context);
	while ((event = spyre_event_pop(context)))
		spyre_event_free(event);
	while ((graph = spyre_graph_pop(context)))
		spyre_graph_unref(graph);
	while ((kernel = spyre_kernel_pop(context)))
		spyre_kernel_unref(kernel);
	while ((stream = TAILQ_FIRST(&context->streams))) {
		TAILQ_REMOVE(&context->streams, stream, link);
		spyre_stream_close(stream);
	}
	spyre_memory_fini(context);
	spyre_host_memory_fini(context);
	spyre_staging_drop(context);
	spyre_context_unref(context);
	return SPYRE_SUCCESS;
}

spyre_status spyre_context_get_properties(spyre_context *context, spyre_device_properties *out)
{
	spyre_status status = spyre_context_check(context);

	if (status)
		return status;
	status = spyre_struct_check("spyre_context_get_properties", "device_properties", out);
	if (status)
		return status;
	spyre_struct_write(out, out->struct_size, &context->card->properties,
			   sizeof(context->card->properties));
	return SPYRE_SUCCESS;
}

spyre_status spyre_context_get_submit_path(spyre_context *context, spyre_submit_path *path,
					   const char **reason)
{
	spyre_status status = spyre_context_check(context);

	if (status)
		return status;
	if (!path)
		return spyre_null_argument("spyre_context_get_submit_path", "path");
	*path = context->card->submit_path;
	if (reason)
		*reason = context->card->submit_reason;
	return SPYRE_SUCCESS;
}
