/* SPDX-License-Identifier: MIT */
/*
 * Device memory of a context, and its pinned host memory. Internal.
 *
 * A block is a mapped range of device addresses: one large allocation, or a
 * chunk from which small ones are cut in units of 128 bytes. Freed memory can
 * be reused when the work that was queued at that time has finished.
 */
#ifndef SPYRE_RUNTIME_MEMORY_H
#define SPYRE_RUNTIME_MEMORY_H

#include <pthread.h>

#include <spyre/memory.h>

#include "libspyre/runtime/chunk.h"
#include "libspyre/runtime/va.h"

/* Allocations from this size on have a mapping of their own. */
#define SPYRE_LARGE_BYTES (1ull << 20)

struct spyre_queue;
struct spyre_stream;

struct spyre_block {
	uint64_t va;
	uint64_t bytes;			/* mapped */
	uint64_t size;			/* allocated, if not a chunk */
	uint64_t offset;		/* start of the allocation; not 0 for imports only */
	bool imported;
	int ipc_fd;			/* dma-buf named by handles of other processes, or -1 */
	struct spyre_chunk *chunk;	/* NULL if the block is one allocation */
	bool freed;			/* waits for queued work */
};

/* Memory that was freed while work was queued. */
struct spyre_deferred_free {
	struct spyre_deferred_free *next;
	struct spyre_block *block;
	uint32_t first;			/* units of a chunk */
	uint32_t units;
	uint32_t num_points;
	struct spyre_free_point {
		struct spyre_stream *stream;	/* holds a reference */
		uint64_t seq;
	} points[];
};

struct spyre_memory {
	pthread_rwlock_t lock;
	struct spyre_va va;
	/* Mapped blocks by address. */
	struct spyre_block **blocks;
	uint32_t num_blocks;
	size_t max_blocks;
	/* Blocks with a chunk, newest last. */
	struct spyre_block **chunks;
	uint32_t num_chunks;
	size_t max_chunks;
	uint32_t last_chunk;
	/* Oldest first, so the first entry is the first that becomes ready. */
	struct spyre_deferred_free *deferred;
	struct spyre_deferred_free **deferred_tail;
	struct spyre_zeroing zeroing;

	uint64_t allocations;
	uint64_t used;
	uint64_t peak;
};

struct spyre_host_block {
	uintptr_t address;
	size_t bytes;			/* requested */
	size_t mapped;
	/* Freed while work was queued: unmapped after @points, or with the context. */
	bool freed;
	struct spyre_deferred_free *points;
};

struct spyre_host_memory {
	pthread_rwlock_t lock;
	struct spyre_host_block *blocks;	/* by address */
	uint32_t num_blocks;
	size_t max_blocks;
	uint32_t num_freed;
};

spyre_status spyre_memory_init(struct spyre_context *context);
/* The caller has destroyed all streams. */
void spyre_memory_fini(struct spyre_context *context);

/* Releases freed memory whose work has finished; never blocks on work. */
void spyre_memory_reclaim(struct spyre_context *context);

/*
 * Records the work that is queued on all streams, which memory freed now has to
 * outlive. NULL if no work is queued, or, with *busy set, if memory is short.
 */
struct spyre_deferred_free *spyre_points_now(struct spyre_context *context, bool *busy);
bool spyre_points_reached(const struct spyre_deferred_free *entry);
void spyre_points_free(struct spyre_deferred_free *entry);

/* A range that a copy or kernel uses, and its name for error texts. */
struct spyre_span {
	spyre_devptr address;
	uint64_t bytes;
	const char *what;
	int index;			/* -1: not an argument */
};

/* SUCCESS if each span lies within one live allocation. */
spyre_status spyre_memory_check(struct spyre_context *context, const struct spyre_span *spans,
				uint32_t num_spans);

spyre_status spyre_host_memory_init(struct spyre_context *context);
void spyre_host_memory_fini(struct spyre_context *context);
/* True if [address, address + bytes) lies within one spyre_host_alloc(). */
bool spyre_host_is_pinned(struct spyre_context *context, const void *address, uint64_t bytes);
/* Unmaps freed memory whose copies have finished; never blocks on work. */
void spyre_host_memory_reclaim(struct spyre_context *context);

#endif /* SPYRE_RUNTIME_MEMORY_H */
