/* SPDX-License-Identifier: MIT */
/* A call of a collective, from the moment it is queued until it has executed. Internal. */
#ifndef SPYRE_COMM_OPERATION_H
#define SPYRE_COMM_OPERATION_H

#include "libspyre/comm/comm.h"

enum comm_kind {
	COMM_ALL_REDUCE,
	COMM_REDUCE,
	COMM_BROADCAST,
	COMM_ALL_GATHER,
	COMM_REDUCE_SCATTER,
	COMM_GATHER,
	COMM_SCATTER,
	COMM_ALL_TO_ALL,
	COMM_BARRIER,
	/* Sends and receives of one group. */
	COMM_POINT_TO_POINT,
};

/* One end of a point-to-point operation. */
struct comm_message {
	enum comm_direction direction;
	uint32_t peer;
	/* Its place among the operations of the link. */
	uint64_t order;
	spyre_comm_part part;
};

struct comm_op {
	STAILQ_ENTRY(comm_op) link;
	spyre_comm *comm;
	spyre_stream *stream;
	enum comm_kind kind;
	spyre_reduction reduction;
	uint32_t root;
	/* Its place among the collectives of the communicator. */
	uint64_t order;
	/* Limit of its execution, and when it passes. */
	uint64_t timeout_ns;
	int64_t deadline_ns;
	/* Recorded in a graph: it executes at each launch, and is freed with the communicator. */
	bool captured;
	/*
	 * Parts in the order of the ranks: all of them, or one that is the same for all. Those
	 * that the rank does not have are empty.
	 */
	spyre_comm_part send[SPYRE_COMM_MAX_RANKS];
	spyre_comm_part recv[SPYRE_COMM_MAX_RANKS];
	bool sends_many;
	bool receives_many;
	/* Hash of the layout that the caller gave, equal on all ranks; 0 for parts. */
	uint32_t layout;
	/* Of COMM_POINT_TO_POINT. */
	struct comm_message *messages;
	size_t num_messages;
	size_t max_messages;
};

/* operation.c */
const char *comm_kind_name(enum comm_kind kind);
struct comm_op *comm_op_new(spyre_comm *comm, enum comm_kind kind, spyre_stream *stream);
void comm_op_free(struct comm_op *op);
/* Queues @op on its stream, and owns it from now on, also after an error. */
spyre_status comm_op_queue(struct comm_op *op);
/* Waits for the operations that have to execute before @op. */
spyre_status comm_op_wait_order(struct comm_op *op);
/* SUCCESS while @op may go on: the limit has not passed and neither stream nor rank failed. */
spyre_status comm_op_check(struct comm_op *op);

/* group.c */
/* Adds @op to the thread's group or, outside of one, queues it. */
spyre_status comm_group_add(struct comm_op *op);

/* run.c */
/* Executes @op on the calling thread. */
spyre_status comm_run(struct comm_op *op);

/* Bytes of each rank's part that are reduced at a time, which bounds the scratch memory. */
#define COMM_BLOCK_BYTES (1ull << 20)
/* Scratch memory: a slot for the contribution of each rank, and one for the result. */
#define COMM_SCRATCH_BYTES(ranks) (((ranks) + 1) * COMM_BLOCK_BYTES)

/* True if every rank sums all contributions by itself. */
bool comm_at_once(const spyre_comm *comm, uint64_t bytes);
/* Slot @index of the scratch memory @scratch. */
spyre_comm_part comm_slot(spyre_devptr scratch, uint32_t index);
/* The range of rank @rank among @bytes that all ranks share, in whole sticks. */
void comm_share(const spyre_comm *comm, uint64_t bytes, uint32_t rank, uint64_t *at,
		uint64_t *count);
/*
 * Queues the combination of @bytes of contributions: those of other ranks from their slots of
 * @scratch, this rank's from @own_offset of @own. The result goes to @out_offset of @out, or to
 * its slot if @out is NULL.
 */
spyre_status comm_combine(struct comm_op *op, spyre_stream *stream, spyre_devptr scratch,
			  const spyre_comm_part *own, uint64_t own_offset,
			  const spyre_comm_part *out, uint64_t out_offset, uint64_t bytes);

/* part.c */
static inline uint64_t comm_part_bytes(const spyre_comm_part *part)
{
	return part->rows * part->row_bytes;
}

/*
 * Returns the address of byte @offset of the contents of @part; *@bytes is reduced to what
 * follows it in the same row.
 */
spyre_devptr comm_part_at(const spyre_comm_part *part, uint64_t offset, uint64_t *bytes);
/* Checks a caller's part: its alignment, and that it lies within an allocation. */
spyre_status comm_part_check(spyre_comm *comm, const spyre_comm_part *part, const char *name);
/* Queues copies between @host and @bytes of the contents of @part from @offset on. */
spyre_status comm_part_copy(spyre_stream *stream, const spyre_comm_part *part, uint64_t offset,
			    void *host, uint64_t bytes, enum comm_direction direction);
/* Queues a copy of @bytes of the contents of a part to those of another one. */
spyre_status comm_part_move(spyre_stream *stream, const spyre_comm_part *to, uint64_t to_offset,
			    const spyre_comm_part *from, uint64_t from_offset, uint64_t bytes);

#endif /* SPYRE_COMM_OPERATION_H */
