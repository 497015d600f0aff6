/* SPDX-License-Identifier: MIT */
/* Collectives of ranks that all belong to one process and one group of calls. Internal. */
#ifndef SPYRE_COMM_DIRECT_H
#define SPYRE_COMM_DIRECT_H

#include "libspyre/comm/operation.h"

/* The ends of a communicator that spyre_comm_init_all() made. */
struct comm_family {
	_Atomic uint32_t refs;
	uint32_t size;
	/* An end that was destroyed is NULL. Protected by @lock. */
	pthread_mutex_t lock;
	spyre_comm *comms[SPYRE_COMM_MAX_RANKS];
};

/* Connects the ends of a communicator, if their cards can copy from each other. */
spyre_status comm_family_create(spyre_comm *const *comms, uint32_t size);
void comm_family_leave(spyre_comm *comm);

/* True if the calls of all ranks, in their order, can be executed without their threads. */
bool comm_direct_possible(struct comm_op *const *ops, uint32_t size);
/* Queues the calls on their streams, and frees them. */
spyre_status comm_direct_queue(struct comm_op **ops, uint32_t size);

#endif /* SPYRE_COMM_DIRECT_H */
