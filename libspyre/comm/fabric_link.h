/* SPDX-License-Identifier: MIT */
/*
 * Messages of links over libfabric. The receiver posts a receive for each slot; the sender sends
 * into a slot only when the receiver has returned it by a message without contents, its credit.
 * So the memory of a link is that of its slots, and a slow receiver stops its sender. Internal.
 */
#ifndef SPYRE_COMM_FABRIC_LINK_H
#define SPYRE_COMM_FABRIC_LINK_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "libspyre/comm/comm.h"

/* As many as those of the other transports: enough for both ends to work at the same time. */
#define FABRIC_SLOTS 8

enum fabric_kind {
	FABRIC_DATA,
	FABRIC_CREDIT,
	/* A question that follows all data, and its answer, which the slot distinguishes. */
	FABRIC_FLUSH,
};

enum fabric_flush {
	FABRIC_QUESTION,
	FABRIC_ANSWER,
	FABRIC_FLUSHES,
};

/* A send or a receive. Each slot has one for its data and one for its credit. */
struct fabric_request {
	/* First member, since completions have its address; the provider writes to it. */
	struct fi_context2 context;
	struct fabric_end *end;
	STAILQ_ENTRY(fabric_request) link;
	enum fabric_kind kind;
	uint8_t slot;
	bool sends;
	/* Posted or waiting to be posted. */
	bool busy;
	/* To be posted once more when it completes. */
	bool again;
};

struct fabric_slot {
	struct fabric_request data;
	struct fabric_request credit;
	/*
	 * Of a sending end: posted, and not returned by the receiver. Of a receiving end: arrived,
	 * and not released.
	 */
	bool full;
	uint32_t bytes;
};

struct fabric_end {
	struct comm_fabric *fabric;
	uint32_t rank;
	enum comm_class class;
	enum comm_direction direction;
	uint8_t *memory;
	struct fabric_slot slot[FABRIC_SLOTS];
};

/* Another rank. */
struct fabric_peer {
	bool connected;
	fi_addr_t address;
	struct fabric_end end[COMM_CLASSES][COMM_DIRECTIONS];
	struct fabric_request flush[FABRIC_FLUSHES][COMM_DIRECTIONS];
	/* It was asked, and has answered: the data that was sent to it has arrived. */
	bool asked;
	bool flushed;
	/* Requests that the provider had no resources for. */
	STAILQ_HEAD(, fabric_request) waiting;
	/* Time and reason of its first failed request; 0: none. */
	int64_t broken_ns;
	int error;
};

/* Everything is protected by @lock but what open() and close() set. */
struct comm_fabric {
	spyre_comm *comm;
	pthread_mutex_t lock;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	/* fi_strerror(). */
	const char *(*describe)(int error);
	/* Registration of the slots, if the provider wants it. */
	bool registers;
	struct fid_mr *mr;
	void *desc;
	uint8_t *memory;
	size_t bytes;
	/*
	 * Becomes readable when the provider has something to do; -1 if it has no descriptor. Those
	 * of other providers than tcp miss events.
	 */
	int ready;
	bool exact;
	/* Upper bits of all tags, which only ranks know. */
	uint64_t secret;
	struct fabric_peer *peers;
	/* Sends of data that have not completed. */
	uint32_t sending;
	/* A request has completed since the bell was rung. */
	bool moved;
	/* When the bell was rung last. */
	int64_t moved_ns;
	/* Ends the thread. */
	int stop;
	bool running;
	pthread_t thread;
	/* In the list of endpoints that stay open after their communicator. */
	struct comm_fabric *next;
};

extern const struct comm_link_ops fabric_link_ops;

/* Makes the ends of the links to @rank and posts their receives. */
void fabric_link_init(struct comm_fabric *fabric, uint32_t rank, uint8_t *memory);
/*
 * Asks all ranks that are left whether the data sent to them has arrived. Returns false while
 * some have not answered. The caller holds the lock.
 */
bool fabric_link_flush(struct comm_fabric *fabric);
/* Takes completions and posts what waits. The caller holds the lock. */
spyre_status fabric_link_progress(struct comm_fabric *fabric);
/*
 * Fails for a rank whose connection broke, unless it has left or is known to have ended. The
 * caller holds the lock.
 */
spyre_status fabric_link_check(struct comm_fabric *fabric);

#endif /* SPYRE_COMM_FABRIC_LINK_H */
