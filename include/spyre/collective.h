/* SPDX-License-Identifier: MIT */
/*
 * Collectives: operations that several cards execute together.
 *
 * A communicator connects 1 to SPYRE_COMM_MAX_RANKS ranks. Each rank is a context, and the
 * ranks may be threads of a process, processes of a machine or processes of several machines.
 * A collective is called once for each rank, in the same order on all of them; each call queues
 * its part on a stream and returns without waiting for another rank.
 *
 *	spyre_comm_id id;
 *
 *	if (rank == 0)
 *		spyre_comm_get_id(&id);
 *	... pass the id to all ranks ...
 *	spyre_comm_init_rank(context, size, &id, rank, NULL, &comm);
 *	spyre_all_reduce(comm, x, x, &layout, (spyre_reduction){ .op = SPYRE_REDUCE_SUM }, stream);
 *	spyre_stream_synchronize(stream);
 *
 * The bits of a reduction do not depend on the number of processes, transport, algorithm or chunk
 * size: element by element, the contributions are added in the order of the ranks, floats in
 * fp32, and rounded to the format once.
 *
 * A rank that fails, or whose process ends, is reported by all others: their pending collectives
 * fail, which puts their streams into error, and so do later calls on the communicator. The
 * error names the rank. spyre_comm_abort(), spyre_context_reset() and spyre_comm_shrink()
 * continue with the ranks that are left.
 */
#ifndef SPYRE_COLLECTIVE_H
#define SPYRE_COLLECTIVE_H

#include <spyre/layout.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Largest number of ranks of a communicator. */
#define SPYRE_COMM_MAX_RANKS 64

/** One rank's end of a communicator. Its functions are thread safe. Since 0.1. */
typedef struct spyre_comm spyre_comm;

/**
 * Identifies a communicator that is being created. Plain bytes; any channel can carry it. It
 * contains the key that admits ranks, so only they should be able to read it. Since 0.1.
 */
typedef struct spyre_comm_id {
	char opaque[128];
} spyre_comm_id;

/** Options of a communicator. Zero members select the defaults. Since 0.1. */
typedef struct spyre_comm_config {
	/** in: sizeof(struct spyre_comm_config). */
	size_t struct_size;
	/**
	 * Limit in milliseconds of the arrival of all ranks, of their connection, and of each
	 * collective; SPYRE_COMM_TIMEOUT_MS.
	 */
	uint64_t timeout_ms;
	/** Name for messages and traces, NUL-terminated; "" selects "comm N". */
	char name[64];
} spyre_comm_config;

/**
 * Creates an identifier for one communicator. The calling process listens for its ranks until
 * all of them have arrived or the time limit of the first one has passed: on the address of
 * SPYRE_COMM_ADDRESS (default 127.0.0.1, which other machines cannot reach) and on the port of
 * SPYRE_COMM_PORT (default 0, any free port). Since 0.1.
 * Errors: CONFIGURATION (an address that is not one of this machine's), SYSTEM (the port is in
 * use; the message names it).
 */
SPYRE_API spyre_status spyre_comm_get_id(spyre_comm_id *id);

/**
 * Joins the communicator of @id as @rank of @size and waits for the other ranks. @config may be
 * NULL. The caller owns @comm and destroys it with spyre_comm_destroy(), before @context.
 * SPYRE_COMM_TRANSPORT=auto|shm|tcp chooses how bytes travel between processes, see
 * spyre_comm_info.transport. Since 0.1.
 * Errors: INVALID_ARGUMENT (@rank not below @size, a bad id, ranks that disagree on @size, a
 * rank that joined twice), TIMEOUT (the message lists the ranks that have not arrived), REMOTE (a
 * rank ended or failed meanwhile; the message names it), CONFIGURATION, UNSUPPORTED (ranks on
 * other machines without libfabric, an id from a host of the other byte order), SYSTEM.
 */
SPYRE_API spyre_status spyre_comm_init_rank(spyre_context *context, uint32_t size,
					    const spyre_comm_id *id, uint32_t rank,
					    const spyre_comm_config *config, spyre_comm **comm);

/**
 * Creates a communicator of @size contexts of this process, which may be on the same or on
 * different cards. @comms receives one end for each, in their order. Since 0.1.
 * Errors: those of spyre_comm_init_rank().
 */
