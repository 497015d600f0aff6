// SPDX-License-Identifier: MIT
/* Curves of the trace in host time: operations in a stream, and device memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/runtime/trace_event.h"

/*
 * The operations of a stream that are known to have ended after the last one was queued. They are
 * reported at their end, in the order of the stream, so that those which were queued before the
 * reported one are all known then, and the length of the queue up to that time as well.
 */
struct trace_queue {
	struct trace_queue *next;
	int device, stream;
	uint64_t *ends;			/* in rising order, from @first on */
	size_t first, count, capacity;
};

void trace_add_counter(struct trace_out *out, const char *name, int device, bool modelled,
		       uint64_t ns, uint64_t hundredths)
{
	const spyre_trace_event event = {
		.struct_size = sizeof(event), .kind = SPYRE_TRACE_COUNTER, .device = device,
		.modelled = modelled, .name = name, .start_ns = ns, .end_ns = ns,
		.hundredths = hundredths,
	};

	out->add(out, &event);
}

void trace_add_memory(struct trace_out *out, int device, uint64_t ns, uint64_t bytes)
{
	trace_add_counter(out, "device memory bytes", device, false, ns, bytes * 100);
}

static struct trace_queue *find_queue(struct trace_out *out, int device, int stream)
{
	struct trace_queue *queue;

	for (queue = out->queues; queue; queue = queue->next)
		if (queue->device == device && queue->stream == stream)
			return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	*queue = (struct trace_queue){ .next = out->queues, .device = device, .stream = stream };
	out->queues = queue;
	return queue;
}

static void add_length(struct trace_out *out, const struct trace_queue *queue, uint64_t ns)
{
	char name[48];

	snprintf(name, sizeof(name), "queue depth, stream %d", queue->stream);
	trace_add_counter(out, name, queue->device, false, ns, queue->count * 100);
}

/* Adds the ends up to @ns. */
static void end_until(struct trace_out *out, struct trace_queue *queue, uint64_t ns)
{
	while (queue->count && queue->ends[queue->first] <= ns) {
		const uint64_t end = queue->ends[queue->first++];

		queue->count--;
		add_length(out, queue, end);
	}
}

/* Makes space for an end; false if there is no memory for it. */
static bool reserve(struct trace_queue *queue)
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

void trace_add_queued(struct trace_out *out, const spyre_activity *activity)
{
	struct trace_queue *queue = find_queue(out, activity->device, activity->stream);

	if (!queue)
		return;
	end_until(out, queue, activity->queue_start_ns);
	/* Without memory the curve lacks this operation. */
	if (!reserve(queue))
		return;
	queue->ends[queue->first + queue->count++] = activity->end_ns;
	add_length(out, queue, activity->queue_start_ns);
}

void trace_end_queues(struct trace_out *out)
{
	for (struct trace_queue *queue = out->queues; queue; queue = queue->next)
		end_until(out, queue, UINT64_MAX);
}

void trace_free_queues(struct trace_out *out)
{
	struct trace_queue *queue;

	while ((queue = out->queues)) {
		out->queues = queue->next;
		free(queue->ends);
		free(queue);
	}
}
