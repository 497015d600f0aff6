// SPDX-License-Identifier: MIT
/*
 * Reads the pages of embedded cards. Any process of the user can write any bytes
 * there, and root reads the files of all users, so every field is checked before
 * it is used.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/telemetry/event_log.h"
#include "libspyre/telemetry/page.h"
#include "libspyre/telemetry/sources.h"
#include "model/card.h"

/*
 * Pages of one user that are read, far more than a host has processes with cards: a user who makes
 * files without end must not occupy those who read all users'.
 */
#define MAX_PAGES 4096
/* Waits of a tenth of a millisecond for periods that end, in all pages. */
#define MAX_WAITS 200

struct page_file {
	int folder;
	uid_t owner;
	const char *name;
	struct spyre_card_key key;	/* from the name */
};

/* Accepts exactly "<pid>.<card>.<n>". */
static bool parse_name(const char *name, struct spyre_card_key *key)
{
	unsigned int pid, card, sequence;
	char again[64];

	if (sscanf(name, "%9u.%9u.%9u", &pid, &card, &sequence) != 3 || !pid)
		return false;
	snprintf(again, sizeof(again), "%u.%u.%u", pid, card, sequence);
	*key = (struct spyre_card_key){ .pid = (int32_t)pid, .card = card, .sequence = sequence };
	return !strcmp(again, name);
}

static bool read_page(int fd, struct spyre_telemetry_page *page)
{
	ssize_t got;

	do {
		got = pread(fd, page, sizeof(*page), 0);
	} while (got < 0 && errno == EINTR);
	return got == sizeof(*page);
}

enum page_state { PAGE_GOOD, PAGE_STALE, PAGE_FOREIGN, PAGE_UNKNOWN };

/* Seconds in which a process fills its page. */
#define FILL_SECONDS 60

/*
 * Of a page without the magic, which is stored last, nothing is known but its name and age. One
 * that stays so was left by a process that died while it filled it.
 */
static enum page_state classify_empty(const struct page_file *file, time_t changed)
{
	uint64_t start_time;

	errno = 0;
	if (time(NULL) - changed < FILL_SECONDS ||
	    spyre_telemetry_start_time(file->key.pid, &start_time))
		return PAGE_FOREIGN;
	return errno == ENOENT || errno == ESRCH ? PAGE_STALE : PAGE_UNKNOWN;
}

static enum page_state classify(const struct page_file *file,
				const struct spyre_telemetry_page *page)
{
	uint64_t start_time;

	if (page->version != SPYRE_TELEMETRY_VERSION || page->bytes != sizeof(*page) ||
	    page->pid != file->key.pid || page->uid != file->owner ||
	    page->sequence != file->key.sequence)
		return PAGE_FOREIGN;
	/* Containers that share the folder have processes of their own under the same numbers. */
	if (page->pid_namespace != spyre_telemetry_pid_namespace())
		return PAGE_FOREIGN;
	/* Only a process that does not exist has left its page: /proc may not be readable now. */
	errno = 0;
	if (!spyre_telemetry_start_time(file->key.pid, &start_time))
		return errno == ENOENT || errno == ESRCH ? PAGE_STALE : PAGE_UNKNOWN;
	return page->start_time == start_time ? PAGE_GOOD : PAGE_STALE;
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
	return value <= limit ? value : 0;
}

static void take_properties(const struct spyre_device_properties *from, uint32_t card,
			    spyre_device_properties *to)
{
	*to = *from;
	to->struct_size = sizeof(*to);
	spyre_telemetry_clean(to->name, sizeof(to->name));
	spyre_telemetry_clean(to->uuid, sizeof(to->uuid));
	spyre_telemetry_clean(to->bus_id, sizeof(to->bus_id));
	spyre_telemetry_clean(to->unit, sizeof(to->unit));
	memset(to->node, 0, sizeof(to->node));
	to->backend = SPYRE_BACKEND_EMBEDDED;
	to->physical_index = (int)card;
	to->index = to->index >= 0 && to->index <= (int)card ? to->index : (int)card;
	to->num_cores = at_most(to->num_cores, SPYRE_MAX_CORES);
	to->lx_bytes = at_most(to->lx_bytes, SPYRE_LX_BYTES);
	to->stick_bytes = at_most(to->stick_bytes, SPYRE_STICK);
}

/* The energy follows from the counters; the work's is without that of an idle card. */
static void take_counters(const struct spyre_telemetry_page *page, struct spyre_reading *reading)
{
	const struct spyre_counter *counter = spyre_telemetry_counters;
	spyre_telemetry_card *card = &reading->card;
	uint64_t *value, number, bytes, age;

	for (; counter < spyre_telemetry_counters + spyre_telemetry_num_counters; counter++) {
		if (!counter->page)
			continue;
		memcpy(&number, (const char *)page + counter->page, sizeof(number));
		value = spyre_counter_of_card(counter, card);
		if (value)
			*value = number;
		value = spyre_counter_of_process(counter, &reading->work);
		if (value)
			*value = number;
	}
	bytes = card->bytes_read + card->bytes_written;
	age = card->timestamp_ns > page->since_ns ? card->timestamp_ns - page->since_ns : 0;
	card->energy_mj = spyre_energy_model(card->busy_ns, age, card->macs, bytes) / 1000;
	reading->work.energy_mj = spyre_energy_model(card->busy_ns, 0, card->macs, bytes) / 1000;
}

