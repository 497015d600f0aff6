/* SPDX-License-Identifier: MIT */
/*
 * Activity records: what ran on the cards, when, and for whom. For profilers.
 *
 * A log takes a record of each operation that is queued while it is open. A
 * record is made when the library has read the operation's result, which the
 * next call on its stream does, or a wait for it: synchronize before the last
 * read. Without a log nothing is recorded and nothing is paid.
 */
#ifndef SPYRE_ACTIVITY_H
#define SPYRE_ACTIVITY_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an operation did (append only). Since 0.1. */
typedef enum spyre_activity_kind {
	SPYRE_ACTIVITY_LAUNCH = 1,
	SPYRE_ACTIVITY_COPY_H2D = 2,
	SPYRE_ACTIVITY_COPY_D2H = 3,
	SPYRE_ACTIVITY_COPY_D2D = 4,
	SPYRE_ACTIVITY_FILL = 5,
} spyre_activity_kind;

/** An operation that has run. Since 0.1. */
typedef struct spyre_activity {
	/** sizeof(struct spyre_activity) of the library. */
	size_t struct_size;
	spyre_activity_kind kind;
	/** Index of the card, and id of the stream. */
	int device;
	int stream;
	/** Of that stream, counted from 1. */
	uint64_t operation;
	/** What spyre_activity_correlate() said on the thread that queued it. */
	uint64_t correlation;
	/** First command's start and last one's end, CLOCK_MONOTONIC. */
	uint64_t start_ns;
	uint64_t end_ns;
	/** Modelled. */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
	/** The kernel's name, or "copy to the device" and so on; cut to fit. */
	char name[128];
} spyre_activity;

/** Records of operations, as they finish. */
typedef struct spyre_activity_log spyre_activity_log;

/**
 * Opens a log of all contexts of this process. Any number may be open. It
 * keeps up to @limit records that have not been read, 0 for 1,048,576, and
 * counts what comes beyond. Since 0.1.
 */
SPYRE_API spyre_status spyre_activity_open(uint32_t limit, spyre_activity_log **log);

/**
 * Takes the oldest records out of @log: at most @capacity entries of @stride
 * bytes (sizeof(spyre_activity)) to @records, their number to @count. @dropped,
 * which may be NULL, becomes how many were lost so far. Since 0.1.
 */
SPYRE_API spyre_status spyre_activity_read(spyre_activity_log *log, spyre_activity *records,
					   size_t stride, uint32_t capacity, uint32_t *count,
					   uint64_t *dropped);

/** Ends a log and its records. NULL is fine. Since 0.1. */
SPYRE_API spyre_status spyre_activity_close(spyre_activity_log *log);

/** Operations that this thread queues from now on carry @id. The one before. Since 0.1. */
SPYRE_API uint64_t spyre_activity_correlate(uint64_t id);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_ACTIVITY_H */
