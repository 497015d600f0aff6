/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the driver and who owns whom.
 *
 *	function (spyre_device)	one platform device, one accel node: a card, or a VF of one
 *	  engine		its arbiter and threads
 *	file (spyre_file)	one open of the node: VM, programs, queues
 *	  BO, program		count against the card's memory, on the file's bill
 *	  queue			a drm_gpu_scheduler with one entity
 *	    job			one SUBMIT; owns all it needs to run
 *
 * A file is referenced by its BOs, programs and queues, a queue by its jobs:
 * work in flight never points at something that close() freed.
 */
#ifndef SPYRE_DEVICE_H
#define SPYRE_DEVICE_H

#include <drm/drm_device.h>
#include <drm/drm_file.h>
#include <drm/drm_gpuvm.h>
#include <linux/dma-fence.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/sched.h>
#include <linux/uuid.h>
#include <linux/xarray.h>

#include <drm/spyre_accel.h>

#include "spyre_card.h"
#include "spyre_coredump.h"
#include "spyre_engine.h"
#include "spyre_fault.h"
#include "spyre_inject.h"
#include "spyre_lpddr.h"

struct spyre_job;

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
	/** @hwmon: its sensors, or NULL. */
	struct device *hwmon;
	/** @engine: executes jobs. */
	struct spyre_engine engine;
	/** @coredump: the dump of a fault under way. */
	struct spyre_coredump coredump;
	/** @inject: faults to come. */
	struct spyre_injections inject;
	/** @gone: signals at the unplug, for who waits for other drivers' fences. */
	struct dma_fence gone;
	/** @gone_lock: of @gone. */
	spinlock_t gone_lock;
};

static inline struct spyre_device *to_spyre_device(struct drm_device *drm)
{
	return container_of(drm, struct spyre_device, drm);
}

/**
 * struct spyre_file - an open node
 */
struct spyre_file {
	/** @ref: held by the drm_file and by BOs, programs and queues. */
	struct kref ref;
	/** @spyre: the card. */
	struct spyre_device *spyre;
	/** @node: in the card's list. */
	struct list_head node;
	/** @generation: of the card when it was opened. */
	u64 generation;
	/** @id: fdinfo's drm-client-id, never reused. */
	u64 id;
	/** @vm: address space. */
	struct spyre_vm *vm;
	/** @programs: struct spyre_program_object by handle. */
	struct xarray programs;
	/** @queues: struct spyre_queue by id. */
	struct xarray queues;
	/** @user: user in whose share of the card's memory it counts, NULL: unlimited. */
	struct spyre_lpddr_user *user;
	/** @used: device memory on this file's bill. */
	atomic64_t used;
	/** @pinned: bytes of user memory that its jobs pin. */
	atomic64_t pinned;
	/** @ctx_sched: its scheduling state, by class. */
	struct spyre_ctx_sched ctx_sched[SPYRE_ARB_CLASSES];
	/** @busy_ns: time its jobs ran. */
	atomic64_t busy_ns;
	/** @preempted: number of times that a job of it was preempted. */
	atomic64_t preempted;
	/** @cycles: modelled cycles of its jobs. */
	atomic64_t cycles;
	/** @health: its fault, if it has failed, and its other counters. */
	struct spyre_context_health health;
	/** @pid: process that opened it. */
	pid_t pid;
	/** @comm: name of the thread that did. */
	char comm[TASK_COMM_LEN];
};

static inline struct spyre_file *to_spyre_file(struct drm_file *file)
{
	return file->driver_priv;
}

struct spyre_file *spyre_file_get(struct spyre_file *sfile);
void spyre_file_put(struct spyre_file *sfile);

/* True if the card was reset since: the file can only be closed. */
static inline bool spyre_file_is_stale(const struct spyre_file *sfile)
{
	return READ_ONCE(sfile->spyre->generation) != sfile->generation;
}

extern const struct attribute_group *spyre_groups[];
void spyre_show_fdinfo(struct drm_printer *p, struct drm_file *file);
void spyre_query_card(struct spyre_device *spyre, struct drm_spyre_card_info *info);
void spyre_query_memory(struct spyre_file *sfile, struct drm_spyre_memory_info *info);
void spyre_query_counters(struct spyre_device *spyre, struct drm_spyre_counters *info);
/* True if exact totals are kept from users without CAP_PERFMON. */
bool spyre_counters_are_private(void);
int spyre_ioctl_dev_query(struct drm_device *drm, void *data, struct drm_file *file);

#endif