SPYRE_API spyre_status spyre_comm_init_all(spyre_context *const *contexts, uint32_t size,
					   const spyre_comm_config *config, spyre_comm **comms);

/** Colour of a rank that takes part in spyre_comm_split() without joining a group. */
#define SPYRE_COMM_NO_COLOR (-1)

/**
 * Divides a communicator: ranks that pass the same @color, 0 or above, form a new one, in the
 * order of their @key and, for equal keys, of their old ranks. All ranks must call this, and
 * each waits for the others, for as long as the limit of the new communicator. @split is NULL for
 * SPYRE_COMM_NO_COLOR. If a rank does not call, or fails before all have called, @comm fails on all
 * ranks. Since 0.1.
 * Errors: those of spyre_comm_init_rank().
 */
SPYRE_API spyre_status spyre_comm_split(spyre_comm *comm, int32_t color, int32_t key,
					const spyre_comm_config *config, spyre_comm **split);

/**
 * Creates a communicator without the @num_excluded ranks listed in @excluded, in the order of
 * the old ranks. All others must call this with the same list, and each waits for the others, for
 * as long as the limit of the new communicator; @comm may have failed or be aborted, so that a job
 * continues without a rank that was lost. Since 0.1.
 * Errors: INVALID_ARGUMENT (the caller is excluded, no such rank), and those of
 * spyre_comm_init_rank().
 */
SPYRE_API spyre_status spyre_comm_shrink(spyre_comm *comm, const uint32_t *excluded,
					 uint32_t num_excluded, const spyre_comm_config *config,
					 spyre_comm **shrunk);

/**
 * Waits until the collectives that this rank has queued are finished. Since 0.1.
 * Errors: the communicator's error.
 */
SPYRE_API spyre_status spyre_comm_finalize(spyre_comm *comm);

/**
 * Waits for the rank's collectives, tells the other ranks that it leaves and frees @comm. NULL
 * is allowed and has no effect. Failed collectives do not make the call fail. Since 0.1.
 * Errors: BUSY (called from a host function).
 */
SPYRE_API spyre_status spyre_comm_destroy(spyre_comm *comm);

/**
 * Ends the communicator's pending collectives on all ranks with CANCELLED, without waiting for
 * any of them. Later calls on it fail, but spyre_comm_shrink() and spyre_comm_destroy(). May be
 * called from any thread while others use @comm. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_comm_abort(spyre_comm *comm);

/**
 * Returns the communicator's first failure, or SUCCESS, in @error; spyre_last_error() then has
 * its text. Does not wait. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_comm_get_error(spyre_comm *comm, spyre_status *error);

/**
 * Sets the limit of the collectives of this rank that are called from now on, counted from the
 * moment at which their stream begins them. Ranks may have different limits; the first one that
 * passes ends the communicator. Since 0.1.
 * Errors: INVALID_ARGUMENT (@timeout_ms is 0).
 */
SPYRE_API spyre_status spyre_comm_set_timeout(spyre_comm *comm, uint64_t timeout_ms);

/** Properties of a communicator. Since 0.1. */
typedef struct spyre_comm_info {
	/** in: sizeof(struct spyre_comm_info). */
	size_t struct_size;
	uint32_t rank;
	uint32_t size;
	spyre_context *context;
	/** Ranks of this process, and of other processes of this machine. */
	uint32_t ranks_of_process;
	uint32_t ranks_of_machine;
	uint64_t timeout_ms;
	/** Bytes of a message of the transports. */
	uint64_t chunk_bytes;
	/** Collectives and bytes that this rank has sent and received so far. */
	uint64_t operations;
	uint64_t bytes_sent;
	uint64_t bytes_received;
	char name[64];
	/** Transports in use: "peer", "shm", "tcp", joined by "+". */
	char transport[32];
} spyre_comm_info;

/**
 * Reads the properties of @comm. The caller sets @info->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_comm_get_info(spyre_comm *comm, spyre_comm_info *info);

/**
 * Starts a group of calls of this thread: collectives are collected until the matching
 * spyre_group_end(). Groups may be nested. In a group the calls for several ranks of one thread
 * may be made in any order, and sends and receives proceed together. Since 0.1.
 */
SPYRE_API spyre_status spyre_group_begin(void);

/**
 * Ends a group and, if it is the outermost, queues its calls. Collectives that the group has
 * for all ranks of spyre_comm_init_all() are executed by their streams alone. Since 0.1.
 * Errors: INVALID_ARGUMENT (there is no group), and those of the calls; the calls behind the
 * one that failed are dropped.
 */
