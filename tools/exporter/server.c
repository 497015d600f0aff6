/* SPDX-License-Identifier: MIT */
/*
 * One thread and poll(). A client has one request, an answer and a time limit for both; a
 * connection is closed after it. If all places are taken, the client that has kept its
 * place longest without sending a whole request loses it, and if all have sent one, the
 * client that has kept its place longest: neither idle connections nor clients that do not
 * read their answers lock out others. The limit of open files covers all places, so that
 * accept() has a descriptor for each; if the system runs out of them, connections wait in the
 * socket's queue.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/exporter/exporter.h"

static const char index_page[] =
	"<!DOCTYPE html>\n<html><head><title>spyre-exporter</title></head>\n"
	"<body><h1>spyre-exporter</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>\n";

/* Descriptors besides those of the clients: listener, signals, output, readers of cards. */
#define OTHER_FILES 64
/* Seconds without new connections after accept() has found no descriptor or memory. */
#define ACCEPT_PAUSE 0.1

struct client {
	int fd;
	double deadline;
	bool answers;			/* the request is complete */
	size_t received;
	char request[EXPORTER_MAX_REQUEST];
	char header[256];
	size_t header_bytes, sent;
	const char *body;
	size_t body_bytes;
	struct exporter_page *page;	/* that @body is in, or NULL */
};

struct server {
	const struct exporter_options *options;
	int listener, signals;
	double deaf_until;		/* no connections are taken before */
	struct client **clients;	/* oldest first */
	int count;
	struct pollfd *polls;		/* listener, signals, clients */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void drop(struct server *server, int index)
{
	struct client *client = server->clients[index];

