/* SPDX-License-Identifier: MIT */
/*
 * Connections from other ranks that are being accepted. Their sockets can be found by anybody on
 * the machine, or in the network, so a connection that does not send its first message must not
 * delay the others. Internal.
 */
#ifndef SPYRE_COMM_ARRIVALS_H
#define SPYRE_COMM_ARRIVALS_H

#include "libspyre/comm/address.h"

/* Connections whose first message is incomplete; more than these wait in the backlog. */
#define COMM_MAX_UNKNOWN 64
/* With so many, those that have sent nothing for this long give way to others. */
#define COMM_CROWDED_NS INT64_C(200000000)

/* A connection and what it has sent so far. */
struct comm_arrival {
	int fd;
	size_t have;
	int64_t since_ns;
	struct comm_greeting greeting;
};

struct comm_arrivals {
	/* Of the Unix and the TCP socket, -1 for none. The caller owns them. */
	int listener[2];
	uint32_t count;
	struct comm_arrival unknown[COMM_MAX_UNKNOWN];
};

/*
 * Waits for the next connection that has sent its first message, which the caller owns and whose
 * key it checks. Errors: TIMEOUT at @deadline_ns, SYSTEM.
 */
spyre_status comm_arrivals_next(struct comm_arrivals *arrivals, int64_t deadline_ns, int *fd,
				struct comm_greeting *greeting);
/* Closes the connections that have not been returned. */
void comm_arrivals_close(struct comm_arrivals *arrivals);

#endif /* SPYRE_COMM_ARRIVALS_H */
