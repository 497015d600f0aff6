// SPDX-License-Identifier: MIT
/*
 * The schedules of collectives. Data goes directly from its owner to the ranks that need it, as
 * cards behind a switch can do. Reductions are done by owners: each rank gets all contributions
 * to its elements and combines them in the order of the ranks, so that the result does not
 * depend on the schedule.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "libspyre/comm/exchange.h"

/* Up to this size latency counts more than bytes: one exchange instead of two. */
#define ONE_SHOT_BYTES (64ull << 10)

/* Transfers of an exchange: a send and a receive for each rank at most. */
struct plan {
	struct comm_transfer all[2 * SPYRE_COMM_MAX_RANKS];
	uint32_t n;
};

/* Adds a transfer; @total are the bytes of the whole collective, for the other rank to check. */
static void plan_add(struct plan *plan, const struct comm_op *op, uint32_t peer,
		     enum comm_direction direction, const spyre_comm_part *part, uint64_t offset,
		     uint64_t bytes, uint64_t total)
{
	if (peer != op->comm->rank)
		plan->all[plan->n++] = (struct comm_transfer){
			.peer = peer, .direction = direction, .part = *part, .offset = offset,
			.bytes = bytes, .order = op->order, .total = total,
		};
}

/* Adds the transfer of a whole part. */
static void plan_add_part(struct plan *plan, const struct comm_op *op, uint32_t peer,
			  enum comm_direction direction, const spyre_comm_part *part)
{
	const uint64_t bytes = comm_part_bytes(part);

	plan_add(plan, op, peer, direction, part, 0, bytes, bytes);
}

static struct plan *plan_new(void)
{
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for the schedule");
	return plan;
}

static spyre_status plan_run(struct plan *plan, struct comm_op *op, bool first)
{
	const spyre_status status = comm_exchange(op, COMM_COLLECTIVE, plan->all, plan->n, first);

	plan->n = 0;
	return status;
}

static spyre_comm_part *send_part(struct comm_op *op, uint32_t rank)
{
	return &op->send[op->sends_many ? rank : 0];
}

static spyre_comm_part *recv_part(struct comm_op *op, uint32_t rank)
{
	return &op->recv[op->receives_many ? rank : 0];
}

static spyre_status settle(struct comm_op *op)
{
	return spyre_stream_synchronize(op->comm->inner[COMM_COLLECTIVE]);
}

/* Copies the rank's own part. */
static spyre_status move_own(struct comm_op *op, const spyre_comm_part *to,
			     const spyre_comm_part *from)
{
	TRY(comm_part_move(op->comm->inner[COMM_COLLECTIVE], to, 0, from, 0,
			   comm_part_bytes(from)));
	return settle(op);
}

/* The collectives without arithmetic: one exchange of whole parts, @senders to @receivers. */
static spyre_status run_moves(struct comm_op *op, bool sends, bool receives,
			      bool root_sends, bool root_receives)
{
	const uint32_t rank = op->comm->rank;
	struct plan *plan = plan_new();
	spyre_status status;

	if (!plan)
		return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < op->comm->size; i++) {
		if (sends && (!root_receives || i == op->root))
			plan_add_part(plan, op, i, COMM_SEND, send_part(op, i));
		if (receives && (!root_sends || i == op->root))
			plan_add_part(plan, op, i, COMM_RECV, recv_part(op, i));
	}
	status = plan_run(plan, op, true);
	free(plan);
	if (!status && sends && receives)
		status = move_own(op, recv_part(op, rank), send_part(op, rank));
	return status;
}

/* A reduction: where contributions come from and results go to, in sticks of 128 bytes. */
struct reduction {
	struct comm_op *op;
	struct plan *plan;
	/* Contributions of this rank, and results; one contents for all ranks or a part each. */
	bool scatters;
	/* Results go to all ranks, or to @root. */
	bool to_all;
	/* Bytes of the whole tensor. */
	uint64_t bytes;
	bool first;
};

static spyre_status scratch_get(spyre_comm *comm)
{
	if (comm->scratch)
		return SPYRE_SUCCESS;
	return spyre_mem_alloc(comm->context, COMM_SCRATCH_BYTES(comm->size), &comm->scratch);
}

