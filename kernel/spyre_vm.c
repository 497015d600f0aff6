// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device address space of a file: the mapping of device addresses to BOs.
 * The card has no page tables; a job looks its addresses up when it is
 * submitted and keeps the BOs that it found, so mappings may change at once.
 */
#include <linux/list.h>
#include <linux/slab.h>

#include <drm/drm_gem.h>
#include <drm/drm_utils.h>

#include "spyre_bind.h"
#include "spyre_bo.h"
#include "spyre_charge.h"
#include "spyre_compat.h"
#include "spyre_device.h"
#include "spyre_vm.h"

/* Flag of read-only mappings. */
#define SPYRE_VA_READONLY DRM_GPUVA_USERBITS

/* State of one operation, for its steps. */
struct spyre_vm_step {
	struct drm_gpuvm *gpuvm;
	struct spyre_vm_op *op;
	/* removed mappings, linked by their gem.entry */
	struct list_head *dead;
};

static void spyre_vm_free(struct drm_gpuvm *gpuvm)
{
	struct spyre_vm *vm = container_of(gpuvm, struct spyre_vm, base);

	mutex_destroy(&vm->lock);
	kfree(vm);
}

static int spyre_vm_step_map(struct drm_gpuva_op *op, void *priv)
{
	struct spyre_vm_step *step = priv;
	struct drm_gpuva *va = no_free_ptr(step->op->map);

	drm_gem_object_get(op->map.gem.obj);
	drm_gpuva_map(step->gpuvm, va, &op->map);
	if (step->op->readonly)
		va->flags |= SPYRE_VA_READONLY;
	return 0;
}

static int spyre_vm_step_unmap(struct drm_gpuva_op *op, void *priv)
{
	struct spyre_vm_step *step = priv;

	drm_gpuva_unmap(&op->unmap);
	list_add(&op->unmap.va->gem.entry, step->dead);
	return 0;
}

static int spyre_vm_step_remap(struct drm_gpuva_op *op, void *priv)
{
	struct spyre_vm_step *step = priv;
	struct drm_gpuva *old = op->remap.unmap->va;
	struct drm_gpuva *prev = NULL, *next = NULL;

	/* An operation splits at most one mapping at its start and one at its end. */
	if (op->remap.prev) {
		prev = no_free_ptr(step->op->prev);
		prev->flags = old->flags;
		drm_gem_object_get(old->gem.obj);
	}
	if (op->remap.next) {
		next = no_free_ptr(step->op->next);
		next->flags = old->flags;
		drm_gem_object_get(old->gem.obj);
	}
	drm_gpuva_remap(prev, next, &op->remap);
	list_add(&old->gem.entry, step->dead);
	return 0;
}

static const struct drm_gpuvm_ops spyre_vm_ops = {
	.vm_free = spyre_vm_free,
	.sm_step_map = spyre_vm_step_map,
	.sm_step_unmap = spyre_vm_step_unmap,
	.sm_step_remap = spyre_vm_step_remap,
};

struct spyre_vm *spyre_vm_create(struct spyre_device *spyre)
{
	struct drm_gem_object *resv;
	struct spyre_vm *vm;

	vm = kzalloc(sizeof(*vm), SPYRE_GFP);
	if (!vm)
		return ERR_PTR(-ENOMEM);
	resv = drm_gpuvm_resv_object_alloc(&spyre->drm);
	if (!resv) {
		kfree(vm);
		return ERR_PTR(-ENOMEM);
	}
	mutex_init(&vm->lock);
	spyre_binds_init(&vm->binds);
	drm_gpuvm_init(&vm->base, "spyre", 0, &spyre->drm, resv, 0, 1ull << SPYRE_VA_BITS,
		       0, DRM_SPYRE_VA_PAGE, &spyre_vm_ops);
	drm_gem_object_put(resv);
	return vm;
}

static void spyre_vm_bury(struct list_head *dead)
{
	struct drm_gpuva *va, *next;

	list_for_each_entry_safe(va, next, dead, gem.entry) {
		drm_gem_object_put(va->gem.obj);
		kfree(va);
	}
}

void spyre_vm_destroy(struct spyre_vm *vm)
{
	struct drm_gpuva *va, *next;
	LIST_HEAD(dead);

	spyre_binds_cancel(&vm->binds);
	scoped_guard(mutex, &vm->lock) {
		drm_gpuvm_for_each_va_safe(va, next, &vm->base) {
			if (va == &vm->base.kernel_alloc_node)
				continue;
			drm_gpuva_remove(va);
			list_add(&va->gem.entry, &dead);
		}
	}
	spyre_vm_bury(&dead);
	drm_gpuvm_put(&vm->base);
}

