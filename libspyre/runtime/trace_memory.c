// SPDX-License-Identifier: MIT
/*
 * Traces in memory. A trace keeps operations and allocations, and makes events of them only
 * when it is read, so that recording costs little.
 */
#include <stdlib.h>
#include <string.h>

#include "libspyre/backend/futex.h"
#include "libspyre/base/error.h"
#include "libspyre/runtime/activity.h"
#include "libspyre/runtime/trace_event.h"

#define DEFAULT_LIMIT (1u << 20)
#define BLOCK_RECORDS 256u

/* An operation, or, with @activity.kind 0, the bytes of a card's allocations from start_ns on. */
struct record {
	spyre_activity activity;
	const struct timeline *timeline;
};

/* Records do not move, so a reader needs the lock only for their number. */
struct block {
	TAILQ_ENTRY(block) link;
	struct record records[BLOCK_RECORDS];
};

struct spyre_trace {
	TAILQ_ENTRY(spyre_trace) link;
	TAILQ_HEAD(blocks, block) blocks;
	uint32_t count, limit;
	uint64_t dropped, zero_ns;
	bool recording, cores;
};

/* Makes events of the records of @trace for its reader. */
struct replay {
	struct trace_out out;
	spyre_trace_fn fn;
	void *data;
	bool named[SPYRE_MAX_CARDS];
};

_Atomic uint32_t spyre_traces_open;
_Atomic bool spyre_trace_kept;

static TAILQ_HEAD(, spyre_trace) traces = TAILQ_HEAD_INITIALIZER(traces);
/* Protects the list and the traces in it; a leaf, taken with a stream's lock held. */
static pthread_mutex_t traces_lock = PTHREAD_MUTEX_INITIALIZER;

spyre_status spyre_trace_keep_cores(void)
{
	atomic_store(&spyre_trace_kept, true);
	return SPYRE_SUCCESS;
}

spyre_status spyre_trace_open(uint32_t limit, spyre_trace **out)
{
	struct spyre_trace *trace;

	if (!out)
		return spyre_null_argument("spyre_trace_open", "trace");
	*out = NULL;
	trace = calloc(1, sizeof(*trace));
	if (!trace)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a trace");
	TAILQ_INIT(&trace->blocks);
	trace->limit = limit ? limit : DEFAULT_LIMIT;
	trace->zero_ns = spyre_now_ns();
	trace->cores = atomic_load(&spyre_trace_kept);
	trace->recording = true;
	pthread_mutex_lock(&traces_lock);
	TAILQ_INSERT_TAIL(&traces, trace, link);
	atomic_fetch_add(&spyre_traces_open, 1);
	atomic_fetch_add(&spyre_activity_logs, 1);
	pthread_mutex_unlock(&traces_lock);
	*out = trace;
	return SPYRE_SUCCESS;
}

/* Adds a record to all traces. */
static void add(const struct record *record)
{
	struct spyre_trace *trace;
	struct block *block;

	pthread_mutex_lock(&traces_lock);
	TAILQ_FOREACH(trace, &traces, link) {
		block = TAILQ_LAST(&trace->blocks, blocks);
		if (trace->count % BLOCK_RECORDS == 0 && trace->count < trace->limit) {
			block = malloc(sizeof(*block));
			if (block)
				TAILQ_INSERT_TAIL(&trace->blocks, block, link);
		}
		if (trace->count == trace->limit || !block)
			trace->dropped++;
		else
			block->records[trace->count++ % BLOCK_RECORDS] = *record;
	}
	pthread_mutex_unlock(&traces_lock);
}

void spyre_traces_activity(const spyre_activity *activity, const struct timeline *timeline)
{
	const struct record record = { *activity, timeline };

	add(&record);
}

void spyre_traces_memory(const struct spyre_context *context, uint64_t bytes, uint64_t now_ns)
{
	const struct record record = {
		.activity = { .device = context->index, .start_ns = now_ns,
			      .bytes_written = bytes },
	};

	add(&record);
}

spyre_status spyre_trace_stop(spyre_trace *trace, uint64_t *dropped)
{
	if (!trace)
		return spyre_null_argument("spyre_trace_stop", "trace");
	pthread_mutex_lock(&traces_lock);
	if (trace->recording) {
		TAILQ_REMOVE(&traces, trace, link);
		atomic_fetch_sub(&spyre_traces_open, 1);
		atomic_fetch_sub(&spyre_activity_logs, 1);
	}
	trace->recording = false;
	if (dropped)
		*dropped = trace->dropped;
	pthread_mutex_unlock(&traces_lock);
	return SPYRE_SUCCESS;
}

static void add_to_reader(struct trace_out *out, const spyre_trace_event *event)
{
	const struct replay *replay = (const struct replay *)out;

	replay->fn(replay->data, event);
}

/* Names the rows of a card before its first event; a card that is gone has no names. */
static void name_rows(struct replay *replay, int device)
{
	spyre_device_properties properties = { .struct_size = sizeof(properties) };
	struct spyre_error_state state;
	spyre_status status;

	if (replay->named[device])
		return;
	replay->named[device] = true;
	spyre_error_save(&state);
	status = spyre_device_get_properties(device, &properties);
	spyre_error_restore(&state);
	if (!status)
		trace_name_cores(&replay->out, device, properties.bus_id,
				 replay->out.cores ? properties.num_cores : 0);
}

static void replay_record(struct replay *replay, const struct record *record)
{
	const spyre_activity *activity = &record->activity;

	if (!activity->kind) {
		trace_add_memory(&replay->out, activity->device, activity->start_ns,
				 activity->bytes_written);
		return;
	}
	name_rows(replay, activity->device);
	trace_add_queued(&replay->out, activity);
	trace_add_model(&replay->out, activity, record->timeline);
}

spyre_status spyre_trace_events(spyre_trace *trace, spyre_trace_fn fn, void *data)
{
	struct replay *replay;
	struct block *block;
	uint32_t count, i = 0;

	if (!trace || !fn)
		return spyre_null_argument("spyre_trace_events", !trace ? "trace" : "fn");
	replay = calloc(1, sizeof(*replay));
	if (!replay)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for the events of a trace");
	replay->fn = fn;
	replay->data = data;
	pthread_mutex_lock(&traces_lock);
	replay->out = (struct trace_out){ .add = add_to_reader, .zero_ns = trace->zero_ns,
					  .cores = trace->cores };
	count = trace->count;
	block = TAILQ_FIRST(&trace->blocks);
	pthread_mutex_unlock(&traces_lock);
	while (i < count) {
		replay_record(replay, &block->records[i % BLOCK_RECORDS]);
		if (++i % BLOCK_RECORDS == 0 && i < count)
			block = TAILQ_NEXT(block, link);
	}
	trace_end_queues(&replay->out);
	trace_free_queues(&replay->out);
	free(replay);
	return SPYRE_SUCCESS;
}

spyre_status spyre_trace_close(spyre_trace *trace)
{
	struct block *block;

	if (!trace)
		return SPYRE_SUCCESS;
	(void)spyre_trace_stop(trace, NULL);
	while ((block = TAILQ_FIRST(&trace->blocks))) {
		TAILQ_REMOVE(&trace->blocks, block, link);
		free(block);
	}
	free(trace);
	return SPYRE_SUCCESS;
}
