// SPDX-License-Identifier: MIT
/* The calls of collectives: checks of their arguments, and the operations that they queue. */
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

#include "libspyre/comm/operation.h"

/* SUCCESS if @comm and @stream may be used together. */
static spyre_status check_call(spyre_comm *comm, spyre_stream *stream)
{
	TRY(comm_check(comm));
	TRY(spyre_stream_check(stream));
	if (stream->context != comm->context)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the stream does not belong to the "
				   "context of rank %u", comm->rank);
	return SPYRE_SUCCESS;
}

static spyre_status check_rank(const spyre_comm *comm, uint32_t rank, const char *name)
{
	if (rank < comm->size)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s %u is not a rank of a communicator of %u",
			   name, rank, comm->size);
}

/* Begins a call: checks what all have in common and creates @op. */
static spyre_status begin(spyre_comm *comm, enum comm_kind kind, spyre_stream *stream,
			  uint32_t root, struct comm_op **op)
{
	spyre_status status = check_call(comm, stream);

	if (!status)
		status = check_rank(comm, root, "root");
	if (status)
		return spyre_error_prefix(status, "%s", comm_kind_name(kind));
	*op = comm_op_new(comm, kind, stream);
	if (!*op)
		return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	(*op)->root = root;
	return SPYRE_SUCCESS;
}

/* The part that the rank sends to itself has to be the one that it receives. */
static spyre_status check_own_parts(const struct comm_op *op)
{
	const uint32_t rank = op->comm->rank;
	const uint64_t sent = comm_part_bytes(&op->send[op->sends_many ? rank : 0]);
	const uint64_t received = comm_part_bytes(&op->recv[op->receives_many ? rank : 0]);
	const bool rooted = op->kind == COMM_GATHER || op->kind == COMM_SCATTER ||
			    op->kind == COMM_REDUCE || op->kind == COMM_BROADCAST;

	if (sent == received || (rooted && rank != op->root))
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_LAYOUT, "send%s has %" PRIu64 " bytes, recv%s %" PRIu64
			   "; rank %u would send and receive different parts of its own",
			   op->sends_many ? "[rank]" : "", sent, op->receives_many ? "[rank]" : "",
			   received, rank);
}

static spyre_status check_parts(struct comm_op *op)
{
	TRY(check_own_parts(op));
	for (uint32_t i = 0; i < op->comm->size; i++) {
		if (op->sends_many || !i)
			TRY(comm_part_check(op->comm, &op->send[i], "send"));
		if (op->receives_many || !i)
			TRY(comm_part_check(op->comm, &op->recv[i], "recv"));
	}
	return SPYRE_SUCCESS;
}

/* Ends a call that has filled the operation, or failed with @status. */
static spyre_status end(struct comm_op *op, spyre_status status)
{
	const enum comm_kind kind = op->kind;

	if (!status)
		status = check_parts(op);
	if (status)
		comm_op_free(op);
	else
		status = comm_group_add(op);
	return status ? spyre_error_prefix(status, "%s", comm_kind_name(kind)) : status;
}

static spyre_status check_layout(const spyre_layout *layout)
{
	if (!layout)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the layout is NULL");
	if (!layout->device_rank || layout->device_rank > SPYRE_MAX_DEVICE_RANK)
		return spyre_error(SPYRE_ERROR_LAYOUT, "the layout has %u dimensions",
				   layout->device_rank);
	return SPYRE_SUCCESS;
}

/*
 * Ranks compare this, since their elements would be mixed up if they had other places in the
 * same number of bytes. Dimensions of one entry move nothing.
 */
static uint32_t layout_hash(const spyre_layout *layout)
{
	int64_t places[2 * SPYRE_MAX_DEVICE_RANK];
	uint32_t n = 0, hash;

	for (uint32_t i = 0; i < layout->device_rank; i++) {
		if (layout->device_size[i] == 1)
			continue;
		places[n++] = layout->device_size[i];
		places[n++] = layout->stride_map[i];
	}
	hash = (uint32_t)XXH3_64bits(places, n * sizeof(places[0]));
	return hash ? hash : 1;
}

/* Describes the tensors of a collective whose sends and receives have one layout. */
static spyre_status whole(struct comm_op *op, spyre_devptr send, spyre_devptr recv,
			  const spyre_layout *layout)
{
	TRY(check_layout(layout));
	op->layout = layout_hash(layout);
	TRY(spyre_comm_part_init(&op->send[0], send, layout));
	return spyre_comm_part_init(&op->recv[0], recv, layout);
}

/* Finds the device dimension of which each rank has a slice. */
static spyre_status find_dim(const spyre_layout *part, const spyre_layout *all, uint32_t size,
			     uint32_t *dim)
{
	uint32_t found = 0;

	TRY(check_layout(part));
	TRY(check_layout(all));
	*dim = 0;
	for (uint32_t i = 0; part->device_rank == all->device_rank && i + 1 < part->device_rank;
	     i++) {
		if (part->device_size[i] == all->device_size[i])
			continue;
		*dim = i;
		found++;
		if (part->device_size[i] * (int64_t)size != all->device_size[i])
			found++;
	}
	if (part->device_rank == all->device_rank && part->device_format == all->device_format &&
	    (size == 1 ? !found : found == 1) &&
	    part->device_size[part->device_rank - 1] == all->device_size[all->device_rank - 1])
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_LAYOUT, "the layouts of a part and of all parts must be equal "
			   "but for one device dimension, not the stick, in which the other is %u "
			   "times as large; use the _v call for other parts", size);
}

