/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engine of a card: runs the jobs of its queues, one job of a queue at a
 * time, in time slices that the arbiter grants.
 */
#ifndef SPYRE_ENGINE_H
#define SPYRE_ENGINE_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "model/card.h"
#include "spyre_arbiter.h"
#include "spyre_helper.h"
#include "spyre_runner.h"
#include "spyre_stats.h"

struct spyre_device;
struct spyre_job;
struct spyre_queue;

/* Twice the number of running jobs, since jobs that wait for a slice keep their runner. */
#define SPYRE_MAX_POOL (2 * SPYRE_MAX_CPUS)

/**
 * struct spyre_engine_sample - totals at a moment, for the load since then
 */
struct spyre_engine_sample {
	/** @ns: CLOCK_MONOTONIC. */
	u64 ns;
	/** @stats: totals then. */
	struct spyre_stats stats;
};

/**
 * struct spyre_engine - executes the jobs of a card
 */
struct spyre_engine {
	/** @name: begins the names of its threads. */
	char name[32];
	/** @host: callbacks of the model. */
	struct spyre_host host;
	/** @lock: protects the arbiter, the lists, @stats and the flags; with interrupts off. */
	spinlock_t lock;
	/** @idle: threads that wait until a queue or the engine has no job. */
	wait_queue_head_t idle;
	/** @arbiter: decides which job runs. */
	struct spyre_arbiter arbiter;
	/** @stopped: queues whose oldest job has to stop and has not begun. */
	struct list_head stopped;
	/** @queues: that have a job here. */
	u32 queues;
	/** @running: jobs that have a time slice. */
	u32 running;
	/** @busy_since: when @running left zero. */
	u64 busy_since;
	/** @gone: the card was unplugged. */
	bool gone;
	/** @stats: totals. */
	struct spyre_stats stats;

	/** @inline_runner: stands for a scheduler's worker that runs a light job. */
	struct spyre_runner inline_runner;
	/** @inline_busy: @inline_runner has a job. */
	bool inline_busy;
	/** @reaper: reports jobs that stop before they began; has no scratch. */
	struct spyre_runner reaper;
	/** @pool: idle runners for any context. */
	struct list_head pool;
	/** @num_runners: all runners of the pool. */
	u32 num_runners;
	/** @runner: these. */
	struct spyre_runner runner[SPYRE_MAX_POOL];
	/** @helpers: threads that share a job's work. */
	struct spyre_helpers helpers;
};

/*
 * Starts the threads, whose names begin with @name.  @cpus, the number of the host's
 * processors that the card may use, limits concurrent jobs and helpers.
 */
int spyre_engine_start(struct spyre_engine *engine, const char *name, u32 num_cores, u32 cpus);
/* Cancels everything with -ENODEV and ends the threads. */
void spyre_engine_stop(struct spyre_engine *engine);
void spyre_engine_free(struct spyre_engine *engine);

/* Takes over @job and runs it if it is light; -ENODEV after an unplug. */
int spyre_engine_push(struct spyre_engine *engine, struct spyre_job *job);
/* Waits until no job of @queue is in the engine. */
void spyre_engine_drain(struct spyre_engine *engine, struct spyre_queue *queue);
/* Waits until nothing runs and each thread has answered; -EIO if one does not. */
int spyre_engine_probe(struct spyre_engine *engine);
/* Wakes @queue's job, which has to stop, if it waits for a time slice. */
void spyre_engine_kick(struct spyre_engine *engine, struct spyre_queue *queue);
/* Returns the sum of the time slices of @job so far, in ns. */
u64 spyre_engine_active_ns(struct spyre_engine *engine, struct spyre_job *job);

/* Returns true if @job has begun and waits for its next time slice. */
bool spyre_engine_is_waiting(const struct spyre_job *job);
/* Called between tiles of @job: stops it beyond its limit, and waits while others precede it. */
void spyre_engine_tile(struct spyre_engine *engine, struct spyre_job *job);
/* The function of all runners. */
int spyre_engine_thread(void *data);

void spyre_engine_account(struct spyre_engine *engine, const struct spyre_counters *cost,
			  bool failed);
/* Counts a context that has failed. */
void spyre_engine_count_fault(struct spyre_engine *engine, u32 kind);
void spyre_engine_read_stats(struct spyre_engine *engine, struct spyre_stats *stats);

#endif
