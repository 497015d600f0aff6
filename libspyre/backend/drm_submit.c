// SPDX-License-Identifier: MIT
/* Submission; no allocation on the way. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <xf86drm.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"

/* Submits by io_uring if the queue has a usable ring, else by ioctl; 0 or a positive errno. */
static int send_submission(struct spyre_drm_queue *queue, struct drm_spyre_submit *args)
{
	int error;

	if (spyre_drm_ring_submit(queue, args, &error))
		return error;
	return drmIoctl(spyre_drm_card(queue->base.card)->fd, DRM_IOCTL_SPYRE_SUBMIT, args) ?
	       errno : 0;
}

static void init_args(struct spyre_drm_queue *queue, uint32_t num_cbs, uint32_t num_syncs,
		      struct drm_spyre_submit *args)
{
	*args = (struct drm_spyre_submit){
		.queue_id = queue->id,
		.error_cb = UINT32_MAX,
		.cbs = {
			.stride = sizeof(queue->cbs[0]),
			.count = num_cbs,
			.array = (uintptr_t)queue->cbs,
		},
		.syncs = {
			.stride = sizeof(queue->syncs[0]),
			.count = num_syncs,
			.array = (uintptr_t)queue->syncs,
		},
	};
}

static void add_timestamp(struct spyre_drm_queue *queue)
{
	memset(&queue->cbs[0], 0, sizeof(queue->cbs[0]));
	queue->cbs[0].type = DRM_SPYRE_CB_TIMESTAMP;
}

/* The handle of @other's timeline in the file of @queue. */
static spyre_status wait_handle(struct spyre_drm_queue *queue, struct spyre_drm_queue *other,
				uint32_t *handle)
{
	*handle = other->syncobj;
	if (other->base.card == queue->base.card)
		return SPYRE_SUCCESS;
	return spyre_drm_foreign_get(spyre_drm_card(queue->base.card),
				     spyre_drm_card(other->base.card), other, false,
				     other->syncobj, handle);
}

/*
 * Fills queue->syncs with the waits that are still pending and gives their
 * number. Reached points and points of this queue (it is in order) are left
 * out. Waits beyond @capacity go into earlier submissions that only wait, which
 * later submissions of this queue follow.
 */
static spyre_status encode_waits(struct spyre_drm_queue *queue,
				 const struct spyre_submission *submission, uint32_t capacity,
				 uint32_t *count)
{
	struct spyre_drm_card *card = spyre_drm_card(queue->base.card);
	struct drm_spyre_submit args;
	uint32_t i, handle, used = 0;
	int error;

	for (i = 0; i < submission->num_waits; i++) {
		const struct spyre_wait *wait = &submission->waits[i];
		struct spyre_drm_queue *other = spyre_drm_queue(wait->queue);

		if (other == queue || !wait->point ||
		    atomic_load_explicit(&other->completed, memory_order_acquire) >= wait->point)
			continue;
		if (used == capacity) {
			add_timestamp(queue);
			init_args(queue, 1, used, &args);
			error = send_submission(queue, &args);
			if (error)
				return spyre_drm_error(card, error,
						       "submission on queue %u of %u waits",
						       queue->id, used);
			used = 0;
		}
		TRY(wait_handle(queue, other, &handle));
		queue->syncs[used++] = (struct drm_spyre_sync){
			.handle = handle,
			.point = wait->point,
		};
	}
	*count = used;
	return SPYRE_SUCCESS;
}

static spyre_status encode_commands(struct spyre_drm_queue *queue,
				    const struct spyre_submission *submission)
{
	struct spyre_drm_card *card = spyre_drm_card(queue->base.card);
	spyre_status status = SPYRE_SUCCESS;
	uint32_t i;

	for (i = 0; i < submission->num_commands && !status; i++) {
		const struct spyre_command *command = &submission->commands[i];

		status = command->type == SPYRE_COMMAND_PEER ?
			 spyre_drm_encode_peer(queue, command, i) :
			 spyre_drm_encode(card, command, i, &queue->cbs[i]);
	}
	if (!submission->num_commands)
		add_timestamp(queue);
	return status;
}

/* Marks the results as pending before the kernel can write them. */
static void reset_results(struct spyre_drm_queue *queue, const struct spyre_submission *submission)
{
	struct spyre_command_result *results = queue->base.results + submission->first_result;
	uint64_t note = 0;
	uint32_t i;

	for (i = 0; i < submission->num_commands; i++)
		__atomic_store_n(&results[i].state, DRM_SPYRE_CB_PENDING, __ATOMIC_RELAXED);
	if (submission->num_commands)
		note = submission->point * SPYRE_QUEUE_RESULTS + submission->first_result +
		       submission->num_commands - 1;
	atomic_store_explicit(&queue->last_result[submission->point % SPYRE_QUEUE_RESULTS], note,
			      memory_order_release);
}

