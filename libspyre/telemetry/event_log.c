// SPDX-License-Identifier: MIT
/* Appends events of this process to the log of its user, and reads the lines of such logs. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <yyjson.h>

#include "libspyre/base/error.h"
#include "libspyre/base/file_limit.h"
#include "libspyre/base/log.h"
#include "libspyre/telemetry/event_log.h"
#include "libspyre/telemetry/page.h"
#include "libspyre/telemetry/sources.h"

/* Makes a full log the old one. The lock keeps two processes from doing so one after the other. */
static void rotate(int folder, int fd, const struct stat *full)
{
	struct stat now;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return;
	if (!fstatat(folder, SPYRE_EVENT_LOG, &now, AT_SYMLINK_NOFOLLOW) &&
	    now.st_ino == full->st_ino && now.st_dev == full->st_dev)
		(void)renameat(folder, SPYRE_EVENT_LOG, folder, SPYRE_EVENT_LOG_OLD);
	flock(fd, LOCK_UN);
}

/* Opens the log for one line. O_NONBLOCK, because opening a fifo would block. */
static int open_log(int folder)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat st;
	int fd;

	for (int tries = 0; tries < 2; tries++) {
		fd = openat(folder, SPYRE_EVENT_LOG, flags, 0600);
		if (fd < 0)
			return -1;
		if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
			close(fd);
			errno = EINVAL;
			return -1;
		}
		if (tries || st.st_size < SPYRE_EVENT_LOG_BYTES)
			break;
		rotate(folder, fd, &st);
		close(fd);
	}
	return fd;
}

static void append(const char *line, size_t length)
{
	int folder = spyre_telemetry_folder(true), fd;
	ssize_t written = -1;
	struct stat st;

	if (folder < 0)
		return;
	fd = open_log(folder);
	/* One write per line, so that lines of several processes do not mix. */
	if (fd >= 0 && !fstat(fd, &st)) {
		errno = EFBIG;
		if (!spyre_beyond_file_limit(st.st_size + (off_t)length))
			written = write(fd, line, length);
	}
	if (written != (ssize_t)length)
		spyre_log(SPYRE_LOG_WARN, "telemetry: cannot log an event: %s",
			  written < 0 ? strerror(errno) : "the disk is full");
	/* Ends a line that a full disk has cut, so that the next one is not lost with it. */
	if (written > 0 && written != (ssize_t)length)
		written = write(fd, "\n", 1);
	if (fd >= 0)
		close(fd);
	close(folder);
}

static char *line_of(const spyre_telemetry_event *event, size_t *length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "time_ns", event->time_ns);
	yyjson_mut_obj_add_uint(doc, root, "kind", event->kind);
	yyjson_mut_obj_add_uint(doc, root, "fault", event->fault);
	yyjson_mut_obj_add_uint(doc, root, "value", event->value);
	yyjson_mut_obj_add_int(doc, root, "host_pid", event->host_pid);
	yyjson_mut_obj_add_int(doc, root, "pid", event->pid);
	yyjson_mut_obj_add_str(doc, root, "bus_id", event->bus_id);
	yyjson_mut_obj_add_str(doc, root, "uuid", event->uuid);
	yyjson_mut_obj_add_str(doc, root, "process", event->process);
	yyjson_mut_obj_add_str(doc, root, "record", event->record);
	text = yyjson_mut_write(doc, YYJSON_WRITE_NEWLINE_AT_END |
				YYJSON_WRITE_ALLOW_INVALID_UNICODE, length);
	yyjson_mut_doc_free(doc);
	return text;
}

static void log_event(spyre_telemetry_event *event)
{
	struct spyre_error_state state;
	struct timespec now;
	size_t length;
	char *line;

	spyre_error_save(&state);
	clock_gettime(CLOCK_REALTIME, &now);
	event->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	line = line_of(event, &length);
	if (line)
		append(line, length);
	free(line);
	spyre_error_restore(&state);
}

static void set_card(spyre_telemetry_event *event, const spyre_device_properties *properties)
{
	memcpy(event->bus_id, properties->bus_id, sizeof(event->bus_id));
	memcpy(event->uuid, properties->uuid, sizeof(event->uuid));
}

void spyre_event_log(const struct spyre_telemetry_page *page, spyre_telemetry_event_kind kind,
		     spyre_fault fault, uint64_t value)
{
	spyre_telemetry_event event = {
		.kind = kind, .fault = fault, .value = value,
		.host_pid = page->pid, .pid = page->pid,
	};

	set_card(&event, &page->properties);
	memcpy(event.process, page->process, sizeof(event.process));
	log_event(&event);
}

void spyre_event_log_ras(const spyre_device_properties *properties, uint32_t code,
			 const char *record)
{
	spyre_telemetry_event event = {
		.kind = SPYRE_TELEMETRY_RAS, .value = code, .pid = getpid(),
	};

	if (properties) {
		set_card(&event, properties);
		if (properties->backend == SPYRE_BACKEND_EMBEDDED)
			event.host_pid = event.pid;
	}
	snprintf(event.process, sizeof(event.process), "%s", program_invocation_short_name);
	/* A record that does not fit is left out, since half of it is not JSON. */
	if (strlen(record) < sizeof(event.record))
		memcpy(event.record, record, strlen(record) + 1);
	log_event(&event);
}

static bool get_uint(yyjson_val *root, const char *key, uint64_t limit, uint64_t *value)
{
	yyjson_val *found = yyjson_obj_get(root, key);

	*value = yyjson_get_uint(found);
	return yyjson_is_uint(found) && *value <= limit;
}

/* Copies a text; one that does not fit, or has a NUL in it, is "". */
static bool get_text(yyjson_val *root, const char *key, char *text, size_t size)
{
	yyjson_val *found = yyjson_obj_get(root, key);
	size_t length = yyjson_get_len(found);

	if (!yyjson_is_str(found))
		return false;
	if (length < size && !memchr(yyjson_get_str(found), '\0', length))
		memcpy(text, yyjson_get_str(found), length);
	spyre_telemetry_clean(text, size);
	return true;
}

static bool take_fields(yyjson_val *root, spyre_telemetry_event *event)
{
	uint64_t kind, fault, host, pid;

	if (!get_uint(root, "time_ns", UINT64_MAX, &event->time_ns) ||
	    !get_uint(root, "kind", SPYRE_TELEMETRY_RAS, &kind) || !kind ||
	    !get_uint(root, "fault", SPYRE_FAULT_COMPUTE, &fault) ||
	    !get_uint(root, "value", UINT64_MAX, &event->value) ||
	    !get_uint(root, "host_pid", INT32_MAX, &host) ||
	    !get_uint(root, "pid", INT32_MAX, &pid))
		return false;
	event->kind = (spyre_telemetry_event_kind)kind;
	event->fault = (spyre_fault)fault;
	event->host_pid = (int32_t)host;
	event->pid = (int32_t)pid;
	return get_text(root, "bus_id", event->bus_id, sizeof(event->bus_id)) &&
	       get_text(root, "uuid", event->uuid, sizeof(event->uuid)) &&
	       get_text(root, "process", event->process, sizeof(event->process)) &&
	       get_text(root, "record", event->record, sizeof(event->record));
}

bool spyre_event_parse(const char *line, size_t length, uint32_t owner,
		       spyre_telemetry_event *event)
{
	yyjson_doc *doc = yyjson_read(line, length, 0);
	bool valid;

	memset(event, 0, sizeof(*event));
	event->uid = owner;
	valid = take_fields(yyjson_doc_get_root(doc), event);
	yyjson_doc_free(doc);
	return valid;
}
