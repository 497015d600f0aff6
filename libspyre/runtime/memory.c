// SPDX-License-Identifier: MIT
/* Device memory: allocation, deferred freeing, queries. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libspyre/base/error.h"
#include "libspyre/runtime/block.h"
#include "libspyre/runtime/peer.h"
#include "libspyre/runtime/stream.h"
#include "libspyre/runtime/trace.h"

/* Largest allocation: a segment without its first page. */
#define MAX_BYTES ((1ull << SPYRE_SEGMENT_SHIFT) - SPYRE_VA_PAGE)

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

spyre_status spyre_memory_init(struct spyre_context *context)
{
	struct spyre_memory *memory = &context->memory;

	if (!spyre_va_init(&memory->va))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for the address space of a context");
	pthread_rwlock_init(&memory->lock, NULL);
	memory->deferred_tail = &memory->deferred;
	return SPYRE_SUCCESS;
}

void spyre_points_free(struct spyre_deferred_free *entry)
{
	for (uint32_t i = 0; i < entry->num_points; i++)
		spyre_stream_unref(entry->points[i].stream);
	free(entry);
}

bool spyre_points_reached(const struct spyre_deferred_free *entry)
{
	for (uint32_t i = 0; i < entry->num_points; i++)
		if (!spyre_stream_reached(entry->points[i].stream, entry->points[i].seq))
			return false;
	return true;
}

static void reclaim_locked(struct spyre_context *context)
{
	struct spyre_memory *memory = &context->memory;
	struct spyre_deferred_free *entry;

	while ((entry = memory->deferred) && spyre_points_reached(entry)) {
		memory->deferred = entry->next;
		if (!memory->deferred)
			memory->deferred_tail = &memory->deferred;
		spyre_block_release(context, entry->block, entry->first, entry->units);
		spyre_points_free(entry);
	}
}

void spyre_memory_reclaim(struct spyre_context *context)
{
	pthread_rwlock_wrlock(&context->memory.lock);
	reclaim_locked(context);
	spyre_zeroing_poll(context, false);
	pthread_rwlock_unlock(&context->memory.lock);
}

void spyre_memory_fini(struct spyre_context *context)
{
	struct spyre_memory *memory = &context->memory;
	struct spyre_deferred_free *entry;

	spyre_zeroing_fini(context);
	while ((entry = memory->deferred)) {
		memory->deferred = entry->next;
		spyre_points_free(entry);
	}
	while (memory->num_blocks)
		spyre_block_unmap(context, memory->blocks[memory->num_blocks - 1]);
	free(memory->blocks);
	free(memory->chunks);
	spyre_va_fini(&memory->va);
	pthread_rwlock_destroy(&memory->lock);
}

static spyre_status alloc_small(struct spyre_context *context, uint64_t bytes, uint64_t *address)
{
	uint32_t units = bytes / SPYRE_UNIT_BYTES;
	struct spyre_block *block;
	spyre_status status;

	*address = spyre_block_take_units(context, units);
	if (*address)
		return SPYRE_SUCCESS;
	status = spyre_block_map(context, SPYRE_CHUNK_BYTES, true, &block);
	if (!status) {
		*address = block->va +
			   (uint64_t)spyre_chunk_take(block->chunk, units) * SPYRE_UNIT_BYTES;
		return SPYRE_SUCCESS;
	}
	/* The free memory may suffice for the allocation, though not for a chunk. */
	if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY)
		status = spyre_block_map(context, round_up(bytes, SPYRE_VA_PAGE), false, &block);
	if (status)
		return status;
	block->size = bytes;
	*address = block->va;
	return SPYRE_SUCCESS;
}

static spyre_status alloc_once(struct spyre_context *context, uint64_t bytes, uint64_t *address)
{
	struct spyre_block *block;

	if (bytes < SPYRE_LARGE_BYTES)
		return alloc_small(context, bytes, address);
	TRY(spyre_block_map(context, round_up(bytes, SPYRE_VA_PAGE), false, &block));
	block->size = bytes;
	*address = block->va;
	return SPYRE_SUCCESS;
}