struct spyre_bo *spyre_vm_find(struct spyre_vm *vm, u64 va, u64 size, bool write, u64 *offset)
{
	struct drm_gpuva *found;

	if (!size || va >= 1ull << SPYRE_VA_BITS || size > (1ull << SPYRE_VA_BITS) - va)
		return ERR_PTR(-EFAULT);

	guard(mutex)(&vm->lock);
	found = drm_gpuva_find_first(&vm->base, va, size);
	if (!found || found == &vm->base.kernel_alloc_node)
		return ERR_PTR(-EFAULT);
	if (va < found->va.addr || size > found->va.addr + found->va.range - va)
		return ERR_PTR(-EFAULT);
	if (write && (found->flags & SPYRE_VA_READONLY))
		return ERR_PTR(-EFAULT);

	drm_gem_object_get(found->gem.obj);
	*offset = found->gem.offset + (va - found->va.addr);
	return to_spyre_bo(found->gem.obj);
}

int spyre_vm_op_check(const struct drm_spyre_vm_bind_op *op)
{
	const u64 segment = 1ull << DRM_SPYRE_SEGMENT_SHIFT;

	if (op->pad || !op->range)
		return -EINVAL;
	if (!IS_ALIGNED(op->va | op->range | op->bo_offset, DRM_SPYRE_VA_PAGE))
		return -EINVAL;
	if (op->va >= 1ull << SPYRE_VA_BITS || op->va < DRM_SPYRE_VA_PAGE)
		return -EINVAL;
	if (op->range > segment - (op->va & (segment - 1)))
		return -EINVAL;

	switch (op->op) {
	case DRM_SPYRE_VM_MAP:
		return op->flags & ~DRM_SPYRE_VM_MAP_READONLY ? -EINVAL : 0;
	case DRM_SPYRE_VM_UNMAP:
		return op->flags || op->handle || op->bo_offset ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

int spyre_vm_op_init(struct spyre_vm_op *op, const struct drm_spyre_vm_bind_op *from,
		     struct drm_gem_object *obj)
{
	if (obj && (from->bo_offset > obj->size || from->range > obj->size - from->bo_offset))
		return -EINVAL;
	op->va = from->va;
	op->range = from->range;
	op->bo_offset = from->bo_offset;
	op->readonly = from->flags & DRM_SPYRE_VM_MAP_READONLY;
	op->prev = kzalloc(sizeof(*op->prev), SPYRE_GFP);
	op->next = kzalloc(sizeof(*op->next), SPYRE_GFP);
	if (obj)
		op->map = kzalloc(sizeof(*op->map), SPYRE_GFP);
	if (!op->prev || !op->next || (obj && !op->map)) {
		spyre_vm_op_fini(op);
		return -ENOMEM;
	}
	op->obj = obj;
	if (obj)
		drm_gem_object_get(obj);
	return 0;
}

void spyre_vm_op_fini(struct spyre_vm_op *op)
{
	kfree(op->map);
	kfree(op->prev);
	kfree(op->next);
	if (op->obj)
		drm_gem_object_put(op->obj);
	*op = (struct spyre_vm_op) {};
}

static int spyre_vm_apply_one(struct spyre_vm *vm, struct spyre_vm_op *op,
			      struct list_head *dead)
{
	struct spyre_vm_step step = { .gpuvm = &vm->base, .op = op, .dead = dead };

	if (op->obj)
		return spyre_gpuvm_sm_map(&vm->base, &step, op->va, op->range, op->obj,
					  op->bo_offset);
	return drm_gpuvm_sm_unmap(&vm->base, &step, op->va, op->range);
}

int spyre_vm_apply(struct spyre_vm *vm, struct spyre_vm_op *ops, u32 num,
		   struct spyre_bind *bind)
{
	LIST_HEAD(dead);
	int ret = 0;
	u32 i;

	scoped_guard(mutex, &vm->lock) {
		if (bind)
			ret = spyre_bind_begin(&vm->binds, bind);
		for (i = 0; i < num && !ret; i++) {
			ret = spyre_vm_apply_one(vm, &ops[i], &dead);
			/* Cannot fail: the operation was checked and its memory allocated. */
			WARN_ON_ONCE(ret);
		}
		if (bind && !ret)
			spyre_bind_publish(&vm->binds, bind);
	}
	/* Dropping the last reference of a BO takes time and other locks, so do it here. */
	spyre_vm_bury(&dead);
	return ret;
}

struct dma_fence *spyre_vm_last_bind(struct spyre_vm *vm)
{
	/* A thread that has found the mapping under the lock also sees the fence. */
	if (!READ_ONCE(vm->binds.last))
		return NULL;
	guard(mutex)(&vm->lock);
	return spyre_binds_last(&vm->binds);
}
