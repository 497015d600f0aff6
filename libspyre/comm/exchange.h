/* SPDX-License-Identifier: MIT */
/* Transfers between the device memory of this rank and links to others. Internal. */
#ifndef SPYRE_COMM_EXCHANGE_H
#define SPYRE_COMM_EXCHANGE_H

#include "libspyre/comm/operation.h"

/* A part, or a range of its contents, that goes to or comes from one rank. */
struct comm_transfer {
	uint32_t peer;
	enum comm_direction direction;
	spyre_comm_part part;
	uint64_t offset;
	uint64_t bytes;
	/* Number of the operation, equal at both ends. */
	uint64_t order;
	/* Bytes of the whole tensor or part, of which the transfer may be a piece. */
	uint64_t total;
	/* Set by comm_exchange(). */
	struct comm_link *link;
	bool greeted;
	uint64_t done;
	/* The rank had left or ended before this iteration looked for its messages. */
	bool gone;
	/*
	 * Messages of this iteration, which end with the copies that were queued. @greets: the
	 * first of them is the description.
	 */
	uint32_t messages;
	bool greets;
	uint32_t sizes[4];
};

/*
 * Executes @n transfers of @op, with at most one for each link. @first: these are the first
 * transfers of the operation on their links, which begin with a description of the operation
 * that the other rank compares with its own.
 */
spyre_status comm_exchange(struct comm_op *op, enum comm_class class, struct comm_transfer *all,
			   uint32_t n, bool first);

#endif /* SPYRE_COMM_EXCHANGE_H */
