/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_BO_H
#define SPYRE_BO_H

#include <drm/spyre_accel.h>

#include "spyre_shmem.h"

struct dma_buf;
struct drm_printer;
struct spyre_file;
struct spyre_import;

/**
 * struct spyre_bo - a buffer object
 */
struct spyre_bo {
	/** @base: its memory, unless it is imported. */
	struct spyre_shmem base;
	/** @flags: DRM_SPYRE_BO_*. */
	u32 flags;
	/** @owner: file to which a device BO is charged; NULL for others. */
	struct spyre_file *owner;
	/** @import: another driver's buffer, or NULL. */
	struct spyre_import *import;
	/** @peer: of a peer: dma-buf of the other device's BO, referenced; else NULL. */
	struct dma_buf *peer;
};

static inline struct spyre_bo *to_spyre_bo(struct drm_gem_object *obj)
{
	return container_of(to_spyre_shmem(obj), struct spyre_bo, base);
}

/* Allocates a BO that is zeroed except for its functions. */
struct spyre_bo *spyre_bo_alloc(u32 flags);
/* Returns the BO of this kind with a reference, or -ENOENT, -EXDEV for a peer, -EINVAL. */
struct spyre_bo *spyre_bo_lookup(struct drm_file *file, u32 handle, u32 kind);
/* Returns a BO of host memory, of this driver or imported, in the same way. */
struct spyre_bo *spyre_bo_lookup_host(struct drm_file *file, u32 handle);
/*
 * Populates [offset, offset + bytes) and returns its kernel address, which is
 * valid as long as the BO.  -EINVAL if the range is empty or not within the BO.
 */
void *spyre_bo_map(struct spyre_bo *bo, u64 offset, u64 bytes);
/* Returns the number of bytes that are backed by memory of the host. */
u64 spyre_bo_resident(struct spyre_bo *bo);
/* Prints the memory keys of fdinfo. */
void spyre_bo_show_fdinfo(struct drm_printer *p, struct drm_file *file);

int spyre_ioctl_bo_create(struct drm_device *drm, void *data, struct drm_file *file);
int spyre_ioctl_bo_mmap_offset(struct drm_device *drm, void *data, struct drm_file *file);
int spyre_ioctl_bo_info(struct drm_device *drm, void *data, struct drm_file *file);

static inline void spyre_bo_put(struct spyre_bo *bo)
{
	if (bo)
		drm_gem_object_put(&bo->base.base);
}

DEFINE_FREE(spyre_bo_put, struct spyre_bo *, if (!IS_ERR_OR_NULL(_T)) spyre_bo_put(_T))

#endif
