/* SPDX-License-Identifier: MIT */
/* Thread-local error texts. Internal. */
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

/* Returns from the calling function with the status of @call if that is an error. */
#define TRY(call) do { \
	spyre_status try_ = (call); \
	if (try_) \
		return try_; \
} while (0)

/*
 * Between the two, errors of the calling thread are no failure of its call:
 * they are not logged as such, and the text before stays the last one.
 */
#define SPYRE_ERROR_BYTES 1024
struct spyre_error_state {
	char text[SPYRE_ERROR_BYTES];
};

void spyre_error_save(struct spyre_error_state *state);
void spyre_error_restore(const struct spyre_error_state *state);
/* Ends this without a return to the text before. */
void spyre_error_end(void);

#endif /* SPYRE_ERROR_H */
