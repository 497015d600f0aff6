// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs: export, import, and the synchronisation of a job that uses an
 * imported buffer with the exporting driver.
 */
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_exec.h>
#include <drm/drm_prime.h>

#include "spyre_bo.h"
#include "spyre_charge.h"
#include "spyre_compat.h"
#include "spyre_device.h"
#include "spyre_job.h"
#include "spyre_peer.h"
#include "spyre_prime.h"
#include "spyre_shmem.h"

/**
 * struct spyre_import - a buffer of another driver
 */
struct spyre_import {
	/** @dmabuf: the buffer, with a reference. */
	struct dma_buf *dmabuf;
	/** @attach: prevents the exporter from moving the buffer. */
	struct dma_buf_attachment *attach;
	/** @map: kernel address of the buffer. */
	struct iosys_map map;
	/** @lock: protects @users; held while it changes from or to 0. */
	struct mutex lock;
	/** @users: number of jobs that use the buffer. */
	u32 users;
};

static struct workqueue_struct *spyre_prime_wq;

int spyre_prime_init(void)
{
	spyre_prime_wq = alloc_workqueue("spyre-prime", WQ_UNBOUND, 0);
	return spyre_prime_wq ? 0 : -ENOMEM;
}

void spyre_prime_exit(void)
{
	destroy_workqueue(spyre_prime_wq);
}

static const char *spyre_gone_driver_name(struct dma_fence *fence)
{
	return "spyre_vdev";
}

static const char *spyre_gone_timeline_name(struct dma_fence *fence)
{
	return "unplug";
}

/* The fence is embedded in the device, which outlives it: there is nothing to free. */
static void spyre_gone_release(struct dma_fence *fence)
{
}

static const struct dma_fence_ops spyre_gone_ops = {
	.get_driver_name = spyre_gone_driver_name,
	.get_timeline_name = spyre_gone_timeline_name,
	.release = spyre_gone_release,
};

void spyre_prime_start(struct spyre_device *spyre)
{
	spin_lock_init(&spyre->gone_lock);
	dma_fence_init(&spyre->gone, &spyre_gone_ops, &spyre->gone_lock,
		       dma_fence_context_alloc(1), 1);
}

void spyre_prime_stop(struct spyre_device *spyre)
{
	dma_fence_signal(&spyre->gone);
}

/* Differs from the core's function in that segments respect the importer's DMA limits. */
static struct sg_table *spyre_prime_map(struct dma_buf_attachment *attach,
					enum dma_data_direction direction)
{
	struct drm_gem_object *obj = attach->dmabuf->priv;
	struct sg_table *table;
	size_t segment;
	int ret;

	segment = min_t(size_t, dma_get_max_seg_size(attach->dev),
			dma_max_mapping_size(attach->dev));
	table = spyre_shmem_get_sg_table(to_spyre_shmem(obj), max(segment, PAGE_SIZE));
	if (IS_ERR(table))
		return table;
	ret = dma_map_sgtable(attach->dev, table, direction, DMA_ATTR_SKIP_CPU_SYNC);
	if (!ret)
		return table;
	sg_free_table(table);
	kfree(table);
	return ERR_PTR(ret);
}

/* The core's operations except for map_dma_buf; the address identifies this driver's buffers. */
static const struct dma_buf_ops spyre_dma_buf_ops = {
	SPYRE_DMA_BUF_CACHE_SGT
	.attach = drm_gem_map_attach,
	.detach = drm_gem_map_detach,
	.map_dma_buf = spyre_prime_map,
	.unmap_dma_buf = drm_gem_unmap_dma_buf,
	.release = drm_gem_dmabuf_release,
	.mmap = drm_gem_dmabuf_mmap,
	.vmap = drm_gem_dmabuf_vmap,
	.vunmap = drm_gem_dmabuf_vunmap,
};

struct dma_buf *spyre_prime_export(struct drm_gem_object *obj, int flags)
{
	struct dma_buf_export_info info = {
		.exp_name = "spyre_vdev",
		.owner = obj->dev->driver->fops->owner,
		.ops = &spyre_dma_buf_ops,
		.size = obj->size,
		.flags = flags,
		.priv = obj,
		.resv = obj->resv,
	};

	return drm_gem_dmabuf_export(obj->dev, &info);
}

