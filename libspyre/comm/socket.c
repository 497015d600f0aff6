// SPDX-License-Identifier: MIT
/* Stream sockets with deadlines. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libspyre/backend/futex.h"
#include "libspyre/base/error.h"
#include "libspyre/comm/socket.h"

#define BACKLOG 128
/* For so long connecting is tried again while the network has no route to the other machine. */
#define ROUTE_RETRY_NS INT64_C(10000000000)
#define ROUTE_RETRY_PAUSE_US 100000

/* Waits until @fd is ready for @events; TIMEOUT at the deadline. */
static spyre_status wait_ready(int fd, short events, int64_t deadline_ns)
{
	for (;;) {
		const int64_t left = deadline_ns - (int64_t)spyre_now_ns();
		struct pollfd poller = { .fd = fd, .events = events };
		int n;

		if (left <= 0)
			return spyre_error(SPYRE_ERROR_TIMEOUT, "the time limit passed");
		n = poll(&poller, 1, left / 1000000 > 60000 ? 60000 : (int)(left / 1000000) + 1);
		if (n > 0)
			return SPYRE_SUCCESS;
		if (n < 0 && errno != EINTR)
			return spyre_error(SPYRE_ERROR_SYSTEM, "poll: %s", strerror(errno));
	}
}

static spyre_status resolve(const char *host, uint32_t port, bool listens, struct addrinfo **found)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0),
	};
	char service[16];
	int err;

	snprintf(service, sizeof(service), "%u", port);
	err = getaddrinfo(host, service, &hints, found);
	if (err)
		return spyre_error(SPYRE_ERROR_CONFIGURATION, "cannot resolve host '%s': %s", host,
				   gai_strerror(err));
	return SPYRE_SUCCESS;
}

static uint32_t port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t bytes = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &bytes))
		return 0;
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

spyre_status comm_listen_tcp(const char *host, uint32_t *port, int *out)
{
	struct addrinfo *found;
	const int on = 1;
	int fd, err = 0;

	TRY(resolve(host, *port, true, &found));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, BACKLOG))
		err = errno;
	freeaddrinfo(found);
	if (err) {
		if (fd >= 0)
			close(fd);
		return spyre_error(err == EADDRNOTAVAIL ? SPYRE_ERROR_CONFIGURATION :
				   SPYRE_ERROR_SYSTEM, "cannot listen on %s port %u: %s%s", host,
				   *port, strerror(err), err == EADDRINUSE ?
				   "; choose another SPYRE_COMM_PORT, or 0 for any free one" :
				   err == EADDRNOTAVAIL ?
				   "; set SPYRE_COMM_ADDRESS to an address of this machine" : "");
	}
	*port = port_of(fd);
	*out = fd;
	return SPYRE_SUCCESS;
}

/* Completes a connection that connect() has begun. */
static spyre_status finish_connect(int fd, int64_t deadline_ns, int *err)
{
	socklen_t bytes = sizeof(*err);

	TRY(wait_ready(fd, POLLOUT, deadline_ns));
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, err, &bytes))
		*err = errno;
	return SPYRE_SUCCESS;
}

/* Tries once to connect; *@err is the system's error, *@out the socket without one. */
static spyre_status connect_once(const struct addrinfo *to, int64_t deadline_ns, int *err, int *out)
{
	spyre_status status = SPYRE_SUCCESS;
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*err = fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) ? errno : 0;
	if (fd >= 0 && *err == EINPROGRESS)
		status = finish_connect(fd, deadline_ns, err);
	if (fd >= 0 && (status || *err))
		close(fd);
	*out = fd;
	return status;
}

/* A network that comes up, or forgets that a neighbour was away, has no route for a moment. */
static bool has_no_route(int err)
{
	return err == EHOSTUNREACH || err == ENETUNREACH || err == ENETDOWN;
}

spyre_status comm_connect_tcp(const char *host, uint32_t port, int64_t deadline_ns, int *out)
{
	const int64_t retry_until = (int64_t)spyre_now_ns() + ROUTE_RETRY_NS;
	spyre_status status;
	struct addrinfo *found;
	const int on = 1;
	int fd, err;

	TRY(resolve(host, port, false, &found));
	for (;;) {
		const int64_t now = spyre_now_ns();

		status = connect_once(found, deadline_ns, &err, &fd);
		if (status || !has_no_route(err) || now >= retry_until || now >= deadline_ns)
			break;
		usleep(ROUTE_RETRY_PAUSE_US);
	}
	freeaddrinfo(found);
	if (!status && err)
		status = spyre_error(SPYRE_ERROR_REMOTE, "%s", strerror(err));
	if (status)
		return spyre_error_prefix(status, "cannot connect to %s port %u", host, port);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	*out = fd;
	return SPYRE_SUCCESS;
}

static socklen_t unix_address(const char *name, struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	/* An abstract name begins with a zero byte. */
	snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "%s", name);
	return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
}

spyre_status comm_listen_unix(const char *name, int *out)
{
	struct sockaddr_un address;
	socklen_t bytes = unix_address(name, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, bytes) || listen(fd, BACKLOG)) {
		spyre_error(SPYRE_ERROR_SYSTEM, "cannot listen on a Unix socket: %s",
			    strerror(errno));
		if (fd >= 0)
			close(fd);
		return SPYRE_ERROR_SYSTEM;
	}
	*out = fd;
	return SPYRE_SUCCESS;
}

