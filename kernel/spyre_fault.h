/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults: a context (an open file) whose own work fails is marked, its queues
 * are killed, and it accepts no work until CONTEXT_RESET clears the mark.
 */
#ifndef SPYRE_FAULT_H
#define SPYRE_FAULT_H

#include <drm/spyre_accel.h>
#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "model/program.h"
#include "spyre_stats.h"

struct drm_device;
struct drm_file;
struct spyre_file;
struct spyre_job;
struct spyre_queue;

/**
 * struct spyre_fault - the first failure of a context
 */
struct spyre_fault {
	/** @kind: enum drm_spyre_fault; the other members are valid unless it is NONE. */
	u32 kind;
	/** @error: errno, negative. */
	int error;
	/** @queue: id of the queue. */
	u32 queue;
	/** @cb: control block of the job. */
	u32 cb;
	/** @job: number of the queue's job, from 1. */
	u64 job;
	/** @ns: CLOCK_MONOTONIC. */
	u64 ns;
	/** @stop: reason that the model reported. */
	enum spyre_stop stop;
};

/**
 * struct spyre_context_health - the fault and the counters of a file
 */
struct spyre_context_health {
	/** @lock: protects @fault, @stats and @resets; interrupts on, allocates nothing. */
	spinlock_t lock;
	/** @fault: the first failure since the context was opened or reset. */
	struct spyre_fault fault;
	/** @creating: serialises CONTEXT_RESET and the creation of queues. */
	struct mutex creating;
	/** @running: jobs that the engine has begun and not ended. */
	atomic_t running;
	/** @stats: totals of its work. */
	struct spyre_stats stats;
	/** @resets: CONTEXT_RESETs that succeeded. */
	u64 resets;
};

void spyre_health_init(struct spyre_context_health *health);

/*
 * Handles a control block that the model stopped with @stop although its job was
 * not told to stop: marks the context, kills its queues and keeps the parts of a
 * dump.  Returns the block's status.  Allocates nothing, so it may be called
 * between a fence's publication and its signal.
 */
int spyre_fault_stopped(struct spyre_job *job, u32 cb, enum spyre_stop stop);
/* Does the same for a job that was told to stop with @reason, and returns @reason. */
int spyre_fault_told(struct spyre_job *job, u32 cb, int reason);

/* Returns true if the context has failed and accepts no work. */
bool spyre_file_is_faulted(struct spyre_file *sfile);
struct spyre_fault spyre_file_fault(struct spyre_file *sfile);
/* Clears the mark; the caller ensures that no work of @sfile runs and its queues are killed. */
void spyre_file_forgive(struct spyre_file *sfile);
/* Kills all queues of @sfile with @error and returns their number.  Does not sleep. */
u32 spyre_file_kill_queues(struct spyre_file *sfile, int error);
/* Counts a job that has ended and ran for @busy_ns. */
void spyre_file_account(struct spyre_file *sfile, u64 busy_ns, const struct spyre_counters *cost,
			bool failed);
void spyre_file_read_stats(struct spyre_file *sfile, struct spyre_stats *stats);
/* Waits until the engine has no job of @sfile; -EIO if one does not end. */
int spyre_file_drain(struct spyre_file *sfile);

const char *spyre_fault_name(u32 kind);

void spyre_query_context(struct spyre_file *sfile, struct drm_spyre_context_info *info);
int spyre_ioctl_context_reset(struct drm_device *drm, void *data, struct drm_file *file);

#endif
