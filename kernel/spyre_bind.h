/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VM_BIND and the timeline of asynchronous binds.
 *
 * The card has no page tables, so mappings change in the table of spyre_vm.c
 * when the ioctl is made; what an asynchronous bind puts off is its fence.  It
 * signals when the waits of the call and all earlier binds of the VM have, and
 * work submitted later starts behind it.
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
/* Signals all with -ECANCELED; the caller sees to it that none is begun any more. */
void spyre_binds_cancel(struct spyre_binds *binds);
/* The last one's fence, referenced, or NULL if it has signalled. */
struct dma_fence *spyre_binds_last(struct spyre_binds *binds);

/* The VM's lock is held from the first to the second. -EBUSY: too many are pending. */
int spyre_bind_begin(struct spyre_binds *binds, struct spyre_bind *bind);
/* Makes the fence visible; cannot fail.  The bind is the timeline's then. */
void spyre_bind_publish(struct spyre_binds *binds, struct spyre_bind *bind);

int spyre_ioctl_vm_bind(struct drm_device *drm, void *data, struct drm_file *file);

#endif
