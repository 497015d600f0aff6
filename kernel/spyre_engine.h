/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engine of a card: worker threads that take jobs from queues, one job
 * of a queue at a time, and that share the cores' work of a running job.
 */
#ifndef SPYRE_ENGINE_H
#define SPYRE_ENGINE_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "model/card.h"

struct spyre_device;
struct spyre_job;
struct spyre_queue;

#define SPYRE_ENGINE_MAX_WORKERS 8u

/**
 * struct spyre_engine_worker - a thread of the engine
 */
struct spyre_engine_worker {
	/** @base: what the model sees of it. */
	struct spyre_worker base;
	/** @engine: its engine. */
	struct spyre_engine *engine;
	/** @task: its thread, NULL for the guest. */
	struct task_struct *task;
};

/**
 * struct spyre_engine_stats - running totals
 */
struct spyre_engine_stats {
	/** @busy_ns: time during which at least one job ran. */
	u64 busy_ns;
	/** @jobs: completed jobs. */
	u64 jobs;
	/** @errors: jobs that failed, timed out or were cancelled. */
	u64 errors;
	/** @cost: modelled totals. */
	struct spyre_counters cost;
};

/**
 * struct spyre_engine_sample - totals at a moment, for the load since then
 */
struct spyre_engine_sample {
	/** @ns: CLOCK_MONOTONIC. */
	u64 ns;
	/** @stats: totals then. */
	struct spyre_engine_stats stats;
};

/**
 * struct spyre_engine - executes the jobs of a card
 */
struct spyre_engine {
	/** @host: what the model calls back. */
	struct spyre_host host;
	/** @lock: protects the lists, @stats and the flags; taken with interrupts off. */
	spinlock_t lock;
	/** @work: workers wait here. */
	wait_queue_head_t work;
	/** @idle: who waits for a queue or for the engine to run dry. */
	wait_queue_head_t idle;
	/** @ready: queues with a job to start, by priority class. */
	struct list_head ready[2];
	/** @lx_wait: queues whose next job needs the scratchpads that another job has. */
	struct list_head lx_wait[2];
	/** @sections: parallel sections that still have indices to hand out. */
	struct list_head sections;
	/** @running: jobs being executed. */
	u32 running;
	/** @busy_since: when @running left zero. */
	u64 busy_since;
	/** @gone: the card was unplugged. */
	bool gone;
	/** @stats: totals. */
	struct spyre_engine_stats stats;

	/** @lx_alloc: serialises spyre_engine_need_lx(). */
	struct mutex lx_alloc;
	/** @lx_memory: the scratchpads of all cores, or NULL until a program needs them. */
	u8 *lx_memory;
	/** @lx: scratchpad of each core. */
	u8 *lx[SPYRE_MAX_CORES];
	/** @lx_busy: a job has the scratchpads; engine lock. */
	bool lx_busy;
	/** @lx_owner: id of the file whose data is in them; who has them may change it. */
	u64 lx_owner;
	/** @lx_dirty: bytes per core that it may have written; likewise. */
	u32 lx_dirty;

	/** @guest: stands for the thread that brings a light job. */
	struct spyre_engine_worker guest;
	/** @guest_busy: @guest runs a job. */
	bool guest_busy;
	/** @num_workers: threads. */
	u32 num_workers;
	/** @workers: the threads. */
	struct spyre_engine_worker workers[SPYRE_ENGINE_MAX_WORKERS];
};

/* @workers threads at most, whose names begin with @name. */
int spyre_engine_start(struct spyre_engine *engine, const char *name, u32 workers);
/* Cancels everything with -ENODEV and ends the threads. */
void spyre_engine_stop(struct spyre_engine *engine);
void spyre_engine_free(struct spyre_engine *engine);
/* Provides scratchpads for @cores cores; may sleep and fail. */
int spyre_engine_need_lx(struct spyre_engine *engine, u32 cores);
/* Clears the scratchpads, which a job of file @owner has got, of other files' data. */
void spyre_engine_lx_clean(struct spyre_engine *engine, u64 owner, u32 lx_bytes);

/* Takes over @job, runs it if it is light; -ENODEV once the card is gone. */
int spyre_engine_push(struct spyre_engine *engine, struct spyre_job *job);
/* Waits until no job of @queue is in the engine. */
void spyre_engine_drain(struct spyre_engine *engine, struct spyre_queue *queue);
/* Clears the scratchpads and sees that the workers answer; -EIO if one does not. */
int spyre_engine_probe(struct spyre_engine *engine);
/* Makes the engine look at stop requests again. */
void spyre_engine_kick(struct spyre_engine *engine);

void spyre_engine_account(struct spyre_engine *engine, const struct spyre_counters *cost,
			  bool failed);
void spyre_engine_read_stats(struct spyre_engine *engine, struct spyre_engine_stats *stats);

#endif
