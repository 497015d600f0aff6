/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A card and its functions: the PF, and the VFs that it can be split into.  Each
 * function is a platform device with a node, an engine and memory of its own;
 * a VF's device is a child of the PF's.
 *
 * Cores and memory are distributed evenly; the remainder goes to the first VFs,
 * one core and one MiB each, so that the shares add up to the card.  The PF keeps
 * nothing: while there are VFs it can be queried and reset, but cannot create
 * queues or allocate memory.  Conversely, a PF that has queues or memory in use
 * cannot be split.
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
 * struct spyre_card - the VFs of a PF
 */
struct spyre_card {
	/** @users: queues and allocations of the PF in use; -1 while there are VFs. */
	atomic_t users;
	/** @lock: one change of the number of VFs at a time; no reader takes it. */
	struct mutex lock;
	/** @num_vfs: VFs that exist; written under @lock. */
	u32 num_vfs;
	/** @vf_device: their platform devices; under @lock. */
	struct platform_device *vf_device[SPYRE_MAX_VFS];
	/** @vf_error: error for which the last VF could not be bound. */
	int vf_error;
	/** @list_lock: protects @vfs, @retired and @sample. */
	spinlock_t list_lock;
	/** @vfs: VFs that work, struct spyre_device. */
	struct list_head vfs;
	/** @retired: totals of VFs that are gone. */
	struct spyre_stats retired;
	/** @sample: totals of about a second ago and of before that. */
	struct spyre_engine_sample sample[2];
};

void spyre_card_init(struct spyre_device *spyre);

/* Returns 0 if a card of this size can be split into @count VFs, else -ERANGE. */
int spyre_card_check_vfs(u32 num_cores, u64 lpddr_bytes, u32 count);
/* Creates @count VFs, or removes all for 0; -EBUSY if VFs exist or the PF is in use. */
int spyre_card_set_vfs(struct spyre_device *spyre, u32 count);
/* Removes all VFs, even if they are in use. */
void spyre_card_remove_vfs(struct spyre_device *spyre);
/* Returns the number of VFs that the card can be split into. */
u32 spyre_card_total_vfs(const struct spyre_device *spyre);

/* Adds a VF to the PF's totals; those of a removed VF stay in them. */
int spyre_card_add_vf(struct spyre_device *vf);
void spyre_card_vf_failed(struct spyre_device *pf, int error);
void spyre_card_remove_vf(struct spyre_device *vf);

/* Held while a queue or memory of a function is in use; -EBUSY if the function is split. */
int spyre_card_hold(struct spyre_device *spyre);
void spyre_card_release(struct spyre_device *spyre);

/* Returns the number of host CPUs that @spyre may use: a VF's part is that of its cores. */
u32 spyre_card_cpus(const struct spyre_device *spyre);

/* Reads the totals of a function; those of a PF include its VFs, weighted by their cores. */
void spyre_card_read_stats(struct spyre_device *spyre, struct spyre_stats *stats);
u64 spyre_card_lpddr_used(struct spyre_device *spyre);
/* Reads modelled power and temperature of the function's own load, over one to two seconds. */
void spyre_card_read_power(struct spyre_device *spyre, u32 *milliwatt, u32 *millicelsius);
/* Returns the modelled energy since the function's start in microjoules: that power, summed up. */
u64 spyre_card_read_energy(struct spyre_device *spyre);

/* Stores the VFs in use, with references, and returns their number. */
u32 spyre_card_get_vfs(struct spyre_device *spyre, struct spyre_device *vfs[SPYRE_MAX_VFS]);

#endif
