// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffer objects: LPDDR5 of the card, and host memory for the DMA engine and
 * for results.  Both live in shmem, so they read as zero, are charged to the
 * memory cgroup of whoever touches them first and cost nothing until then.
 */
#include <linux/iosys-map.h>

#include <drm/drm_gem.h>

#include "spyre_bo.h"
#include "spyre_compat.h"
#include "spyre_device.h"

/* More than any card holds; keeps size arithmetic far from overflow. */
#define SPYRE_BO_MAX_BYTES BIT_ULL(37)

static void spyre_bo_free(struct drm_gem_object *obj)
{
	struct spyre_bo *bo = to_spyre_bo(obj);

	if (bo->vaddr) {
		struct iosys_map map = IOSYS_MAP_INIT_VADDR(bo->vaddr);

		drm_gem_vunmap_unlocked(obj, &map);
	}
	if (bo->owner) {
		spyre_lpddr_uncharge(bo->owner, obj->size);
		spyre_file_put(bo->owner);
	}
	drm_gem_shmem_free(&bo->base);
}

static enum drm_gem_object_status spyre_bo_status(struct drm_gem_object *obj)
{
	return to_spyre_bo(obj)->base.pages ? DRM_GEM_OBJECT_RESIDENT : 0;
}

static const struct drm_gem_object_funcs spyre_bo_funcs = {
	.free = spyre_bo_free,
	.print_info = drm_gem_shmem_object_print_info,
	.pin = drm_gem_shmem_object_pin,
	.unpin = drm_gem_shmem_object_unpin,
	.get_sg_table = drm_gem_shmem_object_get_sg_table,
	.vmap = drm_gem_shmem_object_vmap,
	.vunmap = drm_gem_shmem_object_vunmap,
	.mmap = drm_gem_shmem_object_mmap,
	.status = spyre_bo_status,
	.vm_ops = &drm_gem_shmem_vm_ops,
};

struct drm_gem_object *spyre_gem_create_object(struct drm_device *drm, size_t size)
{
	struct spyre_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->base.base.funcs = &spyre_bo_funcs;
	/* They are written through mappings that leave no trace in the pages. */
	bo->base.pages_mark_dirty_on_put = true;
	return &bo->base.base;
}

struct spyre_bo *spyre_bo_lookup(struct drm_file *file, u32 handle, u32 kind)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);

	if (!obj)
		return ERR_PTR(-ENOENT);
	if (to_spyre_bo(obj)->flags != kind) {
		drm_gem_object_put(obj);
		return ERR_PTR(-EINVAL);
	}
	return to_spyre_bo(obj);
}

void *spyre_bo_map(struct spyre_bo *bo)
{
	void *vaddr = READ_ONCE(bo->vaddr);
	struct iosys_map map;
	int ret;

	if (vaddr)
		return vaddr;

	ret = dma_resv_lock_interruptible(bo->base.base.resv, NULL);
	if (ret)
		return ERR_PTR(ret);
	if (!bo->vaddr) {
		ret = drm_gem_shmem_vmap(&bo->base, &map);
		if (!ret)
			WRITE_ONCE(bo->vaddr, map.vaddr);
	}
	dma_resv_unlock(bo->base.base.resv);
	return ret ? ERR_PTR(ret) : bo->vaddr;
}

int spyre_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_file *sfile = to_spyre_file(file);
	struct drm_spyre_bo_create *args = data;
	struct drm_gem_shmem_object *shmem;
	struct spyre_bo *bo;
	int ret;

	args->handle = 0;
	if (args->flags != DRM_SPYRE_BO_DEVICE && args->flags != DRM_SPYRE_BO_HOST)
		return -EINVAL;
	if (!args->size || args->size > SPYRE_BO_MAX_BYTES)
		return -EINVAL;
	if (spyre_file_is_stale(sfile))
		return -EIO;
	args->size = PAGE_ALIGN(args->size);

	if (args->flags == DRM_SPYRE_BO_DEVICE) {
		ret = spyre_lpddr_charge(sfile, args->size);
		if (ret)
			return ret;
	}
	shmem = drm_gem_shmem_create(drm, args->size);
	if (IS_ERR(shmem)) {
		if (args->flags == DRM_SPYRE_BO_DEVICE)
			spyre_lpddr_uncharge(sfile, args->size);
		return PTR_ERR(shmem);
	}
	bo = to_spyre_bo(&shmem->base);
	bo->flags = args->flags;
	if (args->flags == DRM_SPYRE_BO_DEVICE)
		bo->owner = spyre_file_get(sfile);

	ret = drm_gem_handle_create(file, &shmem->base, &args->handle);
	drm_gem_object_put(&shmem->base);
	return ret;
}

int spyre_ioctl_bo_mmap_offset(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_spyre_bo_mmap_offset *args = data;
	struct drm_gem_object *obj;
	int ret;

	args->offset = 0;
	if (args->pad)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	ret = drm_gem_create_mmap_offset(obj);
	if (!ret)
		args->offset = drm_vma_node_offset_addr(&obj->vma_node);
	drm_gem_object_put(obj);
	return ret;
}
