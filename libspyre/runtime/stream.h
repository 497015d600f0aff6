/* SPDX-License-Identifier: MIT */
/*
 * Streams. Every operation of a stream has a sequence number; operations that
 * reach the card use it as their point on the queue's timeline. Internal.
 *
 * The plain path submits in the calling thread. A host function, or a wait for
 * another stream's operation that has not reached the card yet, cannot be left
 * to the card: from then on operations go to a list that a thread of the
 * stream works off, until it is empty again.
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
	/* Set under the stream's lock, once the rest below is valid. */
	_Atomic bool done;
	/* Of the graph that it is a point in; then it is never reached. */
	_Atomic uint64_t capture;
	bool failed;
	uint64_t time_ns;
	uint64_t cycles;
};

struct kernel_variant;
struct graph_segment;
struct spyre_graph;

/* The owner of a result: a record is one operation, a graph's are many. */
struct spyre_part {
	const char *what;
	struct spyre_kernel *kernel;
	/* 0: not for logs. */
	spyre_activity_kind kind;
	/* Its results, from the record's first one. */
	uint32_t first;
	uint32_t count;
};

/*
 * Memory for intermediates that a graph has yet to get: while it is recorded,
 * addresses are offsets from here, which is no device address.
 */
#define SPYRE_POOL_OF_GRAPH (UINT64_C(1) << 62)

/* Something to queue; what it points to is copied where need be. */
struct spyre_work {
	const char *what;		/* "launch", "copy to the device"; static */
	struct spyre_kernel *kernel;	/* launches; the work takes a reference */
	struct kernel_variant *variant;	/* that they run, or NULL; likewise until submitted */
	uint64_t pool;			/* where the kernel's intermediates are, if it has any */
	/* Launches of graphs: whose commands these are. A reference until submitted. */
	const struct graph_segment *segment;
	const struct spyre_command *commands;
	uint32_t num_commands;
	/* Pinned memory to free when done; taken over on success. */
	void *staging;
	size_t staging_bytes;
	struct spyre_mark *mark;	/* takes a reference */
	/* Of the thread that queued it, if a log of activities is open. */
	uint64_t correlation;
};

/* Queued work, until its results have been read. */
struct spyre_record {
	uint64_t seq;
	uint32_t first_result;
	uint32_t num_results;
	uint32_t num_slots;		/* with those skipped at the ring's end */
	const char *what;
	struct spyre_kernel *kernel;
	const struct graph_segment *segment;	/* with a reference */
	void *staging;
	size_t staging_bytes;
	struct spyre_mark *mark;
	/* 0 if no log was open. */
	spyre_activity_kind activity;
	uint64_t correlation;
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
	/* Sequence numbers: given out; on the card or done; done by the host. */
	_Atomic uint64_t tail;
	_Atomic uint64_t submitted;
	_Atomic uint64_t host_done;

	/* Records in order, a ring of a power of two. */
	struct spyre_record *records;
	uint32_t first_record;
	uint32_t num_records;
	uint32_t max_records;
	uint32_t next_slot;
	uint32_t used_slots;

	struct spyre_pending_wait waits[SPYRE_MAX_PENDING_WAITS];
	uint32_t num_waits;

	/* The list of the stream's thread; @progress says that it moved. */
	struct spyre_stream_item *items;
	struct spyre_stream_item **items_tail;
	pthread_cond_t progress;
	pthread_t thread;
	bool has_thread;
	bool stop;

	/* Sticky. */
	spyre_status error;
	char *error_text;

	/* Work it is given goes there instead; holds a reference. Set under the lock. */
	struct spyre_graph *_Atomic capture;
	/* There was one, which a reset ended. */
	bool capture_lost;

	/* 256 device bytes for the ragged ends of plain copies. */
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
/* Of @n commands with what they point to. */
size_t spyre_commands_bytes(const struct spyre_command *commands, uint32_t n);
/* To @to, which has room for spyre_commands_bytes(). */
void spyre_commands_copy(struct spyre_command *to, const struct spyre_command *from, uint32_t n);

/* work.c */
/* Never blocks and takes no lock. */
bool spyre_stream_reached(struct spyre_stream *stream, uint64_t seq);
/* Queues @work; its sequence number goes to @seq, which may be NULL. */
spyre_status spyre_stream_enqueue(struct spyre_stream *stream, const struct spyre_work *work,
				  uint64_t *seq);
/* Waits until @seq is reached, NOT_READY at the deadline; BUSY if it waits for the caller. */
spyre_status spyre_stream_wait_seq(struct spyre_stream *stream, uint64_t seq,
				   int64_t deadline_ns);
/* Waits for @seq and returns the stream's error. */
spyre_status spyre_stream_finish(struct spyre_stream *stream, uint64_t seq);

/* These with stream.lock held. */
spyre_status spyre_work_submit(struct spyre_stream *stream, const struct spyre_work *work,
			       uint64_t seq);
/* A mark behind the last record, with no command. false: out of host memory. */
bool spyre_stream_push_mark(struct spyre_stream *stream, struct spyre_mark *mark);
/* Reads the results of what is finished; all up to @upto is known to be. */
void spyre_stream_retire(struct spyre_stream *stream, uint64_t upto);
/* Submits pending waits with nothing behind them; not while items are listed. */
spyre_status spyre_stream_flush_waits(struct spyre_stream *stream);
spyre_status spyre_stream_add_wait(struct spyre_stream *stream, struct spyre_stream *other,
				   uint64_t seq);
/* Puts the stream into error, unless it is; the thread's text is the cause. */
void spyre_stream_fail(struct spyre_stream *stream, spyre_status status, const char *what,
		       uint64_t seq);
spyre_status spyre_stream_error(const struct spyre_stream *stream);

/* deferred.c */
/* True in a host function of @stream; of any stream if @stream is NULL. */
bool spyre_in_stream_thread(const struct spyre_stream *stream);
/* These with stream.lock held; *seq is given out. */
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
/* CAPTURE if @stream is captured, where @function would wait for its work. */
spyre_status spyre_capture_refuse(struct spyre_stream *stream, const char *function);
/* The default stream, for a blocking copy. */
spyre_status spyre_capture_refuse_default(struct spyre_context *context, const char *function,
					  struct spyre_stream **stream);
/* Records; stream.lock is held, and the stream is captured. */
spyre_status spyre_capture_work(struct spyre_stream *stream, const struct spyre_work *work);
spyre_status spyre_capture_host_fn(struct spyre_stream *stream, spyre_host_fn fn, void *data);
/* @stream becomes part of the capture that @mark is a point in. */
spyre_status spyre_capture_join(struct spyre_stream *stream, struct spyre_mark *mark);
/* The capture that @stream is part of, if any, is over and lost. */
void spyre_capture_abort(struct spyre_stream *stream);

/* graph.c */
void spyre_graph_unref(struct spyre_graph *graph);
/* Takes one off the context's list; NULL when none is left. */
struct spyre_graph *spyre_graph_pop(struct spyre_context *context);
void spyre_segment_ref(const struct graph_segment *segment);
void spyre_segment_unref(const struct graph_segment *segment);
/* The operations that its commands belong to. */
const struct spyre_part *spyre_segment_parts(const struct graph_segment *segment, uint32_t *n);
/* Which operation of its graph @part is, for an error text. */
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
