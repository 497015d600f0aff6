// SPDX-License-Identifier: MIT
/*
 * Follows the event logs of users. Any process of a user can write any bytes there, cut or
 * replace the file, and root reads the files of all users: a line that is not an event is
 * skipped, of a log that is longer than libspyre makes them only the end is read, and each user's
 * log adds at most a part of a list at a time and takes a bounded number of bytes.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/telemetry/event_source.h"
#include "libspyre/telemetry/sources.h"

/* A log is full with half of this; it can be longer by a line for each process that writes it. */
#define MAX_UNREAD (2 * SPYRE_EVENT_LOG_BYTES)
/* Read of a user's logs in one look: the old log and the current one, each at its longest. */
#define MAX_READ (2 * MAX_UNREAD)

/* Opens a log of @owner in @folder, -1 if there is none that can be trusted. */
static int open_file(int folder, const char *name, uint32_t owner, struct stat *st)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && (fstat(fd, st) || !S_ISREG(st->st_mode) || st->st_uid != owner)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Skips all but the end of a log in which more is unread than libspyre ever leaves there. */
static void skip_excess(struct spyre_event_file *file)
{
	const off_t at = lseek(file->fd, 0, SEEK_CUR);
	struct stat st;

	if (fstat(file->fd, &st) || st.st_size - at <= MAX_UNREAD)
		return;
	lseek(file->fd, st.st_size - SPYRE_EVENT_LOG_BYTES, SEEK_SET);
	file->used = 0;
	file->cut = true;
}

/* Opens the current log if it is another file than the one under way; false if it is not. */
static bool open_next(int folder, struct spyre_event_file *file)
{
	struct stat old, now;
	int fd = open_file(folder, SPYRE_EVENT_LOG, file->owner, &now);

	if (fd < 0)
		return false;
	if (file->fd >= 0 && !fstat(file->fd, &old) && old.st_ino == now.st_ino &&
	    old.st_dev == now.st_dev) {
		/* A file that was cut begins again. */
		if (lseek(file->fd, 0, SEEK_CUR) > now.st_size)
			lseek(file->fd, 0, SEEK_SET);
		close(fd);
		return false;
	}
	if (file->fd >= 0)
		close(file->fd);
	file->fd = fd;
	file->used = 0;
	file->cut = false;
	skip_excess(file);
	return true;
}

static void start(int folder, struct spyre_event_file *file, bool kept)
{
	struct stat st;

	file->fd = open_file(folder, kept ? SPYRE_EVENT_LOG_OLD : SPYRE_EVENT_LOG, file->owner,
			     &st);
	if (file->fd >= 0 && !kept)
		lseek(file->fd, 0, SEEK_END);
}

/* Takes the whole lines of the buffer, and keeps what follows them. */
static spyre_status take_lines(struct spyre_event_file *file, struct spyre_event_list *list)
{
	char *line = file->line, *end = file->line + file->used, *newline;
	spyre_telemetry_event event, *added;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		if (!file->cut &&
		    spyre_event_parse(line, (size_t)(newline - line), file->owner, &event)) {
			added = spyre_event_add(list);
			if (!added)
				return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
			*added = event;
		}
		file->cut = false;
		line = newline + 1;
	}
	file->used = (size_t)(end - line);
	memmove(file->line, line, file->used);
	if (file->used == sizeof(file->line)) {
		file->cut = true;
		file->used = 0;
	}
	return SPYRE_SUCCESS;
}

static spyre_status read_file(int folder, struct spyre_event_file *file,
			      struct spyre_event_list *list)
{
	/* Leaves space for the users that follow. */
	const size_t left = list->count < SPYRE_EVENTS_PENDING ?
			    SPYRE_EVENTS_PENDING - list->count : 0;
	const size_t limit = list->count + left / 2;
	size_t bytes = 0;
	int opened = 0;
	ssize_t got;

	if (file->fd >= 0)
		skip_excess(file);
	while (list->count < limit) {
		if (bytes > MAX_READ)
			return SPYRE_SUCCESS;
		got = file->fd < 0 ? 0 : read(file->fd, file->line + file->used,
					      sizeof(file->line) - file->used);
		if (got < 0)
			return SPYRE_SUCCESS;
		/* There is one log to follow the old one; a user may replace it without an end. */
		if (!got && (opened++ == 2 || !open_next(folder, file)))
			return SPYRE_SUCCESS;
		bytes += (size_t)got;
		file->used += (size_t)got;
		TRY(take_lines(file, list));
	}
	list->more = true;
	return SPYRE_SUCCESS;
}

static struct spyre_event_file *find(struct spyre_event_files *files, uint32_t owner)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->file[i]->owner == owner)
			return files->file[i];
	return NULL;
}

static struct spyre_event_file *add(struct spyre_event_files *files, uint32_t owner)
{
	struct spyre_event_file *file = NULL;

	if (spyre_array_reserve(&files->file, &files->capacity, files->count + 1, sizeof(file)))
		file = calloc(1, sizeof(*file));
	if (!file) {
		(void)spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				  "no host memory to follow %zu event logs", files->count + 1);
		return NULL;
	}
	file->owner = owner;
	file->fd = -1;
	files->file[files->count++] = file;
	return file;
}

struct reader {
	struct spyre_event_files *files;
	struct spyre_event_list *list;
	bool kept;
};

static spyre_status read_user(int folder, uint32_t owner, void *data)
{
	struct reader *reader = data;
	struct spyre_event_file *file = find(reader->files, owner);

	if (!file) {
		file = add(reader->files, owner);
		if (!file)
			return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
		if (!reader->files->started)
			start(folder, file, reader->kept);
	}
	file->present = true;
	return read_file(folder, file, reader->list);
}

/* Closes the logs of users whose folder is gone. */
static void drop_gone(struct spyre_event_files *files)
{
	size_t kept = 0;

	for (size_t i = 0; i < files->count; i++) {
		struct spyre_event_file *file = files->file[i];

		if (file->present) {
			files->file[kept++] = file;
			continue;
		}
		if (file->fd >= 0)
			close(file->fd);
		free(file);
	}
	files->count = kept;
}

spyre_status spyre_event_files_read(struct spyre_event_files *files, bool kept,
				    struct spyre_event_list *list)
{
	struct reader reader = { .files = files, .list = list, .kept = kept };
	spyre_status status;

	for (size_t i = 0; i < files->count; i++)
		files->file[i]->present = false;
	status = spyre_telemetry_visit_folders(read_user, &reader);
	if (!status)
		drop_gone(files);
	files->started = true;
	return status;
}

void spyre_event_files_close(struct spyre_event_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		files->file[i]->present = false;
	drop_gone(files);
	free(files->file);
}
