/* SPDX-License-Identifier: MIT */
/* Parts of trace.c, and what it uses of trace_counters.c and trace_cores.c. Internal. */
#ifndef SPYRE_RUNTIME_TRACE_EVENT_H
#define SPYRE_RUNTIME_TRACE_EVENT_H

#include "libspyre/runtime/timeline.h"
#include "libspyre/runtime/trace.h"
#include "libspyre/runtime/trace_file.h"

/* trace.c */
/* Adds an event. The caller holds the lock of the trace, also of the functions below. */
void trace_add(const struct trace_text *event);
/* The event that names a process. */
void trace_put_process(struct trace_text *to, uint64_t pid, const char *name);
void trace_put_place(struct trace_text *to, uint64_t pid, uint64_t tid);
void trace_put_span(struct trace_text *to, uint64_t start_ns, uint64_t end_ns);

/* trace_counters.c */
/* Adds a value of the curve @name, in hundredths, that holds from @ns on. */
void trace_add_counter(const char *name, uint64_t pid, uint64_t ns, uint64_t hundredths);
/* Adds the bytes that allocations of a context occupy from now on. */
void trace_add_memory(int device, uint64_t bytes);
/* Adds a finished operation to the queue of its stream. */
void trace_add_queued(const spyre_activity *activity);
/* Adds the ends of all operations, for the end of the trace. */
void trace_end_queues(void);

/* trace_cores.c */
/* Sets the time at which modelled time begins, on all cards. */
void trace_model_start(uint64_t now_ns);
/* Names the rows of a card's modelled time. */
void trace_name_cores(const struct spyre_context *context);
/* Adds the modelled time of an operation that call @call has queued. */
void trace_add_model(const spyre_activity *activity, const struct timeline *timeline,
		     uint64_t call);

#endif /* SPYRE_RUNTIME_TRACE_EVENT_H */
