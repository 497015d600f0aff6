// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine gives the jobs of the queues to runners, in the time slices that
 * the arbiter grants.
 *
 * A slice ends between two tiles.  A job without a slice stays on its threads:
 * its runner, and the helpers that work on it, sleep until its next slice or
 * until it has to stop.  They wait only for slices of other jobs, which all end.
 *
 * A light job of an idle queue runs inline, on the scheduler's worker that pushes
 * it.
 */
#include <linux/fpu.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#ifdef CONFIG_X86_64
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#endif
#ifdef CONFIG_ARM64
#include <asm/sysreg.h>
#endif

#include "spyre_arbiter.h"
#include "spyre_engine.h"
#include "spyre_file.h"
#include "spyre_helper.h"
#include "spyre_job.h"
#include "spyre_queue.h"
#include "spyre_runner.h"
#include "spyre_trace.h"

/* Far longer than the time that any work needs to stop. */
#define SPYRE_PROBE_JIFFIES (10 * HZ)

static struct spyre_engine *to_engine(struct spyre_host *host)
{
	return container_of(host, struct spyre_engine, host);
}

static struct spyre_queue *to_queue(struct spyre_claim *claim)
{
	return container_of(claim, struct spyre_queue, claim);
}

static void spyre_host_parallel(struct spyre_host *host, struct spyre_worker *self, u32 count,
				spyre_work_fn fn, void *arg)
{
	struct spyre_runner *runner = container_of(self, struct spyre_runner, base);

	spyre_helpers_parallel(to_engine(host), runner->queue->job, self, count, fn, arg);
}

/*
 * Kernels of arm64 and Power leave the modes as the processor's last program set them: it
 * may round in another direction, flush subnormal numbers, and on Power scale results by
 * enabling exceptions.  Programs get theirs back with their registers.
 */
static void spyre_host_fpu_begin(struct spyre_host *host)
{
	kernel_fpu_begin();
#ifdef CONFIG_ARM64
	write_sysreg(0, fpcr);
#elif defined(CONFIG_PPC64)
	/* The enables of exceptions, and the modes, are two fields of FPSCR. */
	asm volatile("mtfsfi 6, 0\n\tmtfsfi 7, 0" : : : "memory");
#endif
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
	spyre_engine_tile(to_engine(host), job);
	return spyre_job_stop_reason(job);
}

static void spyre_engine_begin_slice(struct spyre_engine *engine, u64 now)
{
	if (!engine->running++)
		engine->busy_since = now;
}

static void spyre_engine_end_slice(struct spyre_engine *engine, u64 now)
{
	if (!--engine->running)
		engine->stats.busy_ns += now - engine->busy_since;
}

/* Takes the oldest job; the queue is the caller's until it calls spyre_engine_serve(). */
static void spyre_engine_begin(struct spyre_queue *queue, struct spyre_runner *runner)
{
	queue->job = list_first_entry(&queue->jobs, struct spyre_job, node);
	list_del_init(&queue->job->node);
	queue->runner = runner;
	runner->queue = queue;
	kref_get(&queue->ref);
}

/* Returns the runner that the arbiter has chosen. */
static struct spyre_runner *spyre_engine_runner(struct spyre_engine *engine,
						struct spyre_queue *queue)
{
	struct spyre_runner *runner;

	if (queue->claim.runner == SPYRE_RUNNER_OWN)
		return &queue->ctx_sched->runner;
	runner = list_first_entry(&engine->pool, struct spyre_runner, pool);
	list_del_init(&runner->pool);
	return runner;
}

/* Ends the pause of @queue's job. */
static void spyre_engine_resume(struct spyre_queue *queue, u64 now)
{
	queue->job->paused_ns += now - queue->job->paused_since;
	trace_spyre_resume(queue->job);
	wake_up_all(&queue->resume);
}

