// SPDX-License-Identifier: MIT
/* Submission of operations, and the results and errors that come back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libspyre/backend/futex.h"
#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/runtime/activity.h"
#include "libspyre/runtime/ras.h"
#include "libspyre/runtime/stream.h"

/* A refused submission waits so long for the result that says why. */
#define MAX_RESULT_DELAY_NS 1000000000

bool spyre_stream_reached(struct spyre_stream *stream, uint64_t seq)
{
	if (atomic_load_explicit(&stream->host_done, memory_order_acquire) >= seq)
		return true;
	return stream->context->ops->completed(stream->queue) >= seq;
}

spyre_status spyre_stream_error(const struct spyre_stream *stream)
{
	if (!stream->error)
		return SPYRE_SUCCESS;
	return spyre_error(stream->error, "%s", stream->error_text ? stream->error_text :
			   spyre_status_text(stream->error));
}

static bool needs_new_context(spyre_status status)
{
	return status == SPYRE_ERROR_DEVICE_LOST || status == SPYRE_ERROR_DEVICE_RESET;
}

/* Records the context's first failure. A real failure replaces a cancellation. */
static void context_fault(struct spyre_stream *stream, const struct spyre_context_fault *fault)
{
	struct spyre_context *context = stream->context;

	pthread_mutex_lock(&context->fault_lock);
	if (!context->fault.status || (context->fault.status == SPYRE_ERROR_CANCELLED &&
				       fault->status != SPYRE_ERROR_CANCELLED))
		context->fault = *fault;
	pthread_mutex_unlock(&context->fault_lock);
}

static void stream_fail(struct spyre_stream *stream, const char *what,
			struct spyre_context_fault *fault)
{
	char text[1024];

	if (stream->error)
		return;
	snprintf(text, sizeof(text),
		 "stream %d: %s (operation %" PRIu64 ") failed: %s; %s", stream->id, what,
		 fault->operation, spyre_last_error(), needs_new_context(fault->status) ?
		 "destroy the context and create another" :
		 "the stream takes no more work until spyre_context_reset() brings the context back");
	stream->error = fault->status;
	stream->error_text = strdup(text);
	fault->stream = stream->id;
	snprintf(fault->text, sizeof(fault->text), "%.*s", (int)sizeof(fault->text) - 1, text);
	context_fault(stream, fault);
	spyre_ras_stream(stream, what, fault);
}

void spyre_stream_fail(struct spyre_stream *stream, spyre_status status, const char *what,
		       uint64_t seq)
{
	struct spyre_context_fault fault = {
		.status = status, .kind = SPYRE_FAULT_SUBMISSION, .operation = seq,
	};

	stream_fail(stream, what, &fault);
}

/* Error of work that was cancelled because of the card or another stream. */
static spyre_status cancelled_error(struct spyre_stream *stream)
{
	struct spyre_context *context = stream->context;
	struct spyre_card_state state = { 0 };

	if (!context->ops->state(context->card, &state)) {
		if (state.health == SPYRE_CONTEXT_STALE)
			return spyre_error(SPYRE_ERROR_DEVICE_RESET,
					   "the card was reset (its generation is %" PRIu64 ", that of "
					   "the context %" PRIu64 "); destroy the context and "
					   "create a new one", state.card_generation,
					   state.generation);
		if (state.health == SPYRE_CONTEXT_FAULTED)
			return spyre_error(SPYRE_ERROR_CANCELLED,
					   "the card cancelled it (-ECANCELED), since work of this "
					   "context had failed; spyre_context_get_state() says which");
	}
	return spyre_error(SPYRE_ERROR_CANCELLED,
			   "the card cancelled it (-ECANCELED), since its queue had failed");
}

/* Writes "launch of kernel "x" as operation 7 of 9 of graph 1". */
static void describe(const struct spyre_record *record, const struct spyre_part *part, char *text,
		     size_t bytes)
{
	size_t at;

	if (part->kernel)
		at = snprintf(text, bytes, "%s of kernel \"%s\"", part->what,
			      spyre_kernel_name(part->kernel));
	else
		at = snprintf(text, bytes, "%s", part->what);
	if (record->segment && at < bytes)
		spyre_segment_describe(record->segment, part, text + at, bytes - at);
}

