// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits for and signals of syncobjs, for SUBMIT and VM_BIND.
 */
#include <linux/dma-fence-chain.h>
#include <linux/err.h>
#include <linux/slab.h>

#include <drm/drm_syncobj.h>

#include "spyre_array.h"
#include "spyre_charge.h"
#include "spyre_sync.h"

#define SPYRE_MAX_SYNCS 64

int spyre_syncs_read(struct spyre_syncs *syncs, const struct drm_spyre_array *array)
{
	struct drm_spyre_sync *user;
	u32 i;

	user = spyre_array_get(array, sizeof(*user), 0, SPYRE_MAX_SYNCS);
	if (IS_ERR(user))
		return PTR_ERR(user);
	syncs->user = user;
	syncs->count = array->count;
	for (i = 0; i < syncs->count; i++)
		if (user[i].flags & ~DRM_SPYRE_SYNC_SIGNAL)
			return -EINVAL;
	return 0;
}

static int spyre_sync_find(struct spyre_sync *sync, const struct drm_spyre_sync *user,
			   struct drm_file *file)
{
	struct dma_fence *fence;
	int ret;

	if (!(user->flags & DRM_SPYRE_SYNC_SIGNAL)) {
		/* Flags 0: a point without a fence is an error, and is not waited for. */
		ret = drm_syncobj_find_fence(file, user->handle, user->point, 0, &fence);
		/* On an error @fence may point to a fence that was already put. */
		if (!ret)
			sync->fence = fence;
		return ret;
	}

	sync->syncobj = drm_syncobj_find(file, user->handle);
	if (!sync->syncobj)
		return -ENOENT;
	sync->point = user->point;
	if (!user->point)
		return 0;
	/* dma_fence_chain_alloc() would not charge it to the cgroup. */
	sync->chain = kmalloc(sizeof(*sync->chain), SPYRE_GFP);
	return sync->chain ? 0 : -ENOMEM;
}

int spyre_syncs_find(struct spyre_syncs *syncs, struct drm_file *file)
{
	u32 i;
	int ret;

	if (!syncs->count)
		return 0;
	syncs->sync = kcalloc(syncs->count, sizeof(*syncs->sync), SPYRE_GFP);
	if (!syncs->sync)
		return -ENOMEM;
	for (i = 0; i < syncs->count; i++) {
		ret = spyre_sync_find(&syncs->sync[i], &syncs->user[i], file);
		if (ret)
			return ret;
	}
	return 0;
}

void spyre_syncs_publish(struct spyre_syncs *syncs, struct dma_fence *fence)
{
	struct spyre_sync *sync;

	spyre_for_each_sync(sync, syncs) {
		if (sync->chain)
			drm_syncobj_add_point(sync->syncobj, no_free_ptr(sync->chain), fence,
					      sync->point);
		else if (sync->syncobj)
			drm_syncobj_replace_fence(sync->syncobj, fence);
	}
}

void spyre_syncs_release(struct spyre_syncs *syncs)
{
	struct spyre_sync *sync;

	spyre_for_each_sync(sync, syncs) {
		dma_fence_put(sync->fence);
		dma_fence_chain_free(sync->chain);
		if (sync->syncobj)
			drm_syncobj_put(sync->syncobj);
	}
	kfree(syncs->sync);
	kvfree(syncs->user);
	*syncs = (struct spyre_syncs) {};
}