/* Waits until the oldest deferred free is ready; drops the lock meanwhile. */
static bool wait_for_oldest(struct spyre_context *context)
{
	struct spyre_memory *memory = &context->memory;
	struct spyre_deferred_free *entry = memory->deferred, *copy;
	size_t bytes;
	bool ok = true;

	if (!entry)
		return false;
	bytes = sizeof(*entry) + entry->num_points * sizeof(entry->points[0]);
	copy = malloc(bytes);
	if (!copy)
		return false;
	memcpy(copy, entry, bytes);
	for (uint32_t i = 0; i < copy->num_points; i++)
		spyre_stream_ref(copy->points[i].stream);
	pthread_rwlock_unlock(&memory->lock);
	for (uint32_t i = 0; i < copy->num_points && ok; i++)
		ok = !spyre_stream_wait_seq(copy->points[i].stream, copy->points[i].seq,
					    INT64_MAX);
	pthread_rwlock_wrlock(&memory->lock);
	spyre_points_free(copy);
	return ok;
}

/* Frees all memory that can be freed before it reports "out of memory". */
static spyre_status alloc_hard(struct spyre_context *context, uint64_t bytes, uint64_t *address)
{
	spyre_status status;

	for (;;) {
		reclaim_locked(context);
		spyre_zeroing_poll(context, true);
		spyre_zeroing_start(context);
		spyre_zeroing_poll(context, true);
		spyre_block_trim(context, 0);
		status = alloc_once(context, bytes, address);
		if (status != SPYRE_ERROR_OUT_OF_DEVICE_MEMORY)
			return status;
		/* A host function must not wait: the work may be waiting for it. */
		if (spyre_in_stream_thread(NULL) || !wait_for_oldest(context))
			return status;
	}
}

static uint64_t largest_free(struct spyre_context *context, uint64_t available)
{
	struct spyre_memory *memory = &context->memory;
	uint64_t largest = available & ~(SPYRE_VA_PAGE - 1);
	uint64_t hole = spyre_va_largest(&memory->va);

	if (largest > hole)
		largest = hole;
	for (uint32_t i = 0; i < memory->num_chunks; i++) {
		uint64_t run = (uint64_t)spyre_chunk_longest(memory->chunks[i]->chunk) *
			       SPYRE_UNIT_BYTES;

		/* Only small allocations are cut from chunks. */
		if (run >= SPYRE_LARGE_BYTES)
			run = SPYRE_LARGE_BYTES - SPYRE_UNIT_BYTES;
		if (run > largest)
			largest = run;
	}
	return largest;
}

static spyre_status alloc_error(struct spyre_context *context, uint64_t bytes)
{
	struct spyre_memory *memory = &context->memory;
	uint64_t total = 0, used = 0;

	context->ops->mem_info(context->card, &total, &used);
	return spyre_error(SPYRE_ERROR_OUT_OF_DEVICE_MEMORY,
			   "card %d is out of memory: requested %" PRIu64 " bytes; %" PRIu64 " of %"
			   PRIu64 " free, largest possible allocation %" PRIu64 "; %" PRIu64
			   " allocations of this context hold %" PRIu64
			   " bytes; free some, or use a smaller batch", context->index, bytes,
			   total - used, total, largest_free(context, total - used),
			   memory->allocations, memory->used);
}

