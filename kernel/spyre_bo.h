/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_BO_H
#define SPYRE_BO_H

#include <drm/drm_gem_shmem_helper.h>

struct spyre_file;

/**
 * struct spyre_bo - a buffer object
 */
struct spyre_bo {
	/** @base: shmem backed GEM object. */
	struct drm_gem_shmem_object base;
	/** @flags: DRM_SPYRE_BO_*. */
	u32 flags;
	/** @owner: who pays; only set on device BOs. */
	struct spyre_file *owner;
	/** @vaddr: kernel address once something needed it, for good. */
	void *vaddr;
};

static inline struct spyre_bo *to_spyre_bo(struct drm_gem_object *obj)
{
	return container_of(to_drm_gem_shmem_obj(obj), struct spyre_bo, base);
}

/* Referenced BO of exactly this kind, or -ENOENT, -EINVAL. */
struct spyre_bo *spyre_bo_lookup(struct drm_file *file, u32 handle, u32 kind);
/* Kernel address of the whole BO; populates it. */
void *spyre_bo_map(struct spyre_bo *bo);

struct drm_gem_object *spyre_gem_create_object(struct drm_device *drm, size_t size);
int spyre_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file);
int spyre_ioctl_bo_mmap_offset(struct drm_device *drm, void *data, struct drm_file *file);

static inline void spyre_bo_put(struct spyre_bo *bo)
{
	if (bo)
		drm_gem_object_put(&bo->base.base);
}

DEFINE_FREE(spyre_bo_put, struct spyre_bo *, if (!IS_ERR_OR_NULL(_T)) spyre_bo_put(_T))

#endif
