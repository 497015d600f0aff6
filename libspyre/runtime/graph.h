/* SPDX-License-Identifier: MIT */
/*
 * Graphs, during and after capture. Internal.
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
	struct spyre_kernel *kernel;	/* holds a reference, as the variant does */
	struct kernel_variant *variant;
	spyre_activity_kind kind;
	void *staging;
	size_t staging_bytes;
	/* Host function, NULL if the step has commands. */
	spyre_host_fn fn;
	void *data;
	/* The host memory may have to be bounced, so the step is submitted alone. */
	bool alone;
	uint32_t num_commands;
	struct spyre_command commands[];	/* followed by their arguments */
};

/* Steps of one submission, or one host function. */
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
	_Atomic uint32_t refs;		/* of the caller, captured streams and queued launches */
	uint64_t number;		/* of the capture, counted from 1 in the process */

	/* Protects the fields below during the capture; they are constant after it. */
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

	/* Used by launches; set by graph_finish(). */
	uint64_t arena;
	struct spyre_command *commands;
	struct spyre_part *parts;
	struct graph_segment *segments;
	uint32_t num_segments;

	/* Serialises launches and protects the last one's stream and number. */
	pthread_mutex_t launch_lock;
	struct spyre_stream *last_stream;	/* holds a reference */
	uint64_t last_seq;
};

/* graph.c */
struct spyre_graph *graph_ref(struct spyre_graph *graph);
/* Divides the steps into segments and allocates the graph's memory. */
spyre_status graph_finish(struct spyre_graph *graph);

#endif /* SPYRE_RUNTIME_GRAPH_H */
