// SPDX-License-Identifier: MIT
/* Queues: a kernel queue id, a timeline syncobj and a ring of results. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <xf86drm.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"
#include "libspyre/base/log.h"

#define SAME_FIELD(field) \
	static_assert(offsetof(struct spyre_command_result, field) == \
		      offsetof(struct drm_spyre_cb_result, field), #field)
static_assert(sizeof(struct spyre_command_result) == sizeof(struct drm_spyre_cb_result), "size");
SAME_FIELD(state);
SAME_FIELD(status);
SAME_FIELD(cycles);
SAME_FIELD(bytes_read);
SAME_FIELD(bytes_written);
SAME_FIELD(macs);
SAME_FIELD(start_ns);
SAME_FIELD(end_ns);
SAME_FIELD(rdma);

/* Longest time limit that DRM_IOCTL_SPYRE_QUEUE_CREATE accepts. */
#define MAX_TIMEOUT_MS 60000u

#define RESULT_BYTES (SPYRE_QUEUE_RESULTS * sizeof(struct spyre_command_result))

/* Polls of a result before sleeping. They take some microseconds, as long as a
 * short job; sleeping and waking cost tens of microseconds. */
#define SPIN_ROUNDS 200

/* Longest time of a started job (DRM_IOCTL_SPYRE_QUEUE_CREATE) plus a margin of 10 s. */
#define DESTROY_WAIT_NS (70 * INT64_C(1000000000))

static spyre_status read_timeout(struct spyre_drm_queue *queue)
{
	spyre_status status = spyre_env_timeout_ms(&queue->timeout_ms);

	/* The kernel has no value for "no limit"; its longest limit is the nearest. */
	if (!queue->timeout_ms || queue->timeout_ms > MAX_TIMEOUT_MS)
		queue->timeout_ms = MAX_TIMEOUT_MS;
	return status;
}

/*
 * The kernel reserves the high class for privileged users. For other users a
 * stream of high priority falls back to low priority, with one log message.
 */
static int make_queue(struct spyre_drm_card *card, struct drm_spyre_queue_create *args)
{
	int error = drmIoctl(card->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, args) ? errno : 0;

	if (error != EACCES || args->priority != DRM_SPYRE_PRIORITY_HIGH)
		return error;
	if (!atomic_exchange(&card->high_refused, true))
		spyre_log(SPYRE_LOG_WARN,
			  "%s: queues of high priority take CAP_SYS_NICE: streams of priority -1 have the normal priority 0",
			  card->base.properties.node);
	args->priority = DRM_SPYRE_PRIORITY_LOW;
	return drmIoctl(card->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, args) ? errno : 0;
}

static spyre_status create_queue(struct spyre_drm_card *card, int priority,
				 struct spyre_drm_queue *queue)
{
	struct drm_spyre_queue_create args = {
		.priority = priority < 0 ? DRM_SPYRE_PRIORITY_HIGH : DRM_SPYRE_PRIORITY_LOW,
		.timeout_ms = queue->timeout_ms,
	};
	const int error = make_queue(card, &args);

	if (error) {
		if (error == ENOSPC)
			return spyre_error(SPYRE_ERROR_SYSTEM,
					   "%s: this context has as many queues as a card gives it; destroy streams that are not used",
					   card->base.properties.node);
		return spyre_drm_error(card, error,
				       "DRM_IOCTL_SPYRE_QUEUE_CREATE of priority %d", priority);
	}
	queue->id = args.queue_id;
	return SPYRE_SUCCESS;
}

static void destroy_queue(struct spyre_drm_card *card, uint32_t id)
{
	struct drm_spyre_queue_destroy args = { .queue_id = id };

	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &args))
		spyre_log(SPYRE_LOG_DEBUG, "%s: QUEUE_DESTROY of %u: %s",
			  card->base.properties.node, id, strerror(errno));
}

spyre_status spyre_drm_queue_create(struct spyre_card *base, int priority,
				    struct spyre_queue **made)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct spyre_drm_queue *queue;
	spyre_status status;
	void *results;
	int error;

	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no host memory for a queue of %zu bytes", sizeof(*queue));
	queue->base.card = base;
	status = read_timeout(queue);
	if (status)
		goto free_queue;
	status = spyre_drm_host_bo(card, RESULT_BYTES, &results, &queue->result_handle);
	if (status)
		goto free_queue;
	queue->base.results = results;
	if (drmSyncobjCreate(card->fd, 0, &queue->syncobj)) {
		status = spyre_drm_error(card, errno, "DRM_IOCTL_SYNCOBJ_CREATE");
		goto free_results;
	}
	error = spyre_drm_ring_open(card, &queue->ring);
	if (error) {
		status = spyre_drm_error(card, error, "io_uring_setup for a queue");
		goto free_syncobj;
	}
	status = create_queue(card, priority, queue);
	if (status)
		goto free_ring;
	*made = &queue->base;
	return SPYRE_SUCCESS;

free_ring:
	spyre_drm_ring_close(queue->ring);
free_syncobj:
	drmSyncobjDestroy(card->fd, queue->syncobj);
free_results:
	munmap(results, RESULT_BYTES);
	spyre_drm_gem_close(card, queue->result_handle);
free_queue:
	free(queue);
	return status;
}

