// SPDX-License-Identifier: GPL-2.0-only
/*
 * VM_BIND: synchronous operations, done one by one, and asynchronous binds, done
 * as a whole and ordered by fences.
 */
#include <linux/dma-fence.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <drm/drm_gem.h>

#include "spyre_array.h"
#include "spyre_bind.h"
#include "spyre_bo.h"
#include "spyre_charge.h"
#include "spyre_file.h"
#include "spyre_sync.h"
#include "spyre_vm.h"

#define SPYRE_VM_MAX_OPS 4096
/* Limit of pending asynchronous binds of a VM, which bounds the memory that they occupy. */
#define SPYRE_VM_MAX_BINDS 1024

struct spyre_bind_wait {
	struct dma_fence_cb base;
	struct spyre_bind *bind;
	struct dma_fence *fence;
};

/*
 * The fence of an asynchronous bind.  It holds a reference to itself while it
 * is pending, and releases the fences that it waited for when it signals, so
 * that releasing a chain of binds never recurses.  Once it has signalled it
 * refers only to this code, and holds the module.
 */
struct spyre_bind {
	struct dma_fence base;
	/* of base */
	spinlock_t lock;
	struct spyre_binds *binds;
	/* in the list of pending ones */
	struct list_head node;
	/* signals in its own context, since a fence's callback runs with the fence's lock held */
	struct irq_work work;
	/* number of pending waits, plus one while they are being set up */
	atomic_t left;
	/* signals of the creating call, until the bind is published */
	struct spyre_syncs *syncs;
	/* the last one is for the previous bind; some have no fence */
	u32 num_waits;
	struct spyre_bind_wait wait[] __counted_by(num_waits);
};

static const char *spyre_bind_driver_name(struct dma_fence *fence)
{
	return "spyre_vdev";
}

static const char *spyre_bind_timeline_name(struct dma_fence *fence)
{
	return "bind";
}

static void spyre_bind_free_rcu(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct spyre_bind, base.rcu));
	/* The module's exit waits for this callback with rcu_barrier(). */
	module_put(THIS_MODULE);
}

static void spyre_bind_release(struct dma_fence *fence)
{
	call_rcu(&fence->rcu, spyre_bind_free_rcu);
}

static const struct dma_fence_ops spyre_bind_ops = {
	.get_driver_name = spyre_bind_driver_name,
	.get_timeline_name = spyre_bind_timeline_name,
	.release = spyre_bind_release,
};

/* Called in any context when all waits are over. */
static void spyre_bind_finish(struct spyre_bind *bind)
{
	struct spyre_binds *binds = bind->binds;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&binds->lock, flags);
	list_del(&bind->node);
	binds->num_pending--;
	if (binds->closed)
		dma_fence_set_error(&bind->base, -ECANCELED);
	/* @binds may be freed from here on. */
	spin_unlock_irqrestore(&binds->lock, flags);

	for (i = 0; i < bind->num_waits; i++)
		dma_fence_put(bind->wait[i].fence);
	dma_fence_signal(&bind->base);
	dma_fence_put(&bind->base);
}

static void spyre_bind_work(struct irq_work *work)
{
	spyre_bind_finish(container_of(work, struct spyre_bind, work));
}

static void spyre_bind_wait_over(struct dma_fence *fence, struct dma_fence_cb *base)
{
	struct spyre_bind *bind = container_of(base, struct spyre_bind_wait, base)->bind;

	if (atomic_dec_and_test(&bind->left))
		irq_work_queue(&bind->work);
}

/* Does everything that can fail. */
static struct spyre_bind *spyre_bind_create(struct drm_file *file, struct spyre_syncs *syncs)
{
	struct spyre_bind *bind;
	struct spyre_sync *sync;
	int ret;