spyre_status comm_connect_unix(const char *name, int64_t deadline_ns, int *out)
{
	struct sockaddr_un address;
	socklen_t bytes = unix_address(name, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return spyre_error(SPYRE_ERROR_SYSTEM, "socket: %s", strerror(errno));
	/* EAGAIN means that the backlog is full, which the listener will empty. */
	while (connect(fd, (struct sockaddr *)&address, bytes)) {
		if (errno != EAGAIN || (int64_t)spyre_now_ns() > deadline_ns) {
			spyre_error(SPYRE_ERROR_REMOTE, "cannot connect to its socket: %s",
				    strerror(errno));
			close(fd);
			return SPYRE_ERROR_REMOTE;
		}
		usleep(1000);
	}
	*out = fd;
	return SPYRE_SUCCESS;
}

spyre_status comm_accept(int listener, int *out)
{
	const int on = 1;
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	*out = -1;
	if (fd >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		*out = fd;
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		return spyre_error(SPYRE_ERROR_SYSTEM, "accept: %s", strerror(errno));
	}
	return SPYRE_SUCCESS;
}

spyre_status comm_send_all(int fd, const void *data, size_t bytes, int64_t deadline_ns)
{
	const char *from = data;

	while (bytes) {
		ssize_t n = send(fd, from, bytes, MSG_NOSIGNAL);

		if (n > 0) {
			from += n;
			bytes -= n;
		} else if (n < 0 && errno == EAGAIN) {
			TRY(wait_ready(fd, POLLOUT, deadline_ns));
		} else if (n < 0 && errno != EINTR) {
			return spyre_error(SPYRE_ERROR_REMOTE, "the connection ended: %s",
					   strerror(errno));
		}
	}
	return SPYRE_SUCCESS;
}

spyre_status comm_recv_all(int fd, void *data, size_t bytes, int64_t deadline_ns)
{
	char *to = data;

	while (bytes) {
		ssize_t n = recv(fd, to, bytes, 0);

		if (n > 0) {
			to += n;
			bytes -= n;
		} else if (n < 0 && errno == EAGAIN) {
			TRY(wait_ready(fd, POLLIN, deadline_ns));
		} else if (n == 0 || errno != EINTR) {
			return spyre_error(SPYRE_ERROR_REMOTE, "the connection ended%s%s",
					   n ? ": " : "", n ? strerror(errno) : "");
		}
	}
	return SPYRE_SUCCESS;
}

/* One file too many is received and closed: qemu-user does not tell that it left one out. */
#define MAX_FILES 2

/* A message of one byte with space for file descriptors. */
struct fd_message {
	char byte;
	struct iovec vector;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(MAX_FILES * sizeof(int))];
	} control;
	struct msghdr message;
};

static void fd_message_init(struct fd_message *m)
{
	memset(m, 0, sizeof(*m));
	m->vector = (struct iovec){ &m->byte, 1 };
	m->message = (struct msghdr){
		.msg_iov = &m->vector, .msg_iovlen = 1,
		.msg_control = m->control.bytes, .msg_controllen = sizeof(m->control.bytes),
	};
}

spyre_status comm_send_fd(int fd, int passed, int64_t deadline_ns)
{
	struct fd_message m;

	fd_message_init(&m);
	m.control.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	m.message.msg_controllen = CMSG_SPACE(sizeof(int));
	memcpy(CMSG_DATA(&m.control.header), &passed, sizeof(int));
	while (sendmsg(fd, &m.message, MSG_NOSIGNAL) < 0) {
		if (errno == EAGAIN)
			TRY(wait_ready(fd, POLLOUT, deadline_ns));
		else if (errno != EINTR)
			return spyre_error(SPYRE_ERROR_REMOTE, "cannot pass a file: %s",
					   strerror(errno));
	}
	return SPYRE_SUCCESS;
}

spyre_status comm_recv_fd(int fd, int64_t deadline_ns, int *passed)
{
	int files[MAX_FILES];
	struct fd_message m;
	struct cmsghdr *header;
	size_t count = 0;
	ssize_t n;

	fd_message_init(&m);
	while ((n = recvmsg(fd, &m.message, MSG_CMSG_CLOEXEC)) < 0) {
		if (errno == EAGAIN)
			TRY(wait_ready(fd, POLLIN, deadline_ns));
		else if (errno != EINTR)
			return spyre_error(SPYRE_ERROR_REMOTE, "cannot receive a file: %s",
					   strerror(errno));
	}
	header = CMSG_FIRSTHDR(&m.message);
	*passed = -1;
	if (n == 1 && !header && m.byte)
		return SPYRE_SUCCESS;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (n != 1 || !count)
		return spyre_error(SPYRE_ERROR_REMOTE, n ? "the rank sent no file" :
				   "the connection ended");
	memcpy(files, CMSG_DATA(header), count * sizeof(int));
	if (count == 1 && !(m.message.msg_flags & MSG_CTRUNC)) {
		*passed = files[0];
		return SPYRE_SUCCESS;
	}
	while (count)
		close(files[--count]);
	return spyre_error(SPYRE_ERROR_REMOTE, "the rank sent more than one file");
}
