// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: worker threads, the ready queues they serve and the parallel
 * sections in which they share one job's work.
 *
 * A worker prefers to start a job of the high class, then one of the low
 * class, then to help a running job.  A light job of an idle queue runs at
 * once, on the thread that brings it.  A section's owner takes part in it and
 * waits only for indices that others have already begun, so sections end
 * whatever the other workers do.
 *
 * The scratchpads belong to one job at a time, from its start to its end.  Jobs
 * that need them do not start before: a job that runs waits for no other.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include <asm/fpu/api.h>

#include "spyre_device.h"
#include "spyre_job.h"
#include "spyre_queue.h"

/* Far above what stopping any work takes. */
#define SPYRE_PROBE_JIFFIES (10 * HZ)

/* A parallel section; lives on its owner's stack. */
struct spyre_parallel {
	struct list_head node;
	spyre_work_fn fn;
	void *arg;
	u32 count;
	/* next index to hand out; engine lock */
	u32 next;
	/* helpers at work; engine lock */
	u32 helpers;
	struct completion *done;
};

static struct spyre_engine *to_engine(struct spyre_host *host)
{
	return container_of(host, struct spyre_engine, host);
}

/* Hands out an index, or closes the section for good. */
static bool spyre_parallel_next(struct spyre_engine *engine, struct spyre_parallel *section,
				u32 *index)
{
	lockdep_assert_held(&engine->lock);
	if (section->next == section->count)
		return false;
	*index = section->next++;
	if (section->next == section->count)
		list_del_init(&section->node);
	return true;
}

/* Works on the oldest open section, if there is one; drops and retakes the lock. */
static bool spyre_engine_help(struct spyre_engine *engine, struct spyre_engine_worker *worker)
{
	struct spyre_parallel *section;
	u32 index;

	lockdep_assert_held(&engine->lock);
	section = list_first_entry_or_null(&engine->sections, struct spyre_parallel, node);
	if (!section)
		return false;

	section->helpers++;
	while (spyre_parallel_next(engine, section, &index)) {
		spin_unlock_irq(&engine->lock);
		section->fn(section->arg, index, &worker->base);
		cond_resched();
		spin_lock_irq(&engine->lock);
	}
	if (!--section->helpers && section->done)
		complete(section->done);
	return true;
}

static void spyre_host_parallel(struct spyre_host *host, struct spyre_worker *self, u32 count,
				spyre_work_fn fn, void *arg)
{
	struct spyre_engine *engine = to_engine(host);
	struct spyre_parallel section = { .fn = fn, .arg = arg, .count = count };
	DECLARE_COMPLETION_ONSTACK(done);
	u32 index;

	if (count <= 1 || engine->num_workers == 1) {
		for (index = 0; index < count; index++)
			fn(arg, index, self);
		return;
	}

	spin_lock_irq(&engine->lock);
	list_add_tail(&section.node, &engine->sections);
	wake_up_nr(&engine->work, min(count - 1, engine->num_workers - 1));
	while (spyre_parallel_next(engine, &section, &index)) {
		spin_unlock_irq(&engine->lock);
		fn(arg, index, self);
		cond_resched();
		spin_lock_irq(&engine->lock);
	}
	if (section.helpers)
		section.done = &done;
	spin_unlock_irq(&engine->lock);
	if (section.done)
		wait_for_completion(&done);
}

static void spyre_host_fpu_begin(struct spyre_host *host)
{
	kernel_fpu_begin();
}

static void spyre_host_fpu_end(struct spyre_host *host)
{
	kernel_fpu_end();
}

static void spyre_host_relax(struct spyre_host *host)
{
	cond_resched();
}

static bool spyre_host_should_stop(struct spyre_host *host, void *job)
{
	return spyre_job_stop_reason(job);
}

/* From here to spyre_engine_serve() the queue is the caller's. */
static void spyre_engine_begin(struct spyre_engine *engine, struct spyre_queue *queue)
{
	lockdep_assert_held(&engine->lock);
	queue->running = true;
	kref_get(&queue->ref);
	if (!engine->running++)
		engine->busy_since = ktime_get_ns();
}

