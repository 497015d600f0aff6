// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last events of a card.
 */
#include <linux/minmax.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>

#include "spyre_device.h"
#include "spyre_events.h"
#include "spyre_file.h"

/* Three numbers of 20 digits, a number of 10 digits, a kind and blanks. */
#define SPYRE_EVENT_LINE 100

static_assert((SPYRE_EVENTS_KEPT + 1) * SPYRE_EVENT_LINE <= PAGE_SIZE);

void spyre_events_init(struct spyre_event_ring *ring)
{
	spin_lock_init(&ring->lock);
}

static void spyre_events_add(struct spyre_event_ring *ring, const char *kind, u64 value,
			     u64 context)
{
	guard(spinlock)(&ring->lock);
	ring->event[ring->count++ % SPYRE_EVENTS_KEPT] = (struct spyre_event) {
		.ns = ktime_get_real_ns(),
		.kind = kind,
		.value = value,
		.context = context,
	};
}

void spyre_events_add_card(struct spyre_device *spyre, const char *kind, u64 value)
{
	spyre_events_add(&spyre->card_events, kind, value, 0);
}

void spyre_events_add_context(struct spyre_file *sfile, const char *kind, u64 value)
{
	spyre_events_add(&sfile->spyre->context_events, kind, value, sfile->id);
}

ssize_t spyre_events_show(struct spyre_event_ring *ring, char *buf)
{
	const struct spyre_event *event;
	u64 first, number;
	ssize_t len;

	guard(spinlock)(&ring->lock);
	first = ring->count - min_t(u64, ring->count, SPYRE_EVENTS_KEPT);
	len = sysfs_emit(buf, "%llu %llu\n", first, ring->count);
	for (number = first; number < ring->count; number++) {
		event = &ring->event[number % SPYRE_EVENTS_KEPT];
		len += sysfs_emit_at(buf, len, "%llu %llu %s %llu %llu\n", number, event->ns,
				     event->kind, event->value, event->context);
	}
	return len;
}
