// SPDX-License-Identifier: MIT
/* Zeroing of freed units in batches, on a queue that no stream uses. */
#include <string.h>

#include "libspyre/runtime/context.h"

#define BATCH_COMMANDS 64

/* Moves up to @capacity runs of dirty units of a block into @commands. */
static uint32_t batch_chunk(struct spyre_block *block, struct spyre_command *commands,
			    uint32_t capacity)
{
	struct spyre_chunk *chunk = block->chunk;
	uint32_t unit = 0, n = 0;

	while (chunk->num_dirty && unit < SPYRE_CHUNK_UNITS) {
		uint32_t first;

		if (!(chunk->dirty[unit / 64] >> unit % 64)) {
			unit = (unit / 64 + 1) * 64;
			continue;
		}
		unit += __builtin_ctzll(chunk->dirty[unit / 64] >> unit % 64);
		if (n == capacity)
			break;
		first = unit;
		while (unit < SPYRE_CHUNK_UNITS && (chunk->dirty[unit / 64] >> unit % 64 & 1)) {
			chunk->dirty[unit / 64] &= ~(1ull << unit % 64);
			chunk->zeroing[unit / 64] |= 1ull << unit % 64;
			unit++;
		}
		chunk->num_dirty -= unit - first;
		chunk->num_zeroing += unit - first;
		commands[n] = (struct spyre_command){ .type = SPYRE_COMMAND_FILL };
		commands[n].fill.dst = block->va + (uint64_t)first * SPYRE_UNIT_BYTES;
		commands[n].fill.bytes = (uint64_t)(unit - first) * SPYRE_UNIT_BYTES;
		commands[n].fill.pattern_bytes = 1;
		n++;
	}
	return n;
}

static void batch_end(struct spyre_memory *memory, bool zeroed)
{
	for (uint32_t i = 0; i < memory->num_chunks; i++) {
		struct spyre_chunk *chunk = memory->chunks[i]->chunk;

		if (!chunk->num_zeroing)
			continue;
		for (uint32_t w = 0; w < SPYRE_CHUNK_WORDS; w++) {
			if (zeroed)
				chunk->clean[w] |= chunk->zeroing[w];
			else
				chunk->dirty[w] |= chunk->zeroing[w];
			chunk->zeroing[w] = 0;
		}
		if (zeroed)
			chunk->longest = SPYRE_CHUNK_UNITS;
		else
			chunk->num_dirty += chunk->num_zeroing;
		chunk->num_zeroing = 0;
	}
	if (!zeroed)
		memory->zeroing.broken = true;
}

void spyre_zeroing_start(struct spyre_context *context)
{
	struct spyre_memory *memory = &context->memory;
	struct spyre_zeroing *zeroing = &memory->zeroing;
	struct spyre_command commands[BATCH_COMMANDS];
	struct spyre_submission submission = { .commands = commands };
	uint32_t n = 0;

	if (zeroing->pending || zeroing->broken)
		return;
	if (!zeroing->queue && context->ops->queue_create(context->card, 0, &zeroing->queue)) {
		zeroing->queue = NULL;
		return;
	}
	for (uint32_t i = 0; i < memory->num_chunks && n < BATCH_COMMANDS; i++)
		n += batch_chunk(memory->chunks[i], commands + n, BATCH_COMMANDS - n);
	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		zeroing->queue->results[i].state = 0;
	submission.num_commands = n;
	submission.point = zeroing->point + 1;
	if (context->ops->submit(zeroing->queue, &submission)) {
		batch_end(memory, false);
		return;
	}
	zeroing->point++;
	zeroing->commands = n;
	zeroing->pending = true;
}

void spyre_zeroing_poll(struct spyre_context *context, bool block)
{
	struct spyre_zeroing *zeroing = &context->memory.zeroing;
	bool zeroed = true;

	if (!zeroing->pending)
		return;
	if (context->ops->completed(zeroing->queue) < zeroing->point) {
		if (!block)
			return;
		if (context->ops->wait(zeroing->queue, zeroing->point, INT64_MAX))
			return;
	}
	for (uint32_t i = 0; i < zeroing->commands; i++) {
		const struct spyre_command_result *result = &zeroing->queue->results[i];

		if (!__atomic_load_n(&result->state, __ATOMIC_ACQUIRE) || result->status)
			zeroed = false;
	}
	zeroing->pending = false;
	batch_end(&context->memory, zeroed);
}

void spyre_zeroing_fini(struct spyre_context *context)
{
	if (context->memory.zeroing.queue)
		context->ops->queue_destroy(context->memory.zeroing.queue);
	context->memory.zeroing.queue = NULL;
	context->memory.zeroing.pending = false;
}