static void fail_by_errno(struct spyre_stream *stream, const struct spyre_record *record,
			  const struct spyre_part *part, uint32_t command, int err)
{
	struct spyre_context_fault fault = { .operation = record->seq, .command = command };
	spyre_status status;
	char what[320];

	if (stream->error)
		return;
	switch (-err) {
	case ETIME:
	case ETIMEDOUT:
		fault.kind = SPYRE_FAULT_TIMEOUT;
		status = spyre_error(SPYRE_ERROR_TIMEOUT,
				     "it ran past its time limit (-ETIME) and was stopped; raise "
				     "SPYRE_TIMEOUT_MS if work may take that long");
		break;
	case ENODEV:
		status = spyre_error(SPYRE_ERROR_DEVICE_LOST,
				     "the card is gone (-ENODEV)");
		break;
	case ECANCELED:
		status = cancelled_error(stream);
		break;
	case ENOLINK:
		status = spyre_error(SPYRE_ERROR_PEER_LOST,
				     "the context that it copies from or to has failed, its card was "
				     "reset, or it is gone (-ENOLINK); reset or replace that context");
		break;
	case EFAULT:
		fault.kind = SPYRE_FAULT_ACCESS;
		status = spyre_error(SPYRE_ERROR_CARD_FAULT,
				     "it reached outside the context's memory, or an index was not "
				     "below the extent of its dimension (-EFAULT); check the indices");
		break;
	case EIO:
		fault.kind = SPYRE_FAULT_COMPUTE;
		status = spyre_error(SPYRE_ERROR_CARD_FAULT,
				     "a core or the DMA engine failed (-EIO)");
		break;
	default:
		status = spyre_error(SPYRE_ERROR_SYSTEM, "the card reports %s (%d)", strerror(-err),
				     err);
	}
	describe(record, part, what, sizeof(what));
	fault.status = status;
	stream_fail(stream, what, &fault);
}

static void mark_finish(struct spyre_stream *stream, struct spyre_mark *mark, uint64_t time_ns)
{
	mark->failed = stream->error;
	mark->time_ns = time_ns;
	mark->cycles = stream->stats.cycles;
	atomic_store_explicit(&mark->done, true, memory_order_release);
	spyre_mark_unref(mark);
}

/* A peer copy reads the card's own memory to send, and writes it to receive. */
static void rdma_add(const struct spyre_command_result *result, uint64_t *read, uint64_t *written)
{
	if (!result->rdma)
		return;
	if (result->bytes_read)
		*written += result->rdma;
	else
		*read += result->rdma;
}

static void activity_add(spyre_activity *activity, const struct spyre_command_result *result)
{
	if (!activity->start_ns)
		activity->start_ns = result->start_ns;
	activity->end_ns = result->end_ns;
	activity->cycles += result->cycles;
	activity->bytes_read += result->bytes_read;
	activity->bytes_written += result->bytes_written;
	activity->macs += result->macs;
	rdma_add(result, &activity->rdma_read, &activity->rdma_written);
}

/* Reads the results of one operation. Returns its end time, 0 if it failed. */
static uint64_t part_retire(struct spyre_stream *stream, const struct spyre_record *record,
			    const struct spyre_part *part)
{
	spyre_activity activity = { 0 };
	uint64_t end_ns = 0;

	for (uint32_t i = part->first; i < part->first + part->count; i++) {
		const struct spyre_command_result *result =
			&stream->queue->results[record->first_result + i];

		if (!__atomic_load_n(&result->state, __ATOMIC_ACQUIRE)) {
			fail_by_errno(stream, record, part, i, -ECANCELED);
			continue;
		}
		if (result->status) {
			fail_by_errno(stream, record, part, i, result->status);
			continue;
		}
		stream->stats.cycles += result->cycles;
		stream->stats.bytes_read += result->bytes_read;
		stream->stats.bytes_written += result->bytes_written;
		stream->stats.macs += result->macs;
		rdma_add(result, &stream->stats.rdma_read, &stream->stats.rdma_written);
		stream->stats.host_ns += result->end_ns - result->start_ns;
		end_ns = result->end_ns;
		if (record->activity)
			activity_add(&activity, result);
	}
	if (record->activity && part->kind && activity.end_ns)
		spyre_activity_report(stream, record, part, &activity);
	if (part->kernel)
		stream->stats.launches++;
	else if (!record->mark && part->count)
		stream->stats.copies++;
	return end_ns;
}