/* Gives the oldest job of @queue the scratchpads if it needs them; false if it must wait. */
static bool spyre_engine_may_start(struct spyre_engine *engine, struct spyre_queue *queue)
{
	struct spyre_job *job = list_first_entry(&queue->jobs, struct spyre_job, node);

	lockdep_assert_held(&engine->lock);
	/* What is to stop does not start to run programs any more. */
	if (!job->lx_bytes || spyre_job_stop_reason(job))
		return true;
	if (engine->lx_busy)
		return false;
	engine->lx_busy = true;
	job->has_lx = true;
	return true;
}

/* Lets those that wait for the scratchpads try again, before all that came later. */
static void spyre_engine_retry(struct spyre_engine *engine)
{
	lockdep_assert_held(&engine->lock);
	list_splice_init(&engine->lx_wait[DRM_SPYRE_PRIORITY_LOW],
			 &engine->ready[DRM_SPYRE_PRIORITY_LOW]);
	list_splice_init(&engine->lx_wait[DRM_SPYRE_PRIORITY_HIGH],
			 &engine->ready[DRM_SPYRE_PRIORITY_HIGH]);
}

/* The next queue to serve, taken off the ready list. */
static struct spyre_queue *spyre_engine_take(struct spyre_engine *engine)
{
	struct spyre_queue *queue, *next;
	int class;

	lockdep_assert_held(&engine->lock);
	for (class = DRM_SPYRE_PRIORITY_HIGH; class >= DRM_SPYRE_PRIORITY_LOW; class--) {
		list_for_each_entry_safe(queue, next, &engine->ready[class], ready) {
			if (!spyre_engine_may_start(engine, queue)) {
				list_move_tail(&queue->ready, &engine->lx_wait[class]);
				continue;
			}
			list_del_init(&queue->ready);
			spyre_engine_begin(engine, queue);
			return queue;
		}
	}
	return NULL;
}

/* Runs the oldest job of @queue; drops and retakes the lock. */
static void spyre_engine_serve(struct spyre_engine *engine, struct spyre_queue *queue,
			       struct spyre_engine_worker *worker)
	__must_hold(&engine->lock)
{
	struct spyre_job *job = list_first_entry(&queue->jobs, struct spyre_job, node);
	const bool has_lx = job->has_lx;
	bool more;

	lockdep_assert_held(&engine->lock);
	list_del_init(&job->node);
	spin_unlock_irq(&engine->lock);
	spyre_job_run(job, worker);	/* @job is gone */
	spin_lock_irq(&engine->lock);

	if (!--engine->running)
		engine->stats.busy_ns += ktime_get_ns() - engine->busy_since;
	if (has_lx) {
		engine->lx_busy = false;
		spyre_engine_retry(engine);
	}
	queue->running = false;
	more = !list_empty(&queue->jobs);
	if (more)
		list_add_tail(&queue->ready, &engine->ready[queue->priority]);
	spin_unlock_irq(&engine->lock);
	/* This worker goes on with one queue; there may be two. */
	if (has_lx || (more && !worker->task))
		wake_up(&engine->work);
	wake_up_all(&engine->idle);
	spyre_queue_put(queue);
	spin_lock_irq(&engine->lock);
}

static bool spyre_engine_has_work(struct spyre_engine *engine)
{
	return !list_empty(&engine->ready[DRM_SPYRE_PRIORITY_HIGH]) ||
	       !list_empty(&engine->ready[DRM_SPYRE_PRIORITY_LOW]) ||
	       !list_empty(&engine->sections);
}

static int spyre_engine_thread(void *data)
{
	struct spyre_engine_worker *worker = data;
	struct spyre_engine *engine = worker->engine;
	struct spyre_queue *queue;

	while (!kthread_should_stop()) {
		wait_event_idle_exclusive(engine->work, spyre_engine_has_work(engine) ||
					  kthread_should_stop());
		spin_lock_irq(&engine->lock);
		for (;;) {
			queue = spyre_engine_take(engine);
			if (queue)
				spyre_engine_serve(engine, queue, worker);
			else if (!spyre_engine_help(engine, worker))
				break;
		}
		spin_unlock_irq(&engine->lock);
	}
	return 0;
}