spyre_comm_part comm_slot(spyre_devptr scratch, uint32_t index)
{
	return (spyre_comm_part){
		.address = scratch + index * COMM_BLOCK_BYTES, .rows = 1,
		.row_bytes = COMM_BLOCK_BYTES, .pitch = COMM_BLOCK_BYTES,
	};
}

/* A slot as part of a transfer of the operation. */
static spyre_comm_part slot(const struct reduction *r, uint32_t index)
{
	spyre_comm_part part = comm_slot(r->op->comm->scratch, index);

	part.format = r->op->send[0].format;
	return part;
}

spyre_status comm_combine(struct comm_op *op, spyre_stream *stream, spyre_devptr scratch,
			  const spyre_comm_part *own, uint64_t own_offset,
			  const spyre_comm_part *out, uint64_t out_offset, uint64_t bytes)
{
	spyre_comm *comm = op->comm;
	const spyre_comm_part result = comm_slot(scratch, comm->size);
	const spyre_comm_part packed = comm_slot(scratch, comm->rank);
	spyre_devptr inputs[SPYRE_COMM_MAX_RANKS], target = result.address;
	uint64_t run = bytes;

	for (uint32_t i = 0; i < comm->size; i++)
		inputs[i] = comm_slot(scratch, i).address;
	inputs[comm->rank] = comm_part_at(own, own_offset, &run);
	if (run < bytes) {
		TRY(comm_part_move(stream, &packed, 0, own, own_offset, bytes));
		inputs[comm->rank] = packed.address;
	}
	run = bytes;
	if (out)
		target = comm_part_at(out, out_offset, &run);
	if (run < bytes)
		target = result.address;
	TRY(comm_reduce(&comm->reducer, stream, own->format, op->reduction, inputs, comm->size,
			target, bytes));
	if (run < bytes)
		TRY(comm_part_move(stream, out, out_offset, &result, 0, bytes));
	return SPYRE_SUCCESS;
}

/* Combines on the communicator's own stream, and waits. */
static spyre_status combine(struct reduction *r, const spyre_comm_part *own, uint64_t own_offset,
			    const spyre_comm_part *out, uint64_t out_offset, uint64_t bytes)
{
	TRY(comm_combine(r->op, r->op->comm->inner[COMM_COLLECTIVE], r->op->comm->scratch, own,
			 own_offset, out, out_offset, bytes));
	return settle(r->op);
}

bool comm_at_once(const spyre_comm *comm, uint64_t bytes)
{
	return comm->size == 1 || comm->algorithm == COMM_ONE_SHOT ||
	       (comm->algorithm == COMM_AUTO && bytes <= ONE_SHOT_BYTES);
}

/* Every rank gets all contributions to @bytes from @offset on, and combines them. */
static spyre_status reduce_at_once(struct reduction *r, uint64_t offset, uint64_t bytes)
{
	struct comm_op *op = r->op;
	const bool receives = r->to_all || op->comm->rank == op->root;

	for (uint32_t i = 0; i < op->comm->size; i++) {
		const spyre_comm_part part = slot(r, i);

		if (r->to_all || i == op->root)
			plan_add(r->plan, op, i, COMM_SEND, send_part(op, i), offset, bytes,
				 r->bytes);
		if (receives)
			plan_add(r->plan, op, i, COMM_RECV, &part, 0, bytes, r->bytes);
	}
	TRY(plan_run(r->plan, op, r->first));
	r->first = false;
	if (!receives)
		return SPYRE_SUCCESS;
	return combine(r, send_part(op, 0), offset, recv_part(op, 0), offset, bytes);
}

void comm_share(const spyre_comm *comm, uint64_t bytes, uint32_t rank, uint64_t *at,
		uint64_t *count)
{
	const uint64_t sticks = bytes / SPYRE_STICK;
	const uint64_t begin = sticks * rank / comm->size, end = sticks * (rank + 1) / comm->size;

	*at = begin * SPYRE_STICK;
	*count = (end - begin) * SPYRE_STICK;
}

