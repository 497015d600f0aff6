// SPDX-License-Identifier: MIT
/* Connections from other ranks that are being accepted, side by side. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libspyre/backend/futex.h"
#include "libspyre/base/error.h"
#include "libspyre/comm/arrivals.h"
#include "libspyre/comm/socket.h"

/* Time for a connection to name itself. */
#define GREETING_NS 2000000000
/* Longest sleep, after which connections that are too old are closed. */
#define POLL_MS 20

static void drop(struct comm_arrivals *arrivals, uint32_t i)
{
	close(arrivals->unknown[i].fd);
	arrivals->unknown[i] = arrivals->unknown[--arrivals->count];
}

static void drop_old(struct comm_arrivals *arrivals)
{
	const int64_t now = spyre_now_ns();
	const bool full = arrivals->count == COMM_MAX_UNKNOWN;
	const int64_t limit_ns = full ? COMM_CROWDED_NS : GREETING_NS;

	for (uint32_t i = arrivals->count; i-- > 0;)
		if (now > arrivals->unknown[i].since_ns + limit_ns)
			drop(arrivals, i);
}

/* Reads from connection @i. Returns true if its message is complete; drops it if it has ended. */
static bool receive(struct comm_arrivals *arrivals, uint32_t i)
{
	struct comm_arrival *arrival = &arrivals->unknown[i];
	const ssize_t n = recv(arrival->fd, (char *)&arrival->greeting + arrival->have,
			       sizeof(arrival->greeting) - arrival->have, 0);

	if (n <= 0) {
		if (!n || (errno != EAGAIN && errno != EINTR))
			drop(arrivals, i);
		return false;
	}
	arrival->have += n;
	return arrival->have == sizeof(arrival->greeting);
}

/* Waits until something has happened, and takes new connections. */
static spyre_status poll_once(struct comm_arrivals *arrivals, struct pollfd *pollers)
{
	const bool full = arrivals->count == COMM_MAX_UNKNOWN;
	const uint32_t count = arrivals->count;

	for (uint32_t i = 0; i < count; i++)
		pollers[i] = (struct pollfd){ .fd = arrivals->unknown[i].fd, .events = POLLIN };
	for (int i = 0; i < 2; i++)
		pollers[count + i] = (struct pollfd){
			.fd = full ? -1 : arrivals->listener[i], .events = POLLIN,
		};
	if (poll(pollers, count + 2, POLL_MS) < 0)
		return errno == EINTR ? SPYRE_NOT_READY :
		       spyre_error(SPYRE_ERROR_SYSTEM, "poll: %s", strerror(errno));
	for (int i = 0; i < 2 && arrivals->count < COMM_MAX_UNKNOWN; i++) {
		int fd = -1;

		if (pollers[count + i].revents)
			TRY(comm_accept(arrivals->listener[i], &fd));
		if (fd >= 0)
			arrivals->unknown[arrivals->count++] = (struct comm_arrival){
				.fd = fd, .since_ns = spyre_now_ns(),
			};
	}
	return SPYRE_SUCCESS;
}

spyre_status comm_arrivals_next(struct comm_arrivals *arrivals, int64_t deadline_ns, int *fd,
				struct comm_greeting *greeting)
{
	struct pollfd pollers[COMM_MAX_UNKNOWN + 2];

	do {
		const uint32_t count = arrivals->count;
		const spyre_status status = poll_once(arrivals, pollers);

		if (status && status != SPYRE_NOT_READY)
			return status;
		/* Dropping moves the last connection, so the list is walked from its end. */
		for (uint32_t i = status ? 0 : count; i-- > 0;) {
			if (!pollers[i].revents || !receive(arrivals, i))
				continue;
			*fd = arrivals->unknown[i].fd;
			*greeting = arrivals->unknown[i].greeting;
			arrivals->unknown[i] = arrivals->unknown[--arrivals->count];
			return SPYRE_SUCCESS;
		}
		drop_old(arrivals);
	} while ((int64_t)spyre_now_ns() < deadline_ns);
	return spyre_error(SPYRE_ERROR_TIMEOUT, "the time limit passed");
}

void comm_arrivals_close(struct comm_arrivals *arrivals)
{
	while (arrivals->count)
		drop(arrivals, arrivals->count - 1);
}
