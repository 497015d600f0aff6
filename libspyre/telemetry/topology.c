// SPDX-License-Identifier: MIT
/* Where cards are: the host processors near them, and the ways between them. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/check.h"
#include "libspyre/base/error.h"
#include "libspyre/base/peer_path.h"
#include "libspyre/base/sysfs.h"
#include "libspyre/telemetry/sources.h"

#define PATH_BYTES 512
#define STATUS_BYTES 8192

void spyre_telemetry_near_node(spyre_telemetry_card *card, uint64_t node)
{
	char path[PATH_BYTES];

	snprintf(card->numa_list, sizeof(card->numa_list), "%" PRIu64, node);
	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%" PRIu64 "/cpulist",
		 spyre_sysfs_root(), node);
	spyre_sysfs_read_line(path, card->cpu_list, sizeof(card->cpu_list));
	spyre_telemetry_clean(card->cpu_list, sizeof(card->cpu_list));
}

/* Copies the value of a line "@key:<blanks>value"; leaves "" if it is missing or does not fit. */
static void read_list(const char *text, const char *key, char *list, size_t size)
{
	const char *line = strstr(text, key);
	size_t length;

	if (!line)
		return;
	line += strlen(key);
	line += strspn(line, " \t");
	length = strcspn(line, "\n");
	if (length >= size)
		return;
	memcpy(list, line, length);
	spyre_telemetry_clean(list, size);
}

void spyre_telemetry_near_process(spyre_telemetry_card *card, int32_t pid)
{
	char path[PATH_BYTES], text[STATUS_BYTES];

	snprintf(path, sizeof(path), "%s/proc/%" PRId32 "/status", spyre_sysfs_root(), pid);
	if (!spyre_sysfs_read(path, text, sizeof(text)))
		return;
	read_list(text, "\nCpus_allowed_list:", card->cpu_list, sizeof(card->cpu_list));
	read_list(text, "\nMems_allowed_list:", card->numa_list, sizeof(card->numa_list));
}

static spyre_status check_card(const spyre_telemetry_card *card)
{
	TRY(spyre_struct_check("spyre_telemetry_peer_path", "telemetry_card", card));
	if (card->struct_size < sizeof(*card))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_telemetry_peer_path: struct_size is %zu, expected at least "
				   "%zu; pass an entry of spyre_telemetry_cards()",
				   card->struct_size, sizeof(*card));
	return SPYRE_SUCCESS;
}

spyre_status spyre_telemetry_peer_path(const spyre_telemetry_card *card,
				       const spyre_telemetry_card *peer, spyre_peer_path *path)
{
	TRY(check_card(card));
	TRY(check_card(peer));
	if (!path)
		return spyre_null_argument("spyre_telemetry_peer_path", "path");
	if (card->host_pid != peer->host_pid)
		*path = SPYRE_PEER_NONE;
	else if (!strcmp(card->properties.bus_id, peer->properties.bus_id))
		*path = SPYRE_PEER_SAME_CARD;
	else
		*path = spyre_peer_path_between(card->physical_card, peer->physical_card);
	return SPYRE_SUCCESS;
}
