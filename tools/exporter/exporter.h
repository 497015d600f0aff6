/* SPDX-License-Identifier: MIT */
/*
 * spyre-exporter answers Prometheus' requests with the metrics of the cards. Anybody who
 * can reach its port may send anything: request.c checks each byte, and server.c limits the
 * number of clients, the size of a request and the time that a client may take.
 */
#ifndef EXPORTER_H
#define EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a request with all of its headers; Prometheus sends about 400. */
#define EXPORTER_MAX_REQUEST 8192

struct exporter_options {
	const char *listen;		/* [HOST]:PORT */
	int max_clients;
	double timeout;			/* seconds from connection to the end of the answer */
};

/* page.c: a page in memory, which its owner releases. */
struct exporter_page {
	char *text;
	size_t bytes;
	int references;
};

/*
 * Returns the metrics, at most half a second old, so that many requests do not read the
 * cards more often; NULL if they cannot be read.
 */
struct exporter_page *exporter_metrics(void);
void exporter_page_put(struct exporter_page *page);

/* request.c */
enum exporter_answer {
	EXPORTER_INCOMPLETE = 0,	/* more bytes are needed */
	EXPORTER_METRICS = 200,
	EXPORTER_INDEX = 201,		/* the page with a link; sent with status 200 */
	EXPORTER_BAD_REQUEST = 400,
	EXPORTER_NOT_FOUND = 404,
	EXPORTER_BAD_METHOD = 405,
	EXPORTER_TOO_LARGE = 431,
	EXPORTER_UNAVAILABLE = 503,
};

/* Judges the bytes received so far; *head: only the headers of the answer are wanted. */
enum exporter_answer exporter_parse(const char *bytes, size_t count, bool *head);

/* server.c: returns an exit status, once SIGINT or SIGTERM has come. */
int exporter_serve(const struct exporter_options *options);

/* socket.c: returns a socket that listens, or -1 after a message; prints the address. */
int exporter_listen(const char *address);

#endif /* EXPORTER_H */
