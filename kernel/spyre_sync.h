/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits and signals of SUBMIT and VM_BIND are read, looked up, then published.
 * Only the first two steps can fail or allocate.
 */
#ifndef SPYRE_SYNC_H
#define SPYRE_SYNC_H

#include <linux/types.h>

#include <drm/spyre_accel.h>

struct dma_fence;
struct dma_fence_chain;
struct drm_file;
struct drm_syncobj;

/**
 * struct spyre_sync - a wait, which has a fence, or a signal, which has a syncobj
 */
struct spyre_sync {
	/** @fence: wait: the fence, with a reference, which the waiter takes over. */
	struct dma_fence *fence;
	/** @syncobj: signal: the syncobj that gets the fence, with a reference. */
	struct drm_syncobj *syncobj;
	/** @chain: signal: node of the timeline, NULL for a binary syncobj. */
	struct dma_fence_chain *chain;
	/** @point: signal: of the timeline. */
	u64 point;
};

/**
 * struct spyre_syncs - the waits and signals of one call; starts as zeroes
 */
struct spyre_syncs {
	/** @user: copy of what user space passed. */
	struct drm_spyre_sync *user;
	/** @sync: the objects that they name, once found. */
	struct spyre_sync *sync;
	/** @count: of @user, and of @sync if that is not NULL. */
	u32 count;
};

/* Copies and checks the array. */
int spyre_syncs_read(struct spyre_syncs *syncs, const struct drm_spyre_array *array);
/* Looks up all objects and allocates the memory for publishing; called once. */
int spyre_syncs_find(struct spyre_syncs *syncs, struct drm_file *file);
/* Publishes @fence to all signals.  Does not allocate. */
void spyre_syncs_publish(struct spyre_syncs *syncs, struct dma_fence *fence);
/* Releases all objects, in any state. */
void spyre_syncs_release(struct spyre_syncs *syncs);

#define spyre_for_each_sync(s, syncs) \
	for ((s) = (syncs)->sync; (s) && (s) < (syncs)->sync + (syncs)->count; (s)++)

#endif
