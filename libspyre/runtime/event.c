// SPDX-License-Identifier: MIT
/* Events: points in streams. */
#include <stdlib.h>

#include "libspyre/backend/futex.h"
#include "libspyre/base/error.h"
#include "libspyre/runtime/stream.h"
#include "libspyre/runtime/trace.h"

struct spyre_event {
	TAILQ_ENTRY(spyre_event) link;
	struct spyre_context *context;
	bool timing;
	/* Protects @mark, which each recording replaces. */
	pthread_mutex_t lock;
	struct spyre_mark *mark;
};

void spyre_mark_unref(struct spyre_mark *mark)
{
	if (!mark || atomic_fetch_sub(&mark->refs, 1) != 1)
		return;
	spyre_stream_unref(mark->stream);
	free(mark);
}

static spyre_status event_check(const struct spyre_event *event)
{
	if (!event)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the event is NULL");
	return spyre_context_check(event->context);
}

static struct spyre_mark *event_mark(struct spyre_event *event)
{
	struct spyre_mark *mark;

	pthread_mutex_lock(&event->lock);
	mark = event->mark;
	if (mark)
		atomic_fetch_add(&mark->refs, 1);
	pthread_mutex_unlock(&event->lock);
	return mark;
}

spyre_status spyre_event_create(spyre_context *context, uint32_t flags, spyre_event **out)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_event *event;

	if (status)
		return status;
	if (!out)
		return spyre_null_argument("spyre_event_create", "event");
	if (flags & ~SPYRE_EVENT_NO_TIMING)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_event_create: unknown flags 0x%x",
				   flags & ~SPYRE_EVENT_NO_TIMING);
	event = calloc(1, sizeof(*event));
	if (!event)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for an event");
	event->context = context;
	event->timing = !(flags & SPYRE_EVENT_NO_TIMING);
	pthread_mutex_init(&event->lock, NULL);
	pthread_mutex_lock(&context->streams_lock);
	TAILQ_INSERT_TAIL(&context->events, event, link);
	pthread_mutex_unlock(&context->streams_lock);
	*out = event;
	return SPYRE_SUCCESS;
}

struct spyre_event *spyre_event_pop(struct spyre_context *context)
{
	struct spyre_event *event;

	pthread_mutex_lock(&context->streams_lock);
	event = TAILQ_FIRST(&context->events);
	if (event)
		TAILQ_REMOVE(&context->events, event, link);
	pthread_mutex_unlock(&context->streams_lock);
	return event;
}

/* The caller has removed the event from the context's list. */
void spyre_event_free(struct spyre_event *event)
{
	spyre_mark_unref(event->mark);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

spyre_status spyre_event_destroy(spyre_event *event)
{
	if (!event)
		return SPYRE_SUCCESS;
	TRY(event_check(event));
	pthread_mutex_lock(&event->context->streams_lock);
	TAILQ_REMOVE(&event->context->events, event, link);
	pthread_mutex_unlock(&event->context->streams_lock);
	spyre_event_free(event);
	return SPYRE_SUCCESS;
}

/*
 * Without timing a mark needs no control block: it is attached to the last
 * record. False if the stream's state requires a control block after all.
 */
static bool mark_without_command(struct spyre_stream *stream, struct spyre_mark *mark)
{
	bool attached;

	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, 0);
	attached = !stream->error && !stream->items && !stream->num_waits && !stream->capture;
	if (attached && stream->num_records) {
		attached = spyre_stream_push_mark(stream, mark);
	} else if (attached) {
		mark->seq = atomic_load(&stream->tail);
		atomic_store(&mark->done, true);
	}
	pthread_mutex_unlock(&stream->lock);
	return attached;
}

static spyre_status mark_by_command(struct spyre_stream *stream, struct spyre_mark *mark)
{
	struct spyre_command command = { .type = SPYRE_COMMAND_TIMESTAMP };
	struct spyre_work work = {
		.what = "event", .commands = &command, .num_commands = 1, .mark = mark,
	};

	return spyre_stream_enqueue(stream, &work, NULL);
}

