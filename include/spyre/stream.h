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
 * are created on first use and owned by the context. The default stream does not
 * synchronise implicitly with other streams (unlike CUDA's legacy default stream).
 *
 * On a card of the kernel module, high priority requires CAP_SYS_NICE. Without it
 * streams of priority -1 are scheduled like those of priority 0, and a warning is
 * logged (SPYRE_LOG).
 */
#define SPYRE_STREAM_DEFAULT 0
#define SPYRE_STREAM_LOW_FIRST 1
#define SPYRE_STREAM_LOW_LAST 32
#define SPYRE_STREAM_HIGH_FIRST 33
#define SPYRE_STREAM_HIGH_LAST 64

/**
 * Returns the stream with this id, 0 to 64. The context owns it. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_stream_get(spyre_context *context, int id, spyre_stream **stream);

/**
 * Returns the next stream of a pool, in rotation. @priority is 0 for the low-priority
 * pool or -1 for the high-priority one. The context owns the stream. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_stream_from_pool(spyre_context *context, int priority,
					      spyre_stream **stream);

/**
 * Creates a stream with an id of 65 or above. @priority is 0 (low) or -1 (high). The
 * caller owns the stream and destroys it with spyre_stream_destroy(). Since 0.1.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
SPYRE_API spyre_status spyre_stream_create(spyre_context *context, int priority,
					   spyre_stream **stream);

/**
 * Waits for the work of a stream that spyre_stream_create() made, then frees it. NULL
 * is allowed and has no effect. Since 0.1.
 * Errors: INVALID_ARGUMENT (a default or pool stream), CAPTURE (the stream is being
 * captured).
 */
SPYRE_API spyre_status spyre_stream_destroy(spyre_stream *stream);

/**
 * Returns the range of priorities: the lowest in @least (0) and the highest in
 * @greatest (-1). Either pointer may be NULL. Always returns SUCCESS. Since 0.1.
 */
SPYRE_API spyre_status spyre_stream_priority_range(int *least, int *greatest);

/** Returns the id of a stream, -1 for NULL. Since 0.1. */
SPYRE_API int spyre_stream_id(const spyre_stream *stream);

/** Returns the priority of a stream, 0 (low) or -1 (high). Since 0.1. */
SPYRE_API int spyre_stream_priority(const spyre_stream *stream);

/** Returns the context that a stream belongs to, NULL for NULL. Since 0.1. */
SPYRE_API spyre_context *spyre_stream_context(const spyre_stream *stream);

/**
 * Waits until all work that is queued on @stream so far has finished. Since 0.1.
 * Errors: the stream's error, CAPTURE (the stream is being captured).
 */
SPYRE_API spyre_status spyre_stream_synchronize(spyre_stream *stream);

/**
 * Returns SUCCESS if @stream is idle and NOT_READY if it has unfinished work. Since
 * 0.1.
 * Errors: the stream's error, CAPTURE (the stream is being captured).
 */
SPYRE_API spyre_status spyre_stream_query(spyre_stream *stream);

/** A function that a stream calls, with the pointer given when it was queued. Since 0.1. */
typedef void (*spyre_host_fn)(void *data);

/**
 * Queues a call of @fn with @data on a thread of the library: it runs after all work
 * queued before it, and work queued after it waits for its return. @fn may call any
 * function of libspyre; those that would wait for this stream fail with BUSY. Since 0.1.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, and the stream's error.
 */
SPYRE_API spyre_status spyre_stream_host_fn(spyre_stream *stream, spyre_host_fn fn, void *data);

/** Totals of a stream's finished work. Since 0.1. */
typedef struct spyre_stream_stats {
	/** in: sizeof(struct spyre_stream_stats). */
	size_t struct_size;
	uint64_t launches;
	uint64_t copies;
	/** Modelled device time in cycles, and traffic in bytes. */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
	/** Host time of the execution in nanoseconds. */
	uint64_t host_ns;
	/** Bytes that peer copies brought from other cards, and took to them. */
	uint64_t rdma_read;
	uint64_t rdma_written;
} spyre_stream_stats;

/**
 * Returns the totals of the finished work of @stream. The caller sets
 * @stats->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_stream_get_stats(spyre_stream *stream, spyre_stream_stats *stats);

/** The event records no times, which is cheaper; spyre_event_elapsed() rejects it. */
#define SPYRE_EVENT_NO_TIMING 1u

/**
 * Creates an event, not yet recorded. @flags is 0 or SPYRE_EVENT_NO_TIMING. The caller
 * owns it and destroys it with spyre_event_destroy(). Since 0.1.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
SPYRE_API spyre_status spyre_event_create(spyre_context *context, uint32_t flags,
					  spyre_event **event);

/**
 * Destroys an event, which may still be pending: work that waits for it is not
 * affected. NULL is allowed and has no effect. Always returns SUCCESS. Since 0.1.
 */
SPYRE_API spyre_status spyre_event_destroy(spyre_event *event);

/**
 * Records @event on @stream: it is reached when all work queued on the stream so far
 * has finished. Recording it again moves the event. Since 0.1.
 * Errors: INVALID_ARGUMENT (the stream belongs to another context),
 * OUT_OF_HOST_MEMORY, and the stream's error.
 */
SPYRE_API spyre_status spyre_event_record(spyre_event *event, spyre_stream *stream);

/**
 * Returns SUCCESS if @event has been reached or was never recorded, otherwise
 * NOT_READY. Since 0.1.
 * Errors: the error of the stream it was recorded on, CAPTURE (recorded in a capture).
 */
SPYRE_API spyre_status spyre_event_query(spyre_event *event);

/**
 * Waits until @event is reached; returns immediately if it was never recorded. Since
 * 0.1.
 * Errors: those of spyre_event_query().
 */
SPYRE_API spyre_status spyre_event_synchronize(spyre_event *event);

/**
 * Waits until @event is reached, for at most @timeout_ns nanoseconds. Returns
 * NOT_READY after that time; the work continues. This suits callers that also handle
 * other events, such as signals. Since 0.1.
 * Errors: those of spyre_event_query().
 */
SPYRE_API spyre_status spyre_event_synchronize_for(spyre_event *event, uint64_t timeout_ns);

/**
 * Makes all work that is queued on @stream from now on wait for @event; does not block
 * the caller. The event may belong to another context of this process, and to another
 * card.
 *
 * The wait ends when the work before the event has ended in any way. If that work failed
 * or a reset cancelled it, @stream goes on as well, as in CUDA, unless it shares the
 * failed context; spyre_event_query() reports the failure, and a peer copy from or to a
 * failed context fails. A reset of the context of @stream does not wait for the event.
 * Since 0.1.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (one card is embedded, the other is the
 * kernel's), CAPTURE (the event was recorded outside the capture, or in one of another
 * context), and the stream's error.
 */
SPYRE_API spyre_status spyre_stream_wait_event(spyre_stream *stream, spyre_event *event);

/**
 * Returns the host time between two reached events in milliseconds. Since 0.1.
 * Errors: NOT_READY, NO_TIMING, INVALID_ARGUMENT (never recorded), and those of
 * spyre_event_query().
 */
SPYRE_API spyre_status spyre_event_elapsed(spyre_event *start, spyre_event *end,
					   double *milliseconds);

/**
 * Returns the modelled device cycles of the work between two events that were recorded
 * on the same stream. Since 0.1.
 * Errors: those of spyre_event_elapsed(); INVALID_ARGUMENT (recorded on two streams, or
 * @end before @start).
 */
SPYRE_API spyre_status spyre_event_elapsed_cycles(spyre_event *start, spyre_event *end,
						  uint64_t *cycles);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_STREAM_H */