static void record_retire(struct spyre_stream *stream, struct spyre_record *record)
{
	const struct spyre_part own = {
		.what = record->what, .kernel = record->kernel, .kind = record->activity,
		.count = record->num_results, .timeline = record->timeline,
	};
	const struct spyre_part *parts = &own;
	uint64_t end_ns = 0;
	uint32_t n = 1;

	if (record->segment)
		parts = spyre_segment_parts(record->segment, &n);
	for (uint32_t i = 0; i < n; i++)
		end_ns = part_retire(stream, record, &parts[i]);
	stream->used_slots -= record->num_slots;
	if (record->staging)
		spyre_staging_put(stream->context, record->staging, record->staging_bytes);
	if (record->kernel)
		spyre_kernel_unref(record->kernel);
	if (record->segment)
		spyre_segment_unref(record->segment);
	if (record->mark)
		mark_finish(stream, record->mark, end_ns);
}

/* Results are written in order, so the record is done when the last one is. */
static bool record_done(const struct spyre_stream *stream, const struct spyre_record *record)
{
	if (!record->num_results)
		return true;
	return __atomic_load_n(&stream->queue->results[record->first_result +
						       record->num_results - 1].state,
			       __ATOMIC_ACQUIRE);
}

void spyre_stream_retire(struct spyre_stream *stream, uint64_t upto)
{
	while (stream->num_records) {
		struct spyre_record record = stream->records[stream->first_record];

		if (record.seq > upto && !record_done(stream, &record))
			break;
		stream->first_record = (stream->first_record + 1) & (stream->max_records - 1);
		stream->num_records--;
		record_retire(stream, &record);
	}
}

static bool record_reserve(struct spyre_stream *stream)
{
	uint32_t max = stream->max_records ? stream->max_records * 2 : 64;
	struct spyre_record *grown;

	if (stream->num_records < stream->max_records)
		return true;
	grown = calloc(max, sizeof(*grown));
	if (!grown)
		return false;
	for (uint32_t i = 0; i < stream->num_records; i++)
		grown[i] = stream->records[(stream->first_record + i) & (stream->max_records - 1)];
	free(stream->records);
	stream->records = grown;
	stream->first_record = 0;
	stream->max_records = max;
	return true;
}

static struct spyre_record *record_push(struct spyre_stream *stream)
{
	struct spyre_record *record = &stream->records[(stream->first_record +
							stream->num_records++) &
						       (stream->max_records - 1)];

	memset(record, 0, sizeof(*record));
	return record;
}

bool spyre_stream_push_mark(struct spyre_stream *stream, struct spyre_mark *mark)
{
	struct spyre_record *record;

	if (!record_reserve(stream))
		return false;
	record = record_push(stream);
	record->seq = mark->seq = atomic_load(&stream->tail);
	record->what = "event";
	record->mark = mark;
	atomic_fetch_add(&mark->refs, 1);
	return true;
}

/*
 * Reserves @n contiguous result slots. If the ring is full this waits for the
 * oldest work, which the card finishes without this thread.
 */
static spyre_status slots_take(struct spyre_stream *stream, uint32_t n, uint32_t *first,
			       uint32_t *slots)
{
	uint32_t skip = stream->next_slot + n > SPYRE_QUEUE_RESULTS ?
			SPYRE_QUEUE_RESULTS - stream->next_slot : 0;

	*slots = n + skip;
	while (stream->used_slots + *slots > SPYRE_QUEUE_RESULTS) {
		uint64_t seq = stream->records[stream->first_record].seq;
		spyre_status status = stream->context->ops->wait(stream->queue, seq, INT64_MAX);

		if (status)
			return status;
		spyre_stream_retire(stream, seq);
	}
	*first = skip ? 0 : stream->next_slot;
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(&stream->queue->results[*first + i].state, 0, __ATOMIC_RELAXED);
	return SPYRE_SUCCESS;
}

static uint32_t waits_collect(struct spyre_stream *stream, struct spyre_wait *waits)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < stream->num_waits; i++) {
		struct spyre_pending_wait *wait = &stream->waits[i];

		if (spyre_stream_reached(wait->stream, wait->seq))
			continue;
		waits[n].queue = wait->stream->queue;
		waits[n++].point = wait->seq;
	}
	return n;
}