	close(client->fd);
	exporter_page_put(client->page);
	free(client);
	server->count--;
	memmove(&server->clients[index], &server->clients[index + 1],
		(size_t)(server->count - index) * sizeof(client));
}

/* Frees a place if all are taken. */
static void make_place(struct server *server)
{
	int i;

	if (server->count < server->options->max_clients)
		return;
	for (i = 0; i < server->count && server->clients[i]->answers; i++)
		;
	drop(server, i < server->count ? i : 0);
}

/* Takes one client; all others stay in the queue of the socket for the next round. */
static void take_client(struct server *server)
{
	struct client *client;
	int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		/* poll() would report the same connection again at once. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			server->deaf_until = now() + ACCEPT_PAUSE;
		return;
	}
	make_place(server);
	client = malloc(sizeof(*client));
	if (!client) {
		close(fd);
		return;
	}
	memset(client, 0, sizeof(*client));
	client->fd = fd;
	client->deadline = now() + server->options->timeout;
	server->clients[server->count++] = client;
}

static const char *reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case EXPORTER_NOT_FOUND:
		return "Not Found";
	case EXPORTER_BAD_METHOD:
		return "Method Not Allowed";
	case EXPORTER_TOO_LARGE:
		return "Request Header Fields Too Large";
	case EXPORTER_UNAVAILABLE:
		return "Service Unavailable";
	default:
		return "Bad Request";
	}
}

static void answer(struct client *client, enum exporter_answer what, bool head)
{
	const char *kind = "text/plain; charset=utf-8";
	int status = what;

	if (what == EXPORTER_METRICS) {
		client->page = exporter_metrics();
		kind = "text/plain; version=0.0.4; charset=utf-8";
		status = client->page ? 200 : EXPORTER_UNAVAILABLE;
	}
	if (client->page) {
		client->body = client->page->text;
		client->body_bytes = client->page->bytes;
	} else if (what == EXPORTER_INDEX) {
		kind = "text/html; charset=utf-8";
		status = 200;
		client->body = index_page;
		client->body_bytes = sizeof(index_page) - 1;
	} else {
		client->body = reason_of(status);
		client->body_bytes = strlen(client->body);
	}
	client->header_bytes = (size_t)snprintf(client->header, sizeof(client->header),
		"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"%sX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
		status, reason_of(status), kind, client->body_bytes,
		status == EXPORTER_BAD_METHOD ? "Allow: GET, HEAD\r\n" : "");
	if (head)
		client->body_bytes = 0;
	client->answers = true;
}

/* Returns false if the client is to be dropped. */
static bool receive(struct client *client)
{
	enum exporter_answer what;
	ssize_t got;
	bool head;

	got = recv(client->fd, client->request + client->received,
		   sizeof(client->request) - client->received, 0);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!got)
		return false;
	client->received += (size_t)got;
	what = exporter_parse(client->request, client->received, &head);
	if (what != EXPORTER_INCOMPLETE)
		answer(client, what, head);
	return true;
}

/* Returns false once everything is sent, or if the client is gone. */
static bool send_more(struct client *client)
{
	const char *from = client->header + client->sent;
	size_t left = client->header_bytes - client->sent;
	ssize_t put;

	if (client->sent >= client->header_bytes) {
		from = client->body + (client->sent - client->header_bytes);
		left = client->header_bytes + client->body_bytes - client->sent;
	}
	put = left ? send(client->fd, from, left, MSG_NOSIGNAL) : 0;
	if (put < 0)
		return errno == EAGAIN || errno == EINTR;
	client->sent += (size_t)put;
	if (client->sent < client->header_bytes + client->body_bytes)
		return true;
	/* Bytes that were not read would make close() reset the connection, and lose the answer. */
	shutdown(client->fd, SHUT_WR);
	while (recv(client->fd, client->request, sizeof(client->request), MSG_DONTWAIT) > 0)
		;
	return false;
}

static bool serve_client(struct client *client, short events, double time)
{
	if (time >= client->deadline)
		return false;
	if (events && !client->answers && !receive(client))
		return false;
	return !events || !client->answers || send_more(client);
}

/* Milliseconds until the first deadline, -1: none. */
static int wait_time(const struct server *server)
{
	double time = now(), first = server->deaf_until > time ? server->deaf_until : -1;
	int i;

	for (i = 0; i < server->count; i++)
		if (first < 0 || server->clients[i]->deadline < first)
			first = server->clients[i]->deadline;
	if (first < 0)
		return -1;
	return first <= time ? 0 : (int)((first - time) * 1000) + 1;
}

static void set_polls(struct server *server)
{
	int i;

	/* poll() ignores a negative descriptor. */
	server->polls[0] = (struct pollfd){
		.fd = now() < server->deaf_until ? -1 : server->listener, .events = POLLIN,
	};
	server->polls[1] = (struct pollfd){ .fd = server->signals, .events = POLLIN };
	for (i = 0; i < server->count; i++)
		server->polls[i + 2] = (struct pollfd){
			.fd = server->clients[i]->fd,
			.events = server->clients[i]->answers ? POLLOUT : POLLIN,
		};
}

/* Returns false when the server has to end. */
static bool serve_once(struct server *server)
{
	double time;
	int i;

	set_polls(server);
	if (poll(server->polls, (nfds_t)server->count + 2, wait_time(server)) < 0)
		return errno == EINTR;
	if (server->polls[1].revents)
		return false;
	time = now();
	/* Backwards, because a client that is dropped moves those after it. */
	for (i = server->count - 1; i >= 0; i--)
		if (!serve_client(server->clients[i], server->polls[i + 2].revents, time))
			drop(server, i);
	if (server->polls[0].revents)
		take_client(server);
	return true;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * Raises the limit of open files as far as it is needed. Without it, clients could take the
 * descriptors that reading the cards needs.
 */
static bool reserve_files(const struct exporter_options *options)
{
	rlim_t need = (rlim_t)options->max_clients + OTHER_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= need)
		return true;
	limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
	if (limit.rlim_cur == need && !setrlimit(RLIMIT_NOFILE, &limit))
		return true;
	fprintf(stderr, "spyre-exporter: cannot serve %d clients: at most %llu files can be open, and "
		"%llu are needed; raise the limit (ulimit -n) or lower --max-clients\n",
		options->max_clients, (unsigned long long)limit.rlim_max, (unsigned long long)need);
	return false;
}

int exporter_serve(const struct exporter_options *options)
{
	struct server server = { .options = options };
	size_t max = (size_t)options->max_clients;

	if (!reserve_files(options))
		return 1;
	server.clients = calloc(max, sizeof(*server.clients));
	server.polls = calloc(max + 2, sizeof(*server.polls));
	server.signals = open_signals();
	server.listener = exporter_listen(options->listen);
	if (server.clients && server.polls && server.signals >= 0 && server.listener >= 0)
		while (serve_once(&server))
			;
	else if (server.listener >= 0)
		fprintf(stderr, "spyre-exporter: cannot start: no memory or descriptors\n");
	while (server.count)
		drop(&server, server.count - 1);
	max = server.listener >= 0;
	if (server.listener >= 0)
		close(server.listener);
	if (server.signals >= 0)
		close(server.signals);
	free(server.clients);
	free(server.polls);
	return max ? 0 : 1;
}
