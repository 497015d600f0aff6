/* SPDX-License-Identifier: MIT */
/*
 * Streams. Every operation of a stream has a sequence number; operations that
 * reach the card use it as their point on the queue's timeline. Internal.
 *
 * Normally the calling thread submits. The card cannot execute a host function,
 * nor wait for another stream's operation that is not submitted yet: these and
 * all later operations go to a list, which a thread of the stream processes,
 * until the list is empty again.
 */
#ifndef SPYRE_RUNTIME_STREAM_H
#define SPYRE_RUNTIME_STREAM_H

#include <spyre/activity.h>

#include "libspyre/runtime/context.h"

struct spyre_stream_item;

/* A point in a stream, shared by an event and the stream's bookkeeping. */
struct spyre_mark {
	_Atomic uint32_t refs;
	struct spyre_stream *stream;	/* holds a reference */
	uint64_t seq;
	bool timing;
	/* Set under the stream's lock when the fields below are valid. */
	_Atomic bool done;
	/* Number of the graph that captured it, else 0; a captured mark is never reached. */
	_Atomic uint64_t capture;
	bool failed;
	uint64_t time_ns;
	uint64_t cycles;
};

struct kernel_variant;
struct timeline;
struct graph_segment;
struct spyre_graph;

/* An operation that owns results: a record has one, the record of a graph has many. */
struct spyre_part {
	const char *what;
	struct spyre_kernel *kernel;
	/* 0 if the operation is not logged. */
	spyre_activity_kind kind;
	const struct timeline *timeline;	/* or NULL */
	/* Its results, counted from the record's first one. */
	uint32_t first;
	uint32_t count;
};

/*
 * Placeholder for the memory of a graph during capture: addresses in it are
 * offsets from here, outside the range of device addresses.
 */
#define SPYRE_POOL_OF_GRAPH (UINT64_C(1) << 62)

/* The call that queued an operation, for activity records. */
struct spyre_queued {
	uint64_t correlation;		/* id of the thread's operation */
	uint64_t start_ns, end_ns;	/* end_ns is 0 until the call returns */
	int32_t thread;
};

/* An operation to queue; its arguments are copied if they have to outlive the call. */
struct spyre_work {
	const char *what;		/* "launch", "copy to the device"; static */
	struct spyre_kernel *kernel;	/* launches; the work takes a reference */
	struct kernel_variant *variant;	/* or NULL; a reference until submitted */
	uint64_t pool;			/* address of the kernel's intermediates, if any */
	/* Owner of the commands in a graph's launch. Holds a reference until submitted. */
	const struct graph_segment *segment;
	const struct spyre_command *commands;
	uint32_t num_commands;
	/* Pinned memory to free when done; owned by the stream after success. */
	void *staging;
	size_t staging_bytes;
	struct spyre_mark *mark;	/* takes a reference */
	/* Set if an activity log is open. */
	struct spyre_queued queued;
};

/* A queued operation, kept until its results have been read. */
struct spyre_record {
	uint64_t seq;
	uint32_t first_result;
	uint32_t num_results;
	uint32_t num_slots;		/* includes slots skipped at the end of the ring */
	const char *what;
	struct spyre_kernel *kernel;
	const struct graph_segment *segment;	/* with a reference */
	void *staging;
	size_t staging_bytes;
	struct spyre_mark *mark;
	/* 0 if no log was open when it was queued. */
	spyre_activity_kind activity;
	/* Of its kernel, or NULL. */
	const struct timeline *timeline;
	struct spyre_queued queued;
};

struct spyre_pending_wait {
	struct spyre_stream *stream;	/* holds a reference */
	uint64_t seq;
};

#define SPYRE_MAX_PENDING_WAITS 16

struct spyre_stream {
	TAILQ_ENTRY(spyre_stream) link;
	struct spyre_context *context;
	int id;
	int priority;
	_Atomic uint32_t refs;

	pthread_mutex_t lock;
	struct spyre_queue *queue;
	/* Sequence numbers: last assigned; last submitted; last finished by the host. */
	_Atomic uint64_t tail;
	_Atomic uint64_t submitted;
	_Atomic uint64_t host_done;

	/* Records in order, in a ring whose size is a power of two. */
	struct spyre_record *records;
	uint32_t first_record;
	uint32_t num_records;
	uint32_t max_records;
	uint32_t next_slot;
	uint32_t used_slots;

	struct spyre_pending_wait waits[SPYRE_MAX_PENDING_WAITS];
	uint32_t num_waits;

	/* List of the stream's thread, which signals @progress after each item. */
	struct spyre_stream_item *items;
	struct spyre_stream_item **items_tail;
	pthread_cond_t progress;
	pthread_t thread;
	bool has_thread;
	bool stop;

	/* First error; stays until a reset. */
	spyre_status error;
	char *error_text;

	/* Graph that records new work instead; holds a reference. Set under the lock. */
	struct spyre_graph *_Atomic capture;
	/* A reset has ended the stream's capture. */
	bool capture_lost;

	/* 256 bytes of device memory for the partial sticks of plain copies. */
	_Atomic uint64_t scratch;
	spyre_stream_stats stats;
};

/* stream.c */
struct spyre_stream *spyre_stream_ref(struct spyre_stream *stream);
void spyre_stream_unref(struct spyre_stream *stream);
spyre_status spyre_stream_check(const struct spyre_stream *stream);
/* Ends the stream's thread after its work; for destruction. */
spyre_status spyre_stream_drain(struct spyre_stream *stream);
/* Destroys the queue; only references are left. */
void spyre_stream_close(struct spyre_stream *stream);

