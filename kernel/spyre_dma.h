/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DMA_H
#define SPYRE_DMA_H

#include <linux/types.h>

struct page;

/**
 * struct spyre_host_span - host memory of a transfer, mapped for the engine
 */
struct spyre_host_span {
	/** @vaddr: its first byte. */
	u8 *vaddr;
	/** @bytes: its length. */
	u64 bytes;
	/** @pages: pinned user pages, NULL for memory of a BO. */
	struct page **pages;
	/** @num_pages: how many. */
	u32 num_pages;
	/** @mapping: what vmap() gave. */
	void *mapping;
	/** @write: the card writes. */
	bool write;
};

/* Pins and maps user memory of the caller. */
int spyre_host_span_pin(struct spyre_host_span *span, u64 address, u64 bytes, bool write);
/* Unmaps, marks written pages dirty, unpins; may sleep. */
void spyre_host_span_release(struct spyre_host_span *span);

#endif
