// SPDX-License-Identifier: MIT
/*
 * The stream of events. A timer makes the reader look for new events ten times a second, since
 * neither sysfs nor a page of another process wakes its readers; its descriptor is the one that
 * callers poll.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/base/check.h"
#include "libspyre/base/error.h"
#include "libspyre/telemetry/event_source.h"
#include "libspyre/telemetry/sources.h"

#define LOOK_NS 100000000

struct spyre_telemetry_events {
	int timer;
	bool kept;
	struct spyre_event_cards cards;
	struct spyre_event_files files;
	struct spyre_event_list list;
};

spyre_telemetry_event *spyre_event_add(struct spyre_event_list *list)
{
	spyre_telemetry_event *event;

	if (!spyre_array_reserve(&list->event, &list->capacity, list->count + 1, sizeof(*event))) {
		(void)spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				  "no host memory for a list of %zu events", list->count + 1);
		return NULL;
	}
	event = &list->event[list->count++];
	memset(event, 0, sizeof(*event));
	return event;
}

static int by_time(const void *left, const void *right)
{
	const spyre_telemetry_event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->reserved < b->reserved ? -1 : 1;
}

/*
 * Sorts by time; events of the same time stay as they were found. The times in a user's log are
 * those that the user wrote there: any order must be sorted in little time.
 */
static void sort(struct spyre_event_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		list->event[i].reserved = (uint32_t)i;
	if (list->count > 1)
		qsort(list->event, list->count, sizeof(*list->event), by_time);
	for (size_t i = 0; i < list->count; i++)
		list->event[i].reserved = 0;
}

/* Looks for new events; the list is empty. */
static spyre_status look(struct spyre_telemetry_events *events)
{
	struct spyre_readings readings = { 0 };
	spyre_status status;

	events->list.first = 0;
	events->list.count = 0;
	events->list.more = false;
	/* Finds pages of processes that have ended, and logs that their cards are gone. */
	status = spyre_telemetry_read_pages(&readings);
	free(readings.reading);
	if (!status)
		status = spyre_event_cards_read(&events->cards, events->kept, &events->list);
	if (!status)
		status = spyre_event_files_read(&events->files, events->kept, &events->list);
	sort(&events->list);
	return status;
}

spyre_status spyre_telemetry_events_open(uint32_t flags, spyre_telemetry_events **out)
{
	const struct itimerspec period = {
		.it_interval.tv_nsec = LOOK_NS, .it_value.tv_nsec = LOOK_NS,
	};
	struct spyre_telemetry_events *events;
	spyre_status status;

	if (!out)
		return spyre_null_argument("spyre_telemetry_events_open", "events");
	*out = NULL;
	if (flags & ~SPYRE_TELEMETRY_EVENTS_KEPT)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_telemetry_events_open: unknown flags 0x%x",
				   flags & ~SPYRE_TELEMETRY_EVENTS_KEPT);
	events = calloc(1, sizeof(*events));
	if (!events)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no host memory for a reader of events");
	events->kept = flags & SPYRE_TELEMETRY_EVENTS_KEPT;
	events->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (events->timer < 0 || timerfd_settime(events->timer, 0, &period, NULL))
		status = spyre_error(SPYRE_ERROR_SYSTEM,
				     "spyre_telemetry_events_open: cannot create a timer: %s "
				     "(errno %d)", strerror(errno), errno);
	else
		status = look(events);
	if (status)
		spyre_telemetry_events_close(events);
	else
		*out = events;
	return status;
}

static bool take(struct spyre_telemetry_events *events, spyre_telemetry_event *event)
{
	struct spyre_event_list *list = &events->list;
	const size_t size = event->struct_size;

	if (list->first == list->count)
		return false;
	spyre_struct_write(event, size, &list->event[list->first++], sizeof(*event));
	return true;
}

/* Waits for the timer until @end; false if it did not expire. */
static bool wait_for_look(int timer, uint64_t end)
{
	struct pollfd poll_timer = { .fd = timer, .events = POLLIN };
	uint64_t now = spyre_telemetry_now(), left = end > now ? end - now : 0, expired;
	/* The timer expires ten times a second, so a longer wait is not needed. */
	const struct timespec limit = { .tv_nsec = (long)(left < LOOK_NS ? left : LOOK_NS) };

	if (ppoll(&poll_timer, 1, &limit, NULL) <= 0)
		return false;
	return read(timer, &expired, sizeof(expired)) == sizeof(expired);
}

spyre_status spyre_telemetry_events_next(spyre_telemetry_events *events, uint64_t timeout_ns,
					 spyre_telemetry_event *event)
{
	uint64_t now = spyre_telemetry_now();
	const uint64_t end = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;

	if (!events)
		return spyre_null_argument("spyre_telemetry_events_next", "events");
	TRY(spyre_struct_check("spyre_telemetry_events_next", "telemetry_event", event));
	while (!take(events, event)) {
		errno = 0;
		if (events->list.more || wait_for_look(events->timer, end))
			TRY(look(events));
		else if (errno == EINTR || spyre_telemetry_now() >= end)
			return SPYRE_NOT_READY;
	}
	return SPYRE_SUCCESS;
}

int spyre_telemetry_events_fd(const spyre_telemetry_events *events)
{
	return events ? events->timer : -1;
}

void spyre_telemetry_events_close(spyre_telemetry_events *events)
{
	if (!events)
		return;
	if (events->timer >= 0)
		close(events->timer);
	spyre_event_files_close(&events->files);
	free(events->cards.card);
	free(events->list.event);
	free(events);
}
