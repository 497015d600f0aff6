/* SPDX-License-Identifier: GPL-2.0-only */
/* Fault injection for tests: root writes the faults to debugfs. */
#ifndef SPYRE_INJECT_H
#define SPYRE_INJECT_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "model/program.h"

struct seq_file;
struct spyre_device;
struct spyre_job;

/**
 * struct spyre_injections - pending faults of a card
 */
struct spyre_injections {
	/** @lock: protects the rest; taken with interrupts on. */
	spinlock_t lock;
	/** @list: struct spyre_injection, oldest first. */
	struct list_head list;
	/** @count: length of @list; runners read it without the lock. */
	u32 count;
	/** @done: faults injected since the card was bound. */
	u64 done;
};

void spyre_inject_init(struct spyre_device *spyre);
/* Removes all pending faults. */
void spyre_inject_clear(struct spyre_device *spyre);
/* Parses "client=ID|any fault=access|escape|compute|hang [after=N] [times=M]" or "clear". */
int spyre_inject_parse(struct spyre_device *spyre, char *text);
void spyre_inject_show(struct spyre_device *spyre, struct seq_file *seq);

/*
 * Returns the status that replaces the model's for the next control block of @job,
 * NONE for most.  A hang returns when the job is told to stop.
 */
enum spyre_stop spyre_inject_job(struct spyre_job *job);

#endif
