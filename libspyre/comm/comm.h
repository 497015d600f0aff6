/* SPDX-License-Identifier: MIT */
/*
 * A rank's end of a communicator. Internal.
 *
 * A collective is a host function of its stream (run.c). It moves bytes between device memory
 * and the slots of links (exchange.c) and sums them by kernels (reduce.c). Collectives of a
 * communicator execute one after the other in the order of their calls; sends and receives have
 * links of their own and are ordered per link. A thread of the communicator (watch.c) reads the
 * control connections to the other ranks, over which failures and departures are reported.
 *
 * Lock order: comm.lock, then stream.lock. Nothing waits with a lock held.
 */
#ifndef SPYRE_COMM_H
#define SPYRE_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <spyre/collective.h>

#include "libspyre/comm/address.h"
#include "libspyre/comm/link.h"
#include "libspyre/comm/reduce.h"
#include "libspyre/runtime/stream.h"

#define COMM_MAX_TIMEOUT_MS UINT32_MAX

/* A limit of the caller's, whose nanoseconds fit in 64 bits. */
static inline uint64_t comm_timeout_ms(uint64_t timeout_ms)
{
	return timeout_ms < COMM_MAX_TIMEOUT_MS ? timeout_ms : COMM_MAX_TIMEOUT_MS;
}

/* Collectives and P2P have separate links, since a stream may delay one of them. */
enum comm_class {
	COMM_COLLECTIVE,
	COMM_P2P,
	COMM_CLASSES,
};

enum comm_direction {
	COMM_SEND,
	COMM_RECV,
	COMM_DIRECTIONS,
};

enum comm_algorithm {
	COMM_AUTO,
	/* Every rank gets all contributions and sums them. */
	COMM_ONE_SHOT,
	/* Every rank sums its part of the elements and sends the result to the others. */
	COMM_OWNERS,
};

/* A message of a rank's control connection that split() or shrink() waits for. */
struct comm_letter {
	STAILQ_ENTRY(comm_letter) link;
	uint32_t kind;
	uint32_t bytes;
	char data[sizeof(spyre_comm_id)];
};

STAILQ_HEAD(comm_letters, comm_letter);
STAILQ_HEAD(comm_ops, comm_op);

/* Another rank. */
struct comm_peer {
	struct comm_address address;
	/* Control connection; -1 for the rank itself. */
	int control;
	/* Serialises messages to it. */
	pthread_mutex_t send_lock;
	/* It has left with a message, or its connection ended without one. */
	_Atomic bool left;
	_Atomic bool lost;
	struct comm_link link[COMM_CLASSES][COMM_DIRECTIONS];
	/* Protected by comm.lock. */
	struct comm_letters letters;
};

struct comm_op;
struct comm_shm;
struct comm_fabric;
struct comm_family;

struct spyre_comm {
	spyre_context *context;
	uint32_t rank;
	uint32_t size;
	char name[64];
	/* Of creations and letters, and of calls from now on. */
	_Atomic uint64_t timeout_ns;
	uint32_t chunk;
	enum comm_algorithm algorithm;
	struct comm_key key;
	/* For traces: equal on all ranks, and no secret. */
	uint32_t group_id;
	struct comm_peer *peers;
	struct comm_shm *shm;
	struct comm_fabric *fabric;

	/* Changes whenever something may have happened that exchange() waits for. */
	_Atomic uint32_t *bell;

	pthread_mutex_t lock;
	/* Signalled when an operation ends, a letter arrives or the communicator fails. */
	pthread_cond_t changed;
	/* Collectives queued and finished; operations that are not finished; a collective runs. */
	uint64_t queued;
	uint64_t finished;
	uint64_t pending;
	bool executing;
	/* Operations of graphs. */
	struct comm_ops captured;
	/* The first failure, with its text. @failed is also read without the lock. */
	_Atomic uint32_t failed;
	char failure[512];
	/* A rank has aborted the communicator, its failure unless there was another one. */
	_Atomic bool aborted;

	pthread_t watcher;
	bool watching;
	/* Ends the watcher. */
	int stop;

	/* Streams for the copies and kernels of collectives, and of P2P. */
	spyre_stream *inner[COMM_CLASSES];
	struct comm_reducer reducer;
	/* Device memory for contributions of other ranks. */
	spyre_devptr scratch;

	/* FLEX_HDMA_MODE_FULL=1: no copies from card to card. */
	bool host_only;
	/* Of direct.c: the other ends, the last point of the rank's stream, scratch memory. */
	struct comm_family *family;
	spyre_event *reached;
	spyre_devptr direct_scratch;

	_Atomic uint64_t operations;
	_Atomic uint64_t sent;
	_Atomic uint64_t received;
};

/* init.c */
/* SUCCESS if the communicator may be used, else its failure or an argument error. */
spyre_status comm_check(spyre_comm *comm);
/* Returns the failure with its text. The communicator has failed. */
spyre_status comm_failure(spyre_comm *comm);
/*
 * Records the first failure from the thread's error text and wakes all that wait. @tell sends
 * it to the other ranks. Returns the communicator's failure.
 */
spyre_status comm_fail(spyre_comm *comm, spyre_status status, bool tell);
void comm_ring(spyre_comm *comm);

/* rendezvous.c */
/* Connects to the other ranks and fills comm.peers. */
spyre_status comm_rendezvous(spyre_comm *comm, const spyre_comm_id *id);

/* watch.c */
spyre_status comm_watch_start(spyre_comm *comm);
void comm_watch_stop(spyre_comm *comm);
/* Sends a letter to rank @to. */
spyre_status comm_letter_send(spyre_comm *comm, uint32_t to, uint32_t kind, const void *data,
			      uint32_t bytes);
/*
 * Waits for the next letter of @from, which must be of @kind and @bytes. Letters of a split that
 * has failed are dropped by shrink(), which works on a communicator that has failed as well.
 * @timeout_ms is at most COMM_MAX_TIMEOUT_MS.
 */
spyre_status comm_letter_wait(spyre_comm *comm, uint32_t from, uint32_t kind, void *data,
			      uint32_t bytes, uint64_t timeout_ms);
/* Sends @text to the ranks that this one is connected to; also while it joins. */
void comm_tell_failure(spyre_comm *comm, const char *text);
/*
 * Reads the rest of such a message, of which @from has sent a first byte, which is not 0, instead
 * of what this rank waits for while it joins. Returns REMOTE with its text.
 */
spyre_status comm_read_failure(spyre_comm *comm, uint32_t from, int64_t deadline_ns);
void comm_tell_leaving(spyre_comm *comm);
void comm_tell_abort(spyre_comm *comm);

enum comm_letter_kind {
	COMM_LETTER_COLOR = 16,
	COMM_LETTER_SPLIT_ID = 17,
	COMM_LETTER_SHRINK_ID = 18,
};

#endif /* SPYRE_COMM_H */
