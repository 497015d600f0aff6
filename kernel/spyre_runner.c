// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runners and seats: their memory and threads.  What they do is the engine's.
 */
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

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

void spyre_seat_init(struct spyre_seat *seat, struct spyre_engine *engine, u32 class)
{
	spyre_arb_context_init(&seat->context, class);
	mutex_init(&seat->lock);
	seat->runner.engine = engine;
}

int spyre_seat_open(struct spyre_seat *seat, u64 id)
{
	struct spyre_runner *runner = &seat->runner;
	int ret;

	guard(mutex)(&seat->lock);
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

struct spyre_lx *spyre_seat_lx(struct spyre_seat *seat, u32 cores, u32 bytes)
{
	guard(mutex)(&seat->lock);
	return spyre_lx_provide(&seat->lx, cores, bytes);
}

void spyre_seat_close(struct spyre_seat *seat)
{
	spyre_runner_stop(&seat->runner);
	spyre_lx_put(seat->lx);
	seat->lx = NULL;
	mutex_destroy(&seat->lock);
}
