// SPDX-License-Identifier: MIT
/* The log: SPYRE_LOG=error|warn|info|debug|trace, to stderr or SPYRE_LOG_FILE. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libspyre/base/log.h"

#define LOG_LINE_BYTES 1400

static const char *const level_names[] = {
	[0] = "off",
	[SPYRE_LOG_ERROR] = "error",
	[SPYRE_LOG_WARN] = "warn",
	[SPYRE_LOG_INFO] = "info",
	[SPYRE_LOG_DEBUG] = "debug",
	[SPYRE_LOG_TRACE] = "trace",
};

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static int log_level;
static int log_fd = STDERR_FILENO;

static int level_find(const char *name)
{
	for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (!strcasecmp(name, level_names[i]))
			return i;
	return -1;
}

static void log_start(void)
{
	const char *level = secure_getenv("SPYRE_LOG");
	const char *file = secure_getenv("SPYRE_LOG_FILE");
	int found, fd = -1;

	if (!level || !*level)
		return;
	found = level_find(level);
	/* An unknown level still shows that the user wants a log. */
	log_level = found < 0 ? SPYRE_LOG_WARN : found;
	if (!log_level)
		return;
	if (file && *file)
		fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd >= 0)
		log_fd = fd;
	if (found < 0)
		dprintf(log_fd, "spyre warn: unknown SPYRE_LOG=\"%s\"; taking warn (valid: off, "
			"error, warn, info, debug, trace)\n", level);
	if (fd < 0 && file && *file)
		dprintf(log_fd, "spyre warn: SPYRE_LOG_FILE=\"%s\": %s; logging to stderr\n", file,
			strerror(errno));
}

bool spyre_log_enabled(enum spyre_log_level level)
{
	pthread_once(&log_once, log_start);
	return (int)level <= log_level;
}

/* Writes a line; @name is that of its level. */
static void write_line(const char *name, const char *format, va_list args)
{
	char line[LOG_LINE_BYTES];
	struct timespec now;
	int len, more;

	clock_gettime(CLOCK_MONOTONIC, &now);
	len = snprintf(line, sizeof(line), "spyre %lld.%06ld %d.%ld %s: ", (long long)now.tv_sec,
		       now.tv_nsec / 1000, getpid(), (long)syscall(SYS_gettid), name);
	more = vsnprintf(line + len, sizeof(line) - len - 1, format, args);
	if (more < 0)
		return;
	len += more;
	if ((size_t)len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	/* One write per line, so that lines of several threads do not mix. */
	if (write(log_fd, line, len) < 0)
		return;
}

void spyre_log(enum spyre_log_level level, const char *format, ...)
{
	va_list args;

	if (!spyre_log_enabled(level))
		return;
	va_start(args, format);
	write_line(level_names[level], format, args);
	va_end(args);
}

void spyre_log_notice(const char *format, ...)
{
	va_list args;

	pthread_once(&log_once, log_start);
	va_start(args, format);
	write_line(level_names[SPYRE_LOG_WARN], format, args);
	va_end(args);
}
