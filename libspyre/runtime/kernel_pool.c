// SPDX-License-Identifier: MIT
/*
 * Memory for a kernel's intermediates. Launches of one stream follow each other
 * and share it; launches that may run at the same time each need their own.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "libspyre/runtime/kernel.h"

/* Beyond this number, or if memory is short, streams wait for each other. */
#define MAX_POOLS 8u

spyre_status kernel_pool_add(struct spyre_kernel *kernel)
{
	struct kernel_pool *pool = calloc(1, sizeof(*pool));
	spyre_status status;

	if (!pool)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "kernel \"%s\": no memory to record %" PRIu64
				   " bytes of intermediates", kernel->bundle.name,
				   (uint64_t)kernel->bundle.pool_bytes);
	status = spyre_mem_alloc(kernel->context, kernel->bundle.pool_bytes, &pool->address);
	if (status) {
		free(pool);
		return status;
	}
	TAILQ_INSERT_HEAD(&kernel->pools, pool, link);
	kernel->num_pools++;
	return SPYRE_SUCCESS;
}

void kernel_pools_drop(struct spyre_kernel *kernel)
{
	struct kernel_pool *pool;

	while ((pool = TAILQ_FIRST(&kernel->pools))) {
		TAILQ_REMOVE(&kernel->pools, pool, link);
		spyre_mem_free(kernel->context, pool->address);
		if (pool->stream)
			spyre_stream_unref(pool->stream);
		free(pool);
	}
}

/* Returns the pool that @stream used last, else one whose launch is done, else NULL. */
static struct kernel_pool *idle_pool(struct spyre_kernel *kernel, const struct spyre_stream *stream)
{
	struct kernel_pool *pool, *idle = NULL;

	TAILQ_FOREACH(pool, &kernel->pools, link) {
		if (pool->stream == stream)
			return pool;
		if (!idle && (!pool->stream || spyre_stream_reached(pool->stream, pool->seq)))
			idle = pool;
	}
	return idle;
}

spyre_status kernel_pool_take(struct spyre_kernel *kernel, struct spyre_stream *stream,
			      struct kernel_pool **out)
{
	struct kernel_pool *pool = idle_pool(kernel, stream);
	spyre_status status = SPYRE_SUCCESS;

	if (!pool && kernel->num_pools < MAX_POOLS && !kernel_pool_add(kernel))
		pool = TAILQ_FIRST(&kernel->pools);
	if (!pool) {
		/* The least recently used pool is free first. */
		pool = TAILQ_LAST(&kernel->pools, kernel_pool_list);
		status = spyre_stream_wait_for(stream, pool->stream, pool->seq);
	}
	*out = pool;
	return status;
}

void kernel_pool_used(struct spyre_kernel *kernel, struct kernel_pool *pool,
		      struct spyre_stream *stream, uint64_t seq)
{
	pool->seq = seq;
	if (pool->stream != stream) {
		if (pool->stream)
			spyre_stream_unref(pool->stream);
		pool->stream = spyre_stream_ref(stream);
	}
	if (pool != TAILQ_FIRST(&kernel->pools)) {
		TAILQ_REMOVE(&kernel->pools, pool, link);
		TAILQ_INSERT_HEAD(&kernel->pools, pool, link);
	}
}
