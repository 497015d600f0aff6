/* SPDX-License-Identifier: MIT */
/* Mapped blocks of a context, with memory.lock held. Internal. */
#ifndef SPYRE_BLOCK_H
#define SPYRE_BLOCK_H

#include "libspyre/runtime/context.h"

/* Index of the first block that ends above @address. */
uint32_t spyre_block_index(const struct spyre_memory *memory, uint64_t address);
/* The live allocation that holds @address. */
bool spyre_block_lookup(const struct spyre_memory *memory, uint64_t address, uint64_t *base,
			uint64_t *size);
/* Maps a new block of @bytes; a chunk if @chunked. The thread's text says why not. */
spyre_status spyre_block_map(struct spyre_context *context, uint64_t bytes, bool chunked,
			     struct spyre_block **block);
/* Which part of a dma-buf: @offset is a multiple of SPYRE_VA_PAGE. */
struct spyre_import {
	int fd;
	uint64_t offset;
};

spyre_status spyre_block_import(struct spyre_context *context, uint64_t bytes,
				const struct spyre_import *import, struct spyre_block **out);
void spyre_block_unmap(struct spyre_context *context, struct spyre_block *block);
/* Cuts @units from a chunk; maps no new one. 0 if there is no room. */
uint64_t spyre_block_take_units(struct spyre_context *context, uint32_t units);
/* Returns memory that nothing uses any more. */
void spyre_block_release(struct spyre_context *context, struct spyre_block *block,
			 uint32_t first, uint32_t units);
/* Unmaps empty chunks but for @keep of them. */
void spyre_block_trim(struct spyre_context *context, uint32_t keep);

#endif /* SPYRE_BLOCK_H */
