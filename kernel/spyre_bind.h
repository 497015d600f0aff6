/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VM_BIND and the timeline of asynchronous binds.
 *
 * The card has no page tables, so mappings change in the table of spyre_vm.c
 * during the ioctl; an asynchronous bind only defers its fence.  The fence
 * signals when the waits of the call and all earlier binds of the VM are over,
 * and work that is submitted later waits for it.
 */
#ifndef SPYRE_BIND_H
#define SPYRE_BIND_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct dma_fence;
struct drm_device;
struct drm_file;
struct spyre_bind;

/**
 * struct spyre_binds - the asynchronous binds of a VM
 */
struct spyre_binds {
	/** @lock: protects the list of pending ones. */
	spinlock_t lock;
	/** @pending: binds that have not signalled, in order. */
	struct list_head pending;
	/** @num_pending: number of them; bounded. */
	u32 num_pending;
	/** @closed: pending binds are cancelled; protected by @lock. */
	bool closed;
	/** @context: of their fences. */
	u64 context;
	/** @seqno: of the last one; protected by the VM's lock. */
	u64 seqno;
	/** @last: fence of the last one, or NULL; protected by the VM's lock. */
	struct dma_fence *last;
};

void spyre_binds_init(struct spyre_binds *binds);
/* Signals all fences with -ECANCELED; the caller ensures that no further bind begins. */
void spyre_binds_cancel(struct spyre_binds *binds);
/* Returns the fence of the last bind, with a reference, or NULL if it has signalled. */
struct dma_fence *spyre_binds_last(struct spyre_binds *binds);

/* Begins a bind; the VM's lock is held until its publication. -EBUSY: too many are pending. */
int spyre_bind_begin(struct spyre_binds *binds, struct spyre_bind *bind);
/* Publishes the fence, which cannot fail.  The timeline owns the bind from then on. */
void spyre_bind_publish(struct spyre_binds *binds, struct spyre_bind *bind);

int spyre_ioctl_vm_bind(struct drm_device *drm, void *data, struct drm_file *file);

#endif