SPYRE_API spyre_status spyre_group_end(void);

/** Operator of a reduction. Since 0.1. */
typedef enum spyre_reduce_op {
	SPYRE_REDUCE_SUM = 0,
	/** The sum times 1 / size, in fp32. Floats only. */
	SPYRE_REDUCE_AVG = 1,
	SPYRE_REDUCE_PRODUCT = 2,
	SPYRE_REDUCE_MIN = 3,
	SPYRE_REDUCE_MAX = 4,
	/** Integers only. */
	SPYRE_REDUCE_BAND = 5,
	SPYRE_REDUCE_BOR = 6,
	SPYRE_REDUCE_BXOR = 7,
	/** The sum of all contributions times this rank's factor, in fp32. Floats only. */
	SPYRE_REDUCE_PREMUL_SUM = 8,
} spyre_reduce_op;

/** A reduction: (spyre_reduction){ .op = SPYRE_REDUCE_SUM }. Since 0.1. */
typedef struct spyre_reduction {
	spyre_reduce_op op;
	/** Of PREMUL_SUM, equal on all ranks. */
	float factor;
} spyre_reduction;

/**
 * Device memory of one rank's part of a collective: @rows runs of @row_bytes, @pitch bytes from
 * one to the next. @address, @row_bytes and @pitch are multiples of 128. Since 0.1.
 */
typedef struct spyre_comm_part {
	spyre_devptr address;
	spyre_format format;
	uint64_t rows;
	uint64_t row_bytes;
	uint64_t pitch;
} spyre_comm_part;

/**
 * Describes a whole tensor at @address as a part of one run. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_comm_part_init(spyre_comm_part *part, spyre_devptr address,
					    const spyre_layout *layout);

/**
 * Describes the entries @first to @first + @count - 1 of device dimension @dim, which is not
 * the stick, of the tensor at @address. Rows of a matrix, for instance, are entries of device
 * dimension 1 of its default layout. Since 0.1.
 * Errors: INVALID_ARGUMENT (no such dimension or entries).
 */
SPYRE_API spyre_status spyre_comm_part_slice(spyre_comm_part *part, spyre_devptr address,
					     const spyre_layout *layout, uint32_t dim,
					     int64_t first, int64_t count);

/*
 * Collectives. Tensors are given by device addresses of the communicator's context and their
 * layout, which must be equal on all ranks, or by parts, of which the number of bytes and the
 * format must be equal on the sending and the receiving rank. Padding is transferred and reduced
 * like elements. @stream is a stream of the communicator's context; the call's part of the
 * collective executes after the work queued on it before, and work queued after it waits.
 * Memory must stay allocated until then. send and recv must not overlap, but a reduction or
 * broadcast may be in place, and so may a rank's own slice of a gather, scatter or
 * reduce_scatter.
 *
 * A captured call is part of the graph: each launch executes it, and all ranks launch theirs. It
 * has no place in the order of calls, so order launches and other collectives by streams and
 * events. Destroy such graphs before the communicator.
 *
 * Errors of all collectives: INVALID_ARGUMENT (a root or peer that is not a rank, a stream of
 * another context, a part that is not aligned), INVALID_ADDRESS, LAYOUT, FORMAT (an operator
 * that the format does not have), CANCELLED (the communicator was aborted), and the errors of
 * the communicator and of the stream. Ranks whose calls differ in operation, operator, bytes,
 * layout, format or root fail with ARGUMENT_MISMATCH when the collectives execute; the message
 * has both calls.
 */

/**
 * Reduces @send of all ranks element by element into @recv of all ranks. Since 0.1.
 */
SPYRE_API spyre_status spyre_all_reduce(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
					const spyre_layout *layout, spyre_reduction reduction,
					spyre_stream *stream);

/** Reduces @send of all ranks into @recv of @root; other ranks may pass 0. Since 0.1. */
SPYRE_API spyre_status spyre_reduce(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
				    const spyre_layout *layout, spyre_reduction reduction,
				    uint32_t root, spyre_stream *stream);

/** Copies @send of @root to @recv of all ranks; others than the root may pass 0. Since 0.1. */
SPYRE_API spyre_status spyre_broadcast(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
				       const spyre_layout *layout, uint32_t root,
				       spyre_stream *stream);

