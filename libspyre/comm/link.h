/* SPDX-License-Identifier: MIT */
/*
 * A link moves messages from one rank to another in their order; a transport implements links.
 * Messages have at most comm.chunk bytes and lie in slots, of which a link has a fixed number,
 * so that a sender waits for a receiver that is behind. Internal.
 */
#ifndef SPYRE_COMM_LINK_H
#define SPYRE_COMM_LINK_H

#include <spyre/types.h>

struct spyre_comm;
struct comm_link;

struct comm_link_ops {
	const char *name;
	/*
	 * Of the sending end: returns the @ahead-th slot after those that were posted, NULL if it
	 * still holds a message that the receiver has not released.
	 */
	void *(*reserve)(struct comm_link *link, uint32_t ahead);
	/* Sends the next reserved slot, of which @bytes are filled. */
	spyre_status (*post)(struct comm_link *link, uint32_t bytes);
	/*
	 * Of the receiving end: returns the @ahead-th message after those that were released and
	 * its size, NULL if it has not arrived.
	 */
	const void *(*peek)(struct comm_link *link, uint32_t ahead, uint32_t *bytes);
	/* Returns the slot of the next message to the sender. */
	spyre_status (*release)(struct comm_link *link);
};

/* One end of a link. */
struct comm_link {
	const struct comm_link_ops *ops;
	struct spyre_comm *comm;
	/* Messages posted or released by this end, modulo 2^32. */
	uint32_t count;
	/* Operations that this end has queued on the link, and begun: the order of P2P. */
	uint64_t queued;
	uint64_t begun;
	bool executing;
	/* Of the transport. */
	void *end;
};

#endif /* SPYRE_COMM_LINK_H */
