/* SPDX-License-Identifier: MIT */
/* The side file of provenance of torch_spyre, read without trust in it. */
#ifndef SPYRE_TOOL_PROVENANCE_H
#define SPYRE_TOOL_PROVENANCE_H

#include <stdbool.h>
#include <stdint.h>

#include <yyjson.h>

#include "spyre.h"

/* Bytes of the largest side file, and of the largest file of which a line is shown. */
#define PROVENANCE_FILE_MAX (UINT64_C(256) << 20)
#define PROVENANCE_SOURCE_MAX (UINT64_C(16) << 20)

/* A text for a terminal. */
struct printable {
	char s[512];
};

/* A line of a model. */
struct provenance_line {
	const char *file;	/* NULL: unknown */
	int64_t line;
	struct printable text;	/* the line's contents, "" if the file cannot be read */
};

/* Returns @text with '?' for control characters and what is not UTF-8; "" for NULL. */
struct printable printable(const char *text);

/* Reads a side file and checks its version; the caller frees the document. NULL with @why. */
yyjson_doc *provenance_read(const char *path, struct text *why);

/* Returns the kernel whose key is a part of @event, and its key; NULL without one. */
yyjson_val *provenance_find(yyjson_val *root, const char *event, const char **key);

/* Returns the handle of a number, NULL if there is none. */
yyjson_val *provenance_handle(yyjson_val *root, const char *number);

/* Reads where a handle comes from. */
void provenance_line(yyjson_val *handle, struct provenance_line *line);

#endif /* SPYRE_TOOL_PROVENANCE_H */
