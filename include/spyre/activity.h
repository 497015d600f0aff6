/* SPDX-License-Identifier: MIT */
/*
 * Activity records for profilers: the operations that ran on the cards, with their
 * times and correlation ids.
 *
 * A log records each operation that is queued while the log is open. The record
 * appears once the library has read the operation's result, in the next call on its
 * stream or a wait for it: synchronise before the last read. Without an open log
 * nothing is recorded and recording has no cost.
 */
#ifndef SPYRE_ACTIVITY_H
#define SPYRE_ACTIVITY_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kind of an operation (append only). Since 0.1. */
typedef enum spyre_activity_kind {
	SPYRE_ACTIVITY_LAUNCH = 1,
	SPYRE_ACTIVITY_COPY_H2D = 2,
	SPYRE_ACTIVITY_COPY_D2H = 3,
	SPYRE_ACTIVITY_COPY_D2D = 4,
	SPYRE_ACTIVITY_FILL = 5,
	/** Copy between two contexts. */
	SPYRE_ACTIVITY_COPY_PEER = 6,
} spyre_activity_kind;

/** A finished operation. Since 0.1. */
typedef struct spyre_activity {
	/** sizeof(struct spyre_activity) of the library. */
	size_t struct_size;
	spyre_activity_kind kind;
	/** Index of the card, and id of the stream. */
	int device;
	int stream;
	/** Number of the operation on its stream, counted from 1. */
	uint64_t operation;
	/** Value of spyre_activity_correlate() on the thread that queued it. */
	uint64_t correlation;
	/** Start of the first command and end of the last one, CLOCK_MONOTONIC. */
	uint64_t start_ns;
	uint64_t end_ns;
	/** Modelled cycles, bytes and multiply-accumulates. */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
	/** The kernel's name, or a name such as "copy to the device"; truncated if necessary. */
	char name[128];
	/** Bytes that came from another card, and that went to one. */
	uint64_t rdma_read;
	uint64_t rdma_written;
	/** Start and end of queueing it, CLOCK_MONOTONIC; the check of arguments is not in it. */
	uint64_t queue_start_ns;
	uint64_t queue_end_ns;
	/** The system's id of the thread that queued it (gettid()). */
	int32_t thread;
	/** 1 for an operation of a graph, which shares its number with others of the launch. */
	uint32_t in_graph;
} spyre_activity;

/** A queue of records of finished operations. */
typedef struct spyre_activity_log spyre_activity_log;

/**
 * Opens a log that records the operations of all contexts of this process. Any number
 * of logs may be open. A log holds up to @limit unread records, or 1,048,576 if @limit
 * is 0, and counts the records it had to drop. The caller closes it with
 * spyre_activity_close(). Since 0.1.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
SPYRE_API spyre_status spyre_activity_open(uint32_t limit, spyre_activity_log **log);

/**
 * Moves the oldest records out of @log: at most @capacity entries of @stride bytes
 * (sizeof(spyre_activity)) to @records, and their number to @count. @dropped, which
 * may be NULL, returns the number of records dropped so far. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_activity_read(spyre_activity_log *log, spyre_activity *records,
					   size_t stride, uint32_t capacity, uint32_t *count,
					   uint64_t *dropped);

/**
 * Closes a log and frees its records. NULL is allowed and has no effect. Always returns
 * SUCCESS. Since 0.1.
 */
SPYRE_API spyre_status spyre_activity_close(spyre_activity_log *log);

/**
 * Sets the correlation id that the calling thread's subsequent operations carry, and
 * returns the previous one. Since 0.1.
 */
SPYRE_API uint64_t spyre_activity_correlate(uint64_t id);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_ACTIVITY_H */
