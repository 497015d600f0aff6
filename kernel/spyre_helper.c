// SPDX-License-Identifier: GPL-2.0-only
/*
 * Helpers, and the parallel sections on which they work.
 *
 * The owner of a section works on it too and waits only for indices that others
 * have begun, so sections end whether or not helpers join.  Open sections are
 * served in rotation, one index at a time; sections of jobs without a time slice
 * are skipped.
 */
#include <linux/bitops.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "spyre_engine.h"
#include "spyre_helper.h"

/* A parallel section; lives on its owner's stack. */
struct spyre_parallel {
	struct list_head node;
	struct spyre_job *job;
	spyre_work_fn fn;
	void *arg;
	u32 count;
	/* next index to hand out; helpers' lock */
	u32 next;
	/* helpers at work; helpers' lock */
	u32 helpers;
	struct completion *done;
};

/* Returns an index to work on, or closes the section permanently. */
static bool spyre_parallel_next(struct spyre_helpers *helpers, struct spyre_parallel *section,
				u32 *index)
{
	lockdep_assert_held(&helpers->lock);
	if (section->next == section->count)
		return false;
	*index = section->next++;
	if (section->next == section->count)
		list_del_init(&section->node);
	return true;
}

/* Returns an open section of a job that has a time slice; the next call returns another one. */
static struct spyre_parallel *spyre_helpers_section(struct spyre_helpers *helpers)
{
	struct spyre_parallel *section;

	lockdep_assert_held(&helpers->lock);
	list_for_each_entry(section, &helpers->sections, node) {
		if (section->job && spyre_engine_is_waiting(section->job))
			continue;
		list_move_tail(&section->node, &helpers->sections);
		return section;
	}
	return NULL;
}

/* Does one index of an open section, if there is one; drops and retakes the lock. */
static bool spyre_helper_help(struct spyre_helpers *helpers, struct spyre_helper *helper)
	__must_hold(&helpers->lock)
{
	struct spyre_parallel *section = spyre_helpers_section(helpers);
	u32 index;

	if (!section || !spyre_parallel_next(helpers, section, &index))
		return false;
	section->helpers++;
	spin_unlock_irq(&helpers->lock);
	section->fn(section->arg, index, &helper->base);
	cond_resched();
	spin_lock_irq(&helpers->lock);
	if (!--section->helpers && section->done)
		complete(section->done);
	return true;
}

/* Wakes up to @wanted idle helpers, those with the lowest numbers first. */
static void spyre_helpers_wake(struct spyre_helpers *helpers, u32 wanted)
{
	u32 i;

	lockdep_assert_held(&helpers->lock);
	while (wanted-- && helpers->awake < helpers->max_awake && helpers->idle) {
		i = __ffs(helpers->idle);
		__clear_bit(i, &helpers->idle);
		helpers->awake++;
		wake_up_process(helpers->helper[i].task);
	}
}

/* Called outside of sections, so that no job waits for this allocation. */
static bool spyre_helper_is_ready(struct spyre_helper *helper)
{
	if (!helper->base.scratch)
		helper->base.scratch = __vmalloc(SPYRE_SCRATCH_BYTES, GFP_KERNEL | __GFP_NOWARN);
	return helper->base.scratch;
}

static int spyre_helper_thread(void *data)
{
	struct spyre_helper *helper = data;
	struct spyre_helpers *helpers = &helper->engine->helpers;
	const u32 bit = helper - helpers->helper;

	spin_lock_irq(&helpers->lock);
	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		__set_bit(bit, &helpers->idle);
		while (test_bit(bit, &helpers->idle) && !kthread_should_stop()) {
			spin_unlock_irq(&helpers->lock);
			schedule();
			spin_lock_irq(&helpers->lock);
			set_current_state(TASK_IDLE);
		}
		__set_current_state(TASK_RUNNING);
		if (__test_and_clear_bit(bit, &helpers->idle))
			break;
		spin_unlock_irq(&helpers->lock);
		if (spyre_helper_is_ready(helper)) {
			spin_lock_irq(&helpers->lock);
			while (spyre_helper_help(helpers, helper))
				;
		} else {
			spin_lock_irq(&helpers->lock);
		}
		helpers->awake--;
	}
	spin_unlock_irq(&helpers->lock);
	return 0;
}

void spyre_helpers_parallel(struct spyre_engine *engine, struct spyre_job *job,
			    struct spyre_worker *self, u32 count, spyre_work_fn fn, void *arg)
{
	struct spyre_helpers *helpers = &engine->helpers;
	struct spyre_parallel section = { .job = job, .fn = fn, .arg = arg, .count = count };
	DECLARE_COMPLETION_ONSTACK(done);
	u32 index;

	if (count <= 1 || !helpers->num) {
		for (index = 0; index < count; index++)
			fn(arg, index, self);
		return;
	}

	spin_lock_irq(&helpers->lock);
	list_add_tail(&section.node, &helpers->sections);
	spyre_helpers_wake(helpers, min(count - 1, helpers->max_awake));
	while (spyre_parallel_next(helpers, &section, &index)) {
		spin_unlock_irq(&helpers->lock);
		fn(arg, index, self);
		cond_resched();
		if (job)
			spyre_engine_tile(engine, job);
		spin_lock_irq(&helpers->lock);
	}
	if (section.helpers)
		section.done = &done;
	spin_unlock_irq(&helpers->lock);
	if (section.done)
		wait_for_completion(&done);
}

void spyre_helpers_resume(struct spyre_helpers *helpers)
{
	guard(spinlock_irqsave)(&helpers->lock);
	if (!list_empty(&helpers->sections))
		spyre_helpers_wake(helpers, helpers->max_awake);
}

void spyre_helpers_pause(struct spyre_helpers *helpers)
{
	guard(spinlock_irq)(&helpers->lock);
	helpers->awake--;
	/* Another helper serves the sections of jobs that have a time slice. */
	if (!list_empty(&helpers->sections))
		spyre_helpers_wake(helpers, 1);
}

void spyre_helpers_unpause(struct spyre_helpers *helpers)
{
	guard(spinlock_irq)(&helpers->lock);
	helpers->awake++;
}

int spyre_helpers_start(struct spyre_engine *engine, u32 cpus)
{
	struct spyre_helpers *helpers = &engine->helpers;
	const u32 wanted = cpus > 1 ? cpus * SPYRE_HELPERS_PER_CPU : 0;
	struct spyre_helper *helper;
	struct task_struct *task;

	helpers->max_awake = cpus;
	while (helpers->num < wanted) {
		helper = &helpers->helper[helpers->num];
		helper->engine = engine;
		task = kthread_create(spyre_helper_thread, helper, "%s/h%u", engine->name,
				      helpers->num);
		if (IS_ERR(task))
			return PTR_ERR(task);
		helper->task = task;
		helpers->num++;
		wake_up_process(task);
	}
	return 0;
}

void spyre_helpers_stop(struct spyre_helpers *helpers)
{
	u32 i;

	for (i = 0; i < helpers->num; i++) {
		if (helpers->helper[i].task)
			kthread_stop(helpers->helper[i].task);
		helpers->helper[i].task = NULL;
	}
}

void spyre_helpers_free(struct spyre_helpers *helpers)
{
	u32 i;

	for (i = 0; i < helpers->num; i++)
		vfree(helpers->helper[i].base.scratch);
}