/* Grants all time slices that are free. */
static void spyre_engine_dispatch(struct spyre_engine *engine, u64 now)
{
	struct spyre_claim *claim;
	struct spyre_runner *runner;
	struct spyre_queue *queue;

	lockdep_assert_held(&engine->lock);
	while ((claim = spyre_arbiter_pick(&engine->arbiter, now))) {
		queue = to_queue(claim);
		spyre_engine_begin_slice(engine, now);
		if (queue->job) {
			spyre_engine_resume(queue, now);
			spyre_helpers_resume(&engine->helpers);
			continue;
		}
		runner = spyre_engine_runner(engine, queue);
		spyre_engine_begin(queue, runner);
		wake_up_process(runner->task);
	}
}

/* Offers the oldest job of @queue to the arbiter, or has it stopped. */
static void spyre_engine_offer(struct spyre_engine *engine, struct spyre_queue *queue, u64 now)
{
	struct spyre_job *job = list_first_entry(&queue->jobs, struct spyre_job, node);

	lockdep_assert_held(&engine->lock);
	if (!spyre_job_stop_reason(job)) {
		spyre_arbiter_request(&engine->arbiter, &queue->claim, job->cores, job->lx,
				      now);
		return;
	}
	list_add_tail(&queue->stopped, &engine->stopped);
	wake_up_process(engine->reaper.task);
}

/* Called when the job of @queue has ended.  Returns whether the queue is idle. */
static bool spyre_engine_finish(struct spyre_engine *engine, struct spyre_queue *queue,
				struct spyre_runner *runner)
{
	const u32 state = queue->claim.state;
	const u64 now = ktime_get_ns();
	bool idle;

	lockdep_assert_held(&engine->lock);
	spyre_arbiter_release(&engine->arbiter, &queue->claim, now);
	if (state == SPYRE_CLAIM_ACTIVE || state == SPYRE_CLAIM_LIGHT)
		spyre_engine_end_slice(engine, now);
	if (runner >= engine->runner && runner < engine->runner + engine->num_runners)
		list_add(&runner->pool, &engine->pool);
	runner->queue = NULL;
	queue->runner = NULL;
	queue->job = NULL;
	idle = list_empty(&queue->jobs);
	if (idle)
		engine->queues--;
	else
		spyre_engine_offer(engine, queue, now);
	spyre_engine_dispatch(engine, now);
	return idle;
}

/* Runs the job that spyre_engine_begin() took from @queue; drops and retakes the lock. */
static void spyre_engine_serve(struct spyre_engine *engine, struct spyre_queue *queue,
			       struct spyre_runner *runner)
	__must_hold(&engine->lock)
{
	bool idle;

	lockdep_assert_held(&engine->lock);
	spin_unlock_irq(&engine->lock);
	spyre_job_run(queue->job, runner);	/* may free the job */
	spin_lock_irq(&engine->lock);
	idle = spyre_engine_finish(engine, queue, runner);
	spin_unlock_irq(&engine->lock);
	if (idle)
		wake_up_all(&engine->idle);
	spyre_queue_put(queue);
	spin_lock_irq(&engine->lock);
}

/* Returns the queue that @runner serves next, or NULL. */
static struct spyre_queue *spyre_engine_next(struct spyre_engine *engine,
					     struct spyre_runner *runner)
{
	struct spyre_queue *queue;

	lockdep_assert_held(&engine->lock);
	if (runner != &engine->reaper)
		return runner->queue;
	queue = list_first_entry_or_null(&engine->stopped, struct spyre_queue, stopped);
	if (!queue)
		return NULL;
	list_del_init(&queue->stopped);
	spyre_engine_begin(queue, runner);
	return queue;
}

