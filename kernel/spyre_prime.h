/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dma-bufs: export, and import of those of other drivers.
 *
 * User space orders work explicitly, except with other drivers: a job waits for
 * the fences of an imported buffer and adds its own, and the exporter is informed
 * of the beginning and the end of the CPU access.
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
	/** @begun: the CPU access has begun. */
	bool begun;
};

/**
 * struct spyre_import_syncs - the imported buffers of a job
 *
 * A separate worker releases them: those of the schedulers must not wait for the
 * locks of other drivers, which may hold them while they wait for a job.
 */
struct spyre_import_syncs {
	/** @work: releases the buffers. */
	struct work_struct work;
	/** @num: number of items. */
	u32 num;
	/** @item: each buffer once. */
	struct spyre_import_sync item[] __counted_by(num);
};

int spyre_prime_init(void);
/* Waits until all imported buffers of jobs have been released. */
void spyre_prime_exit(void);

/* Called when a card is bound and unplugged; an unplug ends waits for other drivers. */
void spyre_prime_start(struct spyre_device *spyre);
void spyre_prime_stop(struct spyre_device *spyre);

struct dma_buf *spyre_prime_export(struct drm_gem_object *obj, int flags);
struct drm_gem_object *spyre_prime_import(struct drm_device *drm, struct dma_buf *dmabuf);

/* Address and release of the buffer of an imported BO. */
u8 *spyre_import_vaddr(struct spyre_bo *bo);
void spyre_import_free(struct spyre_bo *bo);

/* Adds the imported @bo to the buffers of @job. */
int spyre_import_sync_add(struct spyre_job *job, struct spyre_bo *bo, bool write);
/*
 * Begins the CPU access.  Waits for earlier work on the buffers; -ENODEV if the
 * card is unplugged meanwhile.  Must not be called between drm_dev_enter() and
 * drm_dev_exit(), because others control the duration.
 */
int spyre_import_sync_begin(struct spyre_job *job, bool nowait);
/*
 * Locks the buffers, makes their fences the job's dependencies and reserves
 * slots for its own.  drm_exec_fini() unlocks, also after an error.
 */
int spyre_import_sync_lock(struct spyre_job *job, struct drm_exec *exec);
/* Adds the job's fence to the locked buffers. */
void spyre_import_sync_publish(struct spyre_job *job);
/* Undoes begin and add, asynchronously. */
void spyre_import_sync_end(struct spyre_job *job);

#endif