static int spyre_import_attach(struct spyre_import *import, struct drm_device *drm)
{
	struct dma_buf *dmabuf = import->dmabuf;
	int ret;

	/* This card is a program and cannot reach memory of devices. */
	if (!dmabuf->ops->vmap || !PAGE_ALIGNED(dmabuf->size) || !dmabuf->size)
		return -EOPNOTSUPP;
	/* Attach first, because the exporter can report lack of memory or a signal only here. */
	import->attach = dma_buf_attach(dmabuf, drm->dev);
	if (IS_ERR(import->attach)) {
		ret = PTR_ERR(import->attach);
		import->attach = NULL;
		return ret;
	}
	ret = dma_buf_vmap_unlocked(dmabuf, &import->map);
	if (!ret && import->map.is_iomem)
		ret = -EOPNOTSUPP;
	return ret;
}

static void spyre_import_release(struct spyre_import *import)
{
	if (!iosys_map_is_null(&import->map))
		dma_buf_vunmap_unlocked(import->dmabuf, &import->map);
	if (import->attach)
		dma_buf_detach(import->dmabuf, import->attach);
	dma_buf_put(import->dmabuf);
	mutex_destroy(&import->lock);
	kfree(import);
}

struct drm_gem_object *spyre_prime_import(struct drm_device *drm, struct dma_buf *dmabuf)
{
	struct spyre_import *import;
	struct drm_gem_object *obj;
	struct spyre_bo *bo;
	int ret;

	if (dmabuf->ops == &spyre_dma_buf_ops) {
		obj = dmabuf->priv;
		if (obj->dev == drm) {
			drm_gem_object_get(obj);
			return obj;
		}
		if (to_spyre_bo(obj)->flags == DRM_SPYRE_BO_DEVICE)
			return spyre_peer_import(drm, dmabuf);
	}

	import = kzalloc(sizeof(*import), SPYRE_GFP);
	bo = spyre_bo_alloc(DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORTED);
	if (!import || !bo) {
		kfree(import);
		kfree(bo);
		return ERR_PTR(-ENOMEM);
	}
	mutex_init(&import->lock);
	get_dma_buf(dmabuf);
	import->dmabuf = dmabuf;
	ret = spyre_import_attach(import, drm);
	if (ret) {
		spyre_import_release(import);
		kfree(bo);
		return ERR_PTR(ret);
	}
	obj = &bo->base.base;
	obj->resv = dmabuf->resv;
	drm_gem_private_object_init(drm, obj, dmabuf->size);
	obj->import_attach = import->attach;
	bo->import = import;
	/* A job may drop the last reference, after the file was closed. */
	drm_dev_get(drm);
	return obj;
}

u8 *spyre_import_vaddr(struct spyre_bo *bo)
{
	return bo->import->map.vaddr;
}

void spyre_import_free(struct spyre_bo *bo)
{
	struct drm_device *drm = bo->base.base.dev;

	drm_gem_object_release(&bo->base.base);
	spyre_import_release(bo->import);
	drm_dev_put(drm);
}

/* Waits for the fences that @bo's buffer has now, unless the card is unplugged. */
static int spyre_import_wait(struct spyre_bo *bo)
{
	struct spyre_device *spyre = to_spyre_device(bo->base.base.dev);
	struct dma_fence *fences[2] = { NULL, &spyre->gone };
	struct dma_resv_iter cursor;
	long ret = 0;

	dma_resv_iter_begin(&cursor, bo->base.base.resv, dma_resv_usage_rw(true));
	dma_resv_for_each_fence_unlocked(&cursor, fences[0]) {
		ret = dma_fence_wait_any_timeout(fences, ARRAY_SIZE(fences), true,
						 MAX_SCHEDULE_TIMEOUT, NULL);
		if (ret >= 0 && dma_fence_is_signaled(&spyre->gone))
			ret = -ENODEV;
		if (ret < 0)
			break;
	}
	dma_resv_iter_end(&cursor);
	return ret < 0 ? ret : 0;
}

/* Takes the lock when beginning the CPU access would not wait for fences. */
static int spyre_import_lock(struct spyre_bo *bo, bool nowait)
{
	struct spyre_import *import = bo->import;
	int ret;

	for (;;) {
		if (nowait && !mutex_trylock(&import->lock))
			return -EAGAIN;
		if (!nowait && mutex_lock_interruptible(&import->lock))
			return -ERESTARTSYS;
		if (import->users ||
		    dma_resv_test_signaled(import->dmabuf->resv, dma_resv_usage_rw(true)))
			return 0;
		mutex_unlock(&import->lock);
		if (nowait)
			return -EAGAIN;
		ret = spyre_import_wait(bo);
		if (ret)
			return ret;
	}
}

