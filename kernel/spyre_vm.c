// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device address space of a file: which BO is behind which device address.
 * The card has no page tables; a job looks its addresses up when it is
 * submitted and keeps the BOs that it found, so mappings may change at once.
 */
#include <linux/slab.h>

#include <drm/drm_gem.h>
#include <drm/drm_utils.h>

#include "spyre_array.h"
#include "spyre_bo.h"
#include "spyre_compat.h"
#include "spyre_device.h"
#include "spyre_vm.h"

#define SPYRE_VM_MAX_OPS 4096
/* Set on mappings that may only be read. */
#define SPYRE_VA_READONLY DRM_GPUVA_USERBITS

/* Memory for one operation, so that a half done one never runs out. */
struct spyre_vm_step {
	struct drm_gpuvm *gpuvm;
	struct drm_gpuva *map;
	struct drm_gpuva *prev;
	struct drm_gpuva *next;
	u32 flags;
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
	struct drm_gpuva *va = no_free_ptr(step->map);

	drm_gem_object_get(op->map.gem.obj);
	drm_gpuva_map(step->gpuvm, va, &op->map);
	va->flags |= step->flags;
	return 0;
}

static int spyre_vm_step_unmap(struct drm_gpuva_op *op, void *priv)
{
	struct drm_gpuva *va = op->unmap.va;

	drm_gpuva_unmap(&op->unmap);
	drm_gem_object_put(va->gem.obj);
	kfree(va);
	return 0;
}

static int spyre_vm_step_remap(struct drm_gpuva_op *op, void *priv)
{
	struct spyre_vm_step *step = priv;
	struct drm_gpuva *old = op->remap.unmap->va;
	struct drm_gpuva *prev = NULL, *next = NULL;

	if (op->remap.prev) {
		prev = no_free_ptr(step->prev);
		prev->flags = old->flags;
		drm_gem_object_get(old->gem.obj);
	}
	if (op->remap.next) {
		next = no_free_ptr(step->next);
		next->flags = old->flags;
		drm_gem_object_get(old->gem.obj);
	}
	drm_gpuva_remap(prev, next, &op->remap);
	drm_gem_object_put(old->gem.obj);
	kfree(old);
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

	vm = kzalloc(sizeof(*vm), GFP_KERNEL_ACCOUNT);
	if (!vm)
		return ERR_PTR(-ENOMEM);
	resv = drm_gpuvm_resv_object_alloc(&spyre->drm);
	if (!resv) {
		kfree(vm);
		return ERR_PTR(-ENOMEM);
	}
	mutex_init(&vm->lock);
	drm_gpuvm_init(&vm->base, "spyre", 0, &spyre->drm, resv, 0, 1ull << SPYRE_VA_BITS,
		       0, DRM_SPYRE_VA_PAGE, &spyre_vm_ops);
	drm_gem_object_put(resv);
	return vm;
}

void spyre_vm_destroy(struct spyre_vm *vm)
{
	struct drm_gpuva *va, *next;

	scoped_guard(mutex, &vm->lock) {
		drm_gpuvm_for_each_va_safe(va, next, &vm->base) {
			if (va == &vm->base.kernel_alloc_node)
				continue;
			drm_gpuva_remove(va);
			drm_gem_object_put(va->gem.obj);
			kfree(va);
		}
	}
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

static int spyre_vm_check_op(const struct drm_spyre_vm_bind_op *op)
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

static int spyre_vm_do(struct spyre_vm *vm, const struct drm_spyre_vm_bind_op *op,
		       struct drm_gem_object *obj)
{
	struct drm_gpuva *map __free(kfree) = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	struct drm_gpuva *prev __free(kfree) = kzalloc(sizeof(*prev), GFP_KERNEL_ACCOUNT);
	struct drm_gpuva *next __free(kfree) = kzalloc(sizeof(*next), GFP_KERNEL_ACCOUNT);
	struct spyre_vm_step step = { .gpuvm = &vm->base };
	int ret;

	if (!map || !prev || !next)
		return -ENOMEM;
	step.map = map;
	step.prev = prev;
	step.next = next;
	if (op->flags & DRM_SPYRE_VM_MAP_READONLY)
		step.flags = SPYRE_VA_READONLY;

	scoped_guard(mutex, &vm->lock) {
		if (op->op == DRM_SPYRE_VM_MAP)
			ret = spyre_gpuvm_sm_map(&vm->base, &step, op->va, op->range,
						 obj, op->bo_offset);
		else
			ret = drm_gpuvm_sm_unmap(&vm->base, &step, op->va, op->range);
	}
	/* The steps took what they used. */
	map = step.map;
	prev = step.prev;
	next = step.next;
	return ret;
}

static int spyre_vm_bind_one(struct drm_file *file, const struct drm_spyre_vm_bind_op *op)
{
	struct spyre_vm *vm = to_spyre_file(file)->vm;
	struct spyre_bo *bo __free(spyre_bo_put) = NULL;
	int ret;

	ret = spyre_vm_check_op(op);
	if (ret)
		return ret;
	if (op->op == DRM_SPYRE_VM_UNMAP)
		return spyre_vm_do(vm, op, NULL);

	bo = spyre_bo_lookup(file, op->handle, DRM_SPYRE_BO_DEVICE);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	if (op->bo_offset > bo->base.base.size ||
	    op->range > bo->base.base.size - op->bo_offset)
		return -EINVAL;
	return spyre_vm_do(vm, op, &bo->base.base);
}

int spyre_ioctl_vm_bind(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_spyre_vm_bind *args = data;
	struct drm_spyre_vm_bind_op *ops __free(kvfree) = NULL;
	int ret;

	args->done = 0;
	if (args->flags)
		return -EINVAL;
	if (spyre_file_is_stale(to_spyre_file(file)))
		return -EIO;
	ops = spyre_array_get(&args->ops, sizeof(*ops), 1, SPYRE_VM_MAX_OPS);
	if (IS_ERR(ops))
		return PTR_ERR(ops);

	for (; args->done < args->ops.count; args->done++) {
		ret = spyre_vm_bind_one(file, &ops[args->done]);
		if (ret)
			return ret;
	}
	return 0;
}
