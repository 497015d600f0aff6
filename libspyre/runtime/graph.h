/* SPDX-License-Identifier: MIT */
/*
 * Graphs, while they are recorded and after. Internal.
 *
 * Lock order: launch_lock, then stream.lock, then capture_lock (a leaf).
 */
#ifndef SPYRE_RUNTIME_GRAPH_H
#define SPYRE_RUNTIME_GRAPH_H

#include <spyre/graph.h>

#include "libspyre/runtime/stream.h"

/* A recorded operation. */
struct graph_step {
	const char *what;
	struct spyre_kernel *kernel;	/* it and the variant: with a reference */
	struct kernel_variant *variant;
	spyre_activity_kind kind;
	void *staging;
	size_t staging_bytes;
	/* Host functions; no commands then. */
	spyre_host_fn fn;
	void *data;
	/* Host memory that may have to be bounced: has a submission of its own. */
	bool alone;
	uint32_t num_commands;
	struct spyre_command commands[];	/* and what they point to */
};

/* Steps that go to the card together, or one host function. */
struct graph_segment {
	struct spyre_graph *graph;
	const struct spyre_command *commands;
	uint32_t num_commands;
	const struct spyre_part *parts;
	uint32_t num_parts;
	uint32_t first_step;
};

struct spyre_graph {
	TAILQ_ENTRY(spyre_graph) link;
	struct spyre_context *context;
	_Atomic uint32_t refs;		/* the caller's; captured streams'; queued launches' */
	uint64_t number;		/* of the capture; counts those of the process, from 1 */

	/* Covers what is here until the capture has ended; constant from then on. */
	pthread_mutex_t capture_lock;
	bool ended;
	struct spyre_stream *origin;	/* in @streams */
	struct spyre_stream **streams;	/* with a reference each */
	uint32_t num_streams;
	size_t max_streams;
	struct graph_step **steps;
	uint32_t num_steps;
	size_t max_steps;
	uint64_t arena_bytes;

	/* Launches need these. */
	uint64_t arena;
	struct spyre_command *commands;
	struct spyre_part *parts;
	struct graph_segment *segments;
	uint32_t num_segments;

	/* One launch at a time, and the last one. */
	pthread_mutex_t launch_lock;
	struct spyre_stream *last_stream;	/* holds a reference */
	uint64_t last_seq;
};

/* graph.c */
struct spyre_graph *graph_ref(struct spyre_graph *graph);
/* Makes segments of the steps, and places them in memory. */
spyre_status graph_finish(struct spyre_graph *graph);

#endif /* SPYRE_RUNTIME_GRAPH_H */
