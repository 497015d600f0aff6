// SPDX-License-Identifier: MIT
/* Publishes the telemetry page of an embedded card. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/error.h"
#include "libspyre/base/file_limit.h"
#include "libspyre/base/log.h"
#include "libspyre/telemetry/event_log.h"
#include "libspyre/telemetry/page.h"
#include "libspyre/telemetry/sources.h"

/* Sequence of a page in private memory, which has no file. */
#define PRIVATE_PAGE UINT32_MAX
#define NAME_BYTES 48

static void page_name(const struct spyre_telemetry_page *page, char *name)
{
	snprintf(name, NAME_BYTES, "%" PRId32 ".%d.%" PRIu32, page->pid,
		 page->properties.physical_index, page->sequence);
}

int spyre_telemetry_folder(bool create)
{
	const char *base = secure_getenv("SPYRE_TELEMETRY_DIR");
	char path[512];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/spyre-%u", base && *base ? base : "/tmp",
		 (unsigned int)geteuid());
	if (create && mkdir(path, 0700) && errno != EEXIST) {
		spyre_log(SPYRE_LOG_WARN, "telemetry: cannot make %s: %s", path, strerror(errno));
		return -1;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		spyre_log(SPYRE_LOG_WARN, "telemetry: cannot open %s: %s", path, strerror(errno));
		return -1;
	}
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 077)) {
		spyre_log(SPYRE_LOG_WARN,
			  "telemetry: %s is not a folder of this user with mode 0700; remove it, or set SPYRE_TELEMETRY_DIR",
			  path);
		close(fd);
		return -1;
	}
	return fd;
}

/* Creates a file of the page's size; fills page->sequence. */
static int create_file(int folder, struct spyre_telemetry_page *page, char *name)
{
	int fd, error;

	for (page->sequence = 0; page->sequence < 4096; page->sequence++) {
		page_name(page, name);
		fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -1;
		/* Allocated, not only sized: a full disk fails here, not at a store. */
		error = spyre_beyond_file_limit(sizeof(*page)) ?
			EFBIG : posix_fallocate(fd, 0, sizeof(*page));
		if (!error)
			return fd;
		unlinkat(folder, name, 0);
		close(fd);
		errno = error;
		return -1;
	}
	return -1;
}

/* Creates and maps a file in the user's folder; MAP_FAILED on any error. */
static void *map_file(struct spyre_telemetry_page *page)
{
	void *mapped = MAP_FAILED;
	char name[NAME_BYTES];
	int folder, fd;

	folder = spyre_telemetry_folder(true);
	if (folder < 0)
		return MAP_FAILED;
	fd = create_file(folder, page, name);
	if (fd >= 0) {
		mapped = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (mapped == MAP_FAILED)
			unlinkat(folder, name, 0);
		close(fd);
	}
	if (mapped == MAP_FAILED)
		spyre_log(SPYRE_LOG_WARN, "telemetry: cannot publish a page: %s", strerror(errno));
	close(folder);
	return mapped;
}

/* Removes pages of processes that died without cleaning up. */
static void sweep(void)
{
	struct spyre_readings readings = { 0 };

	(void)spyre_telemetry_read_pages(&readings);
	free(readings.reading);
}

struct spyre_telemetry_page *spyre_telemetry_publish(const spyre_device_properties *properties)
{
	struct spyre_telemetry_page first, *page;

	memset(&first, 0, sizeof(first));
	first.version = SPYRE_TELEMETRY_VERSION;
	first.bytes = sizeof(first);
	first.pid = getpid();
	first.uid = geteuid();
	first.properties = *properties;
	first.memory_total = properties->memory_bytes;
	first.since_ns = spyre_telemetry_now();
	first.pid_namespace = spyre_telemetry_pid_namespace();
	snprintf(first.process, sizeof(first.process), "%s", program_invocation_short_name);
	spyre_telemetry_start_time(first.pid, &first.start_time);
	sweep();
	page = map_file(&first);
	if (page == MAP_FAILED) {
		first.sequence = PRIVATE_PAGE;
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return NULL;
	}
	memcpy(page, &first, sizeof(first));
	/* The magic is stored last; until then readers skip the file. */
	__atomic_store_n(&page->magic, SPYRE_TELEMETRY_MAGIC, __ATOMIC_RELEASE);
	spyre_event_log(page, SPYRE_TELEMETRY_CARD_ADDED, SPYRE_FAULT_NONE, 0);
	return page;
}

void spyre_telemetry_unpublish(struct spyre_telemetry_page *page)
{
	char name[NAME_BYTES];
	int folder;

	if (!page)
		return;
	/* A forked child only unmaps the page; the parent owns the file. */
	if (page->sequence != PRIVATE_PAGE && page->pid == getpid()) {
		folder = spyre_telemetry_folder(false);
		if (folder >= 0) {
			page_name(page, name);
			unlinkat(folder, name, 0);
			close(folder);
		}
	}
	if (page->pid == getpid())
		spyre_event_log(page, SPYRE_TELEMETRY_CARD_REMOVED, SPYRE_FAULT_NONE, 0);
	munmap(page, sizeof(*page));
}
