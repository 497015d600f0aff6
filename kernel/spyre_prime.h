/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dma-bufs: what goes out, and other drivers' that come in.
 *
 * Work is ordered by what user space says, except where another driver is the
 * other side: a job waits for the fences of an imported buffer and leaves its
 * own there, and the exporter knows from when to when a CPU uses it.
 */
#ifndef SPYRE_PRIME_H
#define SPYRE_PRIME_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct dma_buf;
struct drm_device;
struct drm_exec;
struct drm_gem_object;
struct spyre_bo;
struct spyre_device;
struct spyre_job;

/**
 * struct spyre_import_sync - an imported buffer whose fences a job shares
 */
struct spyre_import_sync {
	/** @bo: the buffer, referenced. */
	struct spyre_bo *bo;
	/** @write: the job writes it. */
	bool write;
	/** @begun: the exporter knows that it is used. */
	bool begun;
};

/**
 * struct spyre_import_syncs - all of a job
 *
 * They are let go of by a worker: the schedulers' own must not wait for the
 * locks of other drivers, who may hold them while they wait for a job.
 */
struct spyre_import_syncs {
	/** @work: lets go. */
	struct work_struct work;
	/** @num: number of items. */
	u32 num;
	/** @item: each buffer once. */
	struct spyre_import_sync item[] __counted_by(num);
};

int spyre_prime_init(void);
/* Waits until all imported buffers that jobs used are let go of. */
void spyre_prime_exit(void);

/* The card is there, so that its files may wait for other drivers; it is not any more. */
void spyre_prime_start(struct spyre_device *spyre);
void spyre_prime_stop(struct spyre_device *spyre);

struct dma_buf *spyre_prime_export(struct drm_gem_object *obj, int flags);
struct drm_gem_object *spyre_prime_import(struct drm_device *drm, struct dma_buf *dmabuf);

/* The parts of an imported BO. */
u8 *spyre_import_vaddr(struct spyre_bo *bo);
void spyre_import_free(struct spyre_bo *bo);

/* @job uses the imported @bo. */
int spyre_import_sync_add(struct spyre_job *job, struct spyre_bo *bo, bool write);
/*
 * Tells the exporters; waits for what they have to finish first, -ENODEV if the
 * card goes meanwhile.  The caller is not between drm_dev_enter() and
 * drm_dev_exit(): others decide how long this takes.
 */
int spyre_import_sync_begin(struct spyre_job *job, bool nowait);
/*
 * Locks the buffers, makes their fences the job's dependencies and reserves
 * slots for its own.  drm_exec_fini() unlocks, also after an error.
 */
int spyre_import_sync_lock(struct spyre_job *job, struct drm_exec *exec);
/* Leaves the job's fence in the buffers that are locked. */
void spyre_import_sync_publish(struct spyre_job *job);
/* Undoes begin and add, soon. */
void spyre_import_sync_end(struct spyre_job *job);

#endif
