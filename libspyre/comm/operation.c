// SPDX-License-Identifier: MIT
/* Operations between their call and their execution. */
#include <stdio.h>
#include <stdlib.h>

#include "libspyre/backend/futex.h"
#include "libspyre/comm/operation.h"
#include "libspyre/runtime/trace.h"

static const char *const names[] = {
	[COMM_ALL_REDUCE] = "all_reduce",
	[COMM_REDUCE] = "reduce",
	[COMM_BROADCAST] = "broadcast",
	[COMM_ALL_GATHER] = "all_gather",
	[COMM_REDUCE_SCATTER] = "reduce_scatter",
	[COMM_GATHER] = "gather",
	[COMM_SCATTER] = "scatter",
	[COMM_ALL_TO_ALL] = "all_to_all",
	[COMM_BARRIER] = "barrier",
	[COMM_POINT_TO_POINT] = "send or receive",
};

const char *comm_kind_name(enum comm_kind kind)
{
	return names[kind];
}

struct comm_op *comm_op_new(spyre_comm *comm, enum comm_kind kind, spyre_stream *stream)
{
	struct comm_op *op = calloc(1, sizeof(*op));

	if (!op) {
		spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to queue a collective");
		return NULL;
	}
	op->comm = comm;
	op->kind = kind;
	op->timeout_ns = comm->timeout_ns;
	op->stream = spyre_stream_ref(stream);
	return op;
}

void comm_op_free(struct comm_op *op)
{
	spyre_stream_unref(op->stream);
	free(op->messages);
	free(op);
}

/* The link of a message and the order on it. The caller holds comm.lock. */
static struct comm_link *link_of(struct comm_op *op, const struct comm_message *message)
{
	return &op->comm->peers[message->peer].link[COMM_P2P][message->direction];
}

/* True if an earlier message of @op uses the link of message @i: that one is executed before it. */
static bool follows(struct comm_op *op, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (link_of(op, &op->messages[j]) == link_of(op, &op->messages[i]))
			return true;
	return false;
}

/*
 * True if @op may execute: it is the next in the order, and nothing else is executing. The
 * operation of a graph has no place in the order, since a launch of the graph does not reach
 * this file before it executes; it goes between others.
 */
static bool is_next(struct comm_op *op)
{
	if (op->kind != COMM_POINT_TO_POINT)
		return !op->comm->executing && (op->captured || op->comm->finished == op->order);
	for (size_t i = 0; i < op->num_messages; i++) {
		const struct comm_link *link = link_of(op, &op->messages[i]);

		if (link->executing)
			return false;
		if (!op->captured && link->begun != op->messages[i].order && !follows(op, i))
			return false;
	}
	return true;
}

static void set_executing(struct comm_op *op, bool executing)
{
	if (op->kind != COMM_POINT_TO_POINT)
		op->comm->executing = executing;
	for (size_t i = 0; i < op->num_messages; i++)
		link_of(op, &op->messages[i])->executing = executing;
}

/* Takes the operation's place in the order. The caller holds comm.lock. */
static void order_take(struct comm_op *op)
{
	if (op->kind != COMM_POINT_TO_POINT)
		op->order = op->comm->queued++;
	for (size_t i = 0; i < op->num_messages; i++)
		op->messages[i].order = link_of(op, &op->messages[i])->queued++;
	op->comm->pending++;
}

/* Operations of graphs tell the other ranks this instead of a place. */
#define NO_ORDER UINT64_MAX

static void order_none(struct comm_op *op)
{
	op->order = NO_ORDER;
	for (size_t i = 0; i < op->num_messages; i++)
		op->messages[i].order = NO_ORDER;
}

/* Gives it back, if the operation could not be queued. No other call has taken one since. */
static void order_return(struct comm_op *op)
{
	if (op->kind != COMM_POINT_TO_POINT)
		op->comm->queued--;
	for (size_t i = 0; i < op->num_messages; i++)
		link_of(op, &op->messages[i])->queued--;
	op->comm->pending--;
}

spyre_status comm_op_check(struct comm_op *op)
{
	spyre_status status;

	if (op->comm->failed)
		return comm_failure(op->comm);
	pthread_mutex_lock(&op->stream->lock);
	status = spyre_stream_error(op->stream);
	pthread_mutex_unlock(&op->stream->lock);
	return status;
}

/* Ends the wait regularly, since a reset of the context does not signal the condition. */
static void wait_changed(spyre_comm *comm)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += 50000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	pthread_cond_timedwait(&comm->changed, &comm->lock, &ts);
}