static spyre_status slices(spyre_comm_part *parts, spyre_devptr address, const spyre_layout *layout,
			   uint32_t dim, uint32_t size)
{
	const int64_t count = layout->device_size[dim] / (int64_t)size;

	for (uint32_t i = 0; i < size; i++)
		TRY(spyre_comm_part_slice(&parts[i], address, layout, dim, i * count, count));
	return SPYRE_SUCCESS;
}

/* Describes a collective with slices of @many_layout on one side and whole tensors on the other. */
static spyre_status sliced(struct comm_op *op, spyre_comm_part *one, spyre_devptr address,
			   const spyre_layout *layout, spyre_comm_part *many,
			   spyre_devptr many_address, const spyre_layout *many_layout)
{
	uint32_t dim;

	TRY(find_dim(layout, many_layout, op->comm->size, &dim));
	op->layout = layout_hash(layout);
	TRY(spyre_comm_part_init(one, address, layout));
	return slices(many, many_address, many_layout, dim, op->comm->size);
}

static spyre_status copy_parts(spyre_comm_part *to, const spyre_comm_part *from, uint32_t n,
			       const char *name)
{
	if (!from)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s is NULL", name);
	memcpy(to, from, n * sizeof(*to));
	return SPYRE_SUCCESS;
}

static spyre_status reduces(struct comm_op *op, spyre_reduction reduction)
{
	op->reduction = reduction;
	/* The factor of other operators has no meaning, and ranks compare it. */
	if (reduction.op != SPYRE_REDUCE_PREMUL_SUM)
		op->reduction.factor = 0;
	return comm_reduce_check(op->send[0].format, reduction);
}

spyre_status spyre_all_reduce(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
			      const spyre_layout *layout, spyre_reduction reduction,
			      spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_ALL_REDUCE, stream, 0, &op));
	status = whole(op, send, recv, layout);
	if (!status)
		status = reduces(op, reduction);
	return end(op, status);
}

spyre_status spyre_reduce(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
			  const spyre_layout *layout, spyre_reduction reduction, uint32_t root,
			  spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_REDUCE, stream, root, &op));
	status = whole(op, send, recv, layout);
	if (!status && comm->rank != root)
		op->recv[0].rows = 0;
	if (!status)
		status = reduces(op, reduction);
	return end(op, status);
}

spyre_status spyre_broadcast(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
			     const spyre_layout *layout, uint32_t root, spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_BROADCAST, stream, root, &op));
	status = whole(op, send, recv, layout);
	if (!status && comm->rank != root)
		op->send[0].rows = 0;
	return end(op, status);
}

spyre_status spyre_all_gather(spyre_comm *comm, spyre_devptr send,
			      const spyre_layout *send_layout, spyre_devptr recv,
			      const spyre_layout *recv_layout, spyre_stream *stream)
{
	struct comm_op *op;

	TRY(begin(comm, COMM_ALL_GATHER, stream, 0, &op));
	op->receives_many = true;
	return end(op, sliced(op, op->send, send, send_layout, op->recv, recv, recv_layout));
}

spyre_status spyre_all_gather_v(spyre_comm *comm, const spyre_comm_part *send,
				const spyre_comm_part *recv, spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_ALL_GATHER, stream, 0, &op));
	op->receives_many = true;
	status = copy_parts(op->send, send, 1, "send");
	if (!status)
		status = copy_parts(op->recv, recv, comm->size, "recv");
	return end(op, status);
}

spyre_status spyre_reduce_scatter(spyre_comm *comm, spyre_devptr send,
				  const spyre_layout *send_layout, spyre_devptr recv,
				  const spyre_layout *recv_layout, spyre_reduction reduction,
				  spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_REDUCE_SCATTER, stream, 0, &op));
	op->sends_many = true;
	status = sliced(op, op->recv, recv, recv_layout, op->send, send, send_layout);
	if (!status)
		status = reduces(op, reduction);
	return end(op, status);
}

spyre_status spyre_reduce_scatter_v(spyre_comm *comm, const spyre_comm_part *send,
				    const spyre_comm_part *recv, spyre_reduction reduction,
				    spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_REDUCE_SCATTER, stream, 0, &op));
	op->sends_many = true;
	status = copy_parts(op->recv, recv, 1, "recv");
	if (!status)
		status = copy_parts(op->send, send, comm->size, "send");
	if (!status)
		status = reduces(op, reduction);
	return end(op, status);
}