/* command.c */
/* Bytes of a deep copy of @n commands. */
size_t spyre_commands_bytes(const struct spyre_command *commands, uint32_t n);
/* Makes a deep copy in @to, which has spyre_commands_bytes(). */
void spyre_commands_copy(struct spyre_command *to, const struct spyre_command *from, uint32_t n);

/* work.c */
/* True if @seq is done. Neither blocks nor takes a lock. */
bool spyre_stream_reached(struct spyre_stream *stream, uint64_t seq);
/* Queues @work; its sequence number goes to @seq, which may be NULL. */
spyre_status spyre_stream_enqueue(struct spyre_stream *stream, const struct spyre_work *work,
				  uint64_t *seq);
/* Waits until @seq is reached, NOT_READY at the deadline; BUSY if it waits for the caller. */
spyre_status spyre_stream_wait_seq(struct spyre_stream *stream, uint64_t seq,
				   int64_t deadline_ns);
/* Waits for @seq and returns the stream's error. */
spyre_status spyre_stream_finish(struct spyre_stream *stream, uint64_t seq);

/* The caller of these holds stream.lock. */
spyre_status spyre_work_submit(struct spyre_stream *stream, const struct spyre_work *work,
			       uint64_t seq);
/* Attaches a mark to the last record, without a command; false if memory is short. */
bool spyre_stream_push_mark(struct spyre_stream *stream, struct spyre_mark *mark);
/* Reads the results of finished operations; those up to @upto are known to be finished. */
void spyre_stream_retire(struct spyre_stream *stream, uint64_t upto);
/* Submits pending waits as an operation; the list of items is empty. */
spyre_status spyre_stream_flush_waits(struct spyre_stream *stream);
spyre_status spyre_stream_add_wait(struct spyre_stream *stream, struct spyre_stream *other,
				   uint64_t seq);
/* Puts the stream into error if it is not; the thread's error text becomes the cause. */
void spyre_stream_fail(struct spyre_stream *stream, spyre_status status, const char *what,
		       uint64_t seq);
spyre_status spyre_stream_error(const struct spyre_stream *stream);

/* deferred.c */
/* True in a host function of @stream, or of any stream if @stream is NULL. */
bool spyre_in_stream_thread(const struct spyre_stream *stream);
/* The caller of these holds stream.lock; *seq gets the operation's number. */
spyre_status spyre_stream_defer_work(struct spyre_stream *stream, const struct spyre_work *work,
				     uint64_t *seq);
spyre_status spyre_stream_defer_wait(struct spyre_stream *stream, struct spyre_stream *other,
				     uint64_t seq);
spyre_status spyre_stream_defer_host_fn(struct spyre_stream *stream, spyre_host_fn fn, void *data,
					uint64_t *seq);
void spyre_stream_stop_thread(struct spyre_stream *stream);

/* event.c */
void spyre_mark_unref(struct spyre_mark *mark);
/* Work queued on @stream from now on waits for operation @seq of @other. */
spyre_status spyre_stream_wait_for(struct spyre_stream *stream, struct spyre_stream *other,
				   uint64_t seq);
/* Takes one off the context's list; NULL when none is left. */
struct spyre_event *spyre_event_pop(struct spyre_context *context);
void spyre_event_free(struct spyre_event *event);

/* capture.c */
/* Fails with CAPTURE if @stream is captured, because @function waits for its work. */
spyre_status spyre_capture_refuse(struct spyre_stream *stream, const char *function);
/* The same for the default stream, which blocking copies use. */
spyre_status spyre_capture_refuse_default(struct spyre_context *context, const char *function,
					  struct spyre_stream **stream);
/* Records @work of a captured stream; caller holds stream.lock. */
spyre_status spyre_capture_work(struct spyre_stream *stream, const struct spyre_work *work);
spyre_status spyre_capture_host_fn(struct spyre_stream *stream, spyre_host_fn fn, void *data);
/* Adds @stream to the capture that recorded @mark. */
spyre_status spyre_capture_join(struct spyre_stream *stream, struct spyre_mark *mark);
/* Ends the capture of @stream, if any; spyre_stream_end_capture() then fails. */
void spyre_capture_abort(struct spyre_stream *stream);

/* graph.c */
void spyre_graph_unref(struct spyre_graph *graph);
/* Takes one off the context's list; NULL when none is left. */
struct spyre_graph *spyre_graph_pop(struct spyre_context *context);
void spyre_segment_ref(const struct graph_segment *segment);
void spyre_segment_unref(const struct graph_segment *segment);
/* Operations that the segment's commands belong to. */
const struct spyre_part *spyre_segment_parts(const struct graph_segment *segment, uint32_t *n);
/* Describes @part as an operation of its graph, for an error text. */
void spyre_segment_describe(const struct graph_segment *segment, const struct spyre_part *part,
			    char *text, size_t bytes);

/* kernel.c */
struct spyre_kernel *spyre_kernel_ref(struct spyre_kernel *kernel);
void spyre_kernel_unref(struct spyre_kernel *kernel);
struct spyre_kernel *spyre_kernel_pop(struct spyre_context *context);
const char *spyre_kernel_name(const struct spyre_kernel *kernel);
/* kernel_variant.c: both take NULL */
void kernel_variant_ref(struct spyre_kernel *kernel, struct kernel_variant *variant);
void kernel_variant_put(struct spyre_kernel *kernel, struct kernel_variant *variant);

#endif /* SPYRE_RUNTIME_STREAM_H */
