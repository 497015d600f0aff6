/* SPDX-License-Identifier: MIT */
/*
 * Traces in memory, for profilers: the curves of the cards and the modelled time of their
 * cores, as SPYRE_TRACE writes them to a file (docs/tracing.md). The operations
 * themselves are activity records.
 */
#ifndef SPYRE_TRACE_H
#define SPYRE_TRACE_H

#include <spyre/activity.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kind of an event (append only). Since 0.1. */
typedef enum spyre_trace_kind {
	/** Names the modelled time of a card, which has rows of its own. */
	SPYRE_TRACE_PROCESS = 1,
	/** Names a row of the modelled time of a card. */
	SPYRE_TRACE_ROW = 2,
	/** A piece of work of a row, from start_ns to end_ns. */
	SPYRE_TRACE_SPAN = 3,
	/** A value of the curve with this name, which holds from start_ns on. */
	SPYRE_TRACE_COUNTER = 4,
} spyre_trace_kind;

/** A number that belongs to a span. Since 0.1. */
typedef struct spyre_trace_argument {
	const char *name;
	uint64_t value;
} spyre_trace_argument;

/** An event of a trace; its pointers are valid during the call that gets it. Since 0.1. */
typedef struct spyre_trace_event {
	/** sizeof(struct spyre_trace_event) of the library. */
	size_t struct_size;
	spyre_trace_kind kind;
	/** Index of the card. */
	int device;
	/** 1 if the times are modelled cycles as time since the trace was opened. */
	uint32_t modelled;
	/** Number of the row in the modelled time of the card. */
	uint32_t row;
	const char *name;
	/** Of a span: "launch", "dma", "phase", "lpddr", "core" or "engine". */
	const char *category;
	/** Name of the engine, or NULL. */
	const char *engine;
	/** In nanoseconds of CLOCK_MONOTONIC. */
	uint64_t start_ns;
	uint64_t end_ns;
	/** Value of a counter, in hundredths. */
	uint64_t hundredths;
	/** The operation that the event is a part of, or NULL. */
	const spyre_activity *activity;
	const spyre_trace_argument *arguments;
	uint32_t num_arguments;
} spyre_trace_event;

/** Gets an event. It may call the library. Since 0.1. */
typedef void (*spyre_trace_fn)(void *data, const spyre_trace_event *event);

/** A trace in memory. */
typedef struct spyre_trace spyre_trace;

/**
 * Makes kernels that are loaded from now on keep the modelled time of their cores, until the
 * process ends: loading takes longer, and bundles are compiled instead of being taken from their
 * cache. Launches of other kernels have no phases and no cores in traces. Always returns SUCCESS.
 * Since 0.1.
 */
SPYRE_API spyre_status spyre_trace_keep_cores(void);

/**
 * Opens a trace that records the operations and the allocations of all contexts of this process,
 * with the time of cores if spyre_trace_keep_cores() was called before. Any number may be open. A
 * trace holds up to @limit operations and allocations, or 1,048,576 if @limit is 0, about 350
 * bytes each, and counts those that it had to drop. The caller closes it with spyre_trace_close().
 * Since 0.1.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
SPYRE_API spyre_status spyre_trace_open(uint32_t limit, spyre_trace **trace);

/**
 * Stops recording; what was recorded remains. @dropped, which may be NULL, returns the number of
 * operations and allocations that the trace had to drop. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_trace_stop(spyre_trace *trace, uint64_t *dropped);

/**
 * Calls @fn with @data and each event of the recorded operations, in no particular order.
 * Can be called again. Operations whose result the library has not read are missing: synchronise
 * before. Since 0.1.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
SPYRE_API spyre_status spyre_trace_events(spyre_trace *trace, spyre_trace_fn fn, void *data);

/**
 * Closes a trace and frees its records. NULL is allowed and has no effect. Always returns
 * SUCCESS. Since 0.1.
 */
SPYRE_API spyre_status spyre_trace_close(spyre_trace *trace);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_TRACE_H */
