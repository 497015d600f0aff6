/* SPDX-License-Identifier: MIT */
/* Events of traces, which a file (trace.c) or a reader (trace_memory.c) gets. Internal. */
#ifndef SPYRE_RUNTIME_TRACE_EVENT_H
#define SPYRE_RUNTIME_TRACE_EVENT_H

#include <spyre/trace.h>

#include "libspyre/runtime/timeline.h"
#include "libspyre/runtime/trace.h"
#include "libspyre/runtime/visible.h"

/* Where the curves and the modelled time of a trace go, and their state. */
struct trace_out {
	void (*add)(struct trace_out *out, const spyre_trace_event *event);
	uint64_t zero_ns;		/* modelled time begins here, on all cards */
	uint64_t card_cycles[SPYRE_MAX_CARDS];	/* modelled cycles of each card up to here */
	struct trace_queue *queues;
	bool cores;			/* adds spans, and the curves of phases */
};

/* trace.c */
/* Writes to the file of SPYRE_TRACE. Protected by the lock of the file. */
extern struct trace_out trace_file_out;

/* trace_counters.c */
/* Adds a value of the curve @name, in hundredths, that holds from @ns on. */
void trace_add_counter(struct trace_out *out, const char *name, int device, bool modelled,
		       uint64_t ns, uint64_t hundredths);
/* Adds the bytes that allocations of a context occupy from @ns on. */
void trace_add_memory(struct trace_out *out, int device, uint64_t ns, uint64_t bytes);
/* Adds a finished operation to the queue of its stream. */
void trace_add_queued(struct trace_out *out, const spyre_activity *activity);
/* Adds the ends of all operations, for the end of the trace. */
void trace_end_queues(struct trace_out *out);
/* Frees the state of the queues. */
void trace_free_queues(struct trace_out *out);

/* trace_cores.c */
/* Names the rows of the modelled time of a card. */
void trace_name_cores(struct trace_out *out, int device, const char *bus_id, uint32_t cores);
/* Adds the modelled time of an operation. */
void trace_add_model(struct trace_out *out, const spyre_activity *activity,
		     const struct timeline *timeline);

#endif /* SPYRE_RUNTIME_TRACE_EVENT_H */
