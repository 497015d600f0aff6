/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_QUEUE_H
#define SPYRE_QUEUE_H

#include <drm/gpu_scheduler.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "spyre_arbiter.h"

struct drm_device;
struct drm_file;
struct spyre_ctx_sched;
struct spyre_device;
struct spyre_file;
struct spyre_job;
struct spyre_runner;

/**
 * struct spyre_queue - an in-order queue of jobs
 */
struct spyre_queue {
	/** @ref: held by the id, by jobs and by the runner of one. */
	struct kref ref;
	/** @spyre: the card, referenced. */
	struct spyre_device *spyre;
	/** @sfile: the file, referenced. */
	struct spyre_file *sfile;
	/** @sched: orders jobs behind their waits. */
	struct drm_gpu_scheduler sched;
	/** @entity: the only one of @sched. */
	struct drm_sched_entity entity;
	/** @lock: serialises the publication of submissions. */
	struct mutex lock;
	/** @closed: accepts no more work; protected by @lock. */
	bool closed;
	/** @id: in the file's table, set before it is there. */
	u32 id;
	/** @error: errno of the first failure; set once, kills the queue. */
	int error;
	/** @now_job: number of the running job for debugfs and dumps, 0: none. */
	u64 now_job;
	/** @now_since: CLOCK_MONOTONIC at which it was begun. */
	u64 now_since;
	/** @now_cb: its control block that runs. */
	u32 now_cb;
	/** @priority: DRM_SPYRE_PRIORITY_*. */
	u32 priority;
	/** @timeout_ns: limit of one job. */
	u64 timeout_ns;
	/** @fence_context: of the jobs' fences. */
	u64 fence_context;
	/** @submitted: jobs taken, the last fence's seqno; written under @lock. */
	u64 submitted;
	/** @completed: jobs finished. */
	atomic64_t completed;

	/** @ctx_sched: its context's scheduling state in its class. */
	struct spyre_ctx_sched *ctx_sched;
	/** @claim: its part in the arbiter; engine lock. */
	struct spyre_claim claim;
	/** @jobs: in the engine and not begun; engine lock. */
	struct list_head jobs;
	/** @job: the one that has begun, or NULL; engine lock. */
	struct spyre_job *job;
	/** @runner: the thread that @job is on; engine lock. */
	struct spyre_runner *runner;
	/** @stopped: in the engine's list while its oldest job is to stop; engine lock. */
	struct list_head stopped;
	/** @resume: threads within @job wait here for its next time slice. */
	wait_queue_head_t resume;

	/** @release: frees it after the last reference. */
	struct rcu_work release;
};

int spyre_queue_init(void);
void spyre_queue_exit(void);

struct spyre_queue *spyre_queue_lookup(struct spyre_file *sfile, u32 id);
/* Does nothing for NULL or an error pointer. */
void spyre_queue_put(struct spyre_queue *queue);
/* Ends the queue: cancels queued work and stops running work. */
void spyre_queue_close(struct spyre_queue *queue);
/* Kills the queue at its first failure; later ones have no effect. */
void spyre_queue_kill(struct spyre_queue *queue, int error);
/* Does the same, but the caller informs the engine. */
void spyre_queue_mark_dead(struct spyre_queue *queue, int error);

DEFINE_FREE(spyre_queue_put, struct spyre_queue *, spyre_queue_put(_T))

int spyre_ioctl_queue_create(struct drm_device *drm, void *data, struct drm_file *file);
int spyre_ioctl_queue_destroy(struct drm_device *drm, void *data, struct drm_file *file);
int spyre_ioctl_queue_query(struct drm_device *drm, void *data, struct drm_file *file);

#endif