int spyre_engine_thread(void *data)
{
	struct spyre_runner *runner = data;
	struct spyre_engine *engine = runner->engine;
	struct spyre_queue *queue;

	spin_lock_irq(&engine->lock);
	for (;;) {
		set_current_state(TASK_IDLE);
		queue = spyre_engine_next(engine, runner);
		if (queue) {
			__set_current_state(TASK_RUNNING);
			spyre_engine_serve(engine, queue, runner);
			continue;
		}
		if (kthread_should_stop())
			break;
		spin_unlock_irq(&engine->lock);
		schedule();
		spin_lock_irq(&engine->lock);
	}
	__set_current_state(TASK_RUNNING);
	spin_unlock_irq(&engine->lock);
	return 0;
}

int spyre_engine_push(struct spyre_engine *engine, struct spyre_job *job)
{
	struct spyre_queue *queue = job->queue;
	bool first;
	u64 now;

	spin_lock_irq(&engine->lock);
	if (engine->gone) {
		spin_unlock_irq(&engine->lock);
		return -ENODEV;
	}
	first = !queue->job && list_empty(&queue->jobs);
	list_add_tail(&job->node, &queue->jobs);
	if (!first) {
		spin_unlock_irq(&engine->lock);
		return 0;
	}
	now = ktime_get_ns();
	engine->queues++;
	if (job->light && !engine->inline_busy &&
	    spyre_arbiter_pick_light(&engine->arbiter, &queue->claim, job->cores, now)) {
		/* Waking a runner would cost more than the work itself. */
		engine->inline_busy = true;
		spyre_engine_begin_slice(engine, now);
		spyre_engine_begin(queue, &engine->inline_runner);
		spyre_engine_serve(engine, queue, &engine->inline_runner);
		engine->inline_busy = false;
	} else {
		spyre_engine_offer(engine, queue, now);
		spyre_engine_dispatch(engine, now);
	}
	spin_unlock_irq(&engine->lock);
	return 0;
}

bool spyre_engine_is_waiting(const struct spyre_job *job)
{
	/* Pairs with the arbiter's release when it changes. */
	return smp_load_acquire(&job->queue->claim.state) == SPYRE_CLAIM_WAITING;
}

static void spyre_engine_yield(struct spyre_engine *engine, struct spyre_job *job)
{
	struct spyre_queue *queue = job->queue;
	const u64 now = ktime_get_ns();

	guard(spinlock_irq)(&engine->lock);
	/* A job that has to stop was kicked already; if it yielded now, nothing would wake it. */
	if (spyre_job_stop_reason(job))
		return;
	if (spyre_arbiter_yields(&engine->arbiter, &queue->claim, now)) {
		job->paused_since = now;
		atomic64_inc(&queue->sfile->preempted);
		trace_spyre_preempt(job);
		spyre_engine_end_slice(engine, now);
	}
	/* The charge alone may have changed which claim gets a free place. */
	spyre_engine_dispatch(engine, now);
}

/*
 * Checks the time limit.  The scheduler's timer does not suffice, because each
 * job that is queued behind this one restarts it.
 */
static void spyre_engine_check_limit(struct spyre_engine *engine, struct spyre_job *job, u64 now)
{
	const u64 limit = job->queue->timeout_ns;
	u64 active;

	if (now < READ_ONCE(job->check_ns) || READ_ONCE(job->queue->error))
		return;
	active = spyre_engine_active_ns(engine, job);
	if (active >= limit)
		WRITE_ONCE(job->stop, -ETIME);
	else	/* The job was paused for a part of that time. */
		WRITE_ONCE(job->check_ns, now + limit - active);
}

void spyre_engine_tile(struct spyre_engine *engine, struct spyre_job *job)
{
	struct spyre_queue *queue = job->queue;
	const u64 now = ktime_get_ns();
	bool helper;

	spyre_engine_check_limit(engine, job, now);
	if (!READ_ONCE(engine->arbiter.waiting))
		return;
	if (now >= READ_ONCE(queue->claim.slice_end))
		spyre_engine_yield(engine, job);
	if (!spyre_engine_is_waiting(job))
		return;
	helper = current != queue->runner->task;
	if (helper)
		spyre_helpers_pause(&engine->helpers);
	wait_event_idle(queue->resume, !spyre_engine_is_waiting(job));
	if (helper)
		spyre_helpers_unpause(&engine->helpers);
}

