/* SPDX-License-Identifier: MIT */
/* Thread-local error texts. Internal. */
#ifndef SPYRE_ERROR_H
#define SPYRE_ERROR_H

#include <spyre/types.h>

/*
 * Leaves a text for spyre_last_error(), logs it at level "error" and returns
 * @status, so that failing paths read "return spyre_error(…)". Texts follow
 * CODING_STYLE.md: "cannot X: Y; do Z", with the numbers.
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
 * Between save and restore, errors of the calling thread are expected: they are
 * not logged as errors, and restore brings the text of before back.
 */
#define SPYRE_ERROR_BYTES 1024
struct spyre_error_state {
	char text[SPYRE_ERROR_BYTES];
};

void spyre_error_save(struct spyre_error_state *state);
void spyre_error_restore(const struct spyre_error_state *state);
/* Ends the section without restoring the text of before. */
void spyre_error_end(void);

#endif /* SPYRE_ERROR_H */
