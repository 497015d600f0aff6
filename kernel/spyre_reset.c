// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reset of a card: every queue is killed, running work is stopped and waited for,
 * and each thread has to answer a test task.  Files that were open before, and
 * their scratchpads, are stale from then on, as the generation number shows.
 */
#include <linux/list.h>
#include <linux/mutex.h>

#include <drm/drm_drv.h>
#include <drm/drm_managed.h>

#include "spyre_card.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_events.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_queue.h"
#include "spyre_reset.h"
#include "spyre_trace.h"

void spyre_reset_init(struct spyre_device *spyre)
{
	mutex_init(&spyre->files_lock);
	INIT_LIST_HEAD(&spyre->files);
	spyre_events_init(&spyre->card_events);
	spyre_events_init(&spyre->context_events);
}

void spyre_reset_add_file(struct spyre_file *sfile)
{
	struct spyre_device *spyre = sfile->spyre;

	guard(mutex)(&spyre->files_lock);
	sfile->generation = spyre->generation;
	list_add_tail(&sfile->node, &spyre->files);
}

void spyre_reset_remove_file(struct spyre_file *sfile)
{
	guard(mutex)(&sfile->spyre->files_lock);
	list_del(&sfile->node);
}

typedef void (*spyre_queue_fn)(struct spyre_queue *queue);

/* Calls @fn for every queue of every file; @fn may sleep. */
static void spyre_reset_visit_queues(struct spyre_device *spyre, spyre_queue_fn fn)
{
	struct spyre_file *sfile;
	struct spyre_queue *queue;
	unsigned long id;

	lockdep_assert_held(&spyre->files_lock);
	list_for_each_entry(sfile, &spyre->files, node) {
		xa_for_each(&sfile->queues, id, queue) {
			/* Another thread may destroy the queue meanwhile. */
			queue = spyre_queue_lookup(sfile, id);
			if (!queue)
				continue;
			fn(queue);
			spyre_queue_put(queue);
		}
	}
}

static void spyre_reset_kill(struct spyre_queue *queue)
{
	spyre_queue_kill(queue, -EIO);
}

static void spyre_reset_drain(struct spyre_queue *queue)
{
	spyre_engine_drain(&queue->spyre->engine, queue);
}

/* Resets the card.  @caller, the file that requested it or NULL, does not become stale. */
static int spyre_reset_device(struct spyre_device *spyre, struct spyre_file *caller)
{
	int ret;

	guard(mutex)(&spyre->files_lock);
	/* This is first, so that a queue that is created from here on finds its file stale. */
	WRITE_ONCE(spyre->generation, spyre->generation + 1);
	/* Pairs with spyre_ioctl_queue_create(). */
	smp_mb();
	spyre_reset_visit_queues(spyre, spyre_reset_kill);
	spyre_reset_visit_queues(spyre, spyre_reset_drain);
	ret = spyre_engine_probe(&spyre->engine);
	trace_spyre_reset(spyre, ret);
	spyre_events_add_card(spyre, "reset", spyre->generation);
	if (!ret && caller) {
		caller->generation = spyre->generation;
		spyre_file_forgive(caller);
	}
	return ret;
}

/* Resets the VFs of a card; one that is being unplugged needs no reset. */
static int spyre_reset_vfs(struct spyre_device *spyre)
{
	struct spyre_device *vfs[SPYRE_MAX_VFS];
	const u32 count = spyre_card_get_vfs(spyre, vfs);
	int ret = 0, idx;
	u32 i;

	for (i = 0; i < count; i++) {
		if (drm_dev_enter(&vfs[i]->drm, &idx)) {
			ret = spyre_reset_device(vfs[i], NULL) ?: ret;
			drm_dev_exit(idx);
		}
		drm_dev_put(&vfs[i]->drm);
	}
	return ret;
}

int spyre_ioctl_reset(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_device *spyre = to_spyre_device(drm);
	struct spyre_file *sfile = to_spyre_file(file);
	struct drm_spyre_reset *args = data;
	int ret, idx;

	args->generation = 0;
	if (args->flags || args->pad)
		return -EINVAL;
	/* The threads that have to answer end when the card is unplugged. */
	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	ret = spyre_reset_device(spyre, sfile);
	if (!ret)
		args->generation = sfile->generation;
	ret = spyre_reset_vfs(spyre) ?: ret;
	drm_dev_exit(idx);
	return ret;
}
