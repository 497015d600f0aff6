/* SPDX-License-Identifier: MIT */
/*
 * SPYRE_TRACE: a file with what this process did on the cards, for programs without a
 * profiler (docs/tracing.md), and traces in memory (trace_memory.c). Internal.
 *
 * The locks of traces are leaves: streams report with theirs held.
 */
#ifndef SPYRE_RUNTIME_TRACE_H
#define SPYRE_RUNTIME_TRACE_H

#include <spyre/trace.h>

#include "libspyre/backend/futex.h"
#include "libspyre/runtime/context.h"

/* Rows of cards are processes of the trace, with numbers that no process has. */
#define TRACE_CARD_PID 10000000u
#define TRACE_MODEL_PID 20000000u

extern _Atomic bool spyre_trace_active;
/* SPYRE_TRACE_LEVEL=cores: the trace has the modelled time of cores. Set once, at the start. */
extern bool spyre_trace_cores;
/* Number of open traces in memory, and whether kernels keep the time of cores for them. */
extern _Atomic uint32_t spyre_traces_open;
extern _Atomic bool spyre_trace_kept;

/* True while a trace is written. Inline, as it is the only cost without one. */
static inline bool spyre_trace_on(void)
{
	return __builtin_expect(atomic_load_explicit(&spyre_trace_active, memory_order_relaxed),
				false);
}

static inline bool spyre_traces_on(void)
{
	return __builtin_expect(atomic_load_explicit(&spyre_traces_open, memory_order_relaxed) != 0,
				false);
}

/* True if kernels are to keep the time of their cores. */
static inline bool spyre_trace_cores_on(void)
{
	return (spyre_trace_on() && spyre_trace_cores) ||
	       atomic_load_explicit(&spyre_trace_kept, memory_order_relaxed);
}

/* Opens the file that SPYRE_TRACE names, once per process. Failures are reported, not returned. */
void spyre_trace_start(void);
/* Names the rows of a card and of a stream; remembers the context until it is removed. */
void spyre_trace_context(struct spyre_context *context);
void spyre_trace_context_gone(struct spyre_context *context);
void spyre_trace_stream(const struct spyre_stream *stream);

/*
 * Adds a finished operation, with the call that queued it. @timeline is that of its kernel, or
 * NULL.
 */
void spyre_trace_activity(const spyre_activity *activity, const struct timeline *timeline);
/* The same for all traces in memory. */
void spyre_traces_activity(const spyre_activity *activity, const struct timeline *timeline);

/* A collective of a rank, from its first step to its last one. */
struct trace_collective {
	const char *name;
	const char *group;		/* the communicator's name */
	uint32_t group_id;		/* equal on all ranks of the communicator */
	uint64_t sequence;		/* place among its collectives, UINT64_MAX: none */
	uint32_t rank, ranks;
	uint64_t bytes_sent, bytes_received;
	uint64_t start_ns;
	bool failed;
};
void spyre_trace_collective(const struct spyre_stream *stream, const struct trace_collective *c);

void spyre_trace_memory_add(const struct spyre_context *context, uint64_t bytes);
void spyre_traces_memory(const struct spyre_context *context, uint64_t bytes, uint64_t now_ns);

/* Adds the bytes that allocations of the context occupy, after a change. */
static inline void spyre_trace_memory(const struct spyre_context *context, uint64_t bytes)
{
	if (spyre_trace_on() || spyre_traces_on())
		spyre_trace_memory_add(context, bytes);
}

/* A call that blocks or is slow, as a span on its thread's row. */
struct trace_call {
	const char *name;
	uint64_t start_ns;		/* 0 without a trace */
};

static inline struct trace_call trace_call_begin(const char *name)
{
	return (struct trace_call){ name, spyre_trace_on() ? spyre_now_ns() : 0 };
}

void spyre_trace_call_add(const struct trace_call *call);

static inline void trace_call_end(struct trace_call *call)
{
	if (__builtin_expect(call->start_ns != 0, 0))
		spyre_trace_call_add(call);
}

/* Traces the rest of the function under its public name. */
#define SPYRE_TRACE_CALL(name)                                                        \
	struct trace_call trace_call __attribute__((cleanup(trace_call_end), unused)) = \
		trace_call_begin(name)

#endif /* SPYRE_RUNTIME_TRACE_H */
