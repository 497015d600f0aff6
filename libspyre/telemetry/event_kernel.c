// SPDX-License-Identifier: MIT
/* Events of the kernel's cards: two rings of each in sysfs, and cards that come and go. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/base/sysfs.h"
#include "libspyre/telemetry/event_source.h"
#include "libspyre/telemetry/sources.h"

/* A page, which is the most that a file of sysfs has. */
#define RING_BYTES 4097

static const char *const rings[2] = { "events", "context_events" };

static const struct {
	const char *name;
	spyre_telemetry_event_kind kind;
} kinds[] = {
	{ "reset", SPYRE_TELEMETRY_CARD_RESET },
	{ "vfs", SPYRE_TELEMETRY_CARD_VFS },
	{ "context_reset", SPYRE_TELEMETRY_CONTEXT_RESET },
	{ "fault", SPYRE_TELEMETRY_FAULT },
};

static uint64_t realtime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static spyre_status add(struct spyre_event_list *list, const struct spyre_event_card *card,
			const spyre_telemetry_event *from)
{
	spyre_telemetry_event *event = spyre_event_add(list);

	if (!event)
		return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	*event = *from;
	event->uid = UINT32_MAX;
	memcpy(event->bus_id, card->bus_id, sizeof(event->bus_id));
	memcpy(event->uuid, card->uuid, sizeof(event->uuid));
	return SPYRE_SUCCESS;
}

static spyre_status add_now(struct spyre_event_list *list, const struct spyre_event_card *card,
			    spyre_telemetry_event_kind kind, uint64_t value)
{
	const spyre_telemetry_event event = {
		.kind = kind, .value = value, .time_ns = realtime(),
	};

	return add(list, card, &event);
}

/* Parses "<number> <ns> <kind> <value> <context>"; false if a newer module has another form. */
static bool parse(const char *line, uint64_t *number, spyre_telemetry_event *event)
{
	uint64_t value, context, time;
	char name[16];

	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %15s %" SCNu64 " %" SCNu64, number, &time, name,
		   &value, &context) != 5)
		return false;
	*event = (spyre_telemetry_event){ .time_ns = time, .value = value, .context = context };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			event->kind = kinds[i].kind;
	if (event->kind == SPYRE_TELEMETRY_FAULT) {
		if (value > SPYRE_FAULT_COMPUTE)
			return false;
		event->fault = (spyre_fault)value;
		event->value = 0;
	}
	return event->kind;
}

/* Appends the events of a ring from @next on, and advances it. */
static spyre_status read_ring(const struct spyre_event_card *card, char *text, uint64_t *next,
			      struct spyre_event_list *list)
{
	spyre_telemetry_event event;
	uint64_t first, end, number;
	char *line;

	if (sscanf(text, "%" SCNu64 " %" SCNu64, &first, &end) != 2 || first > end)
		return SPYRE_SUCCESS;
	if (*next < first && *next)
		TRY(add_now(list, card, SPYRE_TELEMETRY_LOST, first - *next));
	for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		if (parse(line + 1, &number, &event) && number >= *next)
			TRY(add(list, card, &event));
	*next = end;
	return SPYRE_SUCCESS;
}

static spyre_status read_rings(const struct spyre_sysfs_card *from, struct spyre_event_card *card,
			       bool skip, struct spyre_event_list *list)
{
	char path[512], text[RING_BYTES];
	uint64_t first;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/sys/class/accel/accel%d/device/%s",
			 spyre_sysfs_root(), from->minor, rings[i]);
		if (!spyre_sysfs_read(path, text, sizeof(text)))
			continue;	/* an older module, or for root alone */
		if (skip)
			(void)sscanf(text, "%" SCNu64 " %" SCNu64, &first, &card->next[i]);
		else
			TRY(read_ring(card, text, &card->next[i], list));
	}
	return SPYRE_SUCCESS;
}

static struct spyre_event_card *find(struct spyre_event_cards *cards, const char *uuid)
{
	for (size_t i = 0; i < cards->count; i++)
		if (!strcmp(cards->card[i].uuid, uuid))
			return &cards->card[i];
	return NULL;
}

/* A card has another uuid after each load of the module, so one that returns is a new one. */
static spyre_status read_card(struct spyre_event_cards *cards, const struct spyre_sysfs_card *from,
			      bool skip, struct spyre_event_list *list)
{
	struct spyre_event_card *card;
	char uuid[40];

	spyre_sysfs_string(from, "uuid", uuid, sizeof(uuid));
	spyre_telemetry_clean(uuid, sizeof(uuid));
	card = find(cards, uuid);
	if (!card) {
		if (!spyre_array_reserve(&cards->card, &cards->capacity, cards->count + 1,
					 sizeof(*card)))
			return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
					   "no host memory to watch %zu cards", cards->count + 1);
		card = &cards->card[cards->count++];
		memset(card, 0, sizeof(*card));
		memcpy(card->bus_id, from->bus_id, sizeof(card->bus_id));
		memcpy(card->uuid, uuid, sizeof(card->uuid));
		if (cards->started)
			TRY(add_now(list, card, SPYRE_TELEMETRY_CARD_ADDED, 0));
	}
	card->present = true;
	return read_rings(from, card, skip, list);
}

static spyre_status drop_gone(struct spyre_event_cards *cards, struct spyre_event_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < cards->count; i++) {
		if (cards->card[i].present)
			cards->card[kept++] = cards->card[i];
		else
			TRY(add_now(list, &cards->card[i], SPYRE_TELEMETRY_CARD_REMOVED, 0));
	}
	cards->count = kept;
	return SPYRE_SUCCESS;
}

spyre_status spyre_event_cards_read(struct spyre_event_cards *cards, bool kept,
				    struct spyre_event_list *list)
{
	const bool skip = !cards->started && !kept;
	struct spyre_sysfs_cards found;
	spyre_status status;

	for (size_t i = 0; i < cards->count; i++)
		cards->card[i].present = false;
	status = spyre_sysfs_scan(&found);
	for (int i = 0; !status && i < found.count; i++)
		status = read_card(cards, &found.card[i], skip, list);
	spyre_sysfs_fini(&found);
	if (!status)
		status = drop_gone(cards, list);
	cards->started = true;
	return status;
}