u64 spyre_engine_active_ns(struct spyre_engine *engine, struct spyre_job *job)
{
	const u64 start = READ_ONCE(job->start_ns);
	u64 end, paused;

	if (!start)
		return 0;
	guard(spinlock_irq)(&engine->lock);
	paused = job->paused_ns;
	end = ktime_get_ns();
	if (job->queue->job == job && job->queue->claim.state == SPYRE_CLAIM_WAITING)
		end = job->paused_since;
	return end - start - paused;
}

static bool spyre_queue_is_dry(struct spyre_engine *engine, struct spyre_queue *queue)
{
	guard(spinlock_irq)(&engine->lock);
	return !queue->job && list_empty(&queue->jobs);
}

void spyre_engine_drain(struct spyre_engine *engine, struct spyre_queue *queue)
{
	wait_event(engine->idle, spyre_queue_is_dry(engine, queue));
}

/* Wakes the job of a waiting claim so that it stops, which needs no time slice. */
static void spyre_engine_let_go(struct spyre_engine *engine, struct spyre_queue *queue)
{
	lockdep_assert_held(&engine->lock);
	spyre_arbiter_withdraw(&engine->arbiter, &queue->claim);
	if (queue->job)
		spyre_engine_resume(queue, ktime_get_ns());
	else
		spyre_engine_offer(engine, queue, ktime_get_ns());
}

void spyre_engine_kick(struct spyre_engine *engine, struct spyre_queue *queue)
{
	struct spyre_job *job;

	guard(spinlock_irq)(&engine->lock);
	if (queue->claim.state != SPYRE_CLAIM_WAITING)
		return;
	/* The job to be stopped may have ended, and the next one may be waiting. */
	job = queue->job ?: list_first_entry(&queue->jobs, struct spyre_job, node);
	if (!spyre_job_stop_reason(job))
		return;
	spyre_engine_let_go(engine, queue);
	/* The claim may have reserved cores. */
	spyre_engine_dispatch(engine, ktime_get_ns());
}

void spyre_engine_account(struct spyre_engine *engine, const struct spyre_counters *cost,
			  bool failed)
{
	struct spyre_stats *stats = &engine->stats;

	spin_lock_irq(&engine->lock);
	stats->jobs++;
	stats->errors += failed;
	spyre_counters_add(&stats->cost, cost);
	spin_unlock_irq(&engine->lock);
}

void spyre_engine_count_fault(struct spyre_engine *engine, u32 kind)
{
	guard(spinlock_irq)(&engine->lock);
	engine->stats.faults[kind]++;
}

static void spyre_engine_stats_locked(struct spyre_engine *engine,
				      struct spyre_stats *stats, u64 now)
{
	lockdep_assert_held(&engine->lock);
	*stats = engine->stats;
	if (engine->running && now > engine->busy_since)
		stats->busy_ns += now - engine->busy_since;
}

void spyre_engine_read_stats(struct spyre_engine *engine, struct spyre_stats *stats)
{
	spin_lock_irq(&engine->lock);
	spyre_engine_stats_locked(engine, stats, ktime_get_ns());
	spin_unlock_irq(&engine->lock);
}

static const struct spyre_unit *spyre_engine_unit(void)
{
#if defined(CONFIG_X86_64)
	if (boot_cpu_has(X86_FEATURE_AVX2) && boot_cpu_has(X86_FEATURE_FMA) &&
	    boot_cpu_has(X86_FEATURE_F16C) &&
	    cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL))
		return spyre_unit_find("avx2");
#elif defined(CONFIG_ARM64)
	return spyre_unit_find("neon");
#endif
	return spyre_unit_find("scalar");
}