spyre_status comm_op_wait_order(struct comm_op *op)
{
	spyre_comm *comm = op->comm;
	spyre_status status = SPYRE_SUCCESS;

	pthread_mutex_lock(&comm->lock);
	while (!status && !is_next(op)) {
		wait_changed(comm);
		pthread_mutex_unlock(&comm->lock);
		status = comm_op_check(op);
		pthread_mutex_lock(&comm->lock);
	}
	if (!status)
		set_executing(op, true);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static void op_finish(struct comm_op *op)
{
	spyre_comm *comm = op->comm;

	pthread_mutex_lock(&comm->lock);
	/* After a failure the order has no meaning: nothing else will execute. */
	if (op->kind != COMM_POINT_TO_POINT && !op->captured)
		comm->finished = op->order + 1;
	for (size_t i = 0; i < op->num_messages; i++)
		link_of(op, &op->messages[i])->begun += !op->captured;
	set_executing(op, false);
	comm->pending--;
	atomic_fetch_add_explicit(&comm->operations, 1, memory_order_relaxed);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	if (!op->captured)
		comm_op_free(op);
}

/* Puts the stream into error; the rank's failure is told to the others. */
static void op_fail(struct comm_op *op, spyre_status status)
{
	spyre_comm *comm = op->comm;
	char what[128];

	snprintf(what, sizeof(what), "%s on rank %u of %u of \"%s\"", comm_kind_name(op->kind),
		 comm->rank, comm->size, comm->name);
	status = comm_fail(comm, status, true);
	pthread_mutex_lock(&op->stream->lock);
	spyre_stream_fail(op->stream, status, what, atomic_load(&op->stream->host_done) + 1);
	pthread_mutex_unlock(&op->stream->lock);
}

/* Bytes of the parts of this rank, or of its messages in @direction. */
static uint64_t bytes_of(const struct comm_op *op, enum comm_direction direction)
{
	const spyre_comm_part *parts = direction == COMM_SEND ? op->send : op->recv;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < op->comm->size; i++)
		bytes += comm_part_bytes(&parts[i]);
	for (size_t i = 0; i < op->num_messages; i++)
		if (op->messages[i].direction == direction)
			bytes += comm_part_bytes(&op->messages[i].part);
	return bytes;
}

static void trace(const struct comm_op *op, uint64_t start_ns, bool failed)
{
	const struct trace_collective collective = {
		.name = comm_kind_name(op->kind), .group = op->comm->name,
		.group_id = op->comm->group_id,
		.sequence = op->captured || op->kind == COMM_POINT_TO_POINT ? NO_ORDER : op->order,
		.rank = op->comm->rank, .ranks = op->comm->size,
		.bytes_sent = bytes_of(op, COMM_SEND), .bytes_received = bytes_of(op, COMM_RECV),
		.start_ns = start_ns, .failed = failed,
	};

	spyre_trace_collective(op->stream, &collective);
}

/* The host function of an operation. */
static void op_main(void *data)
{
	struct comm_op *op = data;
	const uint64_t start_ns = spyre_trace_on() ? spyre_now_ns() : 0;
	spyre_status status;

	if (op->captured) {
		pthread_mutex_lock(&op->comm->lock);
		op->comm->pending++;
		pthread_mutex_unlock(&op->comm->lock);
	}
	op->deadline_ns = spyre_now_ns() + op->timeout_ns;
	status = comm_op_check(op);
	if (!status)
		status = comm_op_wait_order(op);
	if (!status)
		status = comm_run(op);
	if (start_ns)
		trace(op, start_ns, status);
	if (status)
		op_fail(op, status);
	op_finish(op);
}

/* Returns the index of the first message from @i on that the rank exchanges with itself. */
static size_t next_own(const struct comm_op *op, enum comm_direction direction, size_t i)
{
	while (i < op->num_messages && (op->messages[i].peer != op->comm->rank ||
					op->messages[i].direction != direction))
		i++;
	return i;
}

/*
 * A rank's messages to itself must be complete, since nothing else could receive them, and the
 * k-th one sent must be the k-th one received (run.c).
 */
static spyre_status check_own(const struct comm_op *op)
{
	size_t send = next_own(op, COMM_SEND, 0), recv = next_own(op, COMM_RECV, 0);
	uint32_t count = 0;

	while (send < op->num_messages && recv < op->num_messages &&
	       comm_part_bytes(&op->messages[send].part) ==
	       comm_part_bytes(&op->messages[recv].part)) {
		send = next_own(op, COMM_SEND, send + 1);
		recv = next_own(op, COMM_RECV, recv + 1);
		count++;
	}
	if (send == op->num_messages && recv == op->num_messages)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "rank %u sends to itself in a group, but "
			   "message %u has no receive in it, or one with other bytes; call both in "
			   "one group, in the same order", op->comm->rank, count);
}

spyre_status comm_op_queue(struct comm_op *op)
{
	spyre_comm *comm = op->comm;
	spyre_status status = check_own(op);

	if (status) {
		comm_op_free(op);
		return status;
	}
	/* Under the lock, so that operations of one stream have the order of the stream. */
	pthread_mutex_lock(&comm->lock);
	op->captured = op->stream->capture;
	if (op->captured)
		order_none(op);
	else
		order_take(op);
	status = spyre_stream_host_fn(op->stream, op_main, op);
	if (status && !op->captured)
		order_return(op);
	if (!status && op->captured)
		STAILQ_INSERT_TAIL(&comm->captured, op, link);
	pthread_mutex_unlock(&comm->lock);
	/* Without its card the rank cannot take part in what the others have called. */
	if (status == SPYRE_ERROR_DEVICE_LOST || status == SPYRE_ERROR_DEVICE_RESET)
		comm_fail(comm, status, true);
	if (status)
		comm_op_free(op);
	return status;
}
