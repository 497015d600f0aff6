/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DMA_H
#define SPYRE_DMA_H

#include <linux/types.h>

struct io_uring_cmd;
struct page;
struct spyre_file;
struct user_struct;

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
	/** @pinned: the span has pinned them; false for a registered buffer. */
	bool pinned;
	/** @num_pages: number of them. */
	u32 num_pages;
	/** @user: charged for @charged pages, referenced, or NULL. */
	struct user_struct *user;
	/** @charged: number of pages charged to RLIMIT_MEMLOCK. */
	u64 charged;
	/** @sfile: file whose fdinfo counts @num_pages, if @pinned; the job keeps it. */
	struct spyre_file *sfile;
	/** @mapping: from vmap(). */
	void *mapping;
	/** @write: the card writes. */
	bool write;
};

/*
 * Pins and maps user memory of the caller, and charges it to the caller's user.
 * -ENOMEM if this exceeds RLIMIT_MEMLOCK and the caller lacks CAP_IPC_LOCK.
 */
int spyre_host_span_pin(struct spyre_host_span *span, struct spyre_file *sfile, u64 address,
			u64 bytes, bool write);
/* Maps a part of the buffer registered with @cmd's ring; its request keeps the pages. */
int spyre_host_span_fixed(struct spyre_host_span *span, struct io_uring_cmd *cmd, u64 address,
			  u64 bytes, bool write);
/*
 * Releases a span in any state: unmaps, marks written pages dirty, unpins,
 * uncharges.  May sleep; any task may call it.
 */
void spyre_host_span_release(struct spyre_host_span *span);

#endif
