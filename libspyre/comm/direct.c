// SPDX-License-Identifier: MIT
/*
 * When one thread calls a collective for all ranks in one group, their streams need no host
 * functions: each rank pulls what it needs from the memory of the other cards, and events order
 * the streams. The schedules are those of run.c, so the results are the same.
 */
#include <stdlib.h>

#include <spyre/peer.h>

#include "libspyre/comm/direct.h"

static void family_unref(struct comm_family *family)
{
	if (atomic_fetch_sub(&family->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&family->lock);
	free(family);
}

/* True if each card can copy from each other one. */
static bool reachable(spyre_comm *const *comms, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		for (uint32_t j = 0; j < i; j++) {
			spyre_peer_path path;

			if (spyre_peer_can_access(comms[i]->context, comms[j]->context, &path) ||
			    path == SPYRE_PEER_NONE)
				return false;
		}
	return true;
}

spyre_status comm_family_create(spyre_comm *const *comms, uint32_t size)
{
	struct comm_family *family;

	if (comms[0]->host_only || !reachable(comms, size))
		return SPYRE_SUCCESS;
	for (uint32_t i = 0; i < size; i++)
		TRY(spyre_event_create(comms[i]->context, SPYRE_EVENT_NO_TIMING,
				       &comms[i]->reached));
	family = calloc(1, sizeof(*family));
	if (!family)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a communicator");
	atomic_init(&family->refs, size);
	family->size = size;
	pthread_mutex_init(&family->lock, NULL);
	for (uint32_t i = 0; i < size; i++) {
		family->comms[i] = comms[i];
		comms[i]->family = family;
	}
	return SPYRE_SUCCESS;
}

void comm_family_leave(spyre_comm *comm)
{
	struct comm_family *family = comm->family;

	spyre_event_destroy(comm->reached);
	if (comm->direct_scratch)
		spyre_mem_free(comm->context, comm->direct_scratch);
	if (!family)
		return;
	pthread_mutex_lock(&family->lock);
	family->comms[comm->rank] = NULL;
	pthread_mutex_unlock(&family->lock);
	family_unref(family);
}

/* The calls of all ranks. */
struct direct {
	struct comm_op **ops;
	uint32_t size;
};

static uint64_t bytes_of(const spyre_comm_part *parts, bool many, uint32_t rank)
{
	return comm_part_bytes(&parts[many ? rank : 0]);
}

/* True if rank @to receives from rank @from exactly the bytes that are sent to it. */
static bool matches(const struct comm_op *from, const struct comm_op *to)
{
	if (from->kind == COMM_ALL_REDUCE || from->kind == COMM_REDUCE)
		return bytes_of(from->send, false, 0) == bytes_of(to->send, false, 0);
	if (from->kind == COMM_REDUCE_SCATTER)
		return bytes_of(from->send, true, to->comm->rank) == bytes_of(to->recv, false, 0);
	if ((from->kind == COMM_BROADCAST || from->kind == COMM_SCATTER) &&
	    from->comm->rank != from->root)
		return true;
	if (from->kind == COMM_GATHER && to->comm->rank != to->root)
		return true;
	return bytes_of(from->send, from->sends_many, to->comm->rank) ==
	       bytes_of(to->recv, to->receives_many, from->comm->rank);
}

bool comm_direct_possible(struct comm_op *const *ops, uint32_t size)
{
	const struct comm_op *first = ops[0];

	for (uint32_t i = 0; i < size; i++) {
		const struct comm_op *op = ops[i];

		if (op->kind != first->kind || op->root != first->root ||
		    memcmp(&op->reduction, &first->reduction, sizeof(op->reduction)) ||
		    op->send[0].format != first->send[0].format || op->stream->capture ||
		    (op->layout && first->layout && op->layout != first->layout) ||
		    op->comm->failed)
			return false;
		/* The ranks' threads report differences, as those of other processes do. */
		for (uint32_t j = 0; j < size; j++)
			if (!matches(ops[i], ops[j]))
				return false;
	}
	return first->kind != COMM_POINT_TO_POINT;
}

/* Makes every stream wait until all of them have got here. */
static spyre_status meet(const struct direct *d)
{
	for (uint32_t i = 0; i < d->size; i++)
		TRY(spyre_event_record(d->ops[i]->comm->reached, d->ops[i]->stream));
	for (uint32_t i = 0; i < d->size; i++)
		for (uint32_t j = 0; j < d->size; j++)
			if (j != i)
				TRY(spyre_stream_wait_event(d->ops[i]->stream,
							    d->ops[j]->comm->reached));
	return SPYRE_SUCCESS;
}

/*
 * True if the contents of @part from @offset on are rows of @run bytes with a pitch, which is
 * returned.
 */
static bool regular(const spyre_comm_part *part, uint64_t offset, uint64_t run, uint64_t *pitch)
{
	*pitch = part->rows > 1 ? part->pitch : run;
	return part->rows <= 1 || (part->row_bytes == run && offset % run == 0);
}

/* Queues copies of @bytes of the contents of @from, of rank @source, to those of @to. */
static spyre_status pull(struct comm_op *op, const spyre_comm_part *to, uint64_t to_offset,
			 const struct comm_op *source, const spyre_comm_part *from,
			 uint64_t from_offset, uint64_t bytes)
{
	if (op != source) {
		atomic_fetch_add_explicit(&op->comm->received, bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&source->comm->sent, bytes, memory_order_relaxed);
	}
	while (bytes) {
		uint64_t run = bytes;
		spyre_peer_copy copy = {
			.struct_size = sizeof(copy), .target_context = op->comm->context,
			.source_context = source->comm->context, .rows = 1,
		};

		copy.source = comm_part_at(from, from_offset, &run);
		copy.target = comm_part_at(to, to_offset, &run);
		copy.row_bytes = run;
		if (regular(from, from_offset, run, &copy.source_pitch) &&
		    regular(to, to_offset, run, &copy.target_pitch))
			copy.rows = bytes / run;
		if (copy.source != copy.target || op != source)
			TRY(spyre_memcpy_peer_2d_async(op->stream, &copy));
		to_offset += copy.rows * run;
		from_offset += copy.rows * run;
		bytes -= copy.rows * run;
	}
	return SPYRE_SUCCESS;
}

/* True if rank @to of the collective receives the part of rank @from. */
static bool receives(const struct comm_op *op, uint32_t from, uint32_t to)
{
	switch (op->kind) {
	case COMM_BROADCAST:
	case COMM_SCATTER:
		return from == op->root;
	case COMM_GATHER:
		return to == op->root;
	default:
		return true;
	}
}

/* The collectives without arithmetic. */
static spyre_status queue_moves(const struct direct *d)
{
	TRY(meet(d));
	for (uint32_t i = 0; i < d->size; i++) {
		struct comm_op *op = d->ops[i];

		for (uint32_t j = 0; j < d->size; j++) {
			const struct comm_op *source = d->ops[j];
			const spyre_comm_part *from = &source->send[source->sends_many ? i : 0];

			if (receives(op, j, i))
				TRY(pull(op, &op->recv[op->receives_many ? j : 0], 0, source, from,
					 0, comm_part_bytes(from)));
		}
	}
	return meet(d);
}

static spyre_status scratch_get(spyre_comm *comm)
{
	if (comm->direct_scratch)
		return SPYRE_SUCCESS;
	return spyre_mem_alloc(comm->context, COMM_SCRATCH_BYTES(comm->size),
			       &comm->direct_scratch);
}

/*
 * Reduces @bytes from @offset on: rank i combines @count[i] of them from @at[i] on, of the parts
 * that others send to it.
 */
struct step {
	uint64_t offset;
	uint64_t at[SPYRE_COMM_MAX_RANKS];
	uint64_t count[SPYRE_COMM_MAX_RANKS];
};

static const spyre_comm_part *contribution(const struct comm_op *of, uint32_t owner)
{
	return &of->send[of->sends_many ? owner : 0];
}

/* Every owner pulls the contributions of the others, then combines them with its own. */
static spyre_status queue_reduction(const struct direct *d, const struct step *step)
{
	for (uint32_t i = 0; i < d->size; i++)
		for (uint32_t j = 0; j < d->size; j++) {
			const spyre_comm_part slot = comm_slot(d->ops[i]->comm->direct_scratch, j);

			if (j != i)
				TRY(pull(d->ops[i], &slot, 0, d->ops[j], contribution(d->ops[j], i),
					 step->offset + step->at[i], step->count[i]));
		}
	/* Results may be written where the others have just read. */
	TRY(meet(d));
	for (uint32_t i = 0; i < d->size; i++) {
		struct comm_op *op = d->ops[i];
		const bool keeps = op->kind == COMM_REDUCE && i != op->root;
		const uint64_t at = step->offset + step->at[i];

		if (step->count[i])
			TRY(comm_combine(op, op->stream, op->comm->direct_scratch,
					 contribution(op, i), at, keeps ? NULL : &op->recv[0], at,
					 step->count[i]));
	}
	return meet(d);
}

/* Every rank, or the root, pulls the results of the owners. */
static spyre_status queue_results(const struct direct *d, const struct step *step)
{
	for (uint32_t i = 0; i < d->size; i++) {
		struct comm_op *op = d->ops[i];

		if (op->kind == COMM_REDUCE && i != op->root)
			continue;
		for (uint32_t j = 0; j < d->size; j++) {
			const struct comm_op *owner = d->ops[j];
			const spyre_comm_part slot = comm_slot(owner->comm->direct_scratch,
							       d->size);
			const bool kept = op->kind == COMM_REDUCE;

			if (j != i)
				TRY(pull(op, &op->recv[0], step->offset + step->at[j], owner,
					 kept ? &slot : &owner->recv[0],
					 kept ? 0 : step->offset + step->at[j], step->count[j]));
		}
	}
	return meet(d);
}

static spyre_status queue_all_reduce(const struct direct *d)
{
	const struct comm_op *first = d->ops[0];
	const uint64_t bytes = comm_part_bytes(&first->send[0]);
	const bool at_once = comm_at_once(first->comm, bytes) && first->kind == COMM_ALL_REDUCE;
	const uint64_t most = at_once ? COMM_BLOCK_BYTES : COMM_BLOCK_BYTES * d->size;
	struct step step;

	for (step.offset = 0; step.offset < bytes; step.offset += most) {
		const uint64_t now = bytes - step.offset < most ? bytes - step.offset : most;

		for (uint32_t i = 0; i < d->size; i++) {
			step.at[i] = 0;
			step.count[i] = now;
			if (!at_once)
				comm_share(first->comm, now, i, &step.at[i], &step.count[i]);
		}
		TRY(queue_reduction(d, &step));
		if (!at_once)
			TRY(queue_results(d, &step));
	}
	return SPYRE_SUCCESS;
}

static spyre_status queue_reduce_scatter(const struct direct *d)
{
	struct step step = { 0 };
	uint64_t most = 0;

	for (uint32_t i = 0; i < d->size; i++)
		if (comm_part_bytes(&d->ops[i]->recv[0]) > most)
			most = comm_part_bytes(&d->ops[i]->recv[0]);
	for (step.offset = 0; step.offset < most; step.offset += COMM_BLOCK_BYTES) {
		for (uint32_t i = 0; i < d->size; i++) {
			const uint64_t bytes = comm_part_bytes(&d->ops[i]->recv[0]);

			const uint64_t left = step.offset >= bytes ? 0 : bytes - step.offset;

			step.count[i] = left < COMM_BLOCK_BYTES ? left : COMM_BLOCK_BYTES;
		}
		TRY(queue_reduction(d, &step));
	}
	return SPYRE_SUCCESS;
}

static spyre_status queue_reductions(const struct direct *d)
{
	for (uint32_t i = 0; i < d->size; i++)
		TRY(scratch_get(d->ops[i]->comm));
	TRY(meet(d));
	return d->ops[0]->kind == COMM_REDUCE_SCATTER ? queue_reduce_scatter(d) :
							queue_all_reduce(d);
}

/*
 * The scratch memory of a communicator is used by one collective at a time: streams wait for
 * the collective before, which may have run on others.
 */
static spyre_status wait_for_last(const struct direct *d)
{
	for (uint32_t i = 0; i < d->size; i++)
		TRY(spyre_stream_wait_event(d->ops[i]->stream, d->ops[i]->comm->reached));
	return SPYRE_SUCCESS;
}

static spyre_status queue(const struct direct *d)
{
	TRY(wait_for_last(d));
	switch (d->ops[0]->kind) {
	case COMM_BARRIER:
		return meet(d);
	case COMM_ALL_REDUCE:
	case COMM_REDUCE:
	case COMM_REDUCE_SCATTER:
		return queue_reductions(d);
	default:
		return queue_moves(d);
	}
}

spyre_status comm_direct_queue(struct comm_op **ops, uint32_t size)
{
	const struct direct d = { ops, size };
	struct comm_family *family = ops[0]->comm->family;
	spyre_status status;

	pthread_mutex_lock(&family->lock);
	status = queue(&d);
	pthread_mutex_unlock(&family->lock);
	for (uint32_t i = 0; i < size; i++) {
		/* The streams may be in the middle of the collective, which cannot be undone. */
		if (status)
			comm_fail(ops[i]->comm, status, false);
		atomic_fetch_add_explicit(&ops[i]->comm->operations, 1, memory_order_relaxed);
		comm_op_free(ops[i]);
	}
	return status;
}
