/* SPDX-License-Identifier: MIT */
/* Streams (ordered queues of work) and events (points in them). */
#ifndef SPYRE_STREAM_H
#define SPYRE_STREAM_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Stream ids of a context: 0 is the default stream, 1..32 the low-priority
 * pool (priority 0), 33..64 the high-priority pool (priority -1). Pool streams
 * are made on first use, belong to the context and are never destroyed by the
 * caller. The default stream is an ordinary one: nothing waits for it unasked.
 *
 * On a card of the kernel's the high priority takes CAP_SYS_NICE. Without it
 * streams of priority -1 work, but none of them goes before those of priority
 * 0; a warning in the log (SPYRE_LOG) says so.
 */
#define SPYRE_STREAM_DEFAULT 0
#define SPYRE_STREAM_LOW_FIRST 1
#define SPYRE_STREAM_LOW_LAST 32
#define SPYRE_STREAM_HIGH_FIRST 33
#define SPYRE_STREAM_HIGH_LAST 64

/** The stream with this id. Since 0.1. Errors: INVALID_ARGUMENT. */
SPYRE_API spyre_status spyre_stream_get(spyre_context *context, int id, spyre_stream **stream);
/** The next stream of a pool, round robin; @priority 0 (low) or -1 (high). Since 0.1. */
SPYRE_API spyre_status spyre_stream_from_pool(spyre_context *context, int priority,
					      spyre_stream **stream);
/** A stream of the caller's own (id >= 65); destroy it. Since 0.1. */
SPYRE_API spyre_status spyre_stream_create(spyre_context *context, int priority,
					   spyre_stream **stream);
/** Waits for the stream's work, then frees it. Pool streams: INVALID_ARGUMENT. Since 0.1. */
SPYRE_API spyre_status spyre_stream_destroy(spyre_stream *stream);
/** The range of priorities: @least is the lowest (0), @greatest the highest
 * (-1). Since 0.1. */
SPYRE_API spyre_status spyre_stream_priority_range(int *least, int *greatest);

/** A stream's id, priority (0 or -1) and context. Since 0.1. */
SPYRE_API int spyre_stream_id(const spyre_stream *stream);
SPYRE_API int spyre_stream_priority(const spyre_stream *stream);
SPYRE_API spyre_context *spyre_stream_context(const spyre_stream *stream);

/** Waits until everything queued so far is done; returns the stream's error. Since 0.1. */
SPYRE_API spyre_status spyre_stream_synchronize(spyre_stream *stream);
/** SUCCESS if idle, NOT_READY if not, or the stream's error. Since 0.1. */
SPYRE_API spyre_status spyre_stream_query(spyre_stream *stream);

typedef void (*spyre_host_fn)(void *data);
/** Calls @fn on a thread of the library after what is queued so far; what is
 * queued later waits for it. Any libspyre call but one that waits for this
 * stream is allowed inside. Since 0.1. */
SPYRE_API spyre_status spyre_stream_host_fn(spyre_stream *stream, spyre_host_fn fn, void *data);

/**
 * Totals of a stream's finished work. Since 0.1.
 */
typedef struct spyre_stream_stats {
	size_t struct_size;
	uint64_t launches;
	uint64_t copies;
	/** Modelled device time and traffic. */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
	/** Host time spent executing. */
	uint64_t host_ns;
} spyre_stream_stats;
SPYRE_API spyre_status spyre_stream_get_stats(spyre_stream *stream, spyre_stream_stats *stats);

/** Event keeps no times: cheaper, elapsed() refuses it. */
#define SPYRE_EVENT_NO_TIMING 1u

/** An event, not recorded yet. @flags: 0 or SPYRE_EVENT_NO_TIMING. Since 0.1. */
SPYRE_API spyre_status spyre_event_create(spyre_context *context, uint32_t flags,
					  spyre_event **event);
/** Destroys an event; legal while recorded work is pending. NULL is fine. Since 0.1. */
SPYRE_API spyre_status spyre_event_destroy(spyre_event *event);
/** Marks the point after all that @stream holds now; re-recording moves it. Since 0.1. */
SPYRE_API spyre_status spyre_event_record(spyre_event *event, spyre_stream *stream);
/** SUCCESS if reached or never recorded, else NOT_READY. Since 0.1. */
SPYRE_API spyre_status spyre_event_query(spyre_event *event);
/** Waits until the event is reached; at once if it was never recorded. Since 0.1. */
SPYRE_API spyre_status spyre_event_synchronize(spyre_event *event);
/** The same for @timeout_ns nanoseconds at most: NOT_READY if the event is not reached by
 * then, and the work goes on. For callers that have more to attend to, such as signals.
 * Since 0.1. */
SPYRE_API spyre_status spyre_event_synchronize_for(spyre_event *event, uint64_t timeout_ns);
/** Work queued on @stream from now on waits for @event. Same card only. Since 0.1. */
SPYRE_API spyre_status spyre_stream_wait_event(spyre_stream *stream, spyre_event *event);
/** Host milliseconds between two reached events. Since 0.1.
 * Errors: NOT_READY, NO_TIMING, INVALID_ARGUMENT (never recorded). */
SPYRE_API spyre_status spyre_event_elapsed(spyre_event *start, spyre_event *end,
					   double *milliseconds);
/** Modelled device cycles of the stream's work between two events that were
 * recorded on one stream. Since 0.1. */
SPYRE_API spyre_status spyre_event_elapsed_cycles(spyre_event *start, spyre_event *end,
						  uint64_t *cycles);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_STREAM_H */
