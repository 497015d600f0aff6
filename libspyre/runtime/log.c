/* SPDX-License-Identifier: MIT */
/* The log: SPYRE_LOG=error|warn|info|debug|trace, to stderr or SPYRE_LOG_FILE. */
#define _GNU_SOURCE
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

#include "libspyre/runtime/error.h"

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

static void log_start(void)
{
	const char *level = secure_getenv("SPYRE_LOG");
	const char *file = secure_getenv("SPYRE_LOG_FILE");
	int fd;

	if (!level || !*level)
		return;
	/* SPYRE_LOG is set, so the user wants to read something. */
	log_level = SPYRE_LOG_WARN;
	for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (!strcasecmp(level, level_names[i]))
			log_level = i;
	if (!log_level || !file || !*file)
		return;
	fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd >= 0)
		log_fd = fd;
}

bool spyre_log_enabled(enum spyre_log_level level)
{
	pthread_once(&log_once, log_start);
	return (int)level <= log_level;
}

void spyre_log(enum spyre_log_level level, const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	struct timespec now;
	va_list args;
	int len, more;

	if (!spyre_log_enabled(level))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	len = snprintf(line, sizeof(line), "spyre %lld.%06ld %d.%ld %s: ", (long long)now.tv_sec,
		       now.tv_nsec / 1000, getpid(), (long)syscall(SYS_gettid), level_names[level]);
	va_start(args, format);
	more = vsnprintf(line + len, sizeof(line) - len - 1, format, args);
	va_end(args);
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
