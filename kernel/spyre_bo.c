// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffer objects: LPDDR5 of the card, host memory for the DMA engine and for
 * results, buffers of other drivers that the DMA engine may use, and peers.
 */
#include <linux/slab.h>

#include <drm/drm_gem.h>
#include <drm/drm_print.h>

#include "spyre_bo.h"
#include "spyre_charge.h"
#include "spyre_device.h"
#include "spyre_file.h"
#include "spyre_lpddr.h"
#include "spyre_peer.h"
#include "spyre_prime.h"
#include "spyre_shmem.h"

/* Exceeds the memory of any card; prevents overflow of sums of sizes. */
#define SPYRE_BO_MAX_BYTES BIT_ULL(37)

static void spyre_bo_free(struct drm_gem_object *obj)
{
	struct spyre_bo *bo = to_spyre_bo(obj);

	if (bo->import) {
		spyre_import_free(bo);
	} else if (bo->peer) {
		spyre_peer_free(bo);
	} else {
		const u64 bytes = obj->size;

		spyre_shmem_fini(&bo->base);
		if (bo->owner) {
			spyre_lpddr_uncharge(bo->owner, bytes);
			spyre_file_put(bo->owner);
		}
	}
	kfree(bo);
}

static const struct drm_gem_object_funcs spyre_bo_funcs = {
	.free = spyre_bo_free,
	.export = spyre_prime_export,
	.pin = spyre_shmem_pin,
	.unpin = spyre_shmem_unpin,
	.vmap = spyre_shmem_vmap,
	.vunmap = spyre_shmem_vunmap,
	.mmap = spyre_shmem_mmap,
	.vm_ops = &spyre_shmem_vm_ops,
};

/* An imported BO offers nothing to the core: its exporter has the memory. */
static const struct drm_gem_object_funcs spyre_bo_import_funcs = {
	.free = spyre_bo_free,
};

struct spyre_bo *spyre_bo_alloc(u32 flags)
{
	struct spyre_bo *bo = kzalloc(sizeof(*bo), SPYRE_GFP);

	if (!bo)
		return NULL;
	bo->flags = flags;
	bo->base.base.funcs = flags & (DRM_SPYRE_BO_IMPORTED | DRM_SPYRE_BO_PEER) ?
			      &spyre_bo_import_funcs : &spyre_bo_funcs;
	return bo;
}

static struct spyre_bo *spyre_bo_lookup_kinds(struct drm_file *file, u32 handle, u32 kind,
					      u32 or_kind)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);
	u32 flags;

	if (!obj)
		return ERR_PTR(-ENOENT);
	flags = to_spyre_bo(obj)->flags;
	if (flags != kind && flags != or_kind) {
		drm_gem_object_put(obj);
		return ERR_PTR(flags == DRM_SPYRE_BO_PEER ? -EXDEV : -EINVAL);
	}
	return to_spyre_bo(obj);
}

struct spyre_bo *spyre_bo_lookup(struct drm_file *file, u32 handle, u32 kind)
{
	return spyre_bo_lookup_kinds(file, handle, kind, kind);
}

struct spyre_bo *spyre_bo_lookup_host(struct drm_file *file, u32 handle)
{
	return spyre_bo_lookup_kinds(file, handle, DRM_SPYRE_BO_HOST,
				     DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORTED);
}

void *spyre_bo_map(struct spyre_bo *bo, u64 offset, u64 bytes)
{
	const u64 size = bo->base.base.size;

	if (!bytes || offset > size || bytes > size - offset)
		return ERR_PTR(-EINVAL);
	if (bo->import)
		return spyre_import_vaddr(bo) + offset;
	/* The pages are charged to the group of the memory's owner, as always. */
	if (bo->peer)
		return spyre_shmem_map(&spyre_peer_far(bo)->base, offset, bytes);
	return spyre_shmem_map(&bo->base, offset, bytes);
}

u64 spyre_bo_resident(struct spyre_bo *bo)
{
	if (bo->import)
		return bo->base.base.size;
	return READ_ONCE(spyre_peer_far(bo)->base.resident);
}

static struct spyre_bo *spyre_bo_create(struct spyre_file *sfile, u64 size, u32 flags)
{
	struct spyre_bo *bo = spyre_bo_alloc(flags);
	int ret;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	if (flags == DRM_SPYRE_BO_DEVICE) {
		ret = spyre_lpddr_charge(sfile, size);
		if (ret) {
			kfree(bo);
			return ERR_PTR(ret);
		}
		bo->owner = spyre_file_get(sfile);
	}
	ret = spyre_shmem_init(&bo->base, &sfile->spyre->drm, size);
	if (ret) {
		spyre_bo_put(bo);
		return ERR_PTR(ret);
	}
	return bo;
}

int spyre_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_file *sfile = to_spyre_file(file);
	struct drm_spyre_bo_create *args = data;
	struct spyre_bo *bo __free(spyre_bo_put) = NULL;

	args->handle = 0;
	if (args->flags != DRM_SPYRE_BO_DEVICE && args->flags != DRM_SPYRE_BO_HOST)
		return -EINVAL;
	if (!args->size || args->size > SPYRE_BO_MAX_BYTES)
		return -EINVAL;
	if (spyre_file_is_stale(sfile))
		return -EIO;
	args->size = PAGE_ALIGN(args->size);
	bo = spyre_bo_create(sfile, args->size, args->flags);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	return drm_gem_handle_create(file, &bo->base.base, &args->handle);
}

int spyre_ioctl_bo_mmap_offset(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_spyre_bo_mmap_offset *args = data;
	struct drm_gem_object *obj;

	args->offset = 0;
	if (args->pad)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	/* An imported BO has no offset: user space maps its dma-buf. */
	if (!to_spyre_bo(obj)->import && !to_spyre_bo(obj)->peer)
		args->offset = drm_vma_node_offset_addr(&obj->vma_node);
	drm_gem_object_put(obj);
	return args->offset ? 0 : -EINVAL;
}

int spyre_ioctl_bo_info(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_spyre_bo_info *args = data;
	struct drm_gem_object *obj = drm_gem_object_lookup(file, args->handle);
	struct spyre_bo *bo;

	args->flags = 0;
	args->size = 0;
	args->resident = 0;
	if (!obj)
		return -ENOENT;
	bo = to_spyre_bo(obj);
	args->flags = bo->flags;
	args->size = obj->size;
	args->resident = spyre_bo_resident(bo);
	spyre_bo_put(bo);
	return 0;
}

void spyre_bo_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct drm_memory_stats lpddr5 = {}, host = {}, *stats;
	struct drm_gem_object *obj;
	int id;

	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id) {
		/* The other card's fdinfo counts a peer. */
		if (to_spyre_bo(obj)->peer)
			continue;
		stats = to_spyre_bo(obj)->flags == DRM_SPYRE_BO_DEVICE ? &lpddr5 : &host;
		if (drm_gem_object_is_shared_for_memory_stats(obj))
			stats->shared += obj->size;
		else
			stats->private += obj->size;
		stats->resident += spyre_bo_resident(to_spyre_bo(obj));
	}
	spin_unlock(&file->table_lock);
	drm_print_memory_stats(p, &lpddr5, DRM_GEM_OBJECT_RESIDENT, "lpddr5");
	drm_print_memory_stats(p, &host, DRM_GEM_OBJECT_RESIDENT, "memory");
}
