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
/* Bytes of source files that are read and searched for lines, in all: about a second's work. */
#define PROVENANCE_SEARCH_MAX (UINT64_C(1) << 30)
#define PROVENANCE_SOURCES 8

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

/* The source files read last, since the steps of a kernel stem from few of them. */
struct provenance_sources {
	struct {
		char *path;
		char *data;	/* NULL: the file cannot be read */
		uint64_t bytes;
	} file[PROVENANCE_SOURCES];
	unsigned int next;	/* is replaced next */
	uint64_t searched;	/* bytes */
	uint64_t left_out;	/* lines, because of the limit of the search */
};

/* Returns @text with '?' for control characters and what is not UTF-8; "" for NULL. */
struct printable printable(const char *text);

/* Reads a side file and checks its version; the caller frees the document. NULL with @why. */
yyjson_doc *provenance_read(const char *path, struct text *why);

/* Returns the kernel whose key is a part of @event, and its key; NULL without one. */
yyjson_val *provenance_find(yyjson_val *root, const char *event, const char **key);

/* Returns the handle of a number, NULL if there is none. */
yyjson_val *provenance_handle(yyjson_val *root, const char *number);

/* Reads where a handle comes from. @sources is zero at first, and is released at the end. */
void provenance_line(struct provenance_sources *sources, yyjson_val *handle,
		     struct provenance_line *line);
void provenance_release(struct provenance_sources *sources);

#endif /* SPYRE_TOOL_PROVENANCE_H */
