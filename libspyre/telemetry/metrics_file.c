// SPDX-License-Identifier: MIT
/* Writes one file of metrics: a header, then sections of metrics and their values. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libspyre/base/file_limit.h"
#include "libspyre/base/log.h"
#include "libspyre/telemetry/metrics.h"

#define RUNTIME 0x10u
#define PERF 0x20u
#define SECTIONS 2
#define MOST_METRICS 8

struct header {
	char magic[4];		/* "AiuM"; '!' in front while the file changes */
	uint32_t size;
	uint8_t version[4];
	uint32_t num_sections;
	uint64_t timestamp_ms;
	uint64_t reserved;
	struct {
		uint32_t id;
		uint32_t size;
	} section[SECTIONS];
};

struct section {
	uint32_t id;
	uint32_t size;
	uint32_t seqnum;
	uint32_t num_metrics;
	uint64_t timestamp_ms;
	uint32_t interval_ms;
	uint32_t reserved;
};

struct metric {
	uint32_t id;
	uint32_t num_words;
};

/* The largest file, which is allocated when it is created. */
#define FILE_BYTES (sizeof(struct header) + SECTIONS * sizeof(struct section) + \
		    MOST_METRICS * (sizeof(struct metric) + sizeof(uint64_t)) * SECTIONS)

/* Metrics of a section, with values in the units of the form. */
struct metrics {
	struct metric metric[MOST_METRICS];
	uint64_t value[MOST_METRICS];
	uint32_t count;
};

static void add(struct metrics *metrics, uint32_t id, uint64_t value, uint64_t unknown,
		uint64_t unit)
{
	if (value == unknown)
		return;
	metrics->metric[metrics->count] = (struct metric){ .id = id, .num_words = 1 };
	metrics->value[metrics->count++] = value / unit;
}

static struct metrics perf_metrics(const spyre_telemetry_card *card)
{
	struct metrics metrics = { .count = 0 };

	add(&metrics, 0x10, card->power_mw, UINT32_MAX, 100);		/* 0.1 W */
	add(&metrics, 0x11, card->temperature_mc, UINT32_MAX, 100);	/* 0.1 degrees Celsius */
	add(&metrics, 0x12, card->bytes_read, UINT64_MAX, 1024);
	add(&metrics, 0x13, card->bytes_written, UINT64_MAX, 1024);
	add(&metrics, 0x14, card->pcie_rx_bytes, UINT64_MAX, 1024);
	add(&metrics, 0x15, card->pcie_tx_bytes, UINT64_MAX, 1024);
	add(&metrics, 0x16, card->rdma_read, UINT64_MAX, 1024);
	add(&metrics, 0x17, card->rdma_written, UINT64_MAX, 1024);
	return metrics;
}

static struct metrics runtime_metrics(const spyre_telemetry_card *card)
{
	struct metrics metrics = { .count = 0 };

	add(&metrics, 0x81, card->memory_used, UINT64_MAX, 1 << 20);
	add(&metrics, 0x82, card->memory_peak, UINT64_MAX, 1 << 20);
	return metrics;
}

/* Appends a section to the image of @used bytes, and returns its size. */
static uint32_t put_section(char *image, size_t used, struct section section,
			    const struct metrics *metrics)
{
	const size_t metric_bytes = metrics->count * sizeof(metrics->metric[0]);
	const size_t value_bytes = metrics->count * sizeof(metrics->value[0]);

	section.size = (uint32_t)(sizeof(section) + metric_bytes + value_bytes);
	section.num_metrics = metrics->count;
	memcpy(image + used, &section, sizeof(section));
	memcpy(image + used + sizeof(section), metrics->metric, metric_bytes);
	memcpy(image + used + sizeof(section) + metric_bytes, metrics->value, value_bytes);
	return section.size;
}

static size_t make_image(char *image, const spyre_telemetry_card *card, uint32_t seqnum)
{
	struct metrics metrics[SECTIONS] = { perf_metrics(card), runtime_metrics(card) };
	struct header header = {
		.magic = { '!', 'i', 'u', 'M' }, .version = { 1, 0, 0, 1 },
		.num_sections = SECTIONS, .section = { { .id = PERF }, { .id = RUNTIME } },
	};
	size_t used = sizeof(header);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	header.timestamp_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	for (int i = 0; i < SECTIONS; i++) {
		const struct section section = {
			.id = header.section[i].id, .seqnum = seqnum,
			.timestamp_ms = header.timestamp_ms,
			.interval_ms = SPYRE_METRICS_INTERVAL_MS,
		};

		header.section[i].size = put_section(image, used, section, &metrics[i]);
		used += header.section[i].size;
	}
	header.size = (uint32_t)used;
	memcpy(image, &header, sizeof(header));
	return used;
}

static bool make_path(const char *pattern, const char *bus_id, char *path, size_t size)
{
	const char *mark = strstr(pattern, "%BUSID");
	int length;

	if (mark)
		length = snprintf(path, size, "%.*s%s%s", (int)(mark - pattern), pattern, bus_id,
				  mark + strlen("%BUSID"));
	else
		length = snprintf(path, size, "%s", pattern);
	return length > 0 && (size_t)length < size;
}

/* Locks the file: two processes that have a card of the same name would mix their values. */
static int prepare(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno;
	/* Allocated now: a full disk fails here, and not in the middle of an update. */
	return spyre_beyond_file_limit(FILE_BYTES) ? EFBIG : posix_fallocate(fd, 0, FILE_BYTES);
}

void spyre_metrics_file_open(struct spyre_metrics_file *file, const char *pattern,
			     const char *bus_id)
{
	char path[4096];
	int error;

	file->seqnum = 0;
	file->fd = -1;
	if (!make_path(pattern, bus_id, path, sizeof(path))) {
		spyre_log(SPYRE_LOG_WARN, "SPYRE_METRICS: the path is longer than %zu bytes",
			  sizeof(path) - 1);
		return;
	}
	/* O_NONBLOCK, because opening a fifo would block. */
	file->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	error = file->fd < 0 ? errno : prepare(file->fd);
	if (!error)
		return;
	spyre_log(SPYRE_LOG_WARN, "SPYRE_METRICS: cannot write \"%s\": %s; it has no metrics", path,
		  error == EWOULDBLOCK ? "another process writes it" : strerror(error));
	spyre_metrics_file_close(file);
}

void spyre_metrics_file_update(struct spyre_metrics_file *file, const spyre_telemetry_card *card)
{
	char image[FILE_BYTES];
	size_t size;

	if (file->fd < 0)
		return;
	size = make_image(image, card, file->seqnum + 1);
	errno = EFBIG;
	/* Readers wait while the first byte is '!': it is the first to change and the last. */
	if (!spyre_beyond_file_limit((off_t)size) && pwrite(file->fd, image, 1, 0) == 1 &&
	    pwrite(file->fd, image + 1, size - 1, 1) == (ssize_t)size - 1 &&
	    !ftruncate(file->fd, (off_t)size) && pwrite(file->fd, "A", 1, 0) == 1) {
		file->seqnum++;
		return;
	}
	spyre_log(SPYRE_LOG_WARN, "SPYRE_METRICS: cannot update the metrics of %s: %s",
		  card->properties.bus_id, strerror(errno));
	spyre_metrics_file_close(file);
}

void spyre_metrics_file_close(struct spyre_metrics_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
