// SPDX-License-Identifier: MIT
/* Streams: the pool, streams of the caller, waiting, statistics. */
#include <stdlib.h>

#include "libspyre/base/error.h"
#include "libspyre/runtime/stream.h"
#include "libspyre/runtime/trace.h"

struct spyre_stream *spyre_stream_ref(struct spyre_stream *stream)
{
	atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
	return stream;
}

/* Events and memory may refer to a destroyed stream, so its queue lives as long as they do. */
void spyre_stream_unref(struct spyre_stream *stream)
{
	if (atomic_fetch_sub(&stream->refs, 1) != 1)
		return;
	stream->context->ops->queue_destroy(stream->queue);
	spyre_context_unref(stream->context);
	pthread_cond_destroy(&stream->progress);
	pthread_mutex_destroy(&stream->lock);
	free(stream->records);
	free(stream->error_text);
	free(stream);
}

spyre_status spyre_stream_check(const struct spyre_stream *stream)
{
	if (!stream)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the stream is NULL");
	return spyre_context_check(stream->context);
}

/* Creates a stream; the list holds its only reference. Caller holds streams_lock. */
static spyre_status stream_new(struct spyre_context *context, int id, int priority,
			       struct spyre_stream **out)
{
	struct spyre_stream *stream = calloc(1, sizeof(*stream));
	pthread_condattr_t monotonic;
	spyre_status status;

	if (!stream)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for stream %d", id);
	status = context->ops->queue_create(context->card, priority, &stream->queue);
	if (status) {
		free(stream);
		return spyre_error_prefix(status, "stream %d", id);
	}
	atomic_fetch_add(&context->refs, 1);
	stream->context = context;
	stream->id = id;
	stream->priority = priority;
	atomic_init(&stream->refs, 1);
	pthread_mutex_init(&stream->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&stream->progress, &monotonic);
	pthread_condattr_destroy(&monotonic);
	stream->items_tail = &stream->items;
	TAILQ_INSERT_TAIL(&context->streams, stream, link);
	spyre_trace_stream(stream);
	*out = stream;
	return SPYRE_SUCCESS;
}

spyre_status spyre_stream_get(spyre_context *context, int id, spyre_stream **stream)
{
	spyre_status status = spyre_context_check(context);

	if (status)
		return status;
	if (!stream)
		return spyre_null_argument("spyre_stream_get", "stream");
	if (id < 0 || id > SPYRE_STREAM_HIGH_LAST)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_stream_get: stream is %d, expected 0 (default), 1 to 32 (low) "
				   "or 33 to 64 (high)", id);
	pthread_mutex_lock(&context->streams_lock);
	if (!context->pool[id])
		status = stream_new(context, id, id >= SPYRE_STREAM_HIGH_FIRST ? -1 : 0,
				    &context->pool[id]);
	*stream = context->pool[id];
	pthread_mutex_unlock(&context->streams_lock);
	return status;
}

static spyre_status check_priority(const char *function, int priority)
{
	if (priority == 0 || priority == -1)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
			   "%s: priority is %d, expected 0 (low) or -1 (high)", function, priority);
}

spyre_status spyre_stream_from_pool(spyre_context *context, int priority, spyre_stream **stream)
{
	spyre_status status = spyre_context_check(context);
	int id;

	if (!status)
		status = check_priority("spyre_stream_from_pool", priority);
	if (status)
		return status;
	pthread_mutex_lock(&context->streams_lock);
	if (priority < 0)
		id = SPYRE_STREAM_HIGH_FIRST + context->next_high++ % 32;
	else
		id = SPYRE_STREAM_LOW_FIRST + context->next_low++ % 32;
	pthread_mutex_unlock(&context->streams_lock);
	return spyre_stream_get(context, id, stream);
}

spyre_status spyre_stream_create(spyre_context *context, int priority, spyre_stream **stream)
{
	spyre_status status = spyre_context_check(context);

	if (!status)
		status = check_priority("spyre_stream_create", priority);
	if (status)
		return status;
	if (!stream)
		return spyre_null_argument("spyre_stream_create", "stream");
	pthread_mutex_lock(&context->streams_lock);
	status = stream_new(context, context->next_own, priority, stream);
	if (!status)
		context->next_own++;
	pthread_mutex_unlock(&context->streams_lock);
	return status;
}

