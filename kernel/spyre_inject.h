/* SPDX-License-Identifier: GPL-2.0-only */
/* Faults on demand, for tests: root writes them to debugfs. */
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
 * struct spyre_injections - faults that wait for their control block
 */
struct spyre_injections {
	/** @lock: protects the rest; taken with interrupts on. */
	spinlock_t lock;
	/** @list: struct spyre_injection, oldest first. */
	struct list_head list;
	/** @count: of @list; read without the lock by who runs jobs. */
	u32 count;
	/** @done: faults injected since the card was bound. */
	u64 done;
};

void spyre_inject_init(struct spyre_device *spyre);
/* Drops all that wait. */
void spyre_inject_clear(struct spyre_device *spyre);
/* Takes "client=ID|any fault=access|escape|compute|hang [after=N] [times=M]" or "clear". */
int spyre_inject_parse(struct spyre_device *spyre, char *text);
void spyre_inject_show(struct spyre_device *spyre, struct seq_file *seq);

/*
 * The status that replaces the model's for the next control block of @job, NONE
 * for most.  A hang comes back once the job is told to stop.
 */
enum spyre_stop spyre_inject_job(struct spyre_job *job);

#endif