spyre_status spyre_mem_alloc(spyre_context *context, uint64_t bytes, spyre_devptr *address)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_memory *memory;
	SPYRE_TRACE_CALL("spyre_mem_alloc");

	if (status)
		return status;
	if (!address)
		return spyre_null_argument("spyre_mem_alloc", "address");
	*address = 0;
	if (!bytes)
		return SPYRE_SUCCESS;
	memory = &context->memory;
	pthread_rwlock_wrlock(&memory->lock);
	if (bytes > MAX_BYTES) {
		status = alloc_error(context, bytes);
	} else {
		bytes = round_up(bytes, SPYRE_UNIT_BYTES);
		reclaim_locked(context);
		status = alloc_once(context, bytes, address);
		if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY)
			status = alloc_hard(context, bytes, address);
		if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY)
			alloc_error(context, bytes);
	}
	if (!status) {
		memory->allocations++;
		memory->used += bytes;
		if (memory->used > memory->peak)
			memory->peak = memory->used;
		spyre_trace_memory(context, memory->used);
	}
	pthread_rwlock_unlock(&memory->lock);
	return status;
}

struct spyre_deferred_free *spyre_points_now(struct spyre_context *context, bool *busy)
{
	struct spyre_deferred_free *entry = NULL;
	struct spyre_stream *stream;
	struct spyre_free_point *peers;
	uint32_t n, num_peers;

	peers = spyre_peer_points(context, &num_peers);
	*busy = num_peers;
	n = num_peers;
	pthread_mutex_lock(&context->streams_lock);
	TAILQ_FOREACH(stream, &context->streams, link) {
		n++;
		if (!spyre_stream_reached(stream, atomic_load(&stream->tail)))
			*busy = true;
	}
	if (*busy && (peers || !num_peers))
		entry = malloc(sizeof(*entry) + n * sizeof(entry->points[0]));
	if (entry) {
		entry->num_points = num_peers;
		entry->next = NULL;
		if (num_peers)
			memcpy(entry->points, peers, num_peers * sizeof(*peers));
		TAILQ_FOREACH(stream, &context->streams, link) {
			uint64_t tail = atomic_load(&stream->tail);

			if (spyre_stream_reached(stream, tail))
				continue;
			entry->points[entry->num_points].stream = spyre_stream_ref(stream);
			entry->points[entry->num_points++].seq = tail;
		}
	}
	pthread_mutex_unlock(&context->streams_lock);
	for (uint32_t i = 0; peers && !entry && i < num_peers; i++)
		spyre_stream_unref(peers[i].stream);
	free(peers);
	return entry;
}

/* Ends the allocation that starts at @address. */
static bool end_allocation(struct spyre_memory *memory, uint64_t address,
			   struct spyre_block **out, uint32_t *first, uint32_t *units)
{
	uint32_t i = spyre_block_index(memory, address);
	struct spyre_block *block;
	uint64_t offset, bytes;

	if (i == memory->num_blocks || memory->blocks[i]->va > address)
		return false;
	block = memory->blocks[i];
	offset = address - block->va;
	*first = *units = 0;
	if (block->chunk) {
		*first = offset / SPYRE_UNIT_BYTES;
		if (offset % SPYRE_UNIT_BYTES || !spyre_chunk_end(block->chunk, *first, units))
			return false;
		bytes = (uint64_t)*units * SPYRE_UNIT_BYTES;
	} else {
		if (offset != block->offset || block->freed)
			return false;
		block->freed = true;
		bytes = block->imported ? 0 : block->size;
	}
	memory->allocations--;
	memory->used -= bytes;
	*out = block;
	return true;
}

