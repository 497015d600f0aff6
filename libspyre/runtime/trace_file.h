/* SPDX-License-Identifier: MIT */
/*
 * A file of trace events in the JSON form of Chrome and Perfetto, written as the events
 * come. Each write ends with the brackets that close the document and the next one
 * overwrites them, so the file is complete after every write. Internal.
 */
#ifndef SPYRE_RUNTIME_TRACE_FILE_H
#define SPYRE_RUNTIME_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Longest event; a name of 128 bytes may need six times as many. */
#define TRACE_EVENT_BYTES 2048u
#define TRACE_BUFFER_BYTES (128u << 10)

struct trace_file {
	int fd;
	bool failed;
	off_t end;			/* where the next write begins */
	size_t used;
	char buffer[TRACE_BUFFER_BYTES];
};

/* The text of one event. What does not fit into it is an error of the caller. */
struct trace_text {
	size_t used;
	char text[TRACE_EVENT_BYTES];
};

/* Adds text that is JSON already. */
void trace_put(struct trace_text *to, const char *json);
/* Adds a number, and a time in microseconds from one in nanoseconds. */
void trace_put_u64(struct trace_text *to, uint64_t value);
void trace_put_us(struct trace_text *to, uint64_t ns);
/* Adds any bytes as a JSON string; those that are not UTF-8 become "?". */
void trace_put_string(struct trace_text *to, const char *bytes);
/* Adds ,"name":value. */
void trace_put_field(struct trace_text *to, const char *name, uint64_t value);

/*
 * Opens @path and writes @head, which ends inside the array of events and holds the first
 * one. Returns 0, or -1 with the reason in @why: the file cannot be opened, is not a regular
 * file, or another process writes it.
 */
int trace_file_open(struct trace_file *file, const char *path, const struct trace_text *head,
		    char *why, size_t bytes);
/* Adds an event. Returns 0, or -1 with @why at the first failed write; later ones do nothing. */
int trace_file_add(struct trace_file *file, const struct trace_text *event, char *why,
		   size_t bytes);
/* Writes what is buffered, with the same results. */
int trace_file_flush(struct trace_file *file, char *why, size_t bytes);

#endif /* SPYRE_RUNTIME_TRACE_FILE_H */
