/* SPDX-License-Identifier: MIT */
/*
 * Graphs: work of a stream, recorded once and launched any number of times.
 *
 * While a stream is captured, what it is given is recorded instead of queued:
 * launches, copies, fills and host functions, with the addresses and values of
 * that moment. A launch of the graph queues all of it again, in order, in few
 * submissions, whatever the number of operations. (Graphs of operations that
 * become a kernel are spyre_sdsc_graph, <spyre/sdsc.h>.)
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
 * From now on @stream records what it is given, from any thread, until
 * spyre_stream_end_capture(). What was queued before runs as usual, and so does
 * all of a graph whose launch another thread is amidst. What would
 * wait for the stream, or ask how far it is, is refused with CAPTURE and leaves
 * the capture as it was: spyre_stream_synchronize(), spyre_stream_query(),
 * blocking copies on it, spyre_stream_destroy(), spyre_context_synchronize(),
 * and queries of events that were recorded in it.
 *
 * An event that is recorded in the capture is a point in the graph. Another
 * stream that waits for it is captured into the same graph from then on; the
 * graph keeps its work in the order of the calls. Events recorded elsewhere
 * cannot be waited for: CAPTURE.
 *
 * Device memory, the host memory of asynchronous copies and the data of host
 * functions are those of each launch of the graph: they must stay until the
 * last one has run, and copies see what host memory holds then. Kernels stay by
 * themselves, and the graph has its own memory for their intermediates.
 *
 * spyre_context_reset() loses captures: their streams queue again. Since 0.1.
 * Errors: CAPTURE (captured already), and the stream's error.
 */
SPYRE_API spyre_status spyre_stream_begin_capture(spyre_stream *stream);
/**
 * Ends the capture that began on @stream, of all streams that are part of it,
 * and gives its graph. The capture is over whether or not this succeeds.
 * Since 0.1.
 * Errors: CAPTURE (not captured, or captured by an event of another stream),
 * CANCELLED (lost to a reset), OUT_OF_DEVICE_MEMORY, and the stream's error.
 */
SPYRE_API spyre_status spyre_stream_end_capture(spyre_stream *stream, spyre_graph **graph);
/** The number of the capture that @stream is part of now, 0 if it is not captured.
 * No two captures of a process have the same. Since 0.1. */
SPYRE_API spyre_status spyre_stream_get_capture(spyre_stream *stream, uint64_t *capture);

/**
 * Queues all operations of @graph on @stream, any of its context, and returns.
 * Launches of one graph run one after the other, also on different streams.
 * If only a part could be queued, the stream is in error. Since 0.1.
 * Errors: CAPTURE (the stream is captured), INVALID_ADDRESS (memory of the
 * graph is gone), and the stream's error.
 */
SPYRE_API spyre_status spyre_graph_launch(spyre_graph *graph, spyre_stream *stream);
/** Frees a graph once its launches are done; does not wait. NULL is fine. Since 0.1. */
SPYRE_API spyre_status spyre_graph_destroy(spyre_graph *graph);

/** What a graph holds. Since 0.1. */
typedef struct spyre_graph_info {
	/** in: sizeof(struct spyre_graph_info). */
	size_t struct_size;
	/** Operations, and of them: */
	uint32_t operations;
	uint32_t launches;
	/** Copies and fills. */
	uint32_t copies;
	uint32_t host_functions;
	/** Commands for the card, and the submissions that carry them. */
	uint32_t commands;
	uint32_t submissions;
	/** Device memory of the graph's own, for intermediates. */
	uint64_t device_bytes;
} spyre_graph_info;
SPYRE_API spyre_status spyre_graph_get_info(spyre_graph *graph, spyre_graph_info *info);

/** One operation of a graph. Since 0.1. */
typedef struct spyre_graph_operation {
	/** in: sizeof(struct spyre_graph_operation). */
	size_t struct_size;
	/** 0: a host function. */
	spyre_activity_kind kind;
	/** Operations with the same number go to the card together. */
	uint32_t submission;
	uint32_t commands;
	/** The kernel's name, or "copy to the device" and so on; cut to fit. */
	char name[128];
} spyre_graph_operation;
/** Operation @index of a graph, 0..operations - 1. Since 0.1. */
SPYRE_API spyre_status spyre_graph_get_operation(spyre_graph *graph, uint32_t index,
						 spyre_graph_operation *operation);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_GRAPH_H */
