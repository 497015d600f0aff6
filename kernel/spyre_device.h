/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the driver and their ownership.
 *
 *	function (spyre_device)	one platform device, one accel node: a card, or a VF of one
 *	  engine		its arbiter and threads
 *	file (spyre_file)	one open of the node: VM, programs, queues
 *	  BO, program		device memory, charged to the file
 *	  queue			a drm_gpu_scheduler with one entity
 *	    job			one SUBMIT; holds everything that it needs to run
 *
 * A file is referenced by its BOs, programs and queues, a queue by its jobs:
 * work in flight never refers to objects that close() has freed.
 *
 * The headers included below belong to members of struct spyre_device, which
 * are allocated and freed with it.  A file that uses one of these members
 * includes its header as well.
 */
#ifndef SPYRE_DEVICE_H
#define SPYRE_DEVICE_H

#include <drm/drm_device.h>
#include <linux/dma-fence.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uuid.h>

#include "spyre_card.h"
#include "spyre_coredump.h"
#include "spyre_engine.h"
#include "spyre_events.h"
#include "spyre_inject.h"
#include "spyre_lpddr.h"

struct device;
struct workqueue_struct;

/**
 * struct spyre_device - a card (PF), or a virtual function (VF) of one
 */
struct spyre_device {
	/** @drm: base. */
	struct drm_device drm;
	/** @index: index of the card. */
	u32 index;
	/** @vf: 0 for the card itself, else the number of this VF. */
	u32 vf;
	/** @pf: of a VF: its card, referenced. */
	struct spyre_device *pf;
	/** @vf_node: of a VF: in its card's list. */
	struct list_head vf_node;
	/** @card: of a PF: its VFs. */
	struct spyre_card card;
	/** @num_cores: cores. */
	u32 num_cores;
	/** @lpddr_bytes: capacity. */
	u64 lpddr_bytes;
	/** @lpddr: its owners. */
	struct spyre_lpddr lpddr;
	/** @generation: counts resets; written under @files_lock. */
	u64 generation;
	/** @files_lock: protects @files, held throughout a reset. */
	struct mutex files_lock;
	/** @files: open files. */
	struct list_head files;
	/** @uuid: names the card while it is loaded. */
	uuid_t uuid;
	/** @sched_wq: runs the schedulers of all queues. */
	struct workqueue_struct *sched_wq;
	/** @timeout_wq: runs timeout handlers, one at a time. */
	struct workqueue_struct *timeout_wq;
	/** @since_ns: CLOCK_MONOTONIC of its start. */
	u64 since_ns;
	/** @card_events: resets, and changes of the VFs. */
	struct spyre_event_ring card_events;
	/** @context_events: faults and resets of contexts. */
	struct spyre_event_ring context_events;
	/** @hwmon: its sensors, or NULL. */
	struct device *hwmon;
	/** @engine: executes jobs. */
	struct spyre_engine engine;
	/** @coredump: the dump of a fault under way. */
	struct spyre_coredump coredump;
	/** @inject: faults to come. */
	struct spyre_injections inject;
	/** @gone: fence that signals at the unplug, to end waits for other drivers' fences. */
	struct dma_fence gone;
	/** @gone_lock: of @gone. */
	spinlock_t gone_lock;
};

static inline struct spyre_device *to_spyre_device(struct drm_device *drm)
{
	return container_of(drm, struct spyre_device, drm);
}

#endif
