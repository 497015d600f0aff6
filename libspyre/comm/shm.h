/* SPDX-License-Identifier: MIT */
/* Links between ranks of one machine: rings in memory files. Internal. */
#ifndef SPYRE_COMM_SHM_H
#define SPYRE_COMM_SHM_H

#include "libspyre/comm/comm.h"

/* Creates the rank's segment, in which the other ranks place messages; sets comm.bell. */
spyre_status comm_shm_open(spyre_comm *comm);
/*
 * Exchanges segments with rank @peer over its control connection. @told: the rank has failed and
 * told the reason, which is the error's.
 */
spyre_status comm_shm_connect(spyre_comm *comm, uint32_t peer, int64_t deadline_ns, bool *told);
void comm_shm_close(spyre_comm *comm);

/* Sleeps until the bell differs from @value or the deadline passes. */
void comm_shm_wait(spyre_comm *comm, uint32_t value, int64_t deadline_ns);
/* Wakes the rank's own threads. */
void comm_shm_ring_own(spyre_comm *comm);

#endif /* SPYRE_COMM_SHM_H */
