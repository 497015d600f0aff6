/* SPDX-License-Identifier: MIT */
/* Reads the state of all cards and processes once. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/smi/smi.h"

/* Lists may grow between the query of their length and the read. */
#define SLACK 8
#define MAX_TRIES 8

int smi_status(spyre_status status)
{
	fprintf(stderr, "spyre-smi: %s: %s\n", spyre_status_name(status), spyre_last_error());
	switch (status) {
	case SPYRE_ERROR_INVALID_ARGUMENT:
		return SMI_BAD_ARGUMENT;
	case SPYRE_ERROR_NO_PERMISSION:
		return SMI_NO_PERMISSION;
	case SPYRE_ERROR_NO_DRIVER:
	case SPYRE_ERROR_NO_DEVICE:
		return SMI_NO_DRIVER;
	default:
		return SMI_OTHER;
	}
}

static int no_memory(int count, const char *what)
{
	fprintf(stderr, "spyre-smi: no memory for a list of %d %s\n", count, what);
	return SMI_OTHER;
}

int smi_no_memory(const char *what)
{
	fprintf(stderr, "spyre-smi: no memory for %s\n", what);
	return SMI_OTHER;
}

static int read_cards(struct smi_snapshot *snapshot)
{
	spyre_telemetry_card *grown;
	spyre_status status;
	int capacity, tries;

	status = spyre_telemetry_cards(NULL, 0, 0, &capacity);
	for (tries = 0; status == SPYRE_SUCCESS && tries < MAX_TRIES; tries++) {
		capacity += SLACK;
		grown = realloc(snapshot->cards, capacity * sizeof(*grown));
		if (!grown)
			return no_memory(capacity, "cards");
		snapshot->cards = grown;
		status = spyre_telemetry_cards(grown, sizeof(*grown), capacity,
					       &snapshot->num_cards);
		if (status == SPYRE_SUCCESS && snapshot->num_cards <= capacity)
			return SMI_OK;
		capacity = snapshot->num_cards;
	}
	return smi_status(status);
}

static int read_processes(struct smi_snapshot *snapshot)
{
	spyre_telemetry_process *grown;
	spyre_status status;
	int capacity, tries;

	status = spyre_telemetry_processes(NULL, 0, 0, &capacity);
	for (tries = 0; status == SPYRE_SUCCESS && tries < MAX_TRIES; tries++) {
		capacity += SLACK;
		grown = realloc(snapshot->processes, capacity * sizeof(*grown));
		if (!grown)
			return no_memory(capacity, "processes");
		snapshot->processes = grown;
		status = spyre_telemetry_processes(grown, sizeof(*grown), capacity,
						   &snapshot->num_processes);
		if (status == SPYRE_SUCCESS && snapshot->num_processes <= capacity)
			return SMI_OK;
		capacity = snapshot->num_processes;
	}
	return smi_status(status);
}

/*
 * Cards and processes are read one after the other, and an embedded card ends with
 * its process: the cards that are left have other indices.
 */
static bool is_stray(const struct smi_snapshot *snapshot, const spyre_telemetry_process *process)
{
	const spyre_telemetry_card *card;

	if (process->card < 0 || process->card >= snapshot->num_cards)
		return true;
	card = &snapshot->cards[process->card];
	return card->host_pid && card->host_pid != process->pid;
}

/* Drops processes whose card is not known. Returns their number. */
static int drop_strays(struct smi_snapshot *snapshot)
{
	int i, kept = 0, all = snapshot->num_processes;

	for (i = 0; i < all; i++)
		if (!is_stray(snapshot, &snapshot->processes[i]))
			snapshot->processes[kept++] = snapshot->processes[i];
	snapshot->num_processes = kept;
	return all - kept;
}

/* Reads both again while cards come and go in between; after some tries, leaves strays out. */
static int read_all(struct smi_snapshot *snapshot)
{
	int error, tries;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		error = read_cards(snapshot);
		if (!error)
			error = read_processes(snapshot);
		if (error || !drop_strays(snapshot))
			return error;
	}
	return SMI_OK;
}

/* Finds the index under which programs see each kernel card; an invalid SPYRE_DEVICES hides all. */
static void find_visible(struct smi_snapshot *snapshot)
{
	int count = 0, card, i;

	for (card = 0; card < snapshot->num_cards; card++)
		snapshot->visible[card] = -1;
	if (spyre_device_count(&count) != SPYRE_SUCCESS)
		return;
	for (i = 0; i < count; i++) {
		spyre_device_properties p = { .struct_size = sizeof(p) };

		if (spyre_device_get_properties(i, &p) != SPYRE_SUCCESS ||
		    p.backend != SPYRE_BACKEND_DRM)
			continue;
		for (card = 0; card < snapshot->num_cards; card++)
			if (!snapshot->cards[card].host_pid &&
			    !strcmp(snapshot->cards[card].properties.bus_id, p.bus_id))
				snapshot->visible[card] = i;
	}
}

int smi_take_snapshot(struct smi_snapshot *snapshot)
{
	int error;

	memset(snapshot, 0, sizeof(*snapshot));
	error = read_all(snapshot);
	if (error)
		return error;
	clock_gettime(CLOCK_REALTIME, &snapshot->time);
	snapshot->visible = calloc(snapshot->num_cards + 1, sizeof(*snapshot->visible));
	snapshot->chosen = calloc(snapshot->num_cards + 1, sizeof(*snapshot->chosen));
	if (!snapshot->visible || !snapshot->chosen)
		return no_memory(snapshot->num_cards, "cards");
	find_visible(snapshot);
	return SMI_OK;
}

static bool matches(const struct smi_snapshot *snapshot, int card, const char *id, size_t length)
{
	const spyre_device_properties *p = &snapshot->cards[card].properties;
	char number[16];

	snprintf(number, sizeof(number), "%d", card);
	return (strlen(number) == length && !strncmp(number, id, length)) ||
	       (strlen(p->uuid) == length && !strncasecmp(p->uuid, id, length)) ||
	       (strlen(p->bus_id) == length && !strncmp(p->bus_id, id, length));
}

static bool choose_one(struct smi_snapshot *snapshot, const char *id, size_t length)
{
	bool found = false;
	int card;

	for (card = 0; card < snapshot->num_cards; card++) {
		if (!length || !matches(snapshot, card, id, length))
			continue;
		snapshot->num_chosen += !snapshot->chosen[card];
		snapshot->chosen[card] = true;
		found = true;
	}
	return found;
}

int smi_choose(struct smi_snapshot *snapshot, const char *ids)
{
	size_t length;
	int card;

	for (card = 0; !ids && card < snapshot->num_cards; card++)
		snapshot->chosen[card] = true;
	if (!ids) {
		snapshot->num_chosen = snapshot->num_cards;
		return SMI_OK;
	}
	for (;; ids += length + 1) {
		length = strcspn(ids, ",");
		if (!choose_one(snapshot, ids, length)) {
			fprintf(stderr,
				"spyre-smi: cannot find card '%.*s'; 'spyre-smi -L' lists all %d\n",
				(int)length, ids, snapshot->num_cards);
			return SMI_NOT_FOUND;
		}
		if (!ids[length])
			return SMI_OK;
	}
}

void smi_free_snapshot(struct smi_snapshot *snapshot)
{
	free(snapshot->cards);
	free(snapshot->visible);
	free(snapshot->processes);
	free(snapshot->chosen);
	memset(snapshot, 0, sizeof(*snapshot));
}