spyre_status spyre_stream_drain(struct spyre_stream *stream)
{
	spyre_status status = spyre_stream_wait_seq(stream, atomic_load(&stream->tail), INT64_MAX);

	if (status == SPYRE_ERROR_BUSY)
		return status;
	spyre_stream_stop_thread(stream);
	pthread_mutex_lock(&stream->lock);
	/* A lost card writes no more results: the remaining work is cancelled. */
	spyre_stream_retire(stream, UINT64_MAX);
	while (stream->num_waits)
		spyre_stream_unref(stream->waits[--stream->num_waits].stream);
	pthread_mutex_unlock(&stream->lock);
	return SPYRE_SUCCESS;
}

void spyre_stream_close(struct spyre_stream *stream)
{
	uint64_t scratch = atomic_exchange(&stream->scratch, 0);

	if (scratch)
		spyre_mem_free(stream->context, scratch);
	spyre_stream_unref(stream);
}

spyre_status spyre_stream_destroy(spyre_stream *stream)
{
	struct spyre_context *context;

	if (!stream)
		return SPYRE_SUCCESS;
	TRY(spyre_stream_check(stream));
	if (stream->id <= SPYRE_STREAM_HIGH_LAST)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_stream_destroy: stream %d belongs to the context's pool, which "
				   "ends with the context",
				   stream->id);
	TRY(spyre_capture_refuse(stream, "spyre_stream_destroy"));
	TRY(spyre_stream_drain(stream));
	context = stream->context;
	pthread_mutex_lock(&context->streams_lock);
	TAILQ_REMOVE(&context->streams, stream, link);
	pthread_mutex_unlock(&context->streams_lock);
	spyre_stream_close(stream);
	return SPYRE_SUCCESS;
}

spyre_status spyre_stream_priority_range(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -1;
	return SPYRE_SUCCESS;
}

int spyre_stream_id(const spyre_stream *stream)
{
	return stream ? stream->id : -1;
}

int spyre_stream_priority(const spyre_stream *stream)
{
	return stream ? stream->priority : 0;
}

spyre_context *spyre_stream_context(const spyre_stream *stream)
{
	return stream ? stream->context : NULL;
}

/* Number of the last operation; pending waits are submitted as one first. */
static spyre_status stream_last(struct spyre_stream *stream, uint64_t *seq)
{
	spyre_status status = SPYRE_SUCCESS;

	pthread_mutex_lock(&stream->lock);
	if (stream->num_waits && !stream->items)
		status = spyre_stream_flush_waits(stream);
	*seq = atomic_load(&stream->tail);
	pthread_mutex_unlock(&stream->lock);
	return status;
}

spyre_status spyre_stream_synchronize(spyre_stream *stream)
{
	spyre_status status = spyre_stream_check(stream);
	uint64_t seq;
	SPYRE_TRACE_CALL("spyre_stream_synchronize");

	if (!status)
		status = spyre_capture_refuse(stream, "spyre_stream_synchronize");
	if (!status)
		status = stream_last(stream, &seq);
	if (!status)
		status = spyre_stream_finish(stream, seq);
	return status;
}

spyre_status spyre_stream_query(spyre_stream *stream)
{
	spyre_status status = spyre_stream_check(stream);
	uint64_t seq;
	bool idle;

	if (!status)
		status = spyre_capture_refuse(stream, "spyre_stream_query");
	if (!status)
		status = stream_last(stream, &seq);
	if (status)
		return status;
	idle = spyre_stream_reached(stream, seq);
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, idle ? seq : 0);
	status = spyre_stream_error(stream);
	pthread_mutex_unlock(&stream->lock);
	if (status)
		return status;
	return idle ? SPYRE_SUCCESS : SPYRE_NOT_READY;
}

spyre_status spyre_stream_host_fn(spyre_stream *stream, spyre_host_fn fn, void *data)
{
	spyre_status status = spyre_stream_check(stream);

	if (status)
		return status;
	if (!fn)
		return spyre_null_argument("spyre_stream_host_fn", "fn");
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, 0);
	status = spyre_stream_error(stream);
	if (!status)
		status = stream->capture ? spyre_capture_host_fn(stream, fn, data) :
					   spyre_stream_defer_host_fn(stream, fn, data, NULL);
	pthread_mutex_unlock(&stream->lock);
	return status;
}

spyre_status spyre_stream_get_stats(spyre_stream *stream, spyre_stream_stats *stats)
{
	spyre_status status = spyre_stream_check(stream);

	if (!status)
		status = spyre_struct_check("spyre_stream_get_stats", "stream_stats", stats);
	if (status)
		return status;
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, 0);
	spyre_struct_write(stats, stats->struct_size, &stream->stats, sizeof(stream->stats));
	pthread_mutex_unlock(&stream->lock);
	return SPYRE_SUCCESS;
}
