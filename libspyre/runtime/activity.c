// SPDX-License-Identifier: MIT
/* Logs of what ran on the cards. */
#define _GNU_SOURCE
#include "libspyre/runtime/activity.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libspyre/backend/futex.h"
#include "libspyre/runtime/trace.h"

#define DEFAULT_LIMIT (1u << 20)

/* A ring that grows up to its limit. */
struct spyre_activity_log {
	TAILQ_ENTRY(spyre_activity_log) link;
	spyre_activity *records;
	uint32_t first, count, capacity, limit;
	uint64_t dropped;
};

_Atomic uint32_t spyre_activity_logs;

static TAILQ_HEAD(, spyre_activity_log) logs = TAILQ_HEAD_INITIALIZER(logs);
/* Protects the list and the logs in it; a leaf, taken with a stream's lock held. */
static pthread_mutex_t logs_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local uint64_t correlation;

uint64_t spyre_activity_correlate(uint64_t id)
{
	uint64_t previous = correlation;

	correlation = id;
	return previous;
}

void spyre_activity_queued(struct spyre_queued *queued)
{
	queued->correlation = correlation;
	queued->start_ns = spyre_now_ns();
	queued->end_ns = 0;
	queued->thread = (int32_t)gettid();
}

spyre_activity_kind spyre_activity_kind_of(const struct spyre_work *work)
{
	if (work->kernel)
		return SPYRE_ACTIVITY_LAUNCH;
	/* The copy passes through host memory of the library. */
	if (work->staging)
		return SPYRE_ACTIVITY_COPY_D2D;
	for (uint32_t i = 0; i < work->num_commands; i++) {
		switch (work->commands[i].type) {
		case SPYRE_COMMAND_EXEC:
			return SPYRE_ACTIVITY_LAUNCH;
		case SPYRE_COMMAND_DMA:
			return work->commands[i].dma.desc->direction == SPYRE_DMA_H2D ?
				       SPYRE_ACTIVITY_COPY_H2D : SPYRE_ACTIVITY_COPY_D2H;
		case SPYRE_COMMAND_COPY:
			return SPYRE_ACTIVITY_COPY_D2D;
		case SPYRE_COMMAND_FILL:
			return SPYRE_ACTIVITY_FILL;
		case SPYRE_COMMAND_PEER:
			return SPYRE_ACTIVITY_COPY_PEER;
		case SPYRE_COMMAND_TIMESTAMP:
			break;
		}
	}
	return 0;
}

const struct timeline *spyre_activity_timeline(const struct spyre_command *commands, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (commands[i].type == SPYRE_COMMAND_EXEC)
			return commands[i].exec.program->timeline;
	return NULL;
}

static bool grow(struct spyre_activity_log *log)
{
	uint32_t capacity = log->capacity ? log->capacity * 2 : 256;
	spyre_activity *grown;

	if (log->capacity == log->limit)
		return false;
	if (capacity > log->limit)
		capacity = log->limit;
	grown = malloc((size_t)capacity * sizeof(*grown));
	if (!grown)
		return false;
	for (uint32_t i = 0; i < log->count; i++)
		grown[i] = log->records[(log->first + i) % log->capacity];
	free(log->records);
	log->records = grown;
	log->first = 0;
	log->capacity = capacity;
	return true;
}

void spyre_activity_report(const struct spyre_stream *stream, const struct spyre_record *record,
			   const struct spyre_part *part, spyre_activity *activity)
{
	struct spyre_activity_log *log;

	activity->struct_size = sizeof(*activity);
	activity->kind = part->kind;
	activity->device = stream->context->index;
	activity->stream = stream->id;
	activity->operation = record->seq;
	activity->correlation = record->queued.correlation;
	activity->queue_start_ns = record->queued.start_ns;
	activity->queue_end_ns = record->queued.end_ns;
	activity->thread = record->queued.thread;
	activity->in_graph = record->segment != NULL;
	snprintf(activity->name, sizeof(activity->name), "%s",
		 part->kernel ? spyre_kernel_name(part->kernel) : part->what);
	if (spyre_trace_on())
		spyre_trace_activity(activity, part->timeline);
	if (spyre_traces_on())
		spyre_traces_activity(activity, part->timeline);
	pthread_mutex_lock(&logs_lock);
	TAILQ_FOREACH(log, &logs, link) {
		if (log->count == log->capacity && !grow(log)) {
			log->dropped++;
			continue;
		}
		log->records[(log->first + log->count++) % log->capacity] = *activity;
	}
	pthread_mutex_unlock(&logs_lock);
}

spyre_status spyre_activity_open(uint32_t limit, spyre_activity_log **out)
{
	struct spyre_activity_log *log;

	if (!out)
		return spyre_null_argument("spyre_activity_open", "log");
	*out = NULL;
	log = calloc(1, sizeof(*log));
	if (!log)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for an activity log");
	log->limit = limit ? limit : DEFAULT_LIMIT;
	pthread_mutex_lock(&logs_lock);
	TAILQ_INSERT_TAIL(&logs, log, link);
	atomic_fetch_add(&spyre_activity_logs, 1);
	pthread_mutex_unlock(&logs_lock);
	*out = log;
	return SPYRE_SUCCESS;
}

spyre_status spyre_activity_read(spyre_activity_log *log, spyre_activity *records, size_t stride,
				 uint32_t capacity, uint32_t *count, uint64_t *dropped)
{
	uint32_t n;

	if (!log || !count || (!records && capacity))
		return spyre_null_argument("spyre_activity_read",
					   !log ? "log" : !count ? "count" : "records");
	if (capacity && stride < sizeof(size_t))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_activity_read: the stride is %zu bytes, expected "
				   "sizeof(spyre_activity), %zu", stride, sizeof(*records));
	pthread_mutex_lock(&logs_lock);
	n = capacity < log->count ? capacity : log->count;
	for (uint32_t i = 0; i < n; i++) {
		const spyre_activity *from = &log->records[(log->first + i) % log->capacity];

		memcpy((char *)records + i * stride, from,
		       stride < sizeof(*from) ? stride : sizeof(*from));
	}
	if (n)
		log->first = (log->first + n) % log->capacity;
	log->count -= n;
	if (dropped)
		*dropped = log->dropped;
	pthread_mutex_unlock(&logs_lock);
	*count = n;
	return SPYRE_SUCCESS;
}

spyre_status spyre_activity_close(spyre_activity_log *log)
{
	if (!log)
		return SPYRE_SUCCESS;
	pthread_mutex_lock(&logs_lock);
	TAILQ_REMOVE(&logs, log, link);
	atomic_fetch_sub(&spyre_activity_logs, 1);
	pthread_mutex_unlock(&logs_lock);
	free(log->records);
	free(log);
	return SPYRE_SUCCESS;
}
