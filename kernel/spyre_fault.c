// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failure and recovery of contexts.
 *
 * The first fault of a context marks it: all of its queues are killed, queued
 * work is cancelled and new work is rejected.  Cancelled work (a queue or file
 * that was closed, a reset, an unplug) does not mark the context.  Other
 * contexts are not affected.
 */
#include <linux/ktime.h>

#include "spyre_coredump.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_events.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_job.h"
#include "spyre_query.h"
#include "spyre_queue.h"
#include "spyre_trace.h"

/* Far longer than the time that any work needs to stop. */
#define SPYRE_DRAIN_JIFFIES (10 * HZ)

/* The model has the kinds, since embedded cards count them as well. */
static_assert((u32)SPYRE_FAULT_KIND_TIMEOUT == DRM_SPYRE_FAULT_TIMEOUT);
static_assert((u32)SPYRE_FAULT_KIND_ACCESS == DRM_SPYRE_FAULT_ACCESS);
static_assert((u32)SPYRE_FAULT_KIND_ESCAPE == DRM_SPYRE_FAULT_ESCAPE);
static_assert((u32)SPYRE_FAULT_KIND_COMPUTE == DRM_SPYRE_FAULT_COMPUTE);

void spyre_health_init(struct spyre_context_health *health)
{
	spin_lock_init(&health->lock);
	mutex_init(&health->creating);
}

