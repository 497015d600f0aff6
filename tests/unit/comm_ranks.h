/* SPDX-License-Identifier: MIT */
/*
 * Runs a test on several ranks, as processes or as threads. Each rank has a context of its own,
 * on card rank % number of cards.
 */
#ifndef COMM_RANKS_H
#define COMM_RANKS_H

#include "runtime_check.h"

struct rank {
	uint32_t rank;
	uint32_t size;
	spyre_context *context;
	spyre_comm *comm;
	spyre_stream *stream;
	/* The test's own. */
	const void *argument;
};

/*
 * Checks of a rank. Check's own work only in the process of a test, so these print the failure
 * and end the process.
 */
#define rank_check(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			exit(1); \
		} \
	} while (0)

#define rank_ok(call) \
	do { \
		spyre_status rank_status = (call); \
		rank_check(!rank_status, "%s: %s: %s", #call, spyre_status_name(rank_status), \
			   spyre_last_error()); \
	} while (0)

typedef void (*rank_fn)(struct rank *rank);

enum ranks_as {
	RANKS_AS_PROCESSES,
	RANKS_AS_THREADS,
};

/* Runs @fn on @size ranks with a communicator, and checks that all of them succeed. */
void ranks_run(enum ranks_as as, uint32_t size, rank_fn fn, const void *argument);
/*
 * Runs @fn on @size processes, which create the communicator of @id by themselves. Returns the
 * exit code of each in @codes, negative for a signal.
 */
void ranks_spawn(uint32_t size, rank_fn fn, const void *argument, int *codes);
/* Communicators that the ranks of a test may create one after the other. */
#define RANKS_MEETINGS 4
/* Returns the id of communicator @meeting, which the rank that passes @creates makes. */
void ranks_get_id(uint32_t meeting, bool creates, spyre_comm_id *id);
/* Joins communicator 0 with all ranks of the test, in a process of ranks_spawn(). */
spyre_status ranks_join(struct rank *rank, uint64_t timeout_ms);

/* Open files of this process, and its threads without the workers of cards. */
struct rank_holdings {
	uint32_t files;
	uint32_t threads;
};

/*
 * Queues work of the kind that communicators queue, after which the context has the threads that
 * it keeps. Returns what the process holds then.
 */
struct rank_holdings ranks_warm_up(struct rank *rank);
/*
 * Checks that communicators have given back their files and threads, some of which end a moment
 * later. Only endpoints of libfabric stay open after the loss of a rank (fabric.c).
 */
void ranks_check_holdings(const struct rank_holdings *before);

#endif /* COMM_RANKS_H */
