/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a card, kept for readers of sysfs: those that concern the card, which everyone
 * may see, and those of contexts, which reveal the work of others.  Each kind has a ring of
 * its own, so that the faults of one user push no event of the card out.
 */
#ifndef SPYRE_EVENTS_H
#define SPYRE_EVENTS_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct spyre_device;
struct spyre_file;

/* The text of a full ring is less than a page, which is what sysfs can show. */
#define SPYRE_EVENTS_KEPT 32

/**
 * struct spyre_event - one event
 */
struct spyre_event {
	/** @ns: CLOCK_REALTIME. */
	u64 ns;
	/** @kind: its name. */
	const char *kind;
	/** @value: generation, number of VFs, or fault (enum drm_spyre_fault), by @kind. */
	u64 value;
	/** @context: id of the file, 0 for events of the card. */
	u64 context;
};

/**
 * struct spyre_event_ring - the last events of a sort
 */
struct spyre_event_ring {
	/** @lock: protects the ring; allocates nothing. */
	spinlock_t lock;
	/** @count: number of events so far; that of event n is in entry n % SPYRE_EVENTS_KEPT. */
	u64 count;
	/** @event: the last of them. */
	struct spyre_event event[SPYRE_EVENTS_KEPT];
};

void spyre_events_init(struct spyre_event_ring *ring);
/* Notes an event of the card. */
void spyre_events_add_card(struct spyre_device *spyre, const char *kind, u64 value);
/* Notes an event of a context.  Does not sleep. */
void spyre_events_add_context(struct spyre_file *sfile, const char *kind, u64 value);
/*
 * Prints "<number of the first line> <number of the next event>", then a line
 * "<number> <ns> <kind> <value> <context>" for each event that is kept.
 */
ssize_t spyre_events_show(struct spyre_event_ring *ring, char *buf);

#endif