/*
 * The first job begins the CPU access, the last one ends it.  Beginning waits for
 * the fences in the buffer, none of which is this driver's then.  Fences that are
 * added while jobs use the buffer become dependencies of the next jobs.  A caller
 * that must not wait gets -EAGAIN.
 *
 * dma_buf_begin_cpu_access() would also wait, but an unplug of the card could not
 * end that wait.  It is therefore called when no fence is pending, and waits only
 * if one was added at that moment.
 */
static int spyre_import_begin(struct spyre_bo *bo, bool nowait)
{
	struct spyre_import *import = bo->import;
	int ret;

	ret = spyre_import_lock(bo, nowait);
	if (ret)
		return ret;
	if (!import->users)
		ret = dma_buf_begin_cpu_access(import->dmabuf, DMA_BIDIRECTIONAL);
	if (!ret)
		import->users++;
	mutex_unlock(&import->lock);
	return ret;
}

static void spyre_import_end(struct spyre_import *import)
{
	guard(mutex)(&import->lock);
	if (!--import->users)
		dma_buf_end_cpu_access(import->dmabuf, DMA_BIDIRECTIONAL);
}

/* Releases the buffers of a job one by one after its work has ended. */
static void spyre_import_syncs_release(struct work_struct *work)
{
	struct spyre_import_syncs *syncs = container_of(work, struct spyre_import_syncs, work);
	u32 i;

	for (i = 0; i < syncs->num; i++) {
		if (syncs->item[i].begun)
			spyre_import_end(syncs->item[i].bo->import);
		spyre_bo_put(syncs->item[i].bo);
	}
	kfree(syncs);
}

int spyre_import_sync_add(struct spyre_job *job, struct spyre_bo *bo, bool write)
{
	struct spyre_import_syncs *syncs = job->import_syncs, *more;
	const u32 num = syncs ? syncs->num : 0;
	u32 i;

	for (i = 0; i < num; i++) {
		if (syncs->item[i].bo == bo) {
			syncs->item[i].write |= write;
			return 0;
		}
	}
	more = krealloc(syncs, struct_size(syncs, item, num + 1), SPYRE_GFP);
	if (!more)
		return -ENOMEM;
	more->num = num + 1;
	drm_gem_object_get(&bo->base.base);
	more->item[num] = (struct spyre_import_sync) { .bo = bo, .write = write };
	job->import_syncs = more;
	return 0;
}

int spyre_import_sync_begin(struct spyre_job *job, bool nowait)
{
	struct spyre_import_syncs *syncs = job->import_syncs;
	u32 i;
	int ret;

	for (i = 0; syncs && i < syncs->num; i++) {
		ret = spyre_import_begin(syncs->item[i].bo, nowait);
		if (ret)
			return ret;
		syncs->item[i].begun = true;
	}
	return 0;
}

int spyre_import_sync_lock(struct spyre_job *job, struct drm_exec *exec)
{
	struct spyre_import_syncs *syncs = job->import_syncs;
	struct spyre_import_sync *sync;
	u32 i;
	int ret;

	drm_exec_init(exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES,
		      syncs->num);
	drm_exec_until_all_locked(exec) {
		for (i = 0; i < syncs->num; i++) {
			sync = &syncs->item[i];
			/* Buffers may share a reservation object: reserve a slot for each. */
			ret = drm_exec_prepare_obj(exec, &sync->bo->base.base, syncs->num);
			drm_exec_retry_on_contention(exec);
			if (ret)
				return ret;
		}
	}
	for (i = 0; i < syncs->num; i++) {
		sync = &syncs->item[i];
		ret = drm_sched_job_add_resv_dependencies(&job->base, sync->bo->base.base.resv,
							  dma_resv_usage_rw(sync->write));
		if (ret)
			return ret;
	}
	return 0;
}

void spyre_import_sync_publish(struct spyre_job *job)
{
	struct spyre_import_syncs *syncs = job->import_syncs;
	u32 i;

	for (i = 0; syncs && i < syncs->num; i++)
		dma_resv_add_fence(syncs->item[i].bo->base.base.resv, job->done,
				   syncs->item[i].write ? DMA_RESV_USAGE_WRITE :
							  DMA_RESV_USAGE_READ);
}

void spyre_import_sync_end(struct spyre_job *job)
{
	struct spyre_import_syncs *syncs = no_free_ptr(job->import_syncs);

	if (!syncs)
		return;
	INIT_WORK(&syncs->work, spyre_import_syncs_release);
	queue_work(spyre_prime_wq, &syncs->work);
}

SPYRE_IMPORT_NS(DMA_BUF);
