// SPDX-License-Identifier: MIT
/* Pinned host memory, and lookups of host addresses in it. */
#include <inttypes.h>
#include <stdlib.h>

#include "libspyre/base/array.h"
#include "libspyre/runtime/context.h"

spyre_status spyre_host_memory_init(struct spyre_context *context)
{
	pthread_rwlock_init(&context->host.lock, NULL);
	return SPYRE_SUCCESS;
}

/* Unmaps a block; lock held. */
static void host_remove(struct spyre_context *context, uint32_t at)
{
	struct spyre_host_memory *host = &context->host;
	struct spyre_host_block block = host->blocks[at];

	host->num_blocks--;
	host->num_freed -= block.freed;
	memmove(&host->blocks[at], &host->blocks[at + 1],
		(host->num_blocks - at) * sizeof(host->blocks[0]));
	if (block.points)
		spyre_points_free(block.points);
	context->ops->host_free(context->card, (void *)block.address, block.mapped);
}

static void reclaim_locked(struct spyre_context *context)
{
	struct spyre_host_memory *host = &context->host;

	for (uint32_t i = host->num_blocks; host->num_freed && i-- > 0;)
		if (host->blocks[i].points && spyre_points_reached(host->blocks[i].points))
			host_remove(context, i);
}

void spyre_host_memory_reclaim(struct spyre_context *context)
{
	pthread_rwlock_wrlock(&context->host.lock);
	reclaim_locked(context);
	pthread_rwlock_unlock(&context->host.lock);
}

void spyre_host_memory_fini(struct spyre_context *context)
{
	struct spyre_host_memory *host = &context->host;

	while (host->num_blocks)
		host_remove(context, host->num_blocks - 1);
	free(host->blocks);
	pthread_rwlock_destroy(&host->lock);
}

/* Index of the first block that ends above @address. */
static uint32_t host_index(const struct spyre_host_memory *host, uintptr_t address)
{
	uint32_t low = 0, high = host->num_blocks;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (host->blocks[mid].address + host->blocks[mid].bytes > address)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool host_insert(struct spyre_host_memory *host, const struct spyre_host_block *block)
{
	uint32_t at;

	if (!spyre_array_reserve(&host->blocks, &host->max_blocks, host->num_blocks + 1,
				 sizeof(*host->blocks)))
		return false;
	at = host_index(host, block->address);
	memmove(&host->blocks[at + 1], &host->blocks[at],
		(host->num_blocks - at) * sizeof(host->blocks[0]));
	host->blocks[at] = *block;
	host->num_blocks++;
	return true;
}

spyre_status spyre_host_alloc(spyre_context *context, size_t bytes, void **address)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_host_block block = { 0 };
	void *memory;
	bool ok;

	if (status)
		return status;
	if (!address)
		return spyre_null_argument("spyre_host_alloc", "address");
	*address = NULL;
	if (!bytes)
		return SPYRE_SUCCESS;
	if (bytes > SIZE_MAX - SPYRE_VA_PAGE)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "spyre_host_alloc: no memory for %zu bytes of pinned memory", bytes);
	block.bytes = bytes;
	block.mapped = (bytes + SPYRE_VA_PAGE - 1) & ~(size_t)(SPYRE_VA_PAGE - 1);
	status = context->ops->host_alloc(context->card, block.mapped, &memory);
	if (status)
		return status;
	block.address = (uintptr_t)memory;
	pthread_rwlock_wrlock(&context->host.lock);
	reclaim_locked(context);
	ok = host_insert(&context->host, &block);
	pthread_rwlock_unlock(&context->host.lock);
	if (!ok) {
		context->ops->host_free(context->card, memory, block.mapped);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "spyre_host_alloc: no memory to record %zu bytes of pinned memory", bytes);
	}
	*address = memory;
	return SPYRE_SUCCESS;
}

spyre_status spyre_host_free(spyre_context *context, void *address)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_deferred_free *points;
	struct spyre_host_memory *host;
	bool found, busy;
	uint32_t at;

	if (status)
		return status;
	if (!address)
		return SPYRE_SUCCESS;
	host = &context->host;
	points = spyre_points_now(context, &busy);
	pthread_rwlock_wrlock(&host->lock);
	reclaim_locked(context);
	at = host_index(host, (uintptr_t)address);
	found = at < host->num_blocks && host->blocks[at].address == (uintptr_t)address &&
		!host->blocks[at].freed;
	if (found && busy) {
		host->blocks[at].freed = true;
		host->blocks[at].points = points;
		host->num_freed++;
		points = NULL;
	} else if (found) {
		host_remove(context, at);
	}
	pthread_rwlock_unlock(&host->lock);
	if (points)
		spyre_points_free(points);
	if (!found)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_host_free: %p is not from spyre_host_alloc() of this context, or was freed before",
				   address);
	return SPYRE_SUCCESS;
}

bool spyre_host_is_pinned(struct spyre_context *context, const void *address, uint64_t bytes)
{
	struct spyre_host_memory *host = &context->host;
	uintptr_t start = (uintptr_t)address;
	const struct spyre_host_block *block;
	bool pinned = false;
	uint32_t at;

	pthread_rwlock_rdlock(&host->lock);
	at = host_index(host, start);
	if (at < host->num_blocks) {
		block = &host->blocks[at];
		pinned = !block->freed && block->address <= start &&
			 start - block->address <= block->bytes &&
			 bytes <= block->bytes - (start - block->address);
	}
	pthread_rwlock_unlock(&host->lock);
	return pinned;
}

spyre_status spyre_host_pointer_query(spyre_context *context, const void *address,
				      spyre_pointer_info *out)
{
	spyre_pointer_info info = { .kind = SPYRE_MEMORY_UNKNOWN };
	spyre_status status = spyre_context_check(context);
	struct spyre_host_memory *host;
	uint32_t at;

	if (!status)
		status = spyre_struct_check("spyre_host_pointer_query", "pointer_info", out);
	if (status)
		return status;
	host = &context->host;
	pthread_rwlock_rdlock(&host->lock);
	at = host_index(host, (uintptr_t)address);
	if (at < host->num_blocks && host->blocks[at].address <= (uintptr_t)address &&
	    !host->blocks[at].freed) {
		info.kind = SPYRE_MEMORY_PINNED_HOST;
		info.base = host->blocks[at].address;
		info.size = host->blocks[at].bytes;
		info.offset = (uintptr_t)address - info.base;
	}
	pthread_rwlock_unlock(&host->lock);
	spyre_struct_write(out, out->struct_size, &info, sizeof(info));
	return SPYRE_SUCCESS;
}
