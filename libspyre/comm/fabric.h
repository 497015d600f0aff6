/* SPDX-License-Identifier: MIT */
/* Links between ranks of several machines: libfabric. Internal. */
#ifndef SPYRE_COMM_FABRIC_H
#define SPYRE_COMM_FABRIC_H

#include "libspyre/comm/comm.h"

#ifdef HAVE_LIBFABRIC

/* Opens an endpoint and writes its name to @address. */
spyre_status comm_fabric_open(spyre_comm *comm, struct comm_address *address);
/* Makes the links to rank @peer, whose address is known. */
spyre_status comm_fabric_connect(spyre_comm *comm, uint32_t peer);
/* Moves messages on; an error is one of the provider. */
spyre_status comm_fabric_progress(spyre_comm *comm);
/* Sleeps until the bell differs from @value, a message may have moved or the deadline passes. */
void comm_fabric_wait(spyre_comm *comm, uint32_t value, int64_t deadline_ns);
void comm_fabric_close(spyre_comm *comm);

#else

static inline spyre_status comm_fabric_open(spyre_comm *comm, struct comm_address *address)
{
	return spyre_error(SPYRE_ERROR_UNSUPPORTED, "this libspyre was built without libfabric, "
			   "which connects several machines; install libfabric-dev and configure "
			   "--with-libfabric");
}

static inline spyre_status comm_fabric_connect(spyre_comm *comm, uint32_t peer)
{
	return comm_fabric_open(comm, NULL);
}

static inline spyre_status comm_fabric_progress(spyre_comm *comm)
{
	return SPYRE_SUCCESS;
}

static inline void comm_fabric_wait(spyre_comm *comm, uint32_t value, int64_t deadline_ns)
{
}

static inline void comm_fabric_close(spyre_comm *comm)
{
}

#endif

#endif /* SPYRE_COMM_FABRIC_H */
