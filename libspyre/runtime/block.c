// SPDX-License-Identifier: MIT
/* Mapped blocks: large allocations and chunks, sorted by address. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/runtime/block.h"

/* A quarter of a chunk is enough memory to zero to be worth a submission. */
#define ZERO_UNITS (SPYRE_CHUNK_UNITS / 4)

uint32_t spyre_block_index(const struct spyre_memory *memory, uint64_t address)
{
	uint32_t low = 0, high = memory->num_blocks;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (memory->blocks[mid]->va + memory->blocks[mid]->bytes > address)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

bool spyre_block_lookup(const struct spyre_memory *memory, uint64_t address, uint64_t *base,
			uint64_t *size)
{
	uint32_t i = spyre_block_index(memory, address);
	const struct spyre_block *block;
	uint32_t first, units;

	if (i == memory->num_blocks || memory->blocks[i]->va > address)
		return false;
	block = memory->blocks[i];
	if (!block->chunk) {
		*base = block->va + block->offset;
		*size = block->size;
		return !block->freed && address >= *base && address - *base < block->size;
	}
	if (!spyre_chunk_find(block->chunk, (address - block->va) / SPYRE_UNIT_BYTES, &first,
			      &units))
		return false;
	*base = block->va + (uint64_t)first * SPYRE_UNIT_BYTES;
	*size = (uint64_t)units * SPYRE_UNIT_BYTES;
	return true;
}

/* Inserts @block, sorted by address; the caller has reserved the entry. */
static void block_insert(struct spyre_memory *memory, struct spyre_block *block)
{
	uint32_t at = spyre_block_index(memory, block->va);

	memmove(&memory->blocks[at + 1], &memory->blocks[at],
		(memory->num_blocks - at) * sizeof(memory->blocks[0]));
	memory->blocks[at] = block;
	memory->num_blocks++;
	if (block->chunk)
		memory->chunks[memory->num_chunks++] = block;
}

static struct spyre_block *block_new(struct spyre_memory *memory, uint64_t bytes, bool chunked)
{
	struct spyre_block *block;

	if (!spyre_array_reserve(&memory->blocks, &memory->max_blocks, memory->num_blocks + 1,
				 sizeof(*memory->blocks)) ||
	    !spyre_array_reserve(&memory->chunks, &memory->max_chunks, memory->num_chunks + 1,
				 sizeof(*memory->chunks)))
		return NULL;
	block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	block->bytes = bytes;
	block->size = bytes;
	block->ipc_fd = -1;
	if (chunked) {
		block->chunk = spyre_chunk_new();
		if (!block->chunk) {
			free(block);
			return NULL;
		}
	}
	return block;
}

/* Maps a block: the dma-buf of @import, or new memory if that is NULL. */
static spyre_status block_place(struct spyre_context *context, uint64_t bytes, bool chunked,
				const struct spyre_import *import, struct spyre_block **out)
{
	struct spyre_memory *memory = &context->memory;
	struct spyre_block *block;
	spyre_status status;

	block = block_new(memory, bytes, chunked);
	if (!block)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory to record %" PRIu64 " bytes of device memory", bytes);
	block->va = spyre_va_alloc(&memory->va, bytes, chunked ? SPYRE_CHUNK_BYTES : SPYRE_VA_PAGE);
	if (!block->va) {
		status = spyre_error(SPYRE_ERROR_OUT_OF_DEVICE_MEMORY,
				     "no segment of the context has %" PRIu64 " free bytes in one range; free "
				     "memory of this context", bytes);
		goto err_free;
	}
	if (import)
		status = context->ops->mem_import(context->card, block->va, bytes, import->fd,
						  import->offset);
	else
		status = context->ops->mem_map(context->card, block->va, bytes);
	if (status) {
		spyre_va_free(&memory->va, block->va, bytes);
		goto err_free;
	}
	block_insert(memory, block);
	*out = block;
	return SPYRE_SUCCESS;

err_free:
	free(block->chunk);
	free(block);
	return status;
}

spyre_status spyre_block_map(struct spyre_context *context, uint64_t bytes, bool chunked,
			     struct spyre_block **out)
{
	return block_place(context, bytes, chunked, NULL, out);
}

spyre_status spyre_block_import(struct spyre_context *context, uint64_t bytes,
				const struct spyre_import *import, struct spyre_block **out)
{
	spyre_status status = block_place(context, bytes, false, import, out);

	if (!status)
		(*out)->imported = true;
	return status;
}

void spyre_block_unmap(struct spyre_context *context, struct spyre_block *block)
{
	struct spyre_memory *memory = &context->memory;
	uint32_t at = spyre_block_index(memory, block->va);

	memory->num_blocks--;
	memmove(&memory->blocks[at], &memory->blocks[at + 1],
		(memory->num_blocks - at) * sizeof(memory->blocks[0]));
	for (uint32_t i = 0; block->chunk && i < memory->num_chunks; i++) {
		if (memory->chunks[i] != block)
			continue;
		memory->num_chunks--;
		memmove(&memory->chunks[i], &memory->chunks[i + 1],
			(memory->num_chunks - i) * sizeof(memory->chunks[0]));
		break;
	}
	context->ops->mem_unmap(context->card, block->va, block->bytes);
	spyre_va_free(&memory->va, block->va, block->bytes);
	if (block->ipc_fd >= 0)
		close(block->ipc_fd);
	free(block->chunk);
	free(block);
}

/* Searches the chunks from the one on where the last search ended. */
static uint64_t search_chunks(struct spyre_memory *memory, uint32_t units)
{
	for (uint32_t i = 0; i < memory->num_chunks; i++) {
		uint32_t at = (memory->last_chunk + i) % memory->num_chunks;
		struct spyre_block *block = memory->chunks[at];
		int first = spyre_chunk_take(block->chunk, units);

		if (first < 0)
			continue;
		memory->last_chunk = at;
		return block->va + (uint64_t)first * SPYRE_UNIT_BYTES;
	}
	return 0;
}

uint64_t spyre_block_take_units(struct spyre_context *context, uint32_t units)
{
	struct spyre_memory *memory = &context->memory;
	uint64_t dirty = 0, address;

	address = search_chunks(memory, units);
	if (address)
		return address;
	spyre_zeroing_poll(context, false);
	address = search_chunks(memory, units);
	if (address)
		return address;
	for (uint32_t i = 0; i < memory->num_chunks; i++)
		dirty += memory->chunks[i]->chunk->num_dirty;
	if (dirty >= ZERO_UNITS)
		spyre_zeroing_start(context);
	return 0;
}

void spyre_block_trim(struct spyre_context *context, uint32_t keep)
{
	struct spyre_memory *memory = &context->memory;

	for (uint32_t i = memory->num_chunks; i-- > 0;) {
		struct spyre_block *block = memory->chunks[i];

		if (block->chunk->num_used || block->chunk->num_zeroing)
			continue;
		if (keep)
			keep--;
		else
			spyre_block_unmap(context, block);
	}
}

void spyre_block_release(struct spyre_context *context, struct spyre_block *block,
			 uint32_t first, uint32_t units)
{
	if (!block->chunk) {
		spyre_block_unmap(context, block);
		return;
	}
	spyre_chunk_give(block->chunk, first, units);
	/* One empty chunk is kept, which spares the next allocation a mapping. */
	if (!block->chunk->num_used)
		spyre_block_trim(context, 1);
}
