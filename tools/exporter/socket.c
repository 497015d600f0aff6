/* SPDX-License-Identifier: MIT */
/* The address to listen on. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/exporter/exporter.h"

/* Splits "HOST:PORT", "[HOST]:PORT" or ":PORT", which is loopback. */
static bool split(const char *address, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(address, ':');
	size_t length;

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return false;
	*port = colon + 1;
	length = (size_t)(colon - address);
	if (length >= 2 && address[0] == '[' && colon[-1] == ']') {
		address++;
		length -= 2;
	} else if (memchr(address, ':', length)) {
		return false;
	}
	if (length >= size)
		return false;
	snprintf(host, size, "%.*s", (int)length, length ? address : "127.0.0.1");
	if (!length)
		snprintf(host, size, "127.0.0.1");
	return true;
}

static int open_socket(const struct addrinfo *info)
{
	int fd, one = 1, saved;

	fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, info->ai_addr, info->ai_addrlen) && !listen(fd, 64))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

/* Prints the address in use: port 0 is any that is free. */
static void print_address(int fd)
{
	struct sockaddr_storage name;
	socklen_t bytes = sizeof(name);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&name, &bytes) ||
	    getnameinfo((struct sockaddr *)&name, bytes, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	printf(strchr(host, ':') ? "listening on http://[%s]:%s/metrics\n" :
				   "listening on http://%s:%s/metrics\n", host, port);
	fflush(stdout);
}

int exporter_listen(const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *info;
	const char *port;
	char host[256];
	int fd, error;

	if (!split(address, host, sizeof(host), &port)) {
		fprintf(stderr, "spyre-exporter: invalid address '%s': expected HOST:PORT, "
			"[HOST]:PORT or :PORT\n", address);
		return -1;
	}
	error = getaddrinfo(host, port, &hints, &info);
	if (error) {
		fprintf(stderr, "spyre-exporter: cannot find address '%s': %s\n", address,
			gai_strerror(error));
		return -1;
	}
	fd = open_socket(info);
	if (fd < 0)
		fprintf(stderr, "spyre-exporter: cannot listen on %s: %s; give another address "
			"with --listen\n", address, strerror(errno));
	else
		print_address(fd);
	freeaddrinfo(info);
	return fd;
}
