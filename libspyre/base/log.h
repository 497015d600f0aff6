/* SPDX-License-Identifier: MIT */
/* The log: SPYRE_LOG=level, to stderr or SPYRE_LOG_FILE; off by default. Internal. */
#ifndef SPYRE_LOG_H
#define SPYRE_LOG_H

#include <stdbool.h>

enum spyre_log_level {
	SPYRE_LOG_ERROR = 1,
	SPYRE_LOG_WARN,
	SPYRE_LOG_INFO,
	SPYRE_LOG_DEBUG,
	SPYRE_LOG_TRACE,
};

/*
 * Logs at any level: for a feature that the user has asked for by a variable and that cannot
 * work, which no call can return as its error.
 */
void spyre_log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool spyre_log_enabled(enum spyre_log_level level);
void spyre_log(enum spyre_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* SPYRE_LOG_H */
