/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_SUBMIT_H
#define SPYRE_SUBMIT_H

#include <linux/types.h>

struct dma_fence;
struct drm_device;
struct drm_file;
struct drm_spyre_submit;
struct io_uring_cmd;
struct spyre_queue;

/**
 * struct spyre_submitted - a queued job, for callers that wait without a syncobj
 */
struct spyre_submitted {
	/** @done: its fence, referenced. */
	struct dma_fence *done;
	/** @queue: its queue, referenced. */
	struct spyre_queue *queue;
	/** @cycles: modelled cycles of all its control blocks. */
	u64 cycles;
};

/*
 * Queues the control blocks of @args or nothing.  Host spans without a handle
 * are user memory, or lie in the registered buffer of @fixed if that is given.
 * With @nowait it is -EAGAIN if another driver's fences are to be waited for.
 */
int spyre_submit(struct drm_file *file, struct drm_spyre_submit *args,
		 struct io_uring_cmd *fixed, bool nowait, struct spyre_submitted *submitted);
int spyre_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file);

#endif