/* Destroys the kernel's queue. Started work may still access host spans of the caller. */
static spyre_status end_queue(struct spyre_drm_queue *queue)
{
	struct timespec now;

	destroy_queue(spyre_drm_card(queue->base.card), queue->id);
	queue->id = 0;
	if (!queue->submitted)
		return SPYRE_SUCCESS;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return spyre_drm_wait(&queue->base, queue->submitted,
			      now.tv_sec * INT64_C(1000000000) + now.tv_nsec + DESTROY_WAIT_NS);
}

/* Creates a new kernel queue that uses the same timeline and results. */
spyre_status spyre_drm_queue_renew(struct spyre_queue *base, int priority)
{
	struct spyre_drm_queue *queue = spyre_drm_queue(base);
	struct spyre_drm_card *card = spyre_drm_card(base->card);
	spyre_status status = end_queue(queue);

	if (status == SPYRE_NOT_READY)
		return spyre_error(SPYRE_ERROR_TIMEOUT,
				   "%s: the card does not let go of a queue's work within %d s; reset it (spyre-smi reset)",
				   card->base.properties.node,
				   (int)(DESTROY_WAIT_NS / INT64_C(1000000000)));
	if (status)
		return status;
	return create_queue(card, priority, queue);
}

void spyre_drm_queue_destroy(struct spyre_queue *base)
{
	struct spyre_drm_queue *queue = spyre_drm_queue(base);
	struct spyre_drm_card *card = spyre_drm_card(base->card);

	(void)end_queue(queue);
	spyre_drm_ring_close(queue->ring);
	spyre_drm_foreign_drop(queue, queue->syncobj);
	drmSyncobjDestroy(card->fd, queue->syncobj);
	munmap(base->results, RESULT_BYTES);
	spyre_drm_gem_close(card, queue->result_handle);
	free(queue->peers);
	free(queue);
}

static void raise_completed(struct spyre_drm_queue *queue, uint64_t point)
{
	uint64_t seen = atomic_load_explicit(&queue->completed, memory_order_relaxed);

	while (seen < point &&
	       !atomic_compare_exchange_weak_explicit(&queue->completed, &seen, point,
						      memory_order_release, memory_order_relaxed))
		;
}

/* True if the last result of @point has arrived; false also if its slot is unknown. */
static bool result_done(struct spyre_drm_queue *queue, uint64_t point)
{
	uint64_t note = atomic_load_explicit(&queue->last_result[point % SPYRE_QUEUE_RESULTS],
					     memory_order_acquire);

	return note / SPYRE_QUEUE_RESULTS == point &&
	       __atomic_load_n(&queue->base.results[note % SPYRE_QUEUE_RESULTS].state,
			       __ATOMIC_ACQUIRE) == DRM_SPYRE_CB_DONE;
}

static bool known_done(struct spyre_drm_queue *queue, uint64_t point)
{
	if (atomic_load_explicit(&queue->completed, memory_order_acquire) >= point)
		return true;
	if (!result_done(queue, point))
		return false;
	raise_completed(queue, point);
	return true;
}

/*
 * After an unplug the kernel no longer writes pending results, and a reader
 * must not take them for success: marks them as lost.
 */
static void lose_results(struct spyre_drm_queue *queue)
{
	uint32_t i;

	for (i = 0; i < SPYRE_QUEUE_RESULTS; i++) {
		struct spyre_command_result *result = &queue->base.results[i];

		if (__atomic_load_n(&result->state, __ATOMIC_ACQUIRE) == DRM_SPYRE_CB_DONE)
			continue;
		result->status = -ENODEV;
		__atomic_store_n(&result->state, DRM_SPYRE_CB_DONE, __ATOMIC_RELEASE);
	}
	raise_completed(queue, atomic_load_explicit(&queue->submitted, memory_order_acquire));
}

spyre_status spyre_drm_wait(struct spyre_queue *base, uint64_t point, int64_t deadline_ns)
{
	struct spyre_drm_queue *queue = spyre_drm_queue(base);
	struct spyre_drm_card *card = spyre_drm_card(base->card);
	spyre_status status;
	int i, error;

	for (i = 0; i < SPIN_ROUNDS; i++) {
		if (known_done(queue, point))
			return SPYRE_SUCCESS;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
	}
	if (!drmSyncobjTimelineWait(card->fd, &queue->syncobj, &point, 1, deadline_ns, 0, NULL)) {
		raise_completed(queue, point);
		return SPYRE_SUCCESS;
	}
	error = errno;
	if (error == ETIME)
		return SPYRE_NOT_READY;
	status = spyre_drm_error(card, error,
				 "DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT for point %" PRIu64
				 " of queue %u (submitted: %" PRIu64 ")", point, queue->id,
				 atomic_load(&queue->submitted));
	if (status == SPYRE_ERROR_DEVICE_LOST)
		lose_results(queue);
	return status;
}

uint64_t spyre_drm_completed(struct spyre_queue *base)
{
	struct spyre_drm_queue *queue = spyre_drm_queue(base);
	struct spyre_drm_card *card = spyre_drm_card(base->card);
	uint64_t submitted, done, point = 0;

	submitted = atomic_load_explicit(&queue->submitted, memory_order_acquire);
	done = atomic_load_explicit(&queue->completed, memory_order_acquire);
	while (done < submitted && result_done(queue, done + 1))
		done++;
	raise_completed(queue, done);
	if (done < submitted) {
		if (!drmSyncobjQuery(card->fd, &queue->syncobj, &point, 1))
			raise_completed(queue, point);
		else if (errno == ENODEV)
			lose_results(queue);
	}
	return atomic_load_explicit(&queue->completed, memory_order_acquire);
}
