/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The card's memory, and the share of each user.
 *
 * Device memory is not evicted.  To prevent one user from taking all of it, a
 * sixteenth of the capacity is reserved.  From the reserve, a user gets memory as
 * long as all files of the user together own less than 1/128 of the capacity:
 * eight users are guaranteed their share, whatever others have allocated.  Files
 * opened with CAP_SYS_RESOURCE are not limited, and their memory is not
 * attributed to a user.
 */
#ifndef SPYRE_LPDDR_H
#define SPYRE_LPDDR_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct spyre_device;
struct spyre_file;

/**
 * struct spyre_lpddr_user - device memory of the files of a user
 */
struct spyre_lpddr_user {
	/** @node: in the card's list. */
	struct list_head node;
	/** @uid: user that opened the files. */
	kuid_t uid;
	/** @files: number of them; spyre_lpddr's lock, as the rest. */
	u32 files;
	/** @used: bytes that they own. */
	u64 used;
};

/**
 * struct spyre_lpddr - memory of a function
 */
struct spyre_lpddr {
	/** @lock: protects the rest; @used is read without it. */
	spinlock_t lock;
	/** @used: bytes of device BOs and programs. */
	atomic64_t used;
	/** @peak: the most that a PF with its VFs, or a VF, has used. */
	atomic64_t peak;
	/** @users: struct spyre_lpddr_user with open files. */
	struct list_head users;
};

void spyre_lpddr_init(struct spyre_lpddr *lpddr);

/* Finds or adds the user of a file at its open; released when the file owns no memory. */
int spyre_lpddr_open(struct spyre_file *sfile);
void spyre_lpddr_close(struct spyre_file *sfile);

/* Charges device memory to @sfile, -ENOSPC beyond its limit; and uncharges it. */
int spyre_lpddr_charge(struct spyre_file *sfile, u64 bytes);
void spyre_lpddr_uncharge(struct spyre_file *sfile, u64 bytes);

/* Returns the most bytes that were in use at a time since the function's start. */
u64 spyre_lpddr_peak(struct spyre_device *spyre);
/* Returns the number of bytes that @sfile could allocate now. */
u64 spyre_lpddr_free(struct spyre_file *sfile);

#endif
