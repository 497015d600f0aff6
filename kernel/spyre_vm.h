/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_VM_H
#define SPYRE_VM_H

#include <drm/drm_gpuvm.h>
#include <linux/mutex.h>

struct spyre_bo;
struct spyre_device;

#define SPYRE_VA_BITS 37

/**
 * struct spyre_vm - device address space of a file
 */
struct spyre_vm {
	/** @base: mappings. */
	struct drm_gpuvm base;
	/** @lock: protects @base. */
	struct mutex lock;
};

struct spyre_vm *spyre_vm_create(struct spyre_device *spyre);
void spyre_vm_destroy(struct spyre_vm *vm);

/*
 * Finds [va, va + size) in one mapping, that may be written if @write.
 * Returns a referenced BO and its offset; -EFAULT if it is not mapped so.
 */
struct spyre_bo *spyre_vm_find(struct spyre_vm *vm, u64 va, u64 size, bool write, u64 *offset);

int spyre_ioctl_vm_bind(struct drm_device *drm, void *data, struct drm_file *file);

#endif
