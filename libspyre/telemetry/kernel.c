// SPDX-License-Identifier: MIT
/* Reads kernel cards from sysfs, and their processes from the fdinfo of open nodes. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/base/sysfs.h"
#include "libspyre/telemetry/sources.h"

#define PATH_BYTES 512

static uint64_t u64_or_unknown(const struct spyre_sysfs_card *card, const char *attribute)
{
	uint64_t value = UINT64_MAX;

	spyre_sysfs_u64(card, attribute, &value);
	return value;
}

static uint32_t u32_or_unknown(const struct spyre_sysfs_card *card, const char *attribute)
{
	uint64_t value = u64_or_unknown(card, attribute);

	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void read_driver_version(char *version, size_t size)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/sys/module/" SPYRE_DRM_DRIVER "/version",
		 spyre_sysfs_root());
	spyre_sysfs_read_line(path, version, size);
	spyre_telemetry_clean(version, size);
}

static void read_counters(const struct spyre_sysfs_card *from, spyre_telemetry_card *card)
{
	const struct spyre_counter *counter = spyre_telemetry_counters;
	uint64_t *value;

	for (; counter < spyre_telemetry_counters + spyre_telemetry_num_counters; counter++) {
		value = spyre_counter_of_card(counter, card);
		if (value)
			*value = u64_or_unknown(from, counter->attribute);
	}
}

static void read_card(const struct spyre_sysfs_card *from, int position,
		      struct spyre_reading *reading)
{
	spyre_telemetry_card *card = &reading->card;
	uint64_t node;

	reading->key.card = (uint32_t)from->minor;
	card->struct_size = sizeof(*card);
	card->properties.struct_size = sizeof(card->properties);
	spyre_sysfs_properties(from, position, &card->properties);
	card->busy_ns = u64_or_unknown(from, "busy_ns");
	card->timestamp_ns = spyre_telemetry_now();
	card->memory_total = u64_or_unknown(from, "lpddr_total");
	card->memory_used = u64_or_unknown(from, "lpddr_used");
	read_counters(from, card);
	card->utilization = UINT32_MAX;
	card->power_mw = u32_or_unknown(from, "power_mw");
	card->power_limit_mw = SPYRE_POWER_LIMIT_MW;
	card->temperature_mc = u32_or_unknown(from, "temperature_mc");
	card->physical_card = spyre_sysfs_peer_index(from);
	if (spyre_sysfs_u64(from, "numa_node", &node))
		spyre_telemetry_near_node(card, node);
	read_driver_version(card->driver_version, sizeof(card->driver_version));
}

spyre_status spyre_telemetry_read_kernel(struct spyre_readings *readings)
{
	struct spyre_sysfs_cards cards;
	struct spyre_reading *reading;
	spyre_status status;
	int i;

	status = spyre_sysfs_scan(&cards);
	for (i = 0; i < cards.count && !status; i++) {
		reading = spyre_readings_add(readings);
		if (reading)
			read_card(&cards.card[i], i, reading);
		else
			status = SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	}
	spyre_sysfs_fini(&cards);
	return status;
}

/* Numbers of one open node from its fdinfo. */
struct client {
	uint64_t id;
	spyre_telemetry_process work;
};

/* "key:<blanks>number[ unit]" at the start of a line. */
static bool find_number(const char *text, const char *key, uint64_t *value, const char **unit)
{
	size_t length = strlen(key);
	const char *line;
	char *end;

	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) || line[length] != ':')
			continue;
		line += length + 1;
		line += strspn(line, " \t");
		if (*line < '0' || *line > '9')
			return false;
		*value = strtoull(line, &end, 10);
		*unit = end + strspn(end, " \t");
		return true;
	}
	return false;
}

static bool is_ours(const char *text)
{
	const char *line = strstr(text, "drm-driver:");
	size_t length = strlen(SPYRE_DRM_DRIVER);

	if (!line || (line != text && line[-1] != '\n'))
		return false;
	line += strlen("drm-driver:");
	line += strspn(line, " \t");
	return !strncmp(line, SPYRE_DRM_DRIVER, length) &&
	       (line[length] == '\n' || line[length] == '\0');
}

static uint64_t scale(const char *unit)
{
	if (!strncmp(unit, "KiB", 3))
		return 1024;
	if (!strncmp(unit, "MiB", 3))
		return 1024 * 1024;
	return 1;
}

static uint64_t number_or_unknown(const char *text, const char *key)
{
	const char *unit;
	uint64_t value;

	return find_number(text, key, &value, &unit) ? value * scale(unit) : UINT64_MAX;
}

static bool read_client(const char *path, struct client *client)
{
	const struct spyre_counter *counter = spyre_telemetry_counters;
	char text[8192];
	uint64_t *value;

	if (!spyre_sysfs_read(path, text, sizeof(text)) || !is_ours(text))
		return false;
	client->id = number_or_unknown(text, "drm-client-id");
	if (client->id == UINT64_MAX)
		return false;
	client->work.memory_used = number_or_unknown(text, "drm-total-lpddr5");
	client->work.busy_ns = number_or_unknown(text, "drm-engine-spyre");
	for (; counter < spyre_telemetry_counters + spyre_telemetry_num_counters; counter++) {
		value = spyre_counter_of_process(counter, &client->work);
		if (value)
			*value = number_or_unknown(text, counter->key);
	}
	return true;
}

/* Client ids already counted: several descriptors or processes may share one client. */
struct seen {
	uint64_t *id;
	size_t count;
	size_t capacity;
};

