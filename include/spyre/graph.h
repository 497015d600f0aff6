/* SPDX-License-Identifier: MIT */
/*
 * Graphs: the work of a stream, recorded once and launched any number of times.
 *
 * While a stream is being captured, launches, copies, fills and host functions are
 * recorded instead of queued, with their current addresses and values. Launching
 * the graph queues all of them in order, in few submissions regardless of the
 * number of operations. (spyre_sdsc_graph in <spyre/sdsc.h> is a different object:
 * a graph of operations that is compiled to a kernel.)
 *
 *	spyre_stream_begin_capture(stream);
 *	spyre_launch(stream, kernel, args, 3);
 *	...
 *	spyre_stream_end_capture(stream, &graph);
 *	while (more)
 *		spyre_graph_launch(graph, stream);
 */
#ifndef SPYRE_GRAPH_H
#define SPYRE_GRAPH_H

#include <spyre/activity.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Recorded work. */
typedef struct spyre_graph spyre_graph;

/**
 * Starts recording on @stream: until spyre_stream_end_capture(), operations that any
 * thread queues on it are recorded instead of executed. Work that was queued before
 * runs as usual, and so does a graph whose launch is in progress on another thread.
 * Calls that wait for the stream or query its progress fail with CAPTURE and leave the
 * capture intact: spyre_stream_synchronize(), spyre_stream_query(), blocking copies on
 * it, spyre_stream_destroy(), spyre_context_synchronize(), and queries of events that
 * were recorded in the capture.
 *
 * An event recorded in the capture marks a point of the graph. Another stream that
 * waits for it joins the capture; the graph keeps the work of all streams in the order
 * of the calls. Waiting for an event recorded outside the capture fails with CAPTURE.
 *
 * Every launch of the graph uses the device memory, the host memory of asynchronous
 * copies and the host functions' data that were recorded: they must remain valid until
 * the last launch has finished, and each copy reads the host memory's contents at that
 * time. The graph keeps its kernels alive and owns the memory for their intermediates.
 *
 * spyre_context_reset() discards captures, and their streams queue work again. Since
 * 0.1.
 * Errors: CAPTURE (the stream is already being captured), and the stream's error.
 */
SPYRE_API spyre_status spyre_stream_begin_capture(spyre_stream *stream);

/**
 * Ends the capture that began on @stream, for all streams that joined it, and returns
 * its graph. The capture ends even if the call fails. The caller owns @graph and
 * destroys it with spyre_graph_destroy(). Since 0.1.
 * Errors: CAPTURE (not captured, or it joined another stream's capture), CANCELLED
 * (discarded by a reset), OUT_OF_DEVICE_MEMORY, and the stream's error.
 */
SPYRE_API spyre_status spyre_stream_end_capture(spyre_stream *stream, spyre_graph **graph);

/**
 * Returns the number of the capture that @stream is part of, unique in the process; 0
 * if it is not being captured. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_stream_get_capture(spyre_stream *stream, uint64_t *capture);

/**
 * Queues all operations of @graph on @stream, any stream of its context, and returns.
 * Launches of one graph execute one after the other, on different streams too. If only
 * some of the operations could be queued, the stream is in error. Since 0.1.
 * Errors: CAPTURE (the stream is being captured), INVALID_ADDRESS (memory of the graph
 * was freed and unmapped; allocations below 1 MiB share a mapping, and freeing one is
 * not detected), and the stream's error.
 */
SPYRE_API spyre_status spyre_graph_launch(spyre_graph *graph, spyre_stream *stream);

/**
 * Frees a graph once its launches have finished; does not block. NULL is allowed and
 * has no effect. Always returns SUCCESS. Since 0.1.
 */
SPYRE_API spyre_status spyre_graph_destroy(spyre_graph *graph);

/** Contents of a graph. Since 0.1. */
typedef struct spyre_graph_info {
	/** in: sizeof(struct spyre_graph_info). */
	size_t struct_size;
	/** All operations; the next three members divide them by kind. */
	uint32_t operations;
	uint32_t launches;
	/** Copies and fills. */
	uint32_t copies;
	uint32_t host_functions;
	/** Commands for the card, and the submissions that contain them. */
	uint32_t commands;
	uint32_t submissions;
	/** Device memory in bytes that the graph owns for intermediates. */
	uint64_t device_bytes;
} spyre_graph_info;

/**
 * Returns the number of operations of a graph, by kind, and its cost in submissions
 * and memory. The caller sets @info->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_graph_get_info(spyre_graph *graph, spyre_graph_info *info);

/** One operation of a graph. Since 0.1. */
typedef struct spyre_graph_operation {
	/** in: sizeof(struct spyre_graph_operation). */
	size_t struct_size;
	/** 0 for a host function. */
	spyre_activity_kind kind;
	/** Operations with the same number are submitted together. */
	uint32_t submission;
	uint32_t commands;
	/** The kernel's name, or a name such as "copy to the device"; truncated if necessary. */
	char name[128];
} spyre_graph_operation;

/**
 * Returns operation @index of a graph, 0 to operations - 1. The caller sets
 * @operation->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_graph_get_operation(spyre_graph *graph, uint32_t index,
						 spyre_graph_operation *operation);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_GRAPH_H */