const char *spyre_fault_name(u32 kind)
{
	static const char * const names[] = {
		[DRM_SPYRE_FAULT_NONE] = "none",
		[DRM_SPYRE_FAULT_TIMEOUT] = "timeout",
		[DRM_SPYRE_FAULT_ACCESS] = "access",
		[DRM_SPYRE_FAULT_ESCAPE] = "escape",
		[DRM_SPYRE_FAULT_COMPUTE] = "compute",
	};

	return kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

static int spyre_fault_errno(u32 kind)
{
	switch (kind) {
	case DRM_SPYRE_FAULT_TIMEOUT:
		return -ETIME;
	case DRM_SPYRE_FAULT_ACCESS:
	case DRM_SPYRE_FAULT_ESCAPE:
		return -EFAULT;
	default:
		return -EIO;
	}
}

u32 spyre_file_kill_queues(struct spyre_file *sfile, int error)
{
	struct spyre_queue *queue;
	unsigned long id;
	u32 count = 0;

	/* Under the lock queues exist: QUEUE_DESTROY and close() erase them before the put. */
	xa_lock(&sfile->queues);
	xa_for_each(&sfile->queues, id, queue) {
		spyre_queue_kill(queue, error);
		count++;
	}
	xa_unlock(&sfile->queues);
	return count;
}

/* Marks the context unless it is marked; kills the job's queue with the error, others cancelled. */
static int spyre_fault_raise(struct spyre_job *job, u32 cb, u32 kind, enum spyre_stop stop)
{
	struct spyre_queue *queue = job->queue;
	struct spyre_file *sfile = queue->sfile;
	struct spyre_context_health *health = &sfile->health;
	const struct spyre_fault fault = {
		.kind = kind,
		.error = spyre_fault_errno(kind),
		.queue = queue->id,
		.cb = cb,
		.job = job->done->seqno,
		.ns = ktime_get_ns(),
		.stop = stop,
	};
	bool first;

	scoped_guard(spinlock, &health->lock) {
		first = !health->fault.kind;
		if (first) {
			health->fault = fault;
			health->stats.faults[kind]++;
		}
	}
	/* The queue may have left the table already. */
	spyre_queue_mark_dead(queue, fault.error);
	if (!first)
		return fault.error;

	spyre_engine_count_fault(&queue->spyre->engine, kind);
	trace_spyre_fault(job, &fault);
	spyre_events_add_context(sfile, "fault", kind);
	/* Pairs with spyre_ioctl_queue_create(): it sees the mark, or its queue is found here. */
	smp_mb();
	spyre_file_kill_queues(sfile, -ECANCELED);
	spyre_coredump_take(job, &fault);
	return fault.error;
}

int spyre_fault_stopped(struct spyre_job *job, u32 cb, enum spyre_stop stop)
{
	return spyre_fault_raise(job, cb, spyre_fault_of_stop(stop), stop);
}

int spyre_fault_told(struct spyre_job *job, u32 cb, int reason)
{
	if (reason != -ETIME)
		return reason;
	return spyre_fault_raise(job, cb, DRM_SPYRE_FAULT_TIMEOUT, SPYRE_STOP_CANCELLED);
}

struct spyre_fault spyre_file_fault(struct spyre_file *sfile)
{
	guard(spinlock)(&sfile->health.lock);
	return sfile->health.fault;
}

void spyre_file_forgive(struct spyre_file *sfile)
{
	guard(spinlock)(&sfile->health.lock);
	sfile->health.fault = (struct spyre_fault) {};
}

bool spyre_file_is_faulted(struct spyre_file *sfile)
{
	return READ_ONCE(sfile->health.fault.kind);
}

void spyre_file_account(struct spyre_file *sfile, u64 busy_ns, const struct spyre_counters *cost,
			bool failed)
{
	struct spyre_stats *stats = &sfile->health.stats;

	guard(spinlock)(&sfile->health.lock);
	stats->busy_ns += busy_ns;
	stats->jobs++;
	stats->errors += failed;
	spyre_counters_add(&stats->cost, cost);
}

void spyre_file_read_stats(struct spyre_file *sfile, struct spyre_stats *stats)
{
	guard(spinlock)(&sfile->health.lock);
	*stats = sfile->health.stats;
}

int spyre_file_drain(struct spyre_file *sfile)
{
	struct spyre_engine *engine = &sfile->spyre->engine;
	struct spyre_queue *queue;
	unsigned long id;
	long left;

	xa_for_each(&sfile->queues, id, queue) {
		/* Another thread may destroy the queue meanwhile. */
		queue = spyre_queue_lookup(sfile, id);
		if (!queue)
			continue;
		spyre_engine_drain(engine, queue);
		spyre_queue_put(queue);
	}
	/* Queues that another thread is destroying are no longer in the table. */
	left = wait_event_killable_timeout(engine->idle, !atomic_read(&sfile->health.running),
					   SPYRE_DRAIN_JIFFIES);
	if (left < 0)
		return left;
	return left ? 0 : -EIO;
}

int spyre_ioctl_context_reset(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_file *sfile = to_spyre_file(file);
	struct spyre_context_health *health = &sfile->health;
	struct drm_spyre_context_reset *args = data;
	int ret;

	args->queues = 0;
	if (args->flags)
		return -EINVAL;
	if (spyre_file_is_stale(sfile))
		return -EIO;

	/* No queue is created meanwhile, so no new work can fail. */
	if (mutex_lock_killable(&health->creating))
		return -ERESTARTSYS;
	args->queues = spyre_file_kill_queues(sfile, -ECANCELED);
	ret = spyre_file_drain(sfile);
	if (!ret) {
		spyre_file_forgive(sfile);
		scoped_guard(spinlock, &health->lock)
			health->resets++;
		spyre_events_add_context(sfile, "context_reset", args->queues);
	}
	mutex_unlock(&health->creating);
	trace_spyre_context_reset(sfile, args->queues, ret);
	return ret;
}

void spyre_query_context(struct spyre_file *sfile, struct drm_spyre_context_info *info)
{
	const struct spyre_fault fault = spyre_file_fault(sfile);
	struct drm_spyre_counters own = {};
	struct spyre_queue *queue;
	unsigned long id;

	info->id = sfile->id;
	info->generation = sfile->generation;
	info->state = fault.kind ? DRM_SPYRE_CONTEXT_FAULTED : DRM_SPYRE_CONTEXT_OK;
	if (spyre_file_is_stale(sfile))
		info->state = DRM_SPYRE_CONTEXT_STALE;
	info->error = fault.error;
	info->fault = fault.kind;
	info->fault_queue = fault.queue;
	info->fault_job = fault.job;
	info->fault_cb = fault.cb;
	info->fault_ns = fault.ns;
	xa_for_each(&sfile->queues, id, queue)
		info->num_queues++;
	info->memory_used = atomic64_read(&sfile->used);
	spyre_query_own_counters(sfile, &own);
	info->busy_ns = own.busy_ns;
#define COPY(name, key) info->name = own.name;
	SPYRE_COUNTERS(COPY)
#undef COPY
	scoped_guard(spinlock, &sfile->health.lock)
		info->resets = sfile->health.resets;
	info->preempted = atomic64_read(&sfile->preempted);
}
