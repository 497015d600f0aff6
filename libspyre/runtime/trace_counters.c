// SPDX-License-Identifier: MIT
/* Curves of the trace in host time: operations in a stream, and device memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/runtime/trace_event.h"

/*
 * The operations of a stream that are known to have ended after the last one was queued. They are
 * reported at their end, in the order of the stream, so that those which were queued before the
 * reported one are all known then, and the length of the queue up to that time as well.
 */
struct queue {
	struct queue *next;
	int device, stream;
	uint64_t *ends;			/* in rising order, from @first on */
	size_t first, count, capacity;
};

/* Protected by the lock of the trace. */
static struct queue *queues;

void trace_add_counter(const char *name, uint64_t pid, uint64_t ns, uint64_t hundredths)
{
	struct trace_text event = { 0 };
	char value[32];

	trace_put(&event, "{\"ph\":\"C\",\"name\":");
	trace_put_string(&event, name);
	trace_put_place(&event, pid, 0);
	trace_put(&event, ",\"ts\":");
	trace_put_us(&event, ns);
	snprintf(value, sizeof(value), "%" PRIu64 ".%02u", hundredths / 100,
		 (unsigned int)(hundredths % 100));
	trace_put(&event, ",\"args\":{\"value\":");
	trace_put(&event, value);
	trace_put(&event, "}}");
	trace_add(&event);
}

void trace_add_memory(int device, uint64_t bytes)
{
	trace_add_counter("device memory bytes", TRACE_CARD_PID + (uint64_t)device, spyre_now_ns(),
			  bytes * 100);
}

static struct queue *find_queue(int device, int stream)
{
	struct queue *queue;

	for (queue = queues; queue; queue = queue->next)
		if (queue->device == device && queue->stream == stream)
			return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	*queue = (struct queue){ .next = queues, .device = device, .stream = stream };
	queues = queue;
	return queue;
}

static void add_length(const struct queue *queue, uint64_t ns)
{
	char name[48];

	snprintf(name, sizeof(name), "queue depth, stream %d", queue->stream);
	trace_add_counter(name, TRACE_CARD_PID + (uint64_t)queue->device, ns, queue->count * 100);
}

/* Adds the ends up to @ns. */
static void end_until(struct queue *queue, uint64_t ns)
{
	while (queue->count && queue->ends[queue->first] <= ns) {
		const uint64_t end = queue->ends[queue->first++];

		queue->count--;
		add_length(queue, end);
	}
}

/* Makes space for an end; false if there is no memory for it. */
static bool reserve(struct queue *queue)
{
	uint64_t *grown;

	if (queue->first + queue->count < queue->capacity)
		return true;
	if (queue->first > queue->count) {
		memmove(queue->ends, queue->ends + queue->first,
			queue->count * sizeof(*queue->ends));
		queue->first = 0;
		return true;
	}
	grown = realloc(queue->ends, (2 * queue->capacity + 64) * sizeof(*grown));
	if (!grown)
		return false;
	queue->ends = grown;
	queue->capacity = 2 * queue->capacity + 64;
	return true;
}

void trace_add_queued(const spyre_activity *activity)
{
	struct queue *queue = find_queue(activity->device, activity->stream);

	if (!queue)
		return;
	end_until(queue, activity->queue_start_ns);
	/* Without memory the curve lacks this operation. */
	if (!reserve(queue))
		return;
	queue->ends[queue->first + queue->count++] = activity->end_ns;
	add_length(queue, activity->queue_start_ns);
}

void trace_end_queues(void)
{
	for (struct queue *queue = queues; queue; queue = queue->next)
		end_until(queue, UINT64_MAX);
}