/* Text for a command that the kernel refused by its index. */
static spyre_status command_error(struct spyre_drm_queue *queue, int error, uint32_t index,
				  const struct spyre_submission *submission)
{
	struct spyre_drm_card *card = spyre_drm_card(queue->base.card);
	const char *name = spyre_drm_command_name(&submission->commands[index]);
	const struct drm_spyre_cb *cb = &queue->cbs[index];
	enum spyre_stop stop = SPYRE_STOP_NONE;
	uint64_t bytes;

	if (error == EFAULT)
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
				   "%s: submission on queue %u: command %u of %u (%s; dst 0x%llx, src 0x%llx, %llu bytes, host %p) reaches device or host memory that is not mapped or may not be written; allocate it, and keep it until the stream got past the command",
				   card->base.properties.node, queue->id, index,
				   submission->num_commands, name, (unsigned long long)cb->dst,
				   (unsigned long long)cb->src, (unsigned long long)cb->size,
				   (void *)(uintptr_t)cb->host_addr);
	if (error == ENOLINK)
		return spyre_error(SPYRE_ERROR_PEER_LOST,
				   "%s: submission on queue %u: command %u of %u (%s): the context at the far end has failed, its card was reset, or it is gone; reset or replace that context",
				   card->base.properties.node, queue->id, index,
				   submission->num_commands, name);
	/* The kernel checks descriptors by this function too, so it gives the same reason. */
	if (error == EINVAL && cb->type == DRM_SPYRE_CB_DMA) {
		stop = spyre_dma_check(submission->commands[index].dma.desc, &bytes, NULL);
		if (stop == SPYRE_STOP_NONE)
			stop = spyre_dma_check_host(submission->commands[index].dma.desc,
						    cb->size);
	}
	if (stop != SPYRE_STOP_NONE)
		return spyre_error(stop == SPYRE_STOP_DMA_FORMAT ? SPYRE_ERROR_FORMAT
								 : SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: submission on queue %u: command %u of %u (%s): the DMA engine does not take the descriptor: %s",
				   card->base.properties.node, queue->id, index,
				   submission->num_commands, name, spyre_stop_name(stop));
	return spyre_drm_error(card, error,
			       "submission on queue %u: command %u of %u (%s; dst 0x%llx, src 0x%llx, %llu bytes)",
			       queue->id, index, submission->num_commands, name,
			       (unsigned long long)cb->dst, (unsigned long long)cb->src,
			       (unsigned long long)cb->size);
}

static spyre_status submit_error(struct spyre_drm_queue *queue, int error,
				 const struct spyre_submission *submission,
				 const struct drm_spyre_submit *args)
{
	struct spyre_drm_card *card = spyre_drm_card(queue->base.card);
	struct drm_spyre_queue_query query = { .queue_id = queue->id };

	if (args->error_cb < submission->num_commands)
		return command_error(queue, error, args->error_cb, submission);
	if (error == ECANCELED && !drmIoctl(card->fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query))
		return spyre_drm_error(card, error,
				       "submission on queue %u, which failed after %llu of %llu jobs with %s (errno %d)",
				       queue->id, (unsigned long long)query.completed,
				       (unsigned long long)query.submitted, strerror(-query.error),
				       -query.error);
	return spyre_drm_error(card, error,
			       "submission on queue %u of %u commands and %u waits",
			       queue->id, submission->num_commands, submission->num_waits);
}

static spyre_status check_counts(struct spyre_drm_queue *queue,
				 const struct spyre_submission *submission)
{
	if (submission->num_commands > SPYRE_DRM_MAX_CBS ||
	    submission->first_result > SPYRE_QUEUE_RESULTS ||
	    submission->num_commands > SPYRE_QUEUE_RESULTS - submission->first_result)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: %u commands with results at %u do not fit: a submission takes %u, a queue has %u results",
				   queue->base.card->properties.node, submission->num_commands,
				   submission->first_result, SPYRE_DRM_MAX_CBS,
				   SPYRE_QUEUE_RESULTS);
	return SPYRE_SUCCESS;
}

spyre_status spyre_drm_submit(struct spyre_queue *base, const struct spyre_submission *submission)
{
	struct spyre_drm_queue *queue = spyre_drm_queue(base);
	struct spyre_drm_bounce bounce = { 0 };
	struct drm_spyre_submit args;
	uint32_t syncs = 0;
	int error;

	TRY(check_counts(queue, submission));
	TRY(encode_waits(queue, submission, SPYRE_DRM_MAX_SYNCS - 1, &syncs));
	TRY(encode_commands(queue, submission));
	reset_results(queue, submission);
	queue->syncs[syncs++] = (struct drm_spyre_sync){
		.handle = queue->syncobj,
		.flags = DRM_SPYRE_SYNC_SIGNAL,
		.point = submission->point,
	};
	init_args(queue, submission->num_commands ? submission->num_commands : 1, syncs, &args);
	if (submission->num_commands) {
		args.result_handle = queue->result_handle;
		args.result_offset = submission->first_result *
				     sizeof(struct spyre_command_result);
	}
	error = send_submission(queue, &args);
	/* The pin exceeds RLIMIT_MEMLOCK, or the memory belongs to a file. */
	if ((error == ENOMEM || error == EFAULT) &&
	    spyre_drm_bounce_begin(queue, submission, args.error_cb, &bounce))
		error = send_submission(queue, &args);
	if (!error)
		atomic_store_explicit(&queue->submitted, submission->point,
				      memory_order_release);
	if (bounce.map)
		spyre_drm_bounce_end(queue, submission, &bounce, !error);
	return error ? submit_error(queue, error, submission, &args) : SPYRE_SUCCESS;
}
