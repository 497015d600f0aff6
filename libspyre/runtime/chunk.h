/* SPDX-License-Identifier: MIT */
/*
 * Chunks: 2 MiB of device memory cut into units of 128 bytes. Internal.
 *
 * A unit is clean (free and zero), dirty (free, to be zeroed), being zeroed,
 * or in use. Allocations take clean units only, because new memory is to read
 * as zero; dirty units are zeroed in batches by FILL commands on a separate
 * queue, so that no stream waits for it.
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
	/* Bits of the first units of live allocations, and their lengths in units. */
	uint64_t start[SPYRE_CHUNK_WORDS];
	uint16_t units[SPYRE_CHUNK_UNITS];
	uint32_t num_used;	/* in use, also by work after a free */
	uint32_t num_dirty;
	uint32_t num_zeroing;
	/* Upper bound of the runs of clean units. */
	uint32_t longest;
};

/* The batch of FILLs in flight, if any. */
struct spyre_zeroing {
	struct spyre_queue *queue;
	uint64_t point;
	uint32_t commands;
	bool pending;
	/* A FILL failed: dirty units stay dirty until their chunk is unmapped. */
	bool broken;
};

struct spyre_chunk *spyre_chunk_new(void);
/* Allocates a run of @units clean units; returns the first, -1 if no run is that long. */
int spyre_chunk_take(struct spyre_chunk *chunk, uint32_t units);
/* Ends an allocation that the application freed; false if none starts at @first. */
bool spyre_chunk_end(struct spyre_chunk *chunk, uint32_t first, uint32_t *units);
/* Makes units dirty after the queued work that used them has finished. */
void spyre_chunk_give(struct spyre_chunk *chunk, uint32_t first, uint32_t units);
/* Units of the longest clean run. */
uint32_t spyre_chunk_longest(const struct spyre_chunk *chunk);
/* Finds the live allocation that holds @unit; false if none does. */
bool spyre_chunk_find(const struct spyre_chunk *chunk, uint32_t unit, uint32_t *first,
		      uint32_t *units);

/* The caller of these holds memory.lock for writing. */
void spyre_zeroing_start(struct spyre_context *context);
/* Collects a finished batch; waits for it if @block. */
void spyre_zeroing_poll(struct spyre_context *context, bool block);
void spyre_zeroing_fini(struct spyre_context *context);

#endif /* SPYRE_CHUNK_H */
