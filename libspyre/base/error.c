// SPDX-License-Identifier: MIT
/* The text of a thread's last failed call. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/base/log.h"

#define ERROR_TEXT_BYTES SPYRE_ERROR_BYTES

static _Thread_local char error_text[ERROR_TEXT_BYTES];
static _Thread_local unsigned int expected;	/* depth of spyre_error_save() */

const char *spyre_last_error(void)
{
	return error_text;
}

spyre_status spyre_error(spyre_status status, const char *format, ...)
{
	char text[ERROR_TEXT_BYTES];
	va_list args;

	/* An argument may be the current text, so the new one is formatted in a buffer first. */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* The text may contain names from files; control characters could steer a terminal. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	memcpy(error_text, text, sizeof(text));
	spyre_log(expected ? SPYRE_LOG_DEBUG : SPYRE_LOG_ERROR, "%s: %s", spyre_status_name(status), error_text);
	return status;
}

spyre_status spyre_error_prefix(spyre_status status, const char *format, ...)
{
	char text[ERROR_TEXT_BYTES];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len < 0)
		return status;
	/* A text that does not fit is cut at its end. */
	for (const char *c = ": "; *c && (size_t)len < sizeof(text) - 1; c++)
		text[len++] = *c;
	for (const char *c = error_text; *c && (size_t)len < sizeof(text) - 1; c++)
		text[len++] = *c;
	text[(size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1] = '\0';
	memcpy(error_text, text, sizeof(text));
	return status;
}

void spyre_error_save(struct spyre_error_state *state)
{
	memcpy(state->text, error_text, sizeof(error_text));
	expected++;
}

void spyre_error_end(void)
{
	expected--;
}

void spyre_error_restore(const struct spyre_error_state *state)
{
	expected--;
	memcpy(error_text, state->text, sizeof(error_text));
}