/* First half of a block: every owner gets all contributions to its share and combines them. */
static spyre_status reduce_shares(struct reduction *r, uint64_t offset, uint64_t bytes)
{
	struct comm_op *op = r->op;
	const uint32_t rank = op->comm->rank;
	uint64_t at, own, own_at;

	comm_share(op->comm, bytes, rank, &own_at, &own);
	for (uint32_t i = 0; i < op->comm->size; i++) {
		const spyre_comm_part part = slot(r, i);
		uint64_t theirs;

		comm_share(op->comm, bytes, i, &at, &theirs);
		plan_add(r->plan, op, i, COMM_SEND, send_part(op, 0), offset + at, theirs,
			 r->bytes);
		plan_add(r->plan, op, i, COMM_RECV, &part, 0, own, r->bytes);
	}
	TRY(plan_run(r->plan, op, r->first));
	r->first = false;
	if (!own)
		return SPYRE_SUCCESS;
	return combine(r, send_part(op, 0), offset + own_at, r->to_all || rank == op->root ?
		       recv_part(op, 0) : NULL, offset + own_at, own);
}

/* Second half: the owners' results go to all ranks, or to the root. */
static spyre_status distribute_shares(struct reduction *r, uint64_t offset, uint64_t bytes)
{
	struct comm_op *op = r->op;
	const uint32_t rank = op->comm->rank;
	const bool receives = r->to_all || rank == op->root;
	const spyre_comm_part result = slot(r, op->comm->size);
	uint64_t at, own, own_at;

	comm_share(op->comm, bytes, rank, &own_at, &own);
	for (uint32_t i = 0; i < op->comm->size; i++) {
		uint64_t theirs;

		comm_share(op->comm, bytes, i, &at, &theirs);
		if (r->to_all || i == op->root)
			plan_add(r->plan, op, i, COMM_SEND, receives ? recv_part(op, 0) : &result,
				 receives ? offset + own_at : 0, own, r->bytes);
		if (receives)
			plan_add(r->plan, op, i, COMM_RECV, recv_part(op, 0), offset + at, theirs,
				 r->bytes);
	}
	return plan_run(r->plan, op, false);
}

static spyre_status reduce_blocks(struct reduction *r)
{
	struct comm_op *op = r->op;
	const bool at_once = comm_at_once(op->comm, r->bytes);
	const uint64_t most = at_once ? COMM_BLOCK_BYTES : COMM_BLOCK_BYTES * op->comm->size;

	for (uint64_t at = 0; at < r->bytes; at += most) {
		const uint64_t now = r->bytes - at < most ? r->bytes - at : most;

		TRY(comm_op_check(op));
		if (at_once) {
			TRY(reduce_at_once(r, at, now));
			continue;
		}
		TRY(reduce_shares(r, at, now));
		TRY(distribute_shares(r, at, now));
	}
	return SPYRE_SUCCESS;
}

/* Reduces the parts of all ranks, of which each gets its own, block by block. */
static spyre_status scatter_blocks(struct reduction *r)
{
	struct comm_op *op = r->op;
	const uint32_t rank = op->comm->rank;
	uint64_t most = 0;

	for (uint32_t i = 0; i < op->comm->size; i++)
		if (comm_part_bytes(send_part(op, i)) > most)
			most = comm_part_bytes(send_part(op, i));
	for (uint64_t at = 0; at < most; at += COMM_BLOCK_BYTES) {
		uint64_t own = 0;

		TRY(comm_op_check(op));
		for (uint32_t i = 0; i < op->comm->size; i++) {
			const uint64_t bytes = comm_part_bytes(send_part(op, i));
			const uint64_t theirs = at >= bytes ? 0 : bytes - at < COMM_BLOCK_BYTES ?
						bytes - at : COMM_BLOCK_BYTES;

			plan_add(r->plan, op, i, COMM_SEND, send_part(op, i), at, theirs, bytes);
			if (i == rank)
				own = theirs;
		}
		for (uint32_t i = 0; i < op->comm->size; i++) {
			const spyre_comm_part part = slot(r, i);

			plan_add(r->plan, op, i, COMM_RECV, &part, 0, own,
				 comm_part_bytes(send_part(op, rank)));
		}
		TRY(plan_run(r->plan, op, r->first));
		r->first = false;
		if (own)
			TRY(combine(r, send_part(op, rank), at, recv_part(op, 0), at, own));
	}
	return SPYRE_SUCCESS;
}

