// SPDX-License-Identifier: MIT
/* Health of a context, and the resets of a context and of a card. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libspyre/base/log.h"
#include "libspyre/runtime/stream.h"

/* Time limit of the first command after a reset of the card. */
#define PROBE_NS (10 * INT64_C(1000000000))

/*
 * Makes streams read their results, where they find failures. A stream whose lock
 * is taken is submitting and reads its results by itself.
 */
static void notice_failures(struct spyre_context *context)
{
	struct spyre_stream **streams;
	uint32_t n;

	streams = spyre_context_streams(context, &n);
	for (uint32_t i = 0; i < n; i++) {
		if (!pthread_mutex_trylock(&streams[i]->lock)) {
			spyre_stream_retire(streams[i],
					    context->ops->completed(streams[i]->queue));
			pthread_mutex_unlock(&streams[i]->lock);
		}
		spyre_stream_unref(streams[i]);
	}
	free(streams);
}

spyre_status spyre_context_get_state(spyre_context *context, spyre_context_state *out)
{
	spyre_context_state state = { .stream = -1 };
	struct spyre_card_state card = { 0 };
	struct spyre_context_fault fault;
	spyre_status status = spyre_context_check(context);

	if (!status)
		status = spyre_struct_check("spyre_context_get_state", "context_state", out);
	if (!status)
		status = context->ops->state(context->card, &card);
	if (status)
		return status;
	notice_failures(context);
	pthread_mutex_lock(&context->fault_lock);
	fault = context->fault;
	pthread_mutex_unlock(&context->fault_lock);
	state.health = card.health;
	state.generation = card.generation;
	state.card_generation = card.card_generation;
	if (fault.status) {
		if (state.health == SPYRE_CONTEXT_OK)
			state.health = SPYRE_CONTEXT_FAULTED;
		state.status = fault.status;
		/* The kernel knows the kind of failure more precisely than the results do. */
		state.fault = card.fault ? card.fault : fault.kind;
		state.stream = fault.stream;
		state.operation = fault.operation;
		state.control_block = fault.command;
		memcpy(state.text, fault.text, sizeof(state.text));
	}
	spyre_struct_write(out, out->struct_size, &state, sizeof(state));
	return SPYRE_SUCCESS;
}

/* Puts the stream into error, so that it submits nothing more to the card. */
static void stream_shut(struct spyre_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	if (!stream->error) {
		stream->error = SPYRE_ERROR_CANCELLED;
		free(stream->error_text);
		stream->error_text = strdup("the context is being reset");
	}
	pthread_mutex_unlock(&stream->lock);
}

/* Waits until the stream's thread has emptied its list. */
static void stream_settle(struct spyre_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	while (stream->items)
		pthread_cond_wait(&stream->progress, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}

static spyre_status stream_renew(struct spyre_stream *stream)
{
	struct spyre_context *context = stream->context;
	spyre_status status;

	pthread_mutex_lock(&stream->lock);
	status = context->ops->queue_renew(stream->queue, stream->priority);
	if (!status) {
		/* All queued work has ended; events of work that was lost report an error. */
		spyre_stream_retire(stream, UINT64_MAX);
		while (stream->num_waits)
			spyre_stream_unref(stream->waits[--stream->num_waits].stream);
		atomic_store(&stream->host_done, atomic_load(&stream->tail));
		stream->error = SPYRE_SUCCESS;
		free(stream->error_text);
		stream->error_text = NULL;
	}
	pthread_mutex_unlock(&stream->lock);
	return status;
}

static spyre_status zeroing_renew(struct spyre_context *context)
{
	struct spyre_zeroing *zeroing = &context->memory.zeroing;
	spyre_status status = SPYRE_SUCCESS;

	pthread_rwlock_wrlock(&context->memory.lock);
	if (zeroing->queue) {
		status = context->ops->queue_renew(zeroing->queue, 0);
		spyre_zeroing_poll(context, !status);
		zeroing->broken = status;
	}
	pthread_rwlock_unlock(&context->memory.lock);
	return status;
}

static spyre_status reset_streams(struct spyre_context *context, struct spyre_stream **streams,
				  uint32_t n)
{
	spyre_status status, one;

	/* Running work is stopped first: a stream may hold its lock while it waits for it. */
	status = context->ops->context_reset(context->card, false);
	if (status)
		return status;
	for (uint32_t i = 0; i < n; i++) {
		spyre_capture_abort(streams[i]);
		stream_shut(streams[i]);
	}
	/* The second reset stops work that was submitted before the streams were shut. */
	status = context->ops->context_reset(context->card, true);
	if (status)
		return status;
	for (uint32_t i = 0; i < n; i++)
		stream_settle(streams[i]);
	for (uint32_t i = 0; i < n; i++) {
		one = stream_renew(streams[i]);
		if (one && !status)
			status = spyre_error_prefix(one, "stream %d", streams[i]->id);
	}
	return status ? status : zeroing_renew(context);
}

/* Runs a command on each stream, so that success of the reset is verified. */
static spyre_status prove_streams(struct spyre_context *context, struct spyre_stream **streams,
				  uint32_t n)
{
	struct spyre_command command = { .type = SPYRE_COMMAND_TIMESTAMP };
	struct spyre_work work = { .what = "proof", .commands = &command, .num_commands = 1 };
	spyre_status status = SPYRE_SUCCESS;
	uint64_t seq;

	for (uint32_t i = 0; i < n && !status; i++) {
		status = spyre_stream_enqueue(streams[i], &work, &seq);
		if (!status)
			status = spyre_stream_finish(streams[i], seq);
	}
	return status;
}

spyre_status spyre_context_reset(spyre_context *context)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_stream **streams;
	uint32_t n;
	int caller;

	if (status)
		return status;
	caller = spyre_context_calling_stream(context);
	if (caller >= 0)
		return spyre_error(SPYRE_ERROR_BUSY,
				   "spyre_context_reset: called in a host function of stream %d of this "
				   "context; call it from another thread", caller);
	streams = spyre_context_streams(context, &n);
	if (!streams)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "spyre_context_reset: no memory for a list of the streams");
	status = reset_streams(context, streams, n);
	if (!status) {
		pthread_mutex_lock(&context->fault_lock);
		memset(&context->fault, 0, sizeof(context->fault));
		pthread_mutex_unlock(&context->fault_lock);
		status = prove_streams(context, streams, n);
	}
	for (uint32_t i = 0; i < n; i++)
		spyre_stream_unref(streams[i]);
	free(streams);
	if (status)
		return spyre_error_prefix(status, "spyre_context_reset: card %d", context->index);
	spyre_memory_reclaim(context);
	spyre_host_memory_reclaim(context);
	spyre_log(SPYRE_LOG_INFO, "card %d: context reset, %u streams", context->index, n);
	return SPYRE_SUCCESS;
}