	ret = spyre_syncs_find(syncs, file);
	if (ret)
		return ERR_PTR(ret);
	bind = kzalloc(struct_size(bind, wait, syncs->count + 1), SPYRE_GFP);
	if (!bind)
		return ERR_PTR(-ENOMEM);
	bind->num_waits = syncs->count + 1;
	bind->syncs = syncs;
	spin_lock_init(&bind->lock);
	init_irq_work(&bind->work, spyre_bind_work);
	atomic_set(&bind->left, 1);
	spyre_for_each_sync(sync, syncs)
		bind->wait[sync - syncs->sync].fence = no_free_ptr(sync->fence);
	return bind;
}

/* Frees a bind that was not published. */
static void spyre_bind_destroy(struct spyre_bind *bind)
{
	u32 i;

	for (i = 0; i < bind->num_waits; i++)
		dma_fence_put(bind->wait[i].fence);
	kfree(bind);
}

int spyre_bind_begin(struct spyre_binds *binds, struct spyre_bind *bind)
{
	if (READ_ONCE(binds->num_pending) >= SPYRE_VM_MAX_BINDS)
		return -EBUSY;
	bind->binds = binds;
	bind->wait[bind->num_waits - 1].fence = spyre_binds_last(binds);
	return 0;
}

static void spyre_bind_arm(struct spyre_bind *bind)
{
	struct spyre_bind_wait *wait;
	u32 i;

	for (i = 0; i < bind->num_waits; i++) {
		wait = &bind->wait[i];
		wait->bind = bind;
		if (!wait->fence)
			continue;
		atomic_inc(&bind->left);
		if (dma_fence_add_callback(wait->fence, &wait->base, spyre_bind_wait_over))
			atomic_dec(&bind->left);	/* already signalled; @left stays above 0 */
	}
	if (atomic_dec_and_test(&bind->left))
		spyre_bind_finish(bind);
}

void spyre_bind_publish(struct spyre_binds *binds, struct spyre_bind *bind)
{
	bool cookie;

	__module_get(THIS_MODULE);
	dma_fence_init(&bind->base, &spyre_bind_ops, &bind->lock, binds->context,
		       ++binds->seqno);
	spin_lock_irq(&binds->lock);
	list_add_tail(&bind->node, &binds->pending);
	binds->num_pending++;
	spin_unlock_irq(&binds->lock);
	dma_fence_put(binds->last);
	WRITE_ONCE(binds->last, dma_fence_get(&bind->base));

	cookie = dma_fence_begin_signalling();
	spyre_syncs_publish(bind->syncs, &bind->base);
	spyre_bind_arm(bind);
	dma_fence_end_signalling(cookie);
}

void spyre_binds_init(struct spyre_binds *binds)
{
	spin_lock_init(&binds->lock);
	INIT_LIST_HEAD(&binds->pending);
	binds->context = dma_fence_context_alloc(1);
}

struct dma_fence *spyre_binds_last(struct spyre_binds *binds)
{
	struct dma_fence *last = binds->last;

	if (!last)
		return NULL;
	if (!dma_fence_is_signaled(last))
		return dma_fence_get(last);
	WRITE_ONCE(binds->last, NULL);
	dma_fence_put(last);
	return NULL;
}

/* Stops waiting for fences that may never signal. */
static void spyre_bind_cancel(struct spyre_bind *bind)
{
	int removed = 0;
	u32 i;

	/* An additional wait prevents the bind from finishing meanwhile, unless all are over. */
	if (!atomic_inc_not_zero(&bind->left))
		return;
	for (i = 0; i < bind->num_waits; i++)
		if (bind->wait[i].fence &&
		    dma_fence_remove_callback(bind->wait[i].fence, &bind->wait[i].base))
			removed++;
	if (atomic_sub_and_test(removed + 1, &bind->left))
		spyre_bind_finish(bind);
}

void spyre_binds_cancel(struct spyre_binds *binds)
{
	struct spyre_bind *bind;

	spin_lock_irq(&binds->lock);
	binds->closed = true;
	while (!list_empty(&binds->pending)) {
		bind = list_first_entry(&binds->pending, struct spyre_bind, node);
		dma_fence_get(&bind->base);
		spin_unlock_irq(&binds->lock);
		spyre_bind_cancel(bind);
		/* If its waits were over before, its work item is about to signal it. */
		dma_fence_wait(&bind->base, false);
		dma_fence_put(&bind->base);
		spin_lock_irq(&binds->lock);
	}
	spin_unlock_irq(&binds->lock);
	dma_fence_put(binds->last);
	binds->last = NULL;
}

