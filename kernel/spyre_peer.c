// SPDX-License-Identifier: GPL-2.0-only
/*
 * Import and checks of peers.
 */
#include <linux/dma-buf.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_gem.h>

#include "spyre_bo.h"
#include "spyre_compat.h"
#include "spyre_device.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_job.h"
#include "spyre_peer.h"

struct drm_gem_object *spyre_peer_import(struct drm_device *drm, struct dma_buf *dmabuf)
{
	struct spyre_bo *bo = spyre_bo_alloc(DRM_SPYRE_BO_PEER);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	drm_gem_private_object_init(drm, &bo->base.base, dmabuf->size);
	/* It keeps the other device's BO and its DRM device, but not that device's card bound. */
	get_dma_buf(dmabuf);
	bo->peer = dmabuf;
	/* A job may drop the last reference, after the file was closed. */
	drm_dev_get(drm);
	return &bo->base.base;
}

void spyre_peer_free(struct spyre_bo *bo)
{
	struct drm_device *drm = bo->base.base.dev;

	drm_gem_object_release(&bo->base.base);
	dma_buf_put(bo->peer);
	drm_dev_put(drm);
}

struct spyre_bo *spyre_peer_far(struct spyre_bo *bo)
{
	return bo->peer ? to_spyre_bo(bo->peer->priv) : bo;
}

struct spyre_bo *spyre_peer_lookup(struct drm_file *file, u32 handle, bool write)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);
	struct spyre_bo *bo;
	int ret = 0;

	if (!obj)
		return ERR_PTR(-ENOENT);
	bo = to_spyre_bo(obj);
	if (bo->flags != DRM_SPYRE_BO_DEVICE && bo->flags != DRM_SPYRE_BO_PEER)
		ret = -EINVAL;
	else if (write && bo->peer && !(bo->peer->file->f_mode & FMODE_WRITE))
		ret = -EACCES;
	if (!ret)
		return bo;
	drm_gem_object_put(obj);
	return ERR_PTR(ret);
}

int spyre_peer_check(const struct spyre_bo *far)
{
	const struct spyre_device *spyre = to_spyre_device(far->base.base.dev);

	/* The owner exists as long as the BO, even if its file was closed. */
	if (READ_ONCE(spyre->engine.gone) || spyre_file_is_stale(far->owner) ||
	    spyre_file_is_faulted(far->owner))
		return -ENOLINK;
	return 0;
}

int spyre_peer_check_job(const struct spyre_job *job)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < job->num_cbs && !ret; i++)
		if (job->cbs[i].type == DRM_SPYRE_CB_PEER_COPY)
			ret = spyre_peer_check(job->cbs[i].peer.far);
	return ret;
}

enum spyre_link spyre_peer_link(const struct spyre_device *spyre, const struct spyre_bo *far)
{
	return spyre_link_between(spyre->index, to_spyre_device(far->base.base.dev)->index);
}

SPYRE_IMPORT_NS(DMA_BUF);
