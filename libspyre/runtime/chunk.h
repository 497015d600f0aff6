/* SPDX-License-Identifier: MIT */
/*
 * Chunks: 2 MiB of device memory cut into units of 128 bytes. Internal.
 *
 * A unit is clean (free and zero), dirty (free, to be zeroed), being zeroed,
 * or in use. Allocations take clean units only, which keeps the promise that
 * new memory reads as zero; dirty units are zeroed in batches by FILL commands
 * on a queue of their own, so that nobody waits for it.
 */
#ifndef SPYRE_CHUNK_H
#define SPYRE_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include <spyre/types.h>

#define SPYRE_CHUNK_BYTES (2ull << 20)
#define SPYRE_UNIT_BYTES 128u
#define SPYRE_CHUNK_UNITS ((uint32_t)(SPYRE_CHUNK_BYTES / SPYRE_UNIT_BYTES))
#define SPYRE_CHUNK_WORDS (SPYRE_CHUNK_UNITS / 64)

struct spyre_context;
struct spyre_queue;

struct spyre_chunk {
	uint64_t clean[SPYRE_CHUNK_WORDS];
	uint64_t dirty[SPYRE_CHUNK_WORDS];
	uint64_t zeroing[SPYRE_CHUNK_WORDS];
	/* First units of live allocations, and their lengths in units. */
	uint64_t start[SPYRE_CHUNK_WORDS];
	uint16_t units[SPYRE_CHUNK_UNITS];
	uint32_t num_used;	/* in use, also by work after a free */
	uint32_t num_dirty;
	uint32_t num_zeroing;
	/* No run of clean units is longer. */
	uint32_t longest;
};

/* The batch of FILLs in flight, if any. */
struct spyre_zeroing {
	struct spyre_queue *queue;
	uint64_t point;
	uint32_t commands;
	bool pending;
	/* A FILL failed: dirty units stay so, chunks come back by unmapping. */
	bool broken;
};

struct spyre_chunk *spyre_chunk_new(void);
/* First unit of a run of @units clean units, now in use; -1 if there is none. */
int spyre_chunk_take(struct spyre_chunk *chunk, uint32_t units);
/* The application freed it; false: @first is not the start of an allocation. */
bool spyre_chunk_end(struct spyre_chunk *chunk, uint32_t first, uint32_t *units);
/* Queued work is done with it too. */
void spyre_chunk_give(struct spyre_chunk *chunk, uint32_t first, uint32_t units);
/* Units of the longest clean run. */
uint32_t spyre_chunk_longest(const struct spyre_chunk *chunk);
/* The live allocation that holds @unit; false if there is none. */
bool spyre_chunk_find(const struct spyre_chunk *chunk, uint32_t unit, uint32_t *first,
		      uint32_t *units);

/* All of these with memory.lock held for writing. */
void spyre_zeroing_start(struct spyre_context *context);
/* Collects a finished batch. @block: waits for it. */
void spyre_zeroing_poll(struct spyre_context *context, bool block);
void spyre_zeroing_fini(struct spyre_context *context);

#endif /* SPYRE_CHUNK_H */
