/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers: threads that work on the parallel sections of running jobs.
 */
#ifndef SPYRE_HELPER_H
#define SPYRE_HELPER_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "model/card.h"

struct spyre_engine;
struct spyre_job;
struct task_struct;

/* Maximum number of processors that a card uses. */
#define SPYRE_MAX_CPUS 8u
/*
 * One per processor works at a time.  The others replace those that are within the
 * section of a job without a time slice.
 */
#define SPYRE_HELPERS_PER_CPU 4u
#define SPYRE_MAX_HELPERS (SPYRE_MAX_CPUS * SPYRE_HELPERS_PER_CPU)

/**
 * struct spyre_helper - a thread
 */
struct spyre_helper {
	/** @base: the model's view; its scratch is allocated when first needed. */
	struct spyre_worker base;
	/** @engine: its engine. */
	struct spyre_engine *engine;
	/** @task: the thread. */
	struct task_struct *task;
};

/**
 * struct spyre_helpers - those of a card
 */
struct spyre_helpers {
	/** @lock: protects the rest; taken with interrupts off. */
	spinlock_t lock;
	/** @sections: parallel sections that still have indices to hand out. */
	struct list_head sections;
	/** @idle: bit i: helper i sleeps and may be woken. */
	unsigned long idle;
	/** @awake: helpers that are neither idle nor paused. */
	u32 awake;
	/** @max_awake: limit of @awake. */
	u32 max_awake;
	/** @num: threads. */
	u32 num;
	/** @helper: the threads. */
	struct spyre_helper helper[SPYRE_MAX_HELPERS];
};

/* Starts no helpers for one CPU.  On failure, call spyre_helpers_stop() and _free() as well. */
int spyre_helpers_start(struct spyre_engine *engine, u32 cpus);
void spyre_helpers_stop(struct spyre_helpers *helpers);
void spyre_helpers_free(struct spyre_helpers *helpers);

/* Calls @fn for each index, on the caller's thread and others; @job: owner of the work, or NULL. */
void spyre_helpers_parallel(struct spyre_engine *engine, struct spyre_job *job,
			    struct spyre_worker *self, u32 count, spyre_work_fn fn, void *arg);
/* Wakes helpers after a job with open sections has got a time slice again. */
void spyre_helpers_resume(struct spyre_helpers *helpers);
/* Called by a helper when it begins, or ends, to wait for its job's next slice. */
void spyre_helpers_pause(struct spyre_helpers *helpers);
void spyre_helpers_unpause(struct spyre_helpers *helpers);

#endif
