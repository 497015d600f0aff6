/* SPDX-License-Identifier: MIT */
/*
 * Every collective on numbers that are known, for tests in which ranks come and go: a rank has a
 * number of its own, which stays the same in every communicator that it joins.
 */
#ifndef COMM_CALLS_H
#define COMM_CALLS_H

#include "comm_ranks.h"

enum call_kind {
	CALL_ALL_REDUCE,
	CALL_ALL_GATHER,
	CALL_REDUCE_SCATTER,
	CALL_BROADCAST,
	CALL_REDUCE,
	CALL_ALL_TO_ALL,
	CALL_GATHER,
	CALL_SCATTER,
	/* The same with parts of another size for each rank. */
	CALL_ALL_GATHER_V,
	CALL_REDUCE_SCATTER_V,
	CALL_ALL_TO_ALL_V,
	CALL_GATHER_V,
	CALL_SCATTER_V,
	/* A ring of sends and receives. */
	CALL_MESSAGES,
	CALL_BARRIER,
};

#define CALL_MAX_RANKS 8
/*
 * Numbers of a rank's part, on average if the parts differ: sticks that 2, 3 and 4 divide, of
 * more than one block (run.c).
 */
#define CALL_COUNT (32u * 9216)
#define CALL_BYTES (CALL_COUNT * 4u)

struct calls {
	struct rank *rank;
	/* The numbers of the rank are in @send, parts of which are the same as the whole. */
	spyre_devptr send;
	spyre_devptr recv;
	uint32_t parts;
	uint32_t *host;
};

/* The ranks of a communicator by their own numbers. */
struct call_members {
	uint32_t size;
	uint32_t number[CALL_MAX_RANKS];
};

/* Members 0 to @size - 1 without @dead; @dead = @size: all of them. */
struct call_members call_members(uint32_t size, uint32_t dead);

/* Writes the numbers of @rank for communicators of at most @size ranks. */
void calls_open(struct calls *calls, struct rank *rank, uint32_t size);
void calls_close(struct calls *calls);
/* Forgets the results of earlier collectives. */
void calls_clear(const struct calls *calls);
/* Queues one collective on @comm. */
spyre_status calls_queue(const struct calls *calls, enum call_kind kind, spyre_comm *comm,
			 uint32_t root);
/* Compares the result of the last collective, which has ended, and what the rank has sent. */
void calls_check(const struct calls *calls, enum call_kind kind,
		 const struct call_members *members, uint32_t root);

#endif /* COMM_CALLS_H */
