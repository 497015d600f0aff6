/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runners: threads that run jobs.  A job stays on its runner from its start to
 * its end, also between its time slices.  Each context has a runner of its own
 * in each class that it uses, so that other contexts cannot prevent it from starting
 * a job; the card has a pool of further runners for all contexts.
 */
#ifndef SPYRE_RUNNER_H
#define SPYRE_RUNNER_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "model/card.h"
#include "spyre_arbiter.h"

struct spyre_engine;
struct spyre_lx;
struct spyre_queue;
struct task_struct;

/**
 * struct spyre_runner - a thread that runs jobs
 */
struct spyre_runner {
	/** @base: the model's view. */
	struct spyre_worker base;
	/** @engine: its engine. */
	struct spyre_engine *engine;
	/** @task: its thread; NULL for the inline runner. */
	struct task_struct *task;
	/** @queue: the queue whose oldest job it runs, or will run; engine lock. */
	struct spyre_queue *queue;
	/** @pool: while idle, in the engine's pool. */
	struct list_head pool;
};

/**
 * struct spyre_ctx_sched - a context's scheduling state in one class
 */
struct spyre_ctx_sched {
	/** @context: its share; engine lock. */
	struct spyre_arb_context context;
	/** @runner: its own runner, once it has a queue. */
	struct spyre_runner runner;
	/** @lock: protects @lx and the creation of @runner. */
	struct mutex lock;
	/**
	 * @lx: scratchpads for jobs on its own runner, or NULL.  Programs of this context
	 * and class find in them what its earlier ones kept.
	 */
	struct spyre_lx *lx;
};

void spyre_ctx_sched_init(struct spyre_ctx_sched *sched, struct spyre_engine *engine, u32 class);
/* Creates the context's runner unless it exists; may sleep and fail. */
int spyre_ctx_sched_open(struct spyre_ctx_sched *sched, u64 id);
/* Returns scratchpads of at least this size, with a reference, or an error. */
struct spyre_lx *spyre_ctx_sched_lx(struct spyre_ctx_sched *sched, u32 cores, u32 bytes);
/* Stops the runner; all queues of the context are closed. */
void spyre_ctx_sched_close(struct spyre_ctx_sched *sched);

/* Starts @runner's thread. */
int spyre_runner_start(struct spyre_runner *runner, struct spyre_engine *engine,
		       const char *kind, u64 id);
void spyre_runner_stop(struct spyre_runner *runner);

#endif