static void waits_drop(struct spyre_stream *stream)
{
	while (stream->num_waits)
		spyre_stream_unref(stream->waits[--stream->num_waits].stream);
}

spyre_status spyre_work_submit(struct spyre_stream *stream, const struct spyre_work *work,
			       uint64_t seq)
{
	struct spyre_wait waits[SPYRE_MAX_PENDING_WAITS];
	struct spyre_submission submission = {
		.commands = work->commands,
		.num_commands = work->num_commands,
		.waits = waits,
		.point = seq,
	};
	struct spyre_record *record;
	uint32_t slots;

	if (!record_reserve(stream))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "stream %d: no memory to queue the %s",
				   stream->id, work->what);
	TRY(slots_take(stream, work->num_commands, &submission.first_result, &slots));
	submission.num_waits = stream->num_waits ? waits_collect(stream, waits) : 0;
	TRY(stream->context->ops->submit(stream->queue, &submission));
	spyre_log(SPYRE_LOG_TRACE, "stream %d: operation %" PRIu64 ": %s%s%s, %u commands", stream->id,
		  seq, work->what, work->kernel ? " of " : "",
		  work->kernel ? spyre_kernel_name(work->kernel) : "", work->num_commands);
	if (stream->num_waits)
		waits_drop(stream);
	atomic_store_explicit(&stream->submitted, seq, memory_order_release);
	stream->next_slot = (submission.first_result + work->num_commands) % SPYRE_QUEUE_RESULTS;
	stream->used_slots += slots;
	record = record_push(stream);
	record->seq = seq;
	record->first_result = submission.first_result;
	record->num_results = work->num_commands;
	record->num_slots = slots;
	record->what = work->what;
	record->staging = work->staging;
	record->staging_bytes = work->staging_bytes;
	record->kernel = work->kernel ? spyre_kernel_ref(work->kernel) : NULL;
	record->segment = work->segment;
	if (record->segment)
		spyre_segment_ref(record->segment);
	record->mark = work->mark;
	if (record->mark)
		atomic_fetch_add(&record->mark->refs, 1);
	if (spyre_activity_on()) {
		record->activity = work->segment ? SPYRE_ACTIVITY_LAUNCH :
						   spyre_activity_kind_of(work);
		record->timeline = spyre_activity_timeline(work->commands, work->num_commands);
		record->queued = work->queued;
		if (!record->queued.end_ns)
			record->queued.end_ns = spyre_now_ns();
	}
	return SPYRE_SUCCESS;
}

/*
 * The queue may have failed earlier; reports that first error instead. A context fails before the
 * result of the job that failed can be read. The stream's jobs end soon after that, but one that
 * waits for another card may not, hence the limit.
 */
static spyre_status submit_failed(struct spyre_stream *stream, spyre_status status)
{
	const struct spyre_backend_ops *ops = stream->context->ops;

	if (status != SPYRE_ERROR_CANCELLED && !needs_new_context(status))
		return status;
	if (status == SPYRE_ERROR_CANCELLED && stream->num_records)
		ops->wait(stream->queue, atomic_load(&stream->submitted),
			  spyre_now_ns() + MAX_RESULT_DELAY_NS);
	spyre_stream_retire(stream, ops->completed(stream->queue));
	if (!stream->error)
		spyre_stream_fail(stream, status, "submission", atomic_load(&stream->tail) + 1);
	return spyre_stream_error(stream);
}

