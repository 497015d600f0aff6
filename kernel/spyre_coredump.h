/* SPDX-License-Identifier: GPL-2.0-only */
/* Device coredumps of failed contexts. */
#ifndef SPYRE_COREDUMP_H
#define SPYRE_COREDUMP_H

#include <linux/types.h>
#include <linux/workqueue.h>

#include "spyre_fault.h"

struct drm_spyre_coredump_queue;
struct spyre_device;
struct spyre_job;
struct spyre_queue;

/**
 * struct spyre_coredump - the dump that a card is making
 */
struct spyre_coredump {
	/** @work: makes it. */
	struct work_struct work;
	/** @busy: bit 0: @job is taken until the dump is made. */
	unsigned long busy;
	/** @next: jiffies before which no other is made. */
	unsigned long next;
	/** @job: the job, its parts referenced. */
	struct spyre_job *job;
	/** @fault: cause of the dump. */
	struct spyre_fault fault;
};

void spyre_coredump_init(struct spyre_device *spyre);
/* Waits for a dump in progress; called when no fault can be raised any more. */
void spyre_coredump_stop(struct spyre_device *spyre);
/* Keeps @job's parts and schedules a dump of them, unless one is in progress. */
void spyre_coredump_take(struct spyre_job *job, const struct spyre_fault *fault);
/* Describes @queue for a dump and for debugfs. */
void spyre_queue_describe(struct spyre_queue *queue, struct drm_spyre_coredump_queue *out);

#endif