static void take_page(const struct page_file *file, const struct spyre_telemetry_page *page,
		      uint64_t now, struct spyre_reading *reading)
{
	spyre_telemetry_card *card = &reading->card;

	reading->key = file->key;
	reading->key.start_time = page->start_time;
	reading->uid = file->owner;
	memcpy(reading->process, page->process, sizeof(reading->process));
	spyre_telemetry_clean(reading->process, sizeof(reading->process));
	card->struct_size = sizeof(*card);
	take_properties(&page->properties, file->key.card, &card->properties);
	card->host_pid = file->key.pid;
	card->timestamp_ns = now;
	card->memory_total = page->memory_total;
	card->memory_used = page->memory_used <= page->memory_total ? page->memory_used :
								       page->memory_total;
	card->busy_ns = spyre_telemetry_busy_ns(page->busy, page->busy_ns, now);
	take_counters(page, reading);
	card->utilization = UINT32_MAX;
	card->power_mw = UINT32_MAX;
	card->power_limit_mw = SPYRE_POWER_LIMIT_MW;
	card->temperature_mc = UINT32_MAX;
	card->physical_card = (int32_t)file->key.card;
	spyre_telemetry_near_process(card, file->key.pid);
	reading->work.memory_used = card->memory_used;
	reading->work.busy_ns = card->busy_ns;
}

/*
 * Removes the page of a process that ended without doing so, and logs that its card is gone:
 * only the one who removed it does. Root leaves the pages and logs of others alone.
 */
static void remove_stale(const struct page_file *file, struct spyre_telemetry_page *page)
{
	if (file->owner != geteuid() || unlinkat(file->folder, file->name, 0))
		return;
	if (page->magic != SPYRE_TELEMETRY_MAGIC || page->version != SPYRE_TELEMETRY_VERSION)
		return;
	page->pid = file->key.pid;
	spyre_telemetry_clean(page->process, sizeof(page->process));
	spyre_telemetry_clean(page->properties.bus_id, sizeof(page->properties.bus_id));
	spyre_telemetry_clean(page->properties.uuid, sizeof(page->properties.uuid));
	spyre_event_log(page, SPYRE_TELEMETRY_CARD_REMOVED, SPYRE_FAULT_NONE, 0);
}

/*
 * Reads the page with the clock of before, again while a busy period ends: for @waits times at
 * most in all pages, since any process of a user can leave the mark in its page. Without a wait
 * the period counts up to now, which may be later than its end.
 */
static bool read_with_clock(int fd, struct spyre_telemetry_page *page, uint64_t *now, int *waits)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	do {
		*now = spyre_telemetry_now();
		if (!read_page(fd, page))
			return false;
	} while (page->busy & SPYRE_TELEMETRY_ENDING && (*waits)-- > 0 && !nanosleep(&pause, NULL));
	return true;
}

static spyre_status read_file(const struct page_file *file, struct spyre_readings *readings)
{
	struct spyre_telemetry_page page = { 0 };
	enum page_state state = PAGE_FOREIGN;
	struct spyre_reading *reading;
	uint64_t now = 0;
	spyre_status status;
	struct stat st;
	int fd;

	/* O_NONBLOCK, because opening a fifo would block the reader. */
	fd = openat(file->folder, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return spyre_telemetry_not_opened(file->name);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == file->owner) {
		if (st.st_size != sizeof(page) ||
		    !read_with_clock(fd, &page, &now, &readings->waits))
			memset(&page, 0, sizeof(page));
		state = page.magic == SPYRE_TELEMETRY_MAGIC ? classify(file, &page) :
							      classify_empty(file, st.st_mtime);
	}
	status = state == PAGE_UNKNOWN ? spyre_telemetry_not_opened(file->name) : SPYRE_SUCCESS;
	close(fd);
	if (state == PAGE_STALE)
		remove_stale(file, &page);
	if (state != PAGE_GOOD)
		return status;
	reading = spyre_readings_add(readings);
	if (!reading)
		return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	take_page(file, &page, now, reading);
	return SPYRE_SUCCESS;
}

/* Reads the pages in the folder of one user. */
static spyre_status read_folder(int folder, uint32_t owner, void *data)
{
	struct page_file file = { .folder = folder, .owner = owner };
	struct spyre_readings *readings = data;
	spyre_status status = SPYRE_SUCCESS;
	int first = readings->count;
	struct dirent *entry;
	DIR *dir;
	int fd;

	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		status = spyre_telemetry_not_opened("a folder of pages");
		if (fd >= 0)
			close(fd);
		return status;
	}
	while (!status && (entry = readdir(dir))) {
		file.name = entry->d_name;
		if (readings->count - first == MAX_PAGES) {
			spyre_log(SPYRE_LOG_WARN, "telemetry: user %u has more than %d pages, of "
				  "which the rest is not read", (unsigned int)owner, MAX_PAGES);
			break;
		}
		if (parse_name(file.name, &file.key))
			status = read_file(&file, readings);
	}
	closedir(dir);
	return status;
}

/* Orders by age, since pids wrap: indices stay as they are while new processes start. */
static int by_process(const void *left, const void *right)
{
	const struct spyre_card_key *a = &((const struct spyre_reading *)left)->key;
	const struct spyre_card_key *b = &((const struct spyre_reading *)right)->key;

	if (a->start_time != b->start_time)
		return a->start_time < b->start_time ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->card != b->card)
		return a->card < b->card ? -1 : 1;
	return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

spyre_status spyre_telemetry_read_pages(struct spyre_readings *readings)
{
	int first = readings->count;
	spyre_status status;

	readings->waits = MAX_WAITS;
	status = spyre_telemetry_visit_folders(read_folder, readings);

	if (readings->count - first > 1)
		qsort(readings->reading + first, readings->count - first,
		      sizeof(*readings->reading), by_process);
	return status;
}