static spyre_status run_reduction(struct comm_op *op)
{
	struct reduction r = {
		.op = op, .scatters = op->kind == COMM_REDUCE_SCATTER,
		.to_all = op->kind == COMM_ALL_REDUCE, .first = true,
		.bytes = comm_part_bytes(send_part(op, 0)),
	};
	spyre_status status;

	TRY(scratch_get(op->comm));
	r.plan = plan_new();
	if (!r.plan)
		return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	status = r.scatters ? scatter_blocks(&r) : reduce_blocks(&r);
	free(r.plan);
	return status;
}

static struct comm_transfer transfer_of(const struct comm_message *message)
{
	return (struct comm_transfer){
		.peer = message->peer, .direction = message->direction, .part = message->part,
		.bytes = comm_part_bytes(&message->part), .order = message->order,
		.total = comm_part_bytes(&message->part),
	};
}

static bool uses_link(const struct comm_transfer *all, uint32_t n, const struct comm_message *m)
{
	for (uint32_t i = 0; i < n; i++)
		if (all[i].peer == m->peer && all[i].direction == m->direction)
			return true;
	return false;
}

/* Executes messages of different links together, and those of one link one after the other. */
static spyre_status run_messages(struct comm_op *op, struct comm_transfer *all)
{
	size_t left = op->num_messages;

	while (left) {
		uint32_t n = 0;
		size_t kept = 0;

		for (size_t i = 0; i < left; i++) {
			struct comm_message *message = &op->messages[i];

			if (message->peer == op->comm->rank)
				continue;
			/* Messages that have to wait move to the front, in their order. */
			if (uses_link(all, n, message)) {
				const struct comm_message later = *message;

				op->messages[i] = op->messages[kept];
				op->messages[kept++] = later;
			} else {
				all[n++] = transfer_of(message);
			}
		}
		TRY(comm_exchange(op, COMM_P2P, all, n, true));
		left = kept;
	}
	return SPYRE_SUCCESS;
}

/* Copies what the rank sends to itself, the k-th send to the k-th receive. */
static spyre_status run_own_messages(struct comm_op *op)
{
	spyre_stream *inner = op->comm->inner[COMM_P2P];
	const uint32_t rank = op->comm->rank;
	size_t receive = 0;

	for (size_t i = 0; i < op->num_messages; i++) {
		const struct comm_message *message = &op->messages[i];

		if (message->peer != rank || message->direction != COMM_SEND)
			continue;
		while (op->messages[receive].peer != rank ||
		       op->messages[receive].direction != COMM_RECV)
			receive++;
		TRY(comm_part_move(inner, &op->messages[receive++].part, 0, &message->part, 0,
				   comm_part_bytes(&message->part)));
	}
	return spyre_stream_synchronize(inner);
}

static spyre_status run_point_to_point(struct comm_op *op)
{
	struct comm_transfer *all = calloc(op->num_messages, sizeof(*all));
	spyre_status status;

	if (!all)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for the schedule");
	status = run_own_messages(op);
	if (!status)
		status = run_messages(op, all);
	free(all);
	return status;
}

spyre_status comm_run(struct comm_op *op)
{
	const bool root = op->comm->rank == op->root;

	switch (op->kind) {
	case COMM_ALL_REDUCE:
	case COMM_REDUCE:
	case COMM_REDUCE_SCATTER:
		return run_reduction(op);
	case COMM_BROADCAST:
	case COMM_SCATTER:
		return run_moves(op, root, true, true, false);
	case COMM_GATHER:
		return run_moves(op, true, root, false, true);
	case COMM_ALL_GATHER:
	case COMM_ALL_TO_ALL:
	case COMM_BARRIER:
		return run_moves(op, true, true, false, false);
	case COMM_POINT_TO_POINT:
		return run_point_to_point(op);
	}
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "unknown collective %d", (int)op->kind);
}
