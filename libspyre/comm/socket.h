/* SPDX-License-Identifier: MIT */
/* Stream sockets with deadlines, which are in ns of CLOCK_MONOTONIC. Internal. */
#ifndef SPYRE_COMM_SOCKET_H
#define SPYRE_COMM_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include <spyre/types.h>

/* Listens on @host, numeric or a name; *@port 0 selects a free one and returns it. */
spyre_status comm_listen_tcp(const char *host, uint32_t *port, int *fd);
spyre_status comm_connect_tcp(const char *host, uint32_t port, int64_t deadline_ns, int *fd);
/* Of abstract Unix sockets, which end with their owner and leave no files. */
spyre_status comm_listen_unix(const char *name, int *fd);
spyre_status comm_connect_unix(const char *name, int64_t deadline_ns, int *fd);
/* Returns the next connection, -1 if there is none. */
spyre_status comm_accept(int listener, int *fd);

/* Sends or receives exactly @bytes. Receiving fails with REMOTE if the connection ends. */
spyre_status comm_send_all(int fd, const void *data, size_t bytes, int64_t deadline_ns);
spyre_status comm_recv_all(int fd, void *data, size_t bytes, int64_t deadline_ns);
/*
 * Passes a file descriptor over a Unix socket, with one byte of 0. The receiver gets -1 if there
 * was another byte and no file.
 */
spyre_status comm_send_fd(int fd, int passed, int64_t deadline_ns);
spyre_status comm_recv_fd(int fd, int64_t deadline_ns, int *passed);

#endif /* SPYRE_COMM_SOCKET_H */
