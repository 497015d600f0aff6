/* SPDX-License-Identifier: MIT */
/* Links between ranks of several machines: libfabric. Internal. */
#ifndef SPYRE_COMM_FABRIC_H
#define SPYRE_COMM_FABRIC_H

#include "config.h"
#include "libspyre/comm/comm.h"

/* Fails for a rank that cannot be reached, with the reason and the remedy. */
spyre_status comm_fabric_missing(void);

#ifdef HAVE_LIBFABRIC

/* Opens an endpoint at SPYRE_COMM_ADDRESS and writes its name to @address. */
spyre_status comm_fabric_open(spyre_comm *comm, struct comm_address *address);
/*
 * Makes the links to the ranks of @remote, whose addresses and control connections are known.
 * Closes the endpoint if there are none.
 */
spyre_status comm_fabric_connect(spyre_comm *comm, const bool *remote, int64_t deadline_ns);
/* Moves messages on; an error is one of the provider, or a message that no rank sends. */
spyre_status comm_fabric_progress(spyre_comm *comm);
/* Sleeps until the bell differs from @value, a message may have moved or the deadline passes. */
void comm_fabric_wait(spyre_comm *comm, uint32_t value, int64_t deadline_ns);
/* Waits until the messages that were posted have reached the memory of their receivers. */
void comm_fabric_flush(spyre_comm *comm);
void comm_fabric_close(spyre_comm *comm);

#else

static inline spyre_status comm_fabric_open(spyre_comm *comm, struct comm_address *address)
{
	return comm_fabric_missing();
}

static inline spyre_status comm_fabric_connect(spyre_comm *comm, const bool *remote,
					       int64_t deadline_ns)
{
	for (uint32_t i = 0; i < comm->size; i++)
		if (remote[i])
			return comm_fabric_missing();
	return SPYRE_SUCCESS;
}

static inline spyre_status comm_fabric_progress(spyre_comm *comm)
{
	return SPYRE_SUCCESS;
}

static inline void comm_fabric_wait(spyre_comm *comm, uint32_t value, int64_t deadline_ns)
{
}

static inline void comm_fabric_flush(spyre_comm *comm)
{
}

static inline void comm_fabric_close(spyre_comm *comm)
{
}

#endif

#endif /* SPYRE_COMM_FABRIC_H */
