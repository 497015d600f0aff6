/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The card's memory, and a part of it for each user.
 *
 * Device memory is not evicted: whoever has it keeps it.  So that one user
 * cannot take it all, a sixteenth of the capacity is kept back.  Out of that a
 * user gets memory only up to a share of 1/128 of the capacity, all of the
 * user's files together: eight users have theirs for certain, whatever others
 * took before.  Files that were opened with CAP_SYS_RESOURCE are not held to
 * it, and what they take counts for no user.
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
 * struct spyre_lpddr_user - what the files of a user have of a card's memory
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
	/** @users: struct spyre_lpddr_user with open files. */
	struct list_head users;
};

void spyre_lpddr_init(struct spyre_lpddr *lpddr);

/* When a file opens: finds its user; and when nothing is on its bill any more. */
int spyre_lpddr_open(struct spyre_file *sfile);
void spyre_lpddr_close(struct spyre_file *sfile);

/* Takes device memory for @sfile or gives -ENOSPC; and gives it back. */
int spyre_lpddr_charge(struct spyre_file *sfile, u64 bytes);
void spyre_lpddr_uncharge(struct spyre_file *sfile, u64 bytes);

/* Bytes that @sfile could take now. */
u64 spyre_lpddr_free(struct spyre_file *sfile);

#endif