spyre_status spyre_stream_enqueue(struct spyre_stream *stream, const struct spyre_work *work,
				  uint64_t *out)
{
	struct spyre_work tagged;
	spyre_status status;
	uint64_t seq;

	if (spyre_activity_on()) {
		tagged = *work;
		spyre_activity_queued(&tagged.queued);
		work = &tagged;
	}
	pthread_mutex_lock(&stream->lock);
	/* Reading available results here costs no system call. */
	spyre_stream_retire(stream, 0);
	if (stream->error) {
		status = spyre_stream_error(stream);
	} else if (stream->capture && !work->segment) {
		/* The rest of a graph launch that began before the capture stays out of it. */
		status = spyre_capture_work(stream, work);
		seq = atomic_load_explicit(&stream->tail, memory_order_relaxed);
	} else if (work->pool == SPYRE_POOL_OF_GRAPH) {
		status = spyre_error(SPYRE_ERROR_CAPTURE,
				     "stream %d: the capture was ended during this %s; it is not part of "
				     "the graph and has not run", stream->id, work->what);
	} else if (stream->items) {
		if (work == &tagged)
			tagged.queued.end_ns = spyre_now_ns();
		status = spyre_stream_defer_work(stream, work, &seq);
	} else {
		seq = atomic_load_explicit(&stream->tail, memory_order_relaxed) + 1;
		status = spyre_work_submit(stream, work, seq);
		if (!status)
			atomic_store_explicit(&stream->tail, seq, memory_order_release);
		else
			status = submit_failed(stream, status);
	}
	if (!status && work->mark)
		work->mark->seq = seq;
	pthread_mutex_unlock(&stream->lock);
	if (!status && out)
		*out = seq;
	return status;
}

spyre_status spyre_stream_flush_waits(struct spyre_stream *stream)
{
	struct spyre_command command = { .type = SPYRE_COMMAND_TIMESTAMP };
	struct spyre_work work = { .what = "wait", .commands = &command, .num_commands = 1 };
	spyre_status status;
	uint64_t seq;

	if (!stream->num_waits || stream->error)
		return SPYRE_SUCCESS;
	seq = atomic_load(&stream->tail) + 1;
	status = spyre_work_submit(stream, &work, seq);
	if (!status)
		atomic_store(&stream->tail, seq);
	return status;
}

spyre_status spyre_stream_add_wait(struct spyre_stream *stream, struct spyre_stream *other,
				   uint64_t seq)
{
	for (uint32_t i = 0; i < stream->num_waits; i++) {
		if (stream->waits[i].stream != other)
			continue;
		if (stream->waits[i].seq < seq)
			stream->waits[i].seq = seq;
		return SPYRE_SUCCESS;
	}
	if (stream->num_waits == SPYRE_MAX_PENDING_WAITS) {
		TRY(spyre_stream_flush_waits(stream));
	}
	stream->waits[stream->num_waits].stream = spyre_stream_ref(other);
	stream->waits[stream->num_waits++].seq = seq;
	return SPYRE_SUCCESS;
}

/* Waits until the stream's thread has submitted @seq or it is done; false at the deadline. */
static bool stream_is_submitted(struct spyre_stream *stream, uint64_t seq, int64_t deadline_ns)
{
	const struct timespec until = {
		.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000,
	};
	bool in_time = true;

	pthread_mutex_lock(&stream->lock);
	while (in_time && atomic_load(&stream->submitted) < seq &&
	       !spyre_stream_reached(stream, seq))
		in_time = pthread_cond_timedwait(&stream->progress, &stream->lock, &until) !=
			  ETIMEDOUT;
	in_time = in_time || atomic_load(&stream->submitted) >= seq ||
		  spyre_stream_reached(stream, seq);
	pthread_mutex_unlock(&stream->lock);
	return in_time;
}

spyre_status spyre_stream_wait_seq(struct spyre_stream *stream, uint64_t seq,
				   int64_t deadline_ns)
{
	if (spyre_stream_reached(stream, seq))
		return SPYRE_SUCCESS;
	if (spyre_in_stream_thread(stream))
		return spyre_error(SPYRE_ERROR_BUSY,
				   "a host function of stream %d would wait for itself; wait elsewhere, "
				   "or for an event recorded before it", stream->id);
	if (atomic_load_explicit(&stream->submitted, memory_order_acquire) < seq) {
		if (!stream_is_submitted(stream, seq, deadline_ns))
			return SPYRE_NOT_READY;
		if (spyre_stream_reached(stream, seq))
			return SPYRE_SUCCESS;
	}
	return stream->context->ops->wait(stream->queue, seq, deadline_ns);
}

spyre_status spyre_stream_finish(struct spyre_stream *stream, uint64_t seq)
{
	spyre_status status = spyre_stream_wait_seq(stream, seq, INT64_MAX);

	if (status)
		return status;
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, seq);
	status = spyre_stream_error(stream);
	pthread_mutex_unlock(&stream->lock);
	return status;
}
