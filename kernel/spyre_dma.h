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
	/** @pinned: they are this span's to unpin, not a registered buffer's. */
	bool pinned;
	/** @num_pages: number of them. */
	u32 num_pages;
	/** @user: charged for @charged pages, referenced, or NULL. */
	struct user_struct *user;
	/** @charged: pages on RLIMIT_MEMLOCK's account. */
	u64 charged;
	/** @sfile: file whose fdinfo counts @num_pages, if @pinned; the job keeps it. */
	struct spyre_file *sfile;
	/** @mapping: from vmap(). */
	void *mapping;
	/** @write: the card writes. */
	bool write;
};

/*
 * Pins and maps user memory of the caller, and charges it to the caller's user:
 * -ENOMEM if that is more than RLIMIT_MEMLOCK allows and CAP_IPC_LOCK is missing.
 */
int spyre_host_span_pin(struct spyre_host_span *span, struct spyre_file *sfile, u64 address,
			u64 bytes, bool write);
/* Maps a part of the buffer registered with @cmd's ring; its request keeps the pages. */
int spyre_host_span_fixed(struct spyre_host_span *span, struct io_uring_cmd *cmd, u64 address,
			  u64 bytes, bool write);
/*
 * Drops a span in any state: unmaps, marks written pages dirty, unpins,
 * uncharges.  May sleep; from any task.
 */
void spyre_host_span_release(struct spyre_host_span *span);

#endif