spyre_status spyre_gather(spyre_comm *comm, spyre_devptr send, const spyre_layout *send_layout,
			  spyre_devptr recv, const spyre_layout *recv_layout, uint32_t root,
			  spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_GATHER, stream, root, &op));
	op->receives_many = comm->rank == root;
	if (op->receives_many) {
		status = sliced(op, op->send, send, send_layout, op->recv, recv, recv_layout);
	} else {
		status = check_layout(send_layout);
		if (!status)
			op->layout = layout_hash(send_layout);
		if (!status)
			status = spyre_comm_part_init(op->send, send, send_layout);
	}
	return end(op, status);
}

spyre_status spyre_gather_v(spyre_comm *comm, const spyre_comm_part *send,
			    const spyre_comm_part *recv, uint32_t root, spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_GATHER, stream, root, &op));
	op->receives_many = comm->rank == root;
	status = copy_parts(op->send, send, 1, "send");
	if (!status && op->receives_many)
		status = copy_parts(op->recv, recv, comm->size, "recv");
	return end(op, status);
}

spyre_status spyre_scatter(spyre_comm *comm, spyre_devptr send, const spyre_layout *send_layout,
			   spyre_devptr recv, const spyre_layout *recv_layout, uint32_t root,
			   spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_SCATTER, stream, root, &op));
	op->sends_many = comm->rank == root;
	if (op->sends_many) {
		status = sliced(op, op->recv, recv, recv_layout, op->send, send, send_layout);
	} else {
		status = check_layout(recv_layout);
		if (!status)
			op->layout = layout_hash(recv_layout);
		if (!status)
			status = spyre_comm_part_init(op->recv, recv, recv_layout);
	}
	return end(op, status);
}

spyre_status spyre_scatter_v(spyre_comm *comm, const spyre_comm_part *send,
			     const spyre_comm_part *recv, uint32_t root, spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_SCATTER, stream, root, &op));
	op->sends_many = comm->rank == root;
	status = copy_parts(op->recv, recv, 1, "recv");
	if (!status && op->sends_many)
		status = copy_parts(op->send, send, comm->size, "send");
	return end(op, status);
}

spyre_status spyre_all_to_all(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
			      const spyre_layout *layout, uint32_t dim, spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_ALL_TO_ALL, stream, 0, &op));
	op->sends_many = op->receives_many = true;
	status = check_layout(layout);
	if (!status)
		op->layout = layout_hash(layout);
	if (!status && dim + 1 < layout->device_rank &&
	    layout->device_size[dim] % (int64_t)comm->size)
		status = spyre_error(SPYRE_ERROR_LAYOUT, "%u ranks do not divide the %" PRId64
				     " entries of device dimension %u", comm->size,
				     layout->device_size[dim], dim);
	if (!status)
		status = dim + 1 < layout->device_rank ?
			 slices(op->send, send, layout, dim, comm->size) :
			 spyre_comm_part_slice(op->send, send, layout, dim, 0, 0);
	if (!status)
		status = slices(op->recv, recv, layout, dim, comm->size);
	return end(op, status);
}

spyre_status spyre_all_to_all_v(spyre_comm *comm, const spyre_comm_part *send,
				const spyre_comm_part *recv, spyre_stream *stream)
{
	spyre_status status;
	struct comm_op *op;

	TRY(begin(comm, COMM_ALL_TO_ALL, stream, 0, &op));
	op->sends_many = op->receives_many = true;
	status = copy_parts(op->send, send, comm->size, "send");
	if (!status)
		status = copy_parts(op->recv, recv, comm->size, "recv");
	return end(op, status);
}

spyre_status spyre_barrier(spyre_comm *comm, spyre_stream *stream)
{
	struct comm_op *op;

	TRY(begin(comm, COMM_BARRIER, stream, 0, &op));
	return end(op, SPYRE_SUCCESS);
}

static spyre_status message(spyre_comm *comm, const spyre_comm_part *part, uint32_t peer,
			    enum comm_direction direction, spyre_stream *stream)
{
	const char *name = direction == COMM_SEND ? "send" : "recv";
	spyre_status status = check_call(comm, stream);
	struct comm_op *op;

	if (!status)
		status = check_rank(comm, peer, "peer");
	if (!status && !part)
		status = spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the part is NULL");
	if (!status)
		status = comm_part_check(comm, part, "part");
	if (status)
		return spyre_error_prefix(status, "%s", name);
	op = comm_op_new(comm, COMM_POINT_TO_POINT, stream);
	if (op)
		op->messages = malloc(sizeof(*op->messages));
	if (!op || !op->messages) {
		if (op)
			comm_op_free(op);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory to queue it", name);
	}
	op->num_messages = op->max_messages = 1;
	op->messages[0] = (struct comm_message){
		.direction = direction, .peer = peer, .part = *part,
	};
	status = comm_group_add(op);
	return status ? spyre_error_prefix(status, "%s", name) : status;
}

spyre_status spyre_send(spyre_comm *comm, const spyre_comm_part *part, uint32_t peer,
			spyre_stream *stream)
{
	return message(comm, part, peer, COMM_SEND, stream);
}

spyre_status spyre_recv(spyre_comm *comm, const spyre_comm_part *part, uint32_t peer,
			spyre_stream *stream)
{
	return message(comm, part, peer, COMM_RECV, stream);
}
