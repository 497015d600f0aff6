// SPDX-License-Identifier: MIT
/* Files of trace events: see trace_file.h. */
#define _GNU_SOURCE
#include "libspyre/runtime/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/file_limit.h"

static const char tail[] = "\n]}\n";

static void put_bytes(struct trace_text *to, const char *bytes, size_t n)
{
	if (n > sizeof(to->text) - to->used)
		n = sizeof(to->text) - to->used;
	memcpy(to->text + to->used, bytes, n);
	to->used += n;
}

void trace_put(struct trace_text *to, const char *json)
{
	put_bytes(to, json, strlen(json));
}

void trace_put_u64(struct trace_text *to, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put_bytes(to, digits + at, sizeof(digits) - at);
}

void trace_put_us(struct trace_text *to, uint64_t ns)
{
	const char rest[4] = { '.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
			       (char)('0' + ns % 10) };

	trace_put_u64(to, ns / 1000);
	put_bytes(to, rest, sizeof(rest));
}

/* Length of the UTF-8 sequence at @s, 0 if it is none. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 :
		   s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Surrogates, numbers beyond the last one, and longer forms than necessary. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

void trace_put_string(struct trace_text *to, const char *bytes)
{
	const unsigned char *s = (const unsigned char *)bytes;
	char escaped[8];

	put_bytes(to, "\"", 1);
	while (*s) {
		size_t n = utf8_length(s);

		if (*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7f) {
			snprintf(escaped, sizeof(escaped), "\\u%04x", *s++);
			trace_put(to, escaped);
		} else if (!n) {
			put_bytes(to, "?", 1);
			s++;
		} else {
			put_bytes(to, (const char *)s, n);
			s += n;
		}
	}
	put_bytes(to, "\"", 1);
}

void trace_put_field(struct trace_text *to, const char *name, uint64_t value)
{
	put_bytes(to, ",\"", 2);
	trace_put(to, name);
	put_bytes(to, "\":", 2);
	trace_put_u64(to, value);
}

/* Writes all bytes at @at; the number of those written, with errno if they are not all. */
static size_t write_at(int fd, const char *bytes, size_t n, off_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t one = pwrite(fd, bytes + done, n - done, at + (off_t)done);

		if (one < 0 && errno == EINTR)
			continue;
		if (one <= 0) {
			if (!one)
				errno = ENOSPC;
			break;
		}
		done += (size_t)one;
	}
	return done;
}

/* Ends the file where its last complete write ended: the disk has these blocks. */
static int give_up(struct trace_file *file, int err, char *why, size_t bytes)
{
	const off_t end = file->end + (off_t)sizeof(tail) - 1;

	file->failed = true;
	file->used = 0;
	if (write_at(file->fd, tail, sizeof(tail) - 1, file->end) != sizeof(tail) - 1 ||
	    ftruncate(file->fd, end))
		snprintf(why, bytes, "%s after %lld bytes; the file may end within an event",
			 strerror(err), (long long)file->end);
	else
		snprintf(why, bytes, "%s after %lld bytes; it holds the events up to there",
			 strerror(err), (long long)file->end);
	return -1;
}

int trace_file_flush(struct trace_file *file, char *why, size_t bytes)
{
	const size_t all = file->used + sizeof(tail) - 1;
	int err = EFBIG;

	if (file->failed || !file->used)
		return 0;
	/* trace_file_add() keeps the space for it. */
	memcpy(file->buffer + file->used, tail, sizeof(tail) - 1);
	errno = 0;
	if (spyre_beyond_file_limit(file->end + (off_t)all))
		return give_up(file, err, why, bytes);
	if (write_at(file->fd, file->buffer, all, file->end) != all) {
		err = errno;
		return give_up(file, err, why, bytes);
	}
	file->end += (off_t)file->used;
	file->used = 0;
	return 0;
}

int trace_file_add(struct trace_file *file, const struct trace_text *event, char *why,
		   size_t bytes)
{
	const size_t need = event->used + 2;

	if (file->failed)
		return 0;
	if (file->used + need > sizeof(file->buffer) - sizeof(tail) &&
	    trace_file_flush(file, why, bytes))
		return -1;
	memcpy(file->buffer + file->used, ",\n", 2);
	memcpy(file->buffer + file->used + 2, event->text, event->used);
	file->used += need;
	return 0;
}

int trace_file_open(struct trace_file *file, const char *path, const struct trace_text *head,
		    char *why, size_t bytes)
{
	struct stat st;

	file->failed = false;
	file->end = 0;
	/* The file is truncated only after it is locked, and opening a FIFO does not block. */
	file->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
	if (file->fd < 0) {
		snprintf(why, bytes, "%s", strerror(errno));
		return -1;
	}
	if (fstat(file->fd, &st) || !S_ISREG(st.st_mode)) {
		snprintf(why, bytes, "it is not a regular file");
		goto err_close;
	}
	if (flock(file->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		snprintf(why, bytes, "another process writes it; put %%p, the process, or %%r, the "
			 "rank, into its name");
		goto err_close;
	}
	if (ftruncate(file->fd, 0)) {
		snprintf(why, bytes, "%s", strerror(errno));
		goto err_close;
	}
	memcpy(file->buffer, head->text, head->used);
	file->used = head->used;
	if (!trace_file_flush(file, why, bytes))
		return 0;

err_close:
	close(file->fd);
	file->fd = -1;
	return -1;
}
