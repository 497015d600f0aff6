/* SPDX-License-Identifier: MIT */
/*
 * A context: an open card, its address space, streams and what they own. Internal.
 *
 * Lock order: stream.lock, then context.streams_lock or memory.lock (leaves;
 * never nested). The application is never called with a lock held.
 */
#ifndef SPYRE_CONTEXT_H
#define SPYRE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <spyre/spyre.h>

#include "libspyre/backend/backend.h"
#include "libspyre/base/check.h"
#include "libspyre/base/error.h"
#include "libspyre/runtime/memory.h"

#define SPYRE_POOL_STREAMS (SPYRE_STREAM_HIGH_LAST + 1)

TAILQ_HEAD(spyre_stream_list, spyre_stream);
TAILQ_HEAD(spyre_event_list, spyre_event);
TAILQ_HEAD(spyre_kernel_list, spyre_kernel);
TAILQ_HEAD(spyre_graph_list, spyre_graph);

/* Number of blocks of pinned memory that are kept for copies through the host. */
#define SPYRE_STAGING_BLOCKS 8

struct spyre_staging {
	pthread_mutex_t lock;
	uint64_t kept;
	struct {
		void *memory;
		size_t bytes;		/* 0: the entry is free */
	} block[SPYRE_STAGING_BLOCKS];
};

struct spyre_context {
	/*
	 * One of the application, and one of each stream: those of other contexts may refer
	 * to a stream when its context has been destroyed. The last one closes the card.
	 */
	_Atomic uint32_t refs;
	const struct spyre_backend_ops *ops;
	struct spyre_card *card;
	int index;
	bool measured;		/* spyre_metrics_hold() */
	uint32_t fork_generation;
	/* Counts contexts of this process, from 1. */
	uint64_t number;

	struct spyre_memory memory;
	struct spyre_host_memory host;
	struct spyre_staging staging;

	/* Protects the lists; the objects in them have their own locks. */
	pthread_mutex_t streams_lock;
	struct spyre_stream *pool[SPYRE_POOL_STREAMS];
	struct spyre_stream_list streams;	/* including those of the pool */
	struct spyre_event_list events;
	struct spyre_kernel_list kernels;
	struct spyre_graph_list graphs;
	/* The first failure since the context was made or reset. */
	pthread_mutex_t fault_lock;
	struct spyre_context_fault {
		spyre_status status;
		spyre_fault kind;
		int stream;
		uint64_t operation;
		uint32_t command;
		char text[512];
	} fault;
	unsigned int next_low;
	unsigned int next_high;
	int next_own;
};

void spyre_context_unref(struct spyre_context *context);

/* Counts forks; objects of another generation belong to a parent process. */
uint32_t spyre_fork_generation(void);

spyre_status spyre_context_error(const spyre_context *context);

/* SUCCESS if @context may be used in this process, else an error with its text. */
static inline spyre_status spyre_context_check(const spyre_context *context)
{
	if (__builtin_expect(context && context->fork_generation == spyre_fork_generation(), 1))
		return SPYRE_SUCCESS;
	return spyre_context_error(context);
}

/* All streams with a reference each; *count is 0 if memory is short. */
struct spyre_stream **spyre_context_streams(struct spyre_context *context, uint32_t *count);
/* Id of the stream of @context whose host function is the caller, -1 for other callers. */
int spyre_context_calling_stream(struct spyre_context *context);

/* device.c */
spyre_status spyre_backend_choose(const struct spyre_backend_ops **ops, int *total);
spyre_status spyre_device_resolve(int index, const struct spyre_backend_ops **ops, int *physical);

/* staging.c: gets at least *@bytes and sets *@bytes to the size, which put() takes. */
spyre_status spyre_staging_get(struct spyre_context *context, size_t *bytes, void **memory);
void spyre_staging_put(struct spyre_context *context, void *memory, size_t bytes);
void spyre_staging_drop(struct spyre_context *context);

#endif /* SPYRE_CONTEXT_H */