spyre_status spyre_mem_free(spyre_context *context, spyre_devptr address)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_deferred_free *entry;
	struct spyre_memory *memory;
	struct spyre_block *block;
	uint32_t first, units;
	bool busy, found;
	SPYRE_TRACE_CALL("spyre_mem_free");

	if (status)
		return status;
	if (!address)
		return SPYRE_SUCCESS;
	memory = &context->memory;
	entry = spyre_points_now(context, &busy);
	pthread_rwlock_wrlock(&memory->lock);
	reclaim_locked(context);
	found = end_allocation(memory, address, &block, &first, &units);
	if (found)
		spyre_trace_memory(context, memory->used);
	if (found && entry) {
		entry->block = block;
		entry->first = first;
		entry->units = units;
		*memory->deferred_tail = entry;
		memory->deferred_tail = &entry->next;
		entry = NULL;
	} else if (found && !busy) {
		spyre_block_release(context, block, first, units);
	}
	/* Without host memory for an entry the block is freed with the context. */
	pthread_rwlock_unlock(&memory->lock);
	if (entry)
		spyre_points_free(entry);
	if (!found)
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
				   "spyre_mem_free: 0x%" PRIx64 " is not the start of a live "
				   "allocation of this context; it may have been freed before", address);
	return SPYRE_SUCCESS;
}

spyre_status spyre_mem_info(spyre_context *context, spyre_memory_info *out)
{
	spyre_status status = spyre_context_check(context);
	spyre_memory_info info = { 0 };
	struct spyre_memory *memory;

	if (!status)
		status = spyre_struct_check("spyre_mem_info", "memory_info", out);
	if (status)
		return status;
	memory = &context->memory;
	pthread_rwlock_wrlock(&memory->lock);
	reclaim_locked(context);
	status = context->ops->mem_info(context->card, &info.total, &info.used);
	if (!status) {
		info.free = info.total - info.used;
		info.context_used = memory->used;
		info.context_peak = memory->peak;
		info.largest_free = largest_free(context, info.free);
		info.allocations = memory->allocations;
	}
	pthread_rwlock_unlock(&memory->lock);
	if (!status)
		spyre_struct_write(out, out->struct_size, &info, sizeof(info));
	return status;
}

spyre_status spyre_pointer_query(spyre_context *context, spyre_devptr address,
				 spyre_pointer_info *out)
{
	spyre_pointer_info info = { .kind = SPYRE_MEMORY_UNKNOWN };
	spyre_status status = spyre_context_check(context);

	if (!status)
		status = spyre_struct_check("spyre_pointer_query", "pointer_info", out);
	if (status)
		return status;
	pthread_rwlock_rdlock(&context->memory.lock);
	if (spyre_block_lookup(&context->memory, address, &info.base, &info.size)) {
		info.kind = SPYRE_MEMORY_DEVICE;
		info.offset = address - info.base;
	} else {
		info.base = info.size = 0;
	}
	pthread_rwlock_unlock(&context->memory.lock);
	spyre_struct_write(out, out->struct_size, &info, sizeof(info));
	return SPYRE_SUCCESS;
}

static spyre_status span_error(const struct spyre_span *span, bool found, uint64_t base,
			       uint64_t size)
{
	char name[48];

	if (span->index < 0)
		snprintf(name, sizeof(name), "%s", span->what);
	else
		snprintf(name, sizeof(name), "%s %d", span->what, span->index);
	if (!found)
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
				   "%s: 0x%" PRIx64 " is not in a live allocation of this context",
				   name, span->address);
	return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
			   "%s: needs %" PRIu64 " bytes at 0x%" PRIx64 ", but the allocation at 0x%"
			   PRIx64 " of %" PRIu64 " bytes has %" PRIu64 " from there on", name,
			   span->bytes, span->address, base, size, base + size - span->address);
}

spyre_status spyre_memory_check(struct spyre_context *context, const struct spyre_span *spans,
				uint32_t num_spans)
{
	uint64_t base = 0, size = 0;
	bool found = true;
	uint32_t i;

	pthread_rwlock_rdlock(&context->memory.lock);
	for (i = 0; i < num_spans; i++) {
		found = spyre_block_lookup(&context->memory, spans[i].address, &base, &size);
		if (!found || spans[i].bytes > base + size - spans[i].address)
			break;
	}
	pthread_rwlock_unlock(&context->memory.lock);
	return i == num_spans ? SPYRE_SUCCESS : span_error(&spans[i], found, base, size);
}
