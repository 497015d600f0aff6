/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of a buffer object: a file of a tmpfs that is private to the kernel.
 *
 * A page exists from its first access, by a fault of a mapping or by a
 * submission, until the buffer is freed.  The buffer holds a reference to it all
 * that time, so it is neither swapped nor moved, and page tables and windows can
 * refer to it.  It is charged to the memory cgroup of the buffer's creator,
 * whoever touches it.
 */
#ifndef SPYRE_SHMEM_H
#define SPYRE_SHMEM_H

#include <drm/drm_gem.h>
#include <linux/mutex.h>

struct iosys_map;
struct mem_cgroup;
struct spyre_window;

/**
 * struct spyre_shmem - a GEM object with lazily populated pages
 */
struct spyre_shmem {
	/** @base: the object; its file has the pages. */
	struct drm_gem_object base;
	/** @memcg: cgroup to which the pages are charged, with a reference. */
	struct mem_cgroup *memcg;
	/** @lock: protects what follows, and adding pages. */
	struct mutex lock;
	/** @resident: bytes of pages; read without the lock. */
	u64 resident;
	/** @windows: all windows; each lives as long as the buffer. */
	struct spyre_window *windows;
	/** @windows_bytes: sum of their lengths. */
	u64 windows_bytes;
	/** @reach: per granule, the window that reaches furthest from it; read without the lock. */
	struct spyre_window **reach;
};

static inline struct spyre_shmem *to_spyre_shmem(struct drm_gem_object *obj)
{
	return container_of(obj, struct spyre_shmem, base);
}

/* Mounts and unmounts the file system of all cards. */
void spyre_shmem_mount(void);
void spyre_shmem_unmount(void);

/*
 * Initialises @shmem, which is zeroed except for its funcs.  After an error, the
 * caller must also call spyre_shmem_fini().
 */
int spyre_shmem_init(struct spyre_shmem *shmem, struct drm_device *drm, u64 size);
void spyre_shmem_fini(struct spyre_shmem *shmem);

/*
 * Populates [offset, offset + bytes), a range within the buffer that is not empty,
 * and returns its kernel address, which is valid as long as the buffer.
 */
void *spyre_shmem_map(struct spyre_shmem *shmem, u64 offset, u64 bytes);

/*
 * Returns all pages in segments of at most @max_segment bytes.  The caller frees
 * the table with sg_free_table() and kfree().
 */
struct sg_table *spyre_shmem_get_sg_table(struct spyre_shmem *shmem, u32 max_segment);

/*
 * For struct drm_gem_object_funcs.  Attaching to the dma-buf pins it, and only an
 * importer that has attached can get the kernel address.
 */
int spyre_shmem_pin(struct drm_gem_object *obj);
void spyre_shmem_unpin(struct drm_gem_object *obj);
int spyre_shmem_vmap(struct drm_gem_object *obj, struct iosys_map *map);
void spyre_shmem_vunmap(struct drm_gem_object *obj, struct iosys_map *map);
int spyre_shmem_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma);
extern const struct vm_operations_struct spyre_shmem_vm_ops;

/* For mmap() of the node: chooses addresses at which large mappings get huge pages. */
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
unsigned long spyre_shmem_get_unmapped_area(struct file *filp, unsigned long address,
					    unsigned long bytes, unsigned long pgoff,
					    unsigned long flags);
#else
#define spyre_shmem_get_unmapped_area NULL
#endif

#endif
