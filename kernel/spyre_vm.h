/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_VM_H
#define SPYRE_VM_H

#include <drm/drm_gpuvm.h>
#include <linux/mutex.h>

#include "spyre_bind.h"

struct drm_spyre_vm_bind_op;
struct spyre_bo;
struct spyre_device;

#define SPYRE_VA_BITS 37

/**
 * struct spyre_vm - device address space of a file
 */
struct spyre_vm {
	/** @base: mappings. */
	struct drm_gpuvm base;
	/** @lock: protects @base; operations and their fence become visible together. */
	struct mutex lock;
	/** @binds: asynchronous binds. */
	struct spyre_binds binds;
};

/**
 * struct spyre_vm_op - a checked operation with all the memory that it may take
 */
struct spyre_vm_op {
	/** @va: device address. */
	u64 va;
	/** @range: bytes. */
	u64 range;
	/** @bo_offset: MAP: offset in @obj. */
	u64 bo_offset;
	/** @obj: MAP: what to map, referenced; UNMAP: NULL. */
	struct drm_gem_object *obj;
	/** @readonly: MAP: work may not write through it. */
	bool readonly;
	/** @map: MAP: the new mapping. */
	struct drm_gpuva *map;
	/** @prev: the rest of a mapping that begins before @va. */
	struct drm_gpuva *prev;
	/** @next: the rest of a mapping that ends behind. */
	struct drm_gpuva *next;
};

struct spyre_vm *spyre_vm_create(struct spyre_device *spyre);
void spyre_vm_destroy(struct spyre_vm *vm);

/*
 * Finds [va, va + size) in one mapping, which must be writable if @write.
 * Returns the BO with a reference, and the offset in it; else -EFAULT.
 */
struct spyre_bo *spyre_vm_find(struct spyre_vm *vm, u64 va, u64 size, bool write, u64 *offset);

/* Returns 0 if each field by itself is valid, else -EINVAL. */
int spyre_vm_op_check(const struct drm_spyre_vm_bind_op *op);
/* A zeroed @op of a checked one; -EINVAL if @obj is too small, -ENOMEM. */
int spyre_vm_op_init(struct spyre_vm_op *op, const struct drm_spyre_vm_bind_op *from,
		     struct drm_gem_object *obj);
/* Releases @op, whether or not it was carried out. */
void spyre_vm_op_fini(struct spyre_vm_op *op);

/*
 * Carries out @num operations together.  With @bind, which may be refused
 * (-EBUSY), its fence is published along with them; otherwise it never fails.
 */
int spyre_vm_apply(struct spyre_vm *vm, struct spyre_vm_op *ops, u32 num,
		   struct spyre_bind *bind);

/* Returns the fence of the last asynchronous bind, with a reference, unless it has signalled. */
struct dma_fence *spyre_vm_last_bind(struct spyre_vm *vm);

#endif