static spyre_status probe_queue(const struct spyre_backend_ops *ops, struct spyre_queue *queue)
{
	struct spyre_command command = { .type = SPYRE_COMMAND_TIMESTAMP };
	struct spyre_submission submission = {
		.commands = &command, .num_commands = 1, .point = 1,
	};
	struct timespec now;
	spyre_status status;

	queue->results[0].state = 0;
	status = ops->submit(queue, &submission);
	if (status)
		return status;
	clock_gettime(CLOCK_MONOTONIC, &now);
	status = ops->wait(queue, 1, now.tv_sec * INT64_C(1000000000) + now.tv_nsec + PROBE_NS);
	if (status == SPYRE_NOT_READY)
		return spyre_error(SPYRE_ERROR_DEVICE_LOST,
				   "the card was reset, but did not run a test command within %d s",
				   (int)(PROBE_NS / INT64_C(1000000000)));
	if (!status && queue->results[0].status)
		return spyre_error(SPYRE_ERROR_DEVICE_LOST,
				   "the card was reset, but a test command failed with errno %d",
				   queue->results[0].status);
	return status;
}

/* Checks that the card has at least @generation and runs a command. */
static spyre_status probe_card(const struct spyre_backend_ops *ops, int physical,
			       uint64_t generation)
{
	struct spyre_card_state state = { 0 };
	struct spyre_queue *queue;
	struct spyre_card *card;
	spyre_status status;

	status = ops->open(physical, &card);
	if (status)
		return status;
	status = ops->state(card, &state);
	/* Another reset may have increased the generation further. */
	if (!status && state.card_generation < generation)
		status = spyre_error(SPYRE_ERROR_DEVICE_LOST,
				     "the card was reset, but its generation is %" PRIu64
				     ", expected at least %" PRIu64,
				     state.card_generation, generation);
	if (!status)
		status = ops->queue_create(card, -1, &queue);
	if (!status) {
		status = probe_queue(ops, queue);
		ops->queue_destroy(queue);
	}
	ops->close(card);
	return status;
}

spyre_status spyre_device_reset(int index, uint32_t flags)
{
	const struct spyre_backend_ops *ops;
	uint64_t generation = 0;
	spyre_status status;
	int physical;

	if (flags)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_device_reset: flags must be 0, got 0x%x", flags);
	status = spyre_device_resolve(index, &ops, &physical);
	if (!status)
		status = ops->device_reset(physical, &generation);
	if (!status)
		status = probe_card(ops, physical, generation);
	if (status)
		return spyre_error_prefix(status, "spyre_device_reset: card %d", index);
	spyre_log(SPYRE_LOG_INFO, "card %d: reset, generation %" PRIu64, index, generation);
	return SPYRE_SUCCESS;
}
