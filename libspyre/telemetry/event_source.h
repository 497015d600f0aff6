/* SPDX-License-Identifier: MIT */
/* Where a reader's events come from: event_kernel.c and event_files.c. Internal. */
#ifndef SPYRE_EVENT_SOURCE_H
#define SPYRE_EVENT_SOURCE_H

#include <spyre/telemetry.h>

#include "libspyre/telemetry/event_log.h"

/*
 * Events that were found and not yet returned. While there are this many, logs wait in their
 * files: a user who writes faster than root reads costs root no more memory.
 */
#define SPYRE_EVENTS_PENDING 1024

struct spyre_event_list {
	spyre_telemetry_event *event;
	size_t first;		/* the next to return */
	size_t count;
	size_t capacity;
	bool more;		/* logs have more than the list could take */
};

/* Appends a zeroed event; NULL (with an error text) if memory is short. */
spyre_telemetry_event *spyre_event_add(struct spyre_event_list *list);

/* A card of the kernel, and the numbers of its next events. */
struct spyre_event_card {
	char bus_id[32];
	char uuid[40];
	uint64_t next[2];
	bool present;
};

struct spyre_event_cards {
	struct spyre_event_card *card;
	size_t count;
	size_t capacity;
	bool started;
};

/* A user's log that is being read. */
struct spyre_event_file {
	uint32_t owner;
	int fd;			/* -1: there is none yet */
	bool present;		/* the user's folder */
	bool cut;		/* the line under way is too long: it is skipped */
	size_t used;
	char line[SPYRE_EVENT_LINE_BYTES];
};

struct spyre_event_files {
	struct spyre_event_file **file;
	size_t count;
	size_t capacity;
	bool started;
};

/* Append what is new; the first call skips what is there already, unless @kept. */
spyre_status spyre_event_cards_read(struct spyre_event_cards *cards, bool kept,
				    struct spyre_event_list *list);
spyre_status spyre_event_files_read(struct spyre_event_files *files, bool kept,
				    struct spyre_event_list *list);
void spyre_event_files_close(struct spyre_event_files *files);

#endif /* SPYRE_EVENT_SOURCE_H */