spyre_status spyre_event_record(spyre_event *event, spyre_stream *stream)
{
	spyre_status status = event_check(event);
	struct spyre_mark *mark, *old;

	if (!status)
		status = spyre_stream_check(stream);
	if (status)
		return status;
	if (stream->context != event->context)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_event_record: event and stream belong to two contexts");
	mark = calloc(1, sizeof(*mark));
	if (!mark)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to record an event");
	atomic_init(&mark->refs, 1);
	mark->stream = spyre_stream_ref(stream);
	mark->timing = event->timing;
	if (event->timing || !mark_without_command(stream, mark))
		status = mark_by_command(stream, mark);
	if (status) {
		spyre_mark_unref(mark);
		return status;
	}
	pthread_mutex_lock(&event->lock);
	old = event->mark;
	event->mark = mark;
	pthread_mutex_unlock(&event->lock);
	spyre_mark_unref(old);
	return SPYRE_SUCCESS;
}

/* Updates @mark without waiting; true if its point is reached. */
static bool mark_poll(struct spyre_mark *mark)
{
	struct spyre_stream *stream = mark->stream;

	if (atomic_load_explicit(&mark->done, memory_order_acquire))
		return true;
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, spyre_stream_reached(stream, mark->seq) ? mark->seq : 0);
	pthread_mutex_unlock(&stream->lock);
	return atomic_load_explicit(&mark->done, memory_order_acquire);
}

/* Refuses a mark that was captured: it is a point in a graph, which is never reached. */
static spyre_status mark_check(const struct spyre_mark *mark, const char *function)
{
	if (!mark || !mark->capture)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_CAPTURE,
			   "%s: the event was recorded while stream %d was captured and is a point in "
			   "that graph, which no launch of it reaches; record it after "
			   "spyre_graph_launch()", function, mark->stream->id);
}

static spyre_status mark_result(struct spyre_mark *mark)
{
	spyre_status status = SPYRE_SUCCESS;

	if (!mark->failed)
		return SPYRE_SUCCESS;
	pthread_mutex_lock(&mark->stream->lock);
	status = spyre_stream_error(mark->stream);
	pthread_mutex_unlock(&mark->stream->lock);
	if (!status)
		status = spyre_error(SPYRE_ERROR_CANCELLED,
				     "the event's work was lost: stream %d failed, and the context was "
				     "reset since; record the event again", mark->stream->id);
	return status;
}

spyre_status spyre_event_query(spyre_event *event)
{
	spyre_status status = event_check(event);
	struct spyre_mark *mark;

	if (status)
		return status;
	mark = event_mark(event);
	status = mark_check(mark, "spyre_event_query");
	if (mark && !status)
		status = mark_poll(mark) ? mark_result(mark) : SPYRE_NOT_READY;
	spyre_mark_unref(mark);
	return status;
}

/* Waits until @deadline_ns of CLOCK_MONOTONIC. */
static spyre_status event_wait(spyre_event *event, int64_t deadline_ns, const char *call)
{
	spyre_status status = event_check(event);
	struct spyre_mark *mark;

	if (status)
		return status;
	mark = event_mark(event);
	status = mark_check(mark, call);
	if (mark && !status && !mark_poll(mark)) {
		status = spyre_stream_wait_seq(mark->stream, mark->seq, deadline_ns);
		if (!status)
			mark_poll(mark);
	}
	if (mark && !status)
		status = mark_result(mark);
	spyre_mark_unref(mark);
	return status;
}

spyre_status spyre_event_synchronize(spyre_event *event)
{
	SPYRE_TRACE_CALL("spyre_event_synchronize");

	return event_wait(event, INT64_MAX, "spyre_event_synchronize");
}

spyre_status spyre_event_synchronize_for(spyre_event *event, uint64_t timeout_ns)
{
	const uint64_t now = spyre_now_ns();
	const bool ends = timeout_ns < (uint64_t)INT64_MAX - now;
	SPYRE_TRACE_CALL("spyre_event_synchronize_for");

	return event_wait(event, ends ? (int64_t)(now + timeout_ns) : INT64_MAX,
			  "spyre_event_synchronize_for");
}