int spyre_engine_push(struct spyre_engine *engine, struct spyre_job *job)
{
	struct spyre_engine_worker *guest = &engine->guest;
	struct spyre_queue *queue = job->queue;
	bool first;

	spin_lock_irq(&engine->lock);
	if (engine->gone) {
		spin_unlock_irq(&engine->lock);
		return -ENODEV;
	}
	first = !queue->running && list_empty(&queue->jobs);
	list_add_tail(&job->node, &queue->jobs);
	if (first && job->light && !engine->guest_busy) {
		/* Waking a worker would cost more than the work itself. */
		engine->guest_busy = true;
		spyre_engine_begin(engine, queue);
		spyre_engine_serve(engine, queue, guest);
		engine->guest_busy = false;
		first = false;
	} else if (first) {
		list_add_tail(&queue->ready, &engine->ready[queue->priority]);
	}
	spin_unlock_irq(&engine->lock);
	if (first)
		wake_up(&engine->work);
	return 0;
}

static bool spyre_queue_is_dry(struct spyre_engine *engine, struct spyre_queue *queue)
{
	bool dry;

	spin_lock_irq(&engine->lock);
	dry = !queue->running && list_empty(&queue->jobs);
	spin_unlock_irq(&engine->lock);
	return dry;
}

void spyre_engine_drain(struct spyre_engine *engine, struct spyre_queue *queue)
{
	wait_event(engine->idle, spyre_queue_is_dry(engine, queue));
}

void spyre_engine_kick(struct spyre_engine *engine)
{
	spin_lock_irq(&engine->lock);
	spyre_engine_retry(engine);
	spin_unlock_irq(&engine->lock);
	wake_up_all(&engine->work);
}

void spyre_engine_lx_clean(struct spyre_engine *engine, u64 owner, u32 lx_bytes)
{
	u32 dirty = 0, core;

	if (engine->lx_owner != owner) {
		dirty = engine->lx_dirty;
		engine->lx_dirty = 0;
		engine->lx_owner = owner;
	}
	engine->lx_dirty = max(engine->lx_dirty, lx_bytes);

	for (core = 0; dirty && core < SPYRE_MAX_CORES && engine->lx[core]; core++) {
		memset(engine->lx[core], 0, dirty);
		cond_resched();
	}
}

int spyre_engine_need_lx(struct spyre_engine *engine, u32 cores)
{
	u8 *memory;
	u32 core;

	guard(mutex)(&engine->lx_alloc);
	if (engine->lx_memory)
		return 0;
	memory = vzalloc((unsigned long)cores * SPYRE_LX_BYTES);
	if (!memory)
		return -ENOMEM;
	for (core = 0; core < cores; core++)
		engine->lx[core] = memory + (unsigned long)core * SPYRE_LX_BYTES;
	engine->lx_memory = memory;
	return 0;
}

void spyre_engine_account(struct spyre_engine *engine, const struct spyre_counters *cost,
			  bool failed)
{
	struct spyre_engine_stats *stats = &engine->stats;

	spin_lock_irq(&engine->lock);
	stats->jobs++;
	stats->errors += failed;
	stats->cost.cycles += cost->cycles;
	stats->cost.bytes_read += cost->bytes_read;
	stats->cost.bytes_written += cost->bytes_written;
	stats->cost.macs += cost->macs;
	stats->cost.elements += cost->elements;
	spin_unlock_irq(&engine->lock);
}

static void spyre_engine_stats_locked(struct spyre_engine *engine,
				      struct spyre_engine_stats *stats, u64 now)
{
	lockdep_assert_held(&engine->lock);
	*stats = engine->stats;
	if (engine->running && now > engine->busy_since)
		stats->busy_ns += now - engine->busy_since;
}

void spyre_engine_read_stats(struct spyre_engine *engine, struct spyre_engine_stats *stats)
{
	spin_lock_irq(&engine->lock);
	spyre_engine_stats_locked(engine, stats, ktime_get_ns());
	spin_unlock_irq(&engine->lock);
}

static const struct spyre_unit *spyre_engine_unit(void)
{
	if (boot_cpu_has(X86_FEATURE_AVX2) && boot_cpu_has(X86_FEATURE_FMA) &&
	    boot_cpu_has(X86_FEATURE_F16C) &&
	    cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL))
		return spyre_unit_find("avx2");
	return spyre_unit_find("scalar");
}