/* Checks an operation; looks up the BO of a MAP, NULL for UNMAP. */
static int spyre_bind_op(struct drm_file *file, const struct drm_spyre_vm_bind_op *from,
			 struct spyre_vm_op *op)
{
	struct spyre_bo *bo __free(spyre_bo_put) = NULL;
	int ret;

	ret = spyre_vm_op_check(from);
	if (ret)
		return ret;
	if (from->op == DRM_SPYRE_VM_UNMAP)
		return spyre_vm_op_init(op, from, NULL);
	bo = spyre_bo_lookup(file, from->handle, DRM_SPYRE_BO_DEVICE);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	return spyre_vm_op_init(op, from, &bo->base.base);
}

/* Does the operations one by one; those done before an error remain in effect. */
static int spyre_bind_sync(struct drm_file *file, struct drm_spyre_vm_bind *args,
			   const struct drm_spyre_vm_bind_op *from)
{
	struct spyre_vm *vm = to_spyre_file(file)->vm;
	struct spyre_vm_op op;
	int ret;

	for (; args->done < args->ops.count; args->done++) {
		op = (struct spyre_vm_op) {};
		ret = spyre_bind_op(file, &from[args->done], &op);
		if (ret)
			return ret;
		ret = spyre_vm_apply(vm, &op, 1, NULL);
		spyre_vm_op_fini(&op);
		if (ret)
			return ret;
	}
	return 0;
}

/* Prepares all operations, then does either all of them or none. */
static int spyre_bind_apply(struct drm_file *file, struct drm_spyre_vm_bind *args,
			    struct spyre_vm_op *ops, struct spyre_syncs *syncs)
{
	struct spyre_bind *bind;
	int ret;

	bind = spyre_bind_create(file, syncs);
	if (IS_ERR(bind))
		return PTR_ERR(bind);
	ret = spyre_vm_apply(to_spyre_file(file)->vm, ops, args->ops.count, bind);
	if (ret) {
		spyre_bind_destroy(bind);
		return ret;
	}
	args->done = args->ops.count;
	return 0;
}

static int spyre_bind_async(struct drm_file *file, struct drm_spyre_vm_bind *args,
			    const struct drm_spyre_vm_bind_op *from)
{
	const u32 num = args->ops.count;
	struct spyre_syncs syncs = {};
	struct spyre_vm_op *ops;
	int ret;
	u32 i;

	ops = kvcalloc(num, sizeof(*ops), SPYRE_GFP);
	if (!ops)
		return -ENOMEM;
	ret = spyre_syncs_read(&syncs, &args->syncs);
	for (i = 0; i < num && !ret; i++)
		ret = spyre_bind_op(file, &from[i], &ops[i]);
	if (!ret)
		ret = spyre_bind_apply(file, args, ops, &syncs);
	spyre_syncs_release(&syncs);
	for (i = 0; i < num; i++)
		spyre_vm_op_fini(&ops[i]);
	kvfree(ops);
	return ret;
}

int spyre_ioctl_vm_bind(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_spyre_vm_bind_op *ops __free(kvfree) = NULL;
	struct drm_spyre_vm_bind *args = data;
	bool async = args->flags & DRM_SPYRE_VM_BIND_ASYNC;

	args->done = 0;
	if (args->flags & ~DRM_SPYRE_VM_BIND_ASYNC)
		return -EINVAL;
	if (!async && (args->syncs.stride || args->syncs.count || args->syncs.array))
		return -EINVAL;
	if (spyre_file_is_stale(to_spyre_file(file)))
		return -EIO;
	ops = spyre_array_get(&args->ops, sizeof(*ops), 1, SPYRE_VM_MAX_OPS);
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	return async ? spyre_bind_async(file, args, ops) : spyre_bind_sync(file, args, ops);
}
