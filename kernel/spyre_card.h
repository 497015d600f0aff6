/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A card and the functions that it shows itself by: the PF, and the VFs that
 * it can be split into.  Each function is a platform device with a node, an
 * engine and memory of its own; a VF's is a child of the PF's.
 *
 * Cores and memory are dealt out evenly, what is left over one core and one
 * MiB each to the first VFs, so that the VFs' add up to the card's.  The PF
 * keeps nothing: while there are VFs it can be queried and reset, but makes no
 * queues and takes no memory, and the other way round a PF that has queues or
 * memory in use is not split.
 */
#ifndef SPYRE_CARD_H
#define SPYRE_CARD_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "spyre_engine.h"

struct device;
struct platform_device;
struct spyre_device;

#define SPYRE_DRIVER "spyre_vdev"
/* Platform devices of VFs; the driver is the same. */
#define SPYRE_VF_DEVICE "spyre_vdev_vf"
#define SPYRE_MAX_VFS 16u
#define SPYRE_LPDDR_MIN_MIB 16u

/**
 * struct spyre_share - what a VF gets of its card, its platform data
 */
struct spyre_share {
	/** @vf: number of the VF, from 1. */
	u32 vf;
	/** @num_cores: cores. */
	u32 num_cores;
	/** @lpddr_bytes: capacity. */
	u64 lpddr_bytes;
};

/**
 * struct spyre_card - what the PF knows of its VFs
 */
struct spyre_card {
	/** @users: queues and pieces of memory that the PF has out; -1 while there are VFs. */
	atomic_t users;
	/** @lock: one change of the number of VFs at a time; no reader takes it. */
	struct mutex lock;
	/** @num_vfs: VFs that exist; written under @lock. */
	u32 num_vfs;
	/** @vf_device: their platform devices; under @lock. */
	struct platform_device *vf_device[SPYRE_MAX_VFS];
	/** @vf_error: why the last VF could not be bound. */
	int vf_error;
	/** @list_lock: protects @vfs, @retired and @sample. */
	spinlock_t list_lock;
	/** @vfs: VFs that work, struct spyre_device. */
	struct list_head vfs;
	/** @retired: totals of VFs that are gone. */
	struct spyre_engine_stats retired;
	/** @sample: totals of about a second ago and of before that. */
	struct spyre_engine_sample sample[2];
};

void spyre_card_init(struct spyre_device *spyre);

/* 0 if a card of this size can be split into @count VFs, else -ERANGE. */
int spyre_card_check_vfs(u32 num_cores, u64 lpddr_bytes, u32 count);
/* From none to @count or back; -EBUSY from one number to another, or if the PF is in use. */
int spyre_card_set_vfs(struct spyre_device *spyre, u32 count);
/* Takes all VFs away, whoever uses them. */
void spyre_card_remove_vfs(struct spyre_device *spyre);
/* VFs that the card can be split into. */
u32 spyre_card_total_vfs(const struct spyre_device *spyre);

/* A VF that has come to life shows in the PF's totals; one that goes leaves them there. */
int spyre_card_add_vf(struct spyre_device *vf);
void spyre_card_vf_failed(struct spyre_device *pf, int error);
void spyre_card_remove_vf(struct spyre_device *vf);

/* Around whatever a function gives out of itself; -EBUSY if it has given itself to VFs. */
int spyre_card_hold(struct spyre_device *spyre);
void spyre_card_release(struct spyre_device *spyre);

/* CPUs of the host that @spyre may keep busy: a VF's part of them is as its part of the cores. */
u32 spyre_card_cpus(const struct spyre_device *spyre);

/* Totals of a function; those of a PF are the card's, VFs weighted by their cores. */
void spyre_card_read_stats(struct spyre_device *spyre, struct spyre_engine_stats *stats);
u64 spyre_card_lpddr_used(struct spyre_device *spyre);
/* Modelled power and temperature of the last second or two, of the function's own load. */
void spyre_card_read_power(struct spyre_device *spyre, u32 *milliwatt, u32 *millicelsius);

/* The VFs that work, referenced; returns how many. */
u32 spyre_card_get_vfs(struct spyre_device *spyre, struct spyre_device *vfs[SPYRE_MAX_VFS]);

#endif