spyre_status spyre_stream_wait_for(struct spyre_stream *stream, struct spyre_stream *other,
				   uint64_t seq)
{
	spyre_status status;

	/* A capture must not depend on the other stream's progress: it always records the wait. */
	if (other == stream || (!stream->capture && spyre_stream_reached(other, seq)))
		return SPYRE_SUCCESS;
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, 0);
	status = spyre_stream_error(stream);
	if (status)
		;
	else if (stream->capture)
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "stream %d is captured and cannot wait for work of stream %d "
				     "outside the graph; wait before the capture begins, or capture "
				     "that work too", stream->id, other->id);
	else if (stream->items || atomic_load(&other->submitted) < seq)
		status = spyre_stream_defer_wait(stream, other, seq);
	else
		status = spyre_stream_add_wait(stream, other, seq);
	pthread_mutex_unlock(&stream->lock);
	return status;
}

spyre_status spyre_stream_wait_event(spyre_stream *stream, spyre_event *event)
{
	spyre_status status = event_check(event);
	struct spyre_mark *mark;

	if (!status)
		status = spyre_stream_check(stream);
	if (status)
		return status;
	if (stream->context->ops != event->context->ops)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "stream %d cannot wait for the event: one belongs to an embedded card "
				   "and the other one to a card of the kernel; use "
				   "spyre_event_synchronize()", stream->id);
	mark = event_mark(event);
	if (mark && mark->capture && stream->context != event->context)
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "stream %d of card %d cannot join the capture of stream %d, of card "
				     "%d: a graph has one context; record the event outside the capture",
				     stream->id, stream->context->index, mark->stream->id,
				     event->context->index);
	else if (mark && mark->capture)
		status = spyre_capture_join(stream, mark);
	else if (mark)
		status = spyre_stream_wait_for(stream, mark->stream, mark->seq);
	spyre_mark_unref(mark);
	return status;
}

static spyre_status check_elapsed(const char *function, struct spyre_event *start,
				  struct spyre_event *end, struct spyre_mark *from,
				  struct spyre_mark *to)
{
	if (start->context != end->context)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: the events belong to two contexts", function);
	if (!start->timing || !end->timing)
		return spyre_error(SPYRE_ERROR_NO_TIMING,
				   "%s: the %s event was created with SPYRE_EVENT_NO_TIMING; create it "
				   "with flags 0", function,
				   start->timing ? "end" : "start");
	if (!from || !to)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: the %s event was never recorded; call spyre_event_record() first",
				   function,
				   from ? "end" : "start");
	TRY(mark_check(from, function));
	TRY(mark_check(to, function));
	if (!mark_poll(from) || !mark_poll(to))
		return SPYRE_NOT_READY;
	return mark_result(from) ?: mark_result(to);
}

/* The two marks of an interval, with references that end_interval() drops. */
struct interval {
	struct spyre_mark *from, *to;
};

/* @result is the caller's pointer for the interval's length, called @name. */
static spyre_status begin_interval(const char *function, spyre_event *start, spyre_event *end,
				   const void *result, const char *name, struct interval *interval)
{
	TRY(event_check(start));
	TRY(event_check(end));
	if (!result)
		return spyre_null_argument(function, name);
	interval->from = event_mark(start);
	interval->to = event_mark(end);
	return check_elapsed(function, start, end, interval->from, interval->to);
}

static spyre_status end_interval(struct interval *interval, spyre_status status)
{
	spyre_mark_unref(interval->from);
	spyre_mark_unref(interval->to);
	return status;
}

spyre_status spyre_event_elapsed(spyre_event *start, spyre_event *end, double *milliseconds)
{
	struct interval i = {0};
	spyre_status status = begin_interval("spyre_event_elapsed", start, end, milliseconds,
					     "milliseconds", &i);

	if (!status)
		*milliseconds = ((double)i.to->time_ns - (double)i.from->time_ns) / 1e6;
	return end_interval(&i, status);
}

spyre_status spyre_event_elapsed_cycles(spyre_event *start, spyre_event *end, uint64_t *cycles)
{
	struct interval i = {0};
	spyre_status status = begin_interval("spyre_event_elapsed_cycles", start, end, cycles,
					     "cycles", &i);

	if (!status && i.from->stream != i.to->stream)
		status = spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				     "spyre_event_elapsed_cycles: the events were recorded on streams %d "
				     "and %d; cycles count per stream", i.from->stream->id,
				     i.to->stream->id);
	else if (!status && i.to->cycles < i.from->cycles)
		status = spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				     "spyre_event_elapsed_cycles: end was recorded before start");
	else if (!status)
		*cycles = i.to->cycles - i.from->cycles;
	return end_interval(&i, status);
}
