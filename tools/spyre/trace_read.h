/* SPDX-License-Identifier: MIT */
/* Reads trace files of libspyre; a file may have any content. */
#ifndef SPYRE_TOOL_TRACE_READ_H
#define SPYRE_TOOL_TRACE_READ_H

#include <stdio.h>

#include <yyjson.h>

#include "spyre.h"

/* Reading takes about ten times as much memory. */
#define TRACE_MAX_BYTES (256u << 20)
/* Larger numbers count as this one: a year of cycles, and more bytes than links move. */
#define TRACE_MAX_NUMBER (1ull << 56)
/* Times in microseconds are below it: 300 years. */
#define TRACE_MAX_US 1e16

enum trace_kind {
	TRACE_KERNEL,
	TRACE_COPY,
	TRACE_FILL,
	TRACE_PEER_COPY,
	TRACE_COLLECTIVE,
	TRACE_RUNTIME,
	/* Modelled time, if the trace has that of cores: a launch, its phases, their cores. */
	TRACE_LAUNCH,
	TRACE_PHASE,
	TRACE_CORE,
	TRACE_ENGINE,
	TRACE_KINDS,
	TRACE_FIRST_MODELLED = TRACE_LAUNCH,
};

/* An event with a duration. The name belongs to the file's document. */
struct trace_event {
	enum trace_kind kind;
	const char *name;
	uint64_t pid, tid;
	double start_us, duration_us;
	uint64_t cycles, bytes_read, bytes_written, macs, rdma_read, rdma_written;
	/* Bytes of a collective. */
	uint64_t bytes_sent, bytes_received, group, sequence;
	bool has_sequence;
	/* Modelled time. The name of the engine belongs to the document; NULL if there is none. */
	const char *engine;
	uint64_t start_cycle, core, cores, core_cycles, lpddr_cycles, barrier_cycles;
	uint64_t lx_bytes, lx_bytes_read, lx_bytes_written, card_cores;
};

struct trace {
	yyjson_doc *doc;
	yyjson_val *events;		/* all, as the file has them */
	yyjson_val *other;		/* otherData */
	uint64_t clock_hz;
	struct trace_event *event;
	size_t count;
	double start_us, end_us;
	uint64_t unfinished;
};

/* The events of one kind and name. */
struct trace_sum {
	enum trace_kind kind;
	const char *name;
	uint64_t count, cycles, bytes_read, bytes_written, macs, rdma;
	double duration_us;
};

/*
 * Reads @path. Returns 0, or -1 with @why: the file cannot be read, is too large, is not
 * JSON (truncated, for example), has no events or is not a trace of libspyre.
 */
int trace_read(const char *path, struct trace *trace, struct text *why);
void trace_close(struct trace *trace);

/*
 * Adds up the events of work and calls by kind and name, those with the most cycles first, then
 * those with the longest durations. Returns an array that the caller frees; NULL if out of
 * memory.
 */
struct trace_sum *trace_sums(const struct trace *trace, size_t *count);

const char *trace_kind_name(enum trace_kind kind);

/* Adds to a sum, which stops at the largest number, so that those of a hostile file do not wrap. */
void trace_add(uint64_t *sum, uint64_t more);

/*
 * Prints a name from a file in @width columns, or in as many as it has if @width is -1, with "?"
 * for bytes that could control a terminal.
 */
void trace_print_name(FILE *out, const char *name, int width);

/* Prints how often and how long each kind of work ran. */
void trace_print_summary(const struct trace *trace, const struct trace_sum *sums, size_t count);

#endif /* SPYRE_TOOL_TRACE_READ_H */
