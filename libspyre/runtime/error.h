/* SPDX-License-Identifier: MIT */
/* Thread-local error texts and the log. Internal. */
#ifndef SPYRE_ERROR_H
#define SPYRE_ERROR_H

#include <spyre/types.h>

/*
 * Leaves a text for spyre_last_error(), logs it at level "error" and returns
 * @status, so that failing paths read "return spyre_error(…)". Texts say what,
 * where, the numbers and what to do.
 */
spyre_status spyre_error(spyre_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Puts "prefix: " in front of the current text (bundle file names, …). */
spyre_status spyre_error_prefix(spyre_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

enum spyre_log_level {
	SPYRE_LOG_ERROR = 1,
	SPYRE_LOG_WARN,
	SPYRE_LOG_INFO,
	SPYRE_LOG_DEBUG,
	SPYRE_LOG_TRACE,
};

/* SPYRE_LOG=level, to stderr or SPYRE_LOG_FILE; off by default. */
bool spyre_log_enabled(enum spyre_log_level level);
void spyre_log(enum spyre_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* SPYRE_ERROR_H */
