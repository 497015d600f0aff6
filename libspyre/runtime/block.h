/* SPDX-License-Identifier: MIT */
/* Mapped blocks of a context, with memory.lock held. Internal. */
#ifndef SPYRE_BLOCK_H
#define SPYRE_BLOCK_H

#include "libspyre/runtime/context.h"

/* Index of the first block that ends above @address. */
uint32_t spyre_block_index(const struct spyre_memory *memory, uint64_t address);
/* Finds the live allocation that holds @address; false if none does. */
bool spyre_block_lookup(const struct spyre_memory *memory, uint64_t address, uint64_t *base,
			uint64_t *size);
/* Maps a new block of @bytes, a chunk if @chunked; leaves an error text on failure. */
spyre_status spyre_block_map(struct spyre_context *context, uint64_t bytes, bool chunked,
			     struct spyre_block **block);
/* A part of a dma-buf; @offset is a multiple of SPYRE_VA_PAGE. */
struct spyre_import {
	int fd;
	uint64_t offset;
};

spyre_status spyre_block_import(struct spyre_context *context, uint64_t bytes,
				const struct spyre_import *import, struct spyre_block **out);
void spyre_block_unmap(struct spyre_context *context, struct spyre_block *block);
/* Cuts @units from a mapped chunk; 0 if no chunk has such a clean run. */
uint64_t spyre_block_take_units(struct spyre_context *context, uint32_t units);
/* Frees memory whose last user has finished. */
void spyre_block_release(struct spyre_context *context, struct spyre_block *block,
			 uint32_t first, uint32_t units);
/* Unmaps all empty chunks except @keep of them. */
void spyre_block_trim(struct spyre_context *context, uint32_t keep);

#endif /* SPYRE_BLOCK_H */
