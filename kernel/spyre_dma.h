/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DMA_H
#define SPYRE_DMA_H

#include <linux/types.h>

struct io_uring_cmd;
struct page;

/**
 * struct spyre_host_span - host memory of a transfer, mapped for the engine
 */
struct spyre_host_span {
	/** @vaddr: its first byte. */
	u8 *vaddr;
	/** @bytes: its length. */
	u64 bytes;
	/** @pages: user pages, NULL for memory of a BO. */
	struct page **pages;
	/** @pinned: they are this span's to unpin, not a registered buffer's. */
	bool pinned;
	/** @num_pages: how many. */
	u32 num_pages;
	/** @mapping: what vmap() gave. */
	void *mapping;
	/** @write: the card writes. */
	bool write;
};

/* Pins and maps user memory of the caller. */
int spyre_host_span_pin(struct spyre_host_span *span, u64 address, u64 bytes, bool write);
/* Maps a part of the buffer registered with @cmd's ring; its request keeps the pages. */
int spyre_host_span_fixed(struct spyre_host_span *span, struct io_uring_cmd *cmd, u64 address,
			  u64 bytes, bool write);
/* Unmaps, marks written pages dirty, unpins; may sleep. */
void spyre_host_span_release(struct spyre_host_span *span);

#endif
