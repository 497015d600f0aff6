// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory and threads of runners and contexts; spyre_engine.c has the functions of the threads.
 */
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "spyre_arbiter.h"
#include "spyre_charge.h"
#include "spyre_engine.h"
#include "spyre_lx.h"
#include "spyre_runner.h"

int spyre_runner_start(struct spyre_runner *runner, struct spyre_engine *engine,
		       const char *kind, u64 id)
{
	struct task_struct *task;

	runner->engine = engine;
	INIT_LIST_HEAD(&runner->pool);
	task = kthread_create(spyre_engine_thread, runner, "%s/%s%llu", engine->name, kind, id);
	if (IS_ERR(task))
		return PTR_ERR(task);
	runner->task = task;
	wake_up_process(task);
	return 0;
}

void spyre_runner_stop(struct spyre_runner *runner)
{
	if (runner->task)
		kthread_stop(runner->task);
	runner->task = NULL;
	vfree(runner->base.scratch);
	runner->base.scratch = NULL;
}

void spyre_ctx_sched_init(struct spyre_ctx_sched *sched, struct spyre_engine *engine, u32 class)
{
	spyre_arb_context_init(&sched->context, class);
	mutex_init(&sched->lock);
	sched->runner.engine = engine;
}

int spyre_ctx_sched_open(struct spyre_ctx_sched *sched, u64 id)
{
	struct spyre_runner *runner = &sched->runner;
	int ret;

	guard(mutex)(&sched->lock);
	if (runner->task)
		return 0;
	if (!runner->base.scratch)
		runner->base.scratch = __vmalloc(SPYRE_SCRATCH_BYTES, SPYRE_GFP);
	if (!runner->base.scratch)
		return -ENOMEM;
	ret = spyre_runner_start(runner, runner->engine, "c", id);
	/* The caller was killed meanwhile. */
	return ret == -EINTR ? -ERESTARTSYS : ret;
}

struct spyre_lx *spyre_ctx_sched_lx(struct spyre_ctx_sched *sched, u32 cores, u32 bytes)
{
	guard(mutex)(&sched->lock);
	return spyre_lx_provide(&sched->lx, cores, bytes);
}

void spyre_ctx_sched_close(struct spyre_ctx_sched *sched)
{
	spyre_runner_stop(&sched->runner);
	spyre_lx_put(sched->lx);
	sched->lx = NULL;
	mutex_destroy(&sched->lock);
}
