// SPDX-License-Identifier: MIT
/*
 * Waits between contexts. A job cannot be listed on a queue of another device, since each
 * device has a lock of its own. Instead, the waiting device leaves its bit on the queue's
 * timeline and reads the progress again; the queue publishes progress and then takes the
 * bits. One of the two sees the other, so that no progress is missed.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "libspyre/backend/embedded.h"

struct embedded_timeline *embedded_timeline_new(void)
{
	struct embedded_timeline *timeline = calloc(1, sizeof(*timeline));

	if (timeline)
		atomic_init(&timeline->refs, 1);
	return timeline;
}

struct embedded_timeline *embedded_timeline_get(struct embedded_timeline *timeline)
{
	atomic_fetch_add_explicit(&timeline->refs, 1, memory_order_relaxed);
	return timeline;
}

void embedded_timeline_put(struct embedded_timeline *timeline)
{
	if (timeline && atomic_fetch_sub(&timeline->refs, 1) == 1)
		free(timeline);
}

void embedded_timeline_advance(struct embedded_timeline *timeline, uint64_t point)
{
	atomic_store(&timeline->completed, point);
	if (atomic_load(&timeline->watchers))
		embedded_devices_look(atomic_exchange(&timeline->watchers, 0));
}

static bool watch(struct embedded_timeline *timeline, uint64_t point, uint32_t bit)
{
	if (atomic_load(&timeline->completed) >= point)
		return false;
	atomic_fetch_or(&timeline->watchers, bit);
	return atomic_load(&timeline->completed) < point;
}

bool embedded_job_watches(const struct embedded_job *job, const struct embedded_device *device)
{
	/* A job that will not run must not wait for others, or a reset would. */
	if (!job->has_watches || embedded_job_is_old(job))
		return false;
	for (uint32_t i = 0; i < job->num_waits; i++) {
		const struct embedded_wait *wait = &job->waits[i];

		if (wait->timeline && watch(wait->timeline, wait->point, 1u << device->index))
			return true;
	}
	return false;
}
