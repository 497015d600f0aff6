/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file: one open of the node, and the context of the work that it submits.
 */
#ifndef SPYRE_FILE_H
#define SPYRE_FILE_H

#include <drm/drm_file.h>
#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "spyre_arbiter.h"
#include "spyre_device.h"
#include "spyre_fault.h"
#include "spyre_runner.h"

struct drm_printer;
struct spyre_lpddr_user;
struct spyre_vm;

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
	/** @user: user to whom its device memory is charged, NULL: unlimited. */
	struct spyre_lpddr_user *user;
	/** @used: device memory charged to this file, in bytes. */
	atomic64_t used;
	/** @peak: the most that it was; written under spyre_lpddr's lock. */
	u64 peak;
	/** @pinned: bytes of user memory that its jobs pin. */
	atomic64_t pinned;
	/** @ctx_sched: its scheduling state, by class. */
	struct spyre_ctx_sched ctx_sched[SPYRE_ARB_CLASSES];
	/** @preempted: number of times that a job of it was preempted. */
	atomic64_t preempted;
	/** @health: its fault, if it has failed, and its other counters. */
	struct spyre_context_health health;
	/** @pid: process that opened it. */
	pid_t pid;
	/** @comm: name of the thread that opened it. */
	char comm[TASK_COMM_LEN];
};

static inline struct spyre_file *to_spyre_file(struct drm_file *file)
{
	return file->driver_priv;
}

struct spyre_file *spyre_file_get(struct spyre_file *sfile);
void spyre_file_put(struct spyre_file *sfile);

/* Returns true if the card was reset since the open: the file can only be closed. */
static inline bool spyre_file_is_stale(const struct spyre_file *sfile)
{
	return READ_ONCE(sfile->spyre->generation) != sfile->generation;
}

/* The driver's open() and postclose(). */
int spyre_file_open(struct drm_device *drm, struct drm_file *file);
void spyre_file_close(struct drm_device *drm, struct drm_file *file);
void spyre_file_show_fdinfo(struct drm_printer *p, struct drm_file *file);

#endif
