// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection: the next control blocks of a client, or of any, end as if
 * the model had stopped them.  The status replaces that of the model, so all code
 * that handles a real fault is executed.
 */
#include <linux/ctype.h>
#include <linux/delay.h>
#include <linux/parser.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "spyre_device.h"
#include "spyre_file.h"
#include "spyre_inject.h"
#include "spyre_job.h"
#include "spyre_queue.h"

#define SPYRE_INJECT_MAX 32
/* Interval at which a hanging job checks whether it has to stop. */
#define SPYRE_HANG_US 200

enum spyre_injected {
	SPYRE_INJECT_NONE,
	SPYRE_INJECT_ACCESS,
	SPYRE_INJECT_ESCAPE,
	SPYRE_INJECT_COMPUTE,
	SPYRE_INJECT_HANG,
};

/* Status that the model reports; a hang reports none until the job is told to stop. */
static const struct {
	const char *name;
	enum spyre_stop stop;
} spyre_injected[] = {
	[SPYRE_INJECT_ACCESS] = { "access", SPYRE_STOP_DMA_RANGE },
	[SPYRE_INJECT_ESCAPE] = { "escape", SPYRE_STOP_EXTENT },
	[SPYRE_INJECT_COMPUTE] = { "compute", SPYRE_STOP_BAD_OPCODE },
	[SPYRE_INJECT_HANG] = { "hang", SPYRE_STOP_CANCELLED },
};

/* A pending fault. */
struct spyre_injection {
	struct list_head node;
	/* file that it is for, 0: any */
	u64 client;
	enum spyre_injected kind;
	/* number of control blocks that run normally first */
	u32 after;
	/* number of control blocks that then fail */
	u32 times;
};

void spyre_inject_init(struct spyre_device *spyre)
{
	spin_lock_init(&spyre->inject.lock);
	INIT_LIST_HEAD(&spyre->inject.list);
}

void spyre_inject_clear(struct spyre_device *spyre)
{
	struct spyre_injections *all = &spyre->inject;
	struct spyre_injection *one, *next;
	LIST_HEAD(gone);

	scoped_guard(spinlock, &all->lock) {
		list_splice_init(&all->list, &gone);
		WRITE_ONCE(all->count, 0);
	}
	list_for_each_entry_safe(one, next, &gone, node)
		kfree(one);
}

/* Counts a control block of @client and returns the fault to inject into it. */
static enum spyre_injected spyre_inject_next(struct spyre_injections *all, u64 client)
{
	struct spyre_injection *one, *next, *spent = NULL;
	enum spyre_injected kind = SPYRE_INJECT_NONE;

	scoped_guard(spinlock, &all->lock) {
		list_for_each_entry_safe(one, next, &all->list, node) {
			if (one->client && one->client != client)
				continue;
			if (one->after) {
				one->after--;
				continue;
			}
			kind = one->kind;
			all->done++;
			if (!--one->times) {
				list_del(&one->node);
				WRITE_ONCE(all->count, all->count - 1);
				spent = one;
			}
			break;
		}
	}
	kfree(spent);
	return kind;
}

/* Hangs until the job's limit stops it; other jobs get their time slices meanwhile. */
static void spyre_inject_hang(struct spyre_job *job)
{
	struct spyre_engine *engine = &job->queue->spyre->engine;

	while (!engine->host.should_stop(&engine->host, job))
		usleep_range(SPYRE_HANG_US, 2 * SPYRE_HANG_US);
}

enum spyre_stop spyre_inject_job(struct spyre_job *job)
{
	struct spyre_queue *queue = job->queue;
	enum spyre_injected kind;

	kind = spyre_inject_next(&queue->spyre->inject, queue->sfile->id);
	if (kind == SPYRE_INJECT_NONE)
		return SPYRE_STOP_NONE;
	if (kind == SPYRE_INJECT_HANG)
		spyre_inject_hang(job);
	return spyre_injected[kind].stop;
}

enum { SPYRE_OPT_ANY, SPYRE_OPT_CLIENT, SPYRE_OPT_FAULT, SPYRE_OPT_AFTER, SPYRE_OPT_TIMES,
	SPYRE_OPT_UNKNOWN };

static const match_table_t spyre_inject_options = {
	{ SPYRE_OPT_ANY, "client=any" },
	{ SPYRE_OPT_CLIENT, "client=%s" },
	{ SPYRE_OPT_FAULT, "fault=%s" },
	{ SPYRE_OPT_AFTER, "after=%s" },
	{ SPYRE_OPT_TIMES, "times=%s" },
	{ SPYRE_OPT_UNKNOWN, NULL },
};

static int spyre_inject_option(struct spyre_injection *one, char *word)
{
	substring_t args[MAX_OPT_ARGS];
	int token = match_token(word, spyre_inject_options, args);
	u32 kind;

	switch (token) {
	case SPYRE_OPT_ANY:
		one->client = 0;
		return 0;
	case SPYRE_OPT_CLIENT:
		return kstrtou64(args[0].from, 10, &one->client) ?: one->client ? 0 : -EINVAL;
	case SPYRE_OPT_AFTER:
		return kstrtou32(args[0].from, 10, &one->after);
	case SPYRE_OPT_TIMES:
		return kstrtou32(args[0].from, 10, &one->times) ?: one->times ? 0 : -EINVAL;
	case SPYRE_OPT_FAULT:
		for (kind = SPYRE_INJECT_ACCESS; kind < ARRAY_SIZE(spyre_injected); kind++) {
			if (!strcmp(args[0].from, spyre_injected[kind].name)) {
				one->kind = kind;
				return 0;
			}
		}
		return -EINVAL;
	default:
		return -EINVAL;
	}
}

int spyre_inject_parse(struct spyre_device *spyre, char *text)
{
	struct spyre_injection *one __free(kfree) = kzalloc(sizeof(*one), GFP_KERNEL);
	struct spyre_injections *all = &spyre->inject;
	char *word;
	int ret;

	if (!one)
		return -ENOMEM;
	text = strim(text);
	if (!strcmp(text, "clear")) {
		spyre_inject_clear(spyre);
		return 0;
	}
	one->times = 1;
	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		ret = spyre_inject_option(one, word);
		if (ret)
			return ret;
	}
	if (one->kind == SPYRE_INJECT_NONE)
		return -EINVAL;

	guard(spinlock)(&all->lock);
	if (all->count == SPYRE_INJECT_MAX)
		return -ENOSPC;
	list_add_tail(&one->node, &all->list);
	WRITE_ONCE(all->count, all->count + 1);
	one = NULL;	/* the list owns it */
	return 0;
}

void spyre_inject_show(struct spyre_device *spyre, struct seq_file *seq)
{
	struct spyre_injections *all = &spyre->inject;
	struct spyre_injection *one;

	guard(spinlock)(&all->lock);
	seq_printf(seq, "injected: %llu\n", all->done);
	list_for_each_entry(one, &all->list, node) {
		if (one->client)
			seq_printf(seq, "client=%llu", one->client);
		else
			seq_puts(seq, "client=any");
		seq_printf(seq, " fault=%s after=%u times=%u\n", spyre_injected[one->kind].name,
			   one->after, one->times);
	}
}