static void spyre_engine_init_host(struct spyre_engine *engine)
{
	engine->host = (struct spyre_host) {
		.unit = spyre_engine_unit(),
		.parallel = spyre_host_parallel,
		.fpu_begin = spyre_host_fpu_begin,
		.fpu_end = spyre_host_fpu_end,
		.relax = spyre_host_relax,
		.should_stop = spyre_host_should_stop,
	};
}

static int spyre_engine_start_pool(struct spyre_engine *engine, u32 wanted)
{
	struct spyre_runner *runner;
	int ret;

	for (runner = engine->runner; runner < engine->runner + wanted; runner++) {
		runner->base.scratch = __vmalloc(SPYRE_SCRATCH_BYTES, GFP_KERNEL);
		if (!runner->base.scratch)
			return -ENOMEM;
		ret = spyre_runner_start(runner, engine, "p", runner - engine->runner);
		if (ret)
			return ret;
		list_add_tail(&runner->pool, &engine->pool);
		engine->num_runners++;
	}
	return 0;
}

int spyre_engine_start(struct spyre_engine *engine, const char *name, u32 num_cores, u32 cpus)
{
	int ret;

	cpus = clamp(cpus, 1u, SPYRE_MAX_CPUS);
	strscpy(engine->name, name, sizeof(engine->name));

	spin_lock_init(&engine->lock);
	spin_lock_init(&engine->helpers.lock);
	init_waitqueue_head(&engine->idle);
	INIT_LIST_HEAD(&engine->stopped);
	INIT_LIST_HEAD(&engine->pool);
	INIT_LIST_HEAD(&engine->helpers.sections);
	spyre_engine_init_host(engine);
	spyre_arbiter_init(&engine->arbiter, num_cores, cpus, 2 * cpus);

	engine->inline_runner.engine = engine;
	engine->inline_runner.base.scratch = __vmalloc(SPYRE_SCRATCH_BYTES, GFP_KERNEL);
	engine->host.tables = vzalloc(SPYRE_TABLES_BYTES);
	if (!engine->inline_runner.base.scratch || !engine->host.tables)
		return -ENOMEM;
	ret = spyre_runner_start(&engine->reaper, engine, "r", 0);
	if (!ret)
		ret = spyre_engine_start_pool(engine, 2 * cpus);
	return ret ?: spyre_helpers_start(engine, cpus);
}

static bool spyre_engine_is_dry(struct spyre_engine *engine)
{
	guard(spinlock_irq)(&engine->lock);
	return !engine->queues;
}

static void spyre_probe_index(void *arg, u32 index, struct spyre_worker *worker)
{
	set_bit(index, arg);
}

int spyre_engine_probe(struct spyre_engine *engine)
{
	unsigned long seen = 0;

	/* Files that are being closed may still be stopping their work. */
	if (!wait_event_timeout(engine->idle, spyre_engine_is_dry(engine), SPYRE_PROBE_JIFFIES))
		return -EIO;
	spyre_helpers_parallel(engine, NULL, NULL, BITS_PER_LONG, spyre_probe_index, &seen);
	return seen == ~0ul ? 0 : -EIO;
}

static void spyre_engine_let_all_go(struct spyre_engine *engine)
{
	struct spyre_claim *claim;

	guard(spinlock_irq)(&engine->lock);
	engine->gone = true;
	while ((claim = spyre_arbiter_any_waiting(&engine->arbiter)))
		spyre_engine_let_go(engine, to_queue(claim));
}

void spyre_engine_stop(struct spyre_engine *engine)
{
	u32 i;

	spyre_engine_let_all_go(engine);
	wait_event(engine->idle, spyre_engine_is_dry(engine));
	for (i = 0; i < ARRAY_SIZE(engine->runner); i++)
		spyre_runner_stop(&engine->runner[i]);
	spyre_runner_stop(&engine->reaper);
	spyre_helpers_stop(&engine->helpers);
}

void spyre_engine_free(struct spyre_engine *engine)
{
	vfree(engine->inline_runner.base.scratch);
	vfree(engine->host.tables);
	spyre_helpers_free(&engine->helpers);
}