int spyre_engine_start(struct spyre_engine *engine, const char *name, u32 workers)
{
	const u32 wanted = min(workers, SPYRE_ENGINE_MAX_WORKERS);
	struct spyre_engine_worker *worker;
	struct task_struct *task;

	spin_lock_init(&engine->lock);
	mutex_init(&engine->lx_alloc);
	init_waitqueue_head(&engine->work);
	init_waitqueue_head(&engine->idle);
	INIT_LIST_HEAD(&engine->ready[DRM_SPYRE_PRIORITY_LOW]);
	INIT_LIST_HEAD(&engine->ready[DRM_SPYRE_PRIORITY_HIGH]);
	INIT_LIST_HEAD(&engine->lx_wait[DRM_SPYRE_PRIORITY_LOW]);
	INIT_LIST_HEAD(&engine->lx_wait[DRM_SPYRE_PRIORITY_HIGH]);
	INIT_LIST_HEAD(&engine->sections);
	engine->host = (struct spyre_host) {
		.unit = spyre_engine_unit(),
		.parallel = spyre_host_parallel,
		.fpu_begin = spyre_host_fpu_begin,
		.fpu_end = spyre_host_fpu_end,
		.relax = spyre_host_relax,
		.should_stop = spyre_host_should_stop,
	};

	engine->guest.engine = engine;
	engine->guest.base.scratch = vzalloc(SPYRE_SCRATCH_BYTES);
	if (!engine->guest.base.scratch)
		return -ENOMEM;
	while (engine->num_workers < wanted) {
		worker = &engine->workers[engine->num_workers];
		worker->engine = engine;
		worker->base.scratch = vzalloc(SPYRE_SCRATCH_BYTES);
		if (!worker->base.scratch)
			return -ENOMEM;
		engine->num_workers++;
	}
	for (worker = engine->workers; worker < engine->workers + wanted; worker++) {
		task = kthread_run(spyre_engine_thread, worker, "%s/%zu", name,
				   worker - engine->workers);
		if (IS_ERR(task))
			return PTR_ERR(task);
		worker->task = task;
	}
	return 0;
}

static bool spyre_engine_is_dry(struct spyre_engine *engine)
{
	bool dry;

	spin_lock_irq(&engine->lock);
	dry = !engine->running && list_empty(&engine->ready[DRM_SPYRE_PRIORITY_LOW]) &&
	      list_empty(&engine->ready[DRM_SPYRE_PRIORITY_HIGH]) &&
	      list_empty(&engine->lx_wait[DRM_SPYRE_PRIORITY_LOW]) &&
	      list_empty(&engine->lx_wait[DRM_SPYRE_PRIORITY_HIGH]);
	spin_unlock_irq(&engine->lock);
	return dry;
}

static void spyre_probe_index(void *arg, u32 index, struct spyre_worker *worker)
{
	set_bit(index, arg);
}

static bool spyre_engine_claim(struct spyre_engine *engine)
{
	bool claimed;

	if (!spyre_engine_is_dry(engine))
		return false;
	spin_lock_irq(&engine->lock);
	claimed = !engine->running && !engine->lx_busy;
	engine->lx_busy |= claimed;
	spin_unlock_irq(&engine->lock);
	return claimed;
}

int spyre_engine_probe(struct spyre_engine *engine)
{
	unsigned long seen = 0;

	/* Files that are being closed may still be stopping their work. */
	if (!wait_event_timeout(engine->idle, spyre_engine_claim(engine), SPYRE_PROBE_JIFFIES))
		return -EIO;
	spyre_engine_lx_clean(engine, 0, 0);
	spyre_host_parallel(&engine->host, NULL, BITS_PER_LONG, spyre_probe_index, &seen);
	spin_lock_irq(&engine->lock);
	engine->lx_busy = false;
	spin_unlock_irq(&engine->lock);
	spyre_engine_kick(engine);
	return seen == ~0ul ? 0 : -EIO;
}

void spyre_engine_stop(struct spyre_engine *engine)
{
	u32 i;

	spin_lock_irq(&engine->lock);
	engine->gone = true;
	spin_unlock_irq(&engine->lock);
	spyre_engine_kick(engine);
	wait_event(engine->idle, spyre_engine_is_dry(engine));
	for (i = 0; i < engine->num_workers; i++) {
		if (engine->workers[i].task)
			kthread_stop(engine->workers[i].task);
		engine->workers[i].task = NULL;
	}
}

void spyre_engine_free(struct spyre_engine *engine)
{
	u32 i;

	for (i = 0; i < engine->num_workers; i++)
		vfree(engine->workers[i].base.scratch);
	vfree(engine->guest.base.scratch);
	vfree(engine->lx_memory);
}