/**
 * Copies @send of rank r to slice r of @recv on all ranks. One device dimension of @recv_layout
 * is as many times as large as that of @send_layout as there are ranks, and all others are
 * equal; slice r are its r-th entries. Since 0.1.
 */
SPYRE_API spyre_status spyre_all_gather(spyre_comm *comm, spyre_devptr send,
					const spyre_layout *send_layout, spyre_devptr recv,
					const spyre_layout *recv_layout, spyre_stream *stream);

/**
 * Reduces slice r of @send of all ranks into @recv of rank r. The layouts are related as those
 * of spyre_all_gather(), the other way around. Since 0.1.
 */
SPYRE_API spyre_status spyre_reduce_scatter(spyre_comm *comm, spyre_devptr send,
					    const spyre_layout *send_layout, spyre_devptr recv,
					    const spyre_layout *recv_layout,
					    spyre_reduction reduction, spyre_stream *stream);

/** Copies @send of rank r to slice r of @recv of @root; others may pass 0 for it. Since 0.1. */
SPYRE_API spyre_status spyre_gather(spyre_comm *comm, spyre_devptr send,
				    const spyre_layout *send_layout, spyre_devptr recv,
				    const spyre_layout *recv_layout, uint32_t root,
				    spyre_stream *stream);

/** Copies slice r of @send of @root to @recv of rank r; others may pass 0 for it. Since 0.1. */
SPYRE_API spyre_status spyre_scatter(spyre_comm *comm, spyre_devptr send,
				     const spyre_layout *send_layout, spyre_devptr recv,
				     const spyre_layout *recv_layout, uint32_t root,
				     spyre_stream *stream);

/**
 * Copies slice r of @send to slice s of @recv of rank r, where s is this rank. Slices are those
 * of device dimension @dim, which the number of ranks divides. Since 0.1.
 */
SPYRE_API spyre_status spyre_all_to_all(spyre_comm *comm, spyre_devptr send, spyre_devptr recv,
					const spyre_layout *layout, uint32_t dim,
					spyre_stream *stream);

/** Copies @send of rank r to @recv[r] on all ranks; parts may have any sizes. Since 0.1. */
SPYRE_API spyre_status spyre_all_gather_v(spyre_comm *comm, const spyre_comm_part *send,
					  const spyre_comm_part *recv, spyre_stream *stream);

/** Reduces @send[r] of all ranks into @recv of rank r. Since 0.1. */
SPYRE_API spyre_status spyre_reduce_scatter_v(spyre_comm *comm, const spyre_comm_part *send,
					      const spyre_comm_part *recv,
					      spyre_reduction reduction, spyre_stream *stream);

/** Copies @send of rank r to @recv[r] of @root; others may pass NULL for @recv. Since 0.1. */
SPYRE_API spyre_status spyre_gather_v(spyre_comm *comm, const spyre_comm_part *send,
				      const spyre_comm_part *recv, uint32_t root,
				      spyre_stream *stream);

/** Copies @send[r] of @root to @recv of rank r; others may pass NULL for @send. Since 0.1. */
SPYRE_API spyre_status spyre_scatter_v(spyre_comm *comm, const spyre_comm_part *send,
				       const spyre_comm_part *recv, uint32_t root,
				       spyre_stream *stream);

/** Copies @send[r] to @recv[s] of rank r, where s is this rank. Since 0.1. */
SPYRE_API spyre_status spyre_all_to_all_v(spyre_comm *comm, const spyre_comm_part *send,
					  const spyre_comm_part *recv, spyre_stream *stream);

/**
 * Sends @part to rank @peer. Sends to one rank are received in their order. A send finishes
 * when its last bytes are in the transport's memory; large ones wait for the receiver, so that
 * two ranks that send to each other before they receive must use a group or two streams.
 * Since 0.1.
 */
SPYRE_API spyre_status spyre_send(spyre_comm *comm, const spyre_comm_part *part, uint32_t peer,
				  spyre_stream *stream);

/** Receives what rank @peer sends next into @part. Since 0.1. */
SPYRE_API spyre_status spyre_recv(spyre_comm *comm, const spyre_comm_part *part, uint32_t peer,
				  spyre_stream *stream);

/** Finishes when all ranks have reached it. Since 0.1. */
SPYRE_API spyre_status spyre_barrier(spyre_comm *comm, spyre_stream *stream);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_COLLECTIVE_H */