static bool first_sight(struct seen *seen, uint64_t id)
{
	size_t i;

	for (i = 0; i < seen->count; i++)
		if (seen->id[i] == id)
			return false;
	if (spyre_array_reserve(&seen->id, &seen->capacity, seen->count + 1, sizeof(*seen->id)))
		seen->id[seen->count++] = id;
	return true;
}

struct scan {
	struct spyre_sysfs_cards cards;
	struct spyre_processes *processes;
	struct seen seen;
	int32_t pid;
	int first;		/* first entry of this process */
};

static int card_of(const struct scan *scan, dev_t rdev)
{
	int i;

	for (i = 0; i < scan->cards.count; i++)
		if (rdev && scan->cards.card[i].rdev == rdev)
			return i;
	return -1;
}

static void read_name(struct scan *scan, spyre_telemetry_process *process)
{
	char path[PATH_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "%s/proc/%" PRId32, spyre_sysfs_root(), scan->pid);
	process->uid = stat(path, &st) ? UINT32_MAX : st.st_uid;
	snprintf(path, sizeof(path), "%s/proc/%" PRId32 "/comm", spyre_sysfs_root(), scan->pid);
	spyre_sysfs_read_line(path, process->name, sizeof(process->name));
	spyre_telemetry_clean(process->name, sizeof(process->name));
}

static uint64_t add_known(uint64_t sum, uint64_t more)
{
	return sum == UINT64_MAX || more == UINT64_MAX ? UINT64_MAX : sum + more;
}

static void add_work(spyre_telemetry_process *process, struct client *client)
{
	const struct spyre_counter *counter = spyre_telemetry_counters;
	uint64_t *sum;

	process->memory_used = add_known(process->memory_used, client->work.memory_used);
	process->busy_ns = add_known(process->busy_ns, client->work.busy_ns);
	for (; counter < spyre_telemetry_counters + spyre_telemetry_num_counters; counter++) {
		sum = spyre_counter_of_process(counter, process);
		if (sum)
			*sum = add_known(*sum, *spyre_counter_of_process(counter, &client->work));
	}
}

/* Adds a client to its process's entry for the card; creates the entry if it is missing. */
static spyre_status add_client(struct scan *scan, int card, struct client *client)
{
	struct spyre_processes *processes = scan->processes;
	spyre_telemetry_process *process = NULL;
	int i;

	for (i = scan->first; i < processes->count; i++)
		if (processes->process[i].card == card)
			process = &processes->process[i];
	if (!process) {
		process = spyre_processes_add(processes);
		if (!process)
			return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
		process->struct_size = sizeof(*process);
		process->card = card;
		process->pid = scan->pid;
		read_name(scan, process);
	}
	add_work(process, client);
	return SPYRE_SUCCESS;
}

static spyre_status read_descriptor(struct scan *scan, const char *number)
{
	char path[PATH_BYTES], target[8];
	struct client client;
	struct stat st;
	int card;

	snprintf(path, sizeof(path), "%s/proc/%" PRId32 "/fd/%.16s", spyre_sysfs_root(), scan->pid,
		 number);
	/* stat() could hang on a dead network file, so only paths below /dev are inspected. */
	if (readlink(path, target, sizeof(target)) < 5 || memcmp(target, "/dev/", 5) ||
	    stat(path, &st) || !S_ISCHR(st.st_mode))
		return SPYRE_SUCCESS;
	card = card_of(scan, st.st_rdev);
	if (card < 0)
		return SPYRE_SUCCESS;
	snprintf(path, sizeof(path), "%s/proc/%" PRId32 "/fdinfo/%.16s", spyre_sysfs_root(),
		 scan->pid, number);
	if (!read_client(path, &client) || !first_sight(&scan->seen, client.id))
		return SPYRE_SUCCESS;
	return add_client(scan, card, &client);
}

static spyre_status read_process(struct scan *scan, int32_t pid)
{
	spyre_status status = SPYRE_SUCCESS;
	char path[PATH_BYTES];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%" PRId32 "/fd", spyre_sysfs_root(), pid);
	dir = opendir(path);
	if (!dir)
		return SPYRE_SUCCESS;	/* owned by another user, or gone */
	scan->pid = pid;
	scan->first = scan->processes->count;
	while (!status && (entry = readdir(dir)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			status = read_descriptor(scan, entry->d_name);
	closedir(dir);
	return status;
}

static spyre_status read_all_processes(struct scan *scan)
{
	spyre_status status = SPYRE_SUCCESS;
	char path[PATH_BYTES];
	struct dirent *entry;
	int32_t pid;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", spyre_sysfs_root());
	dir = opendir(path);
	if (!dir)
		return spyre_error(errno == EACCES ? SPYRE_ERROR_NO_PERMISSION
						   : SPYRE_ERROR_SYSTEM,
				   "cannot list %s: %s (errno %d); is it mounted?", path,
				   strerror(errno), errno);
	while (!status && (entry = readdir(dir))) {
		pid = spyre_telemetry_pid(entry->d_name);
		if (pid)
			status = read_process(scan, pid);
	}
	closedir(dir);
	return status;
}

spyre_status spyre_telemetry_kernel_processes(struct spyre_processes *processes)
{
	struct scan scan = { .processes = processes };
	spyre_status status;

	status = spyre_sysfs_scan(&scan.cards);
	if (!status && scan.cards.count)
		status = read_all_processes(&scan);
	spyre_sysfs_fini(&scan.cards);
	free(scan.seen.id);
	return status;
}
