// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory of the DMA engine: user pages, pinned and mapped from SUBMIT
 * until the job is freed.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "spyre_dma.h"

int spyre_host_span_pin(struct spyre_host_span *span, u64 address, u64 bytes, bool write)
{
	const unsigned long start = address & PAGE_MASK;
	const u64 num = DIV_ROUND_UP(bytes + offset_in_page(address), PAGE_SIZE);
	int pinned = 0, got;

	if (address + bytes < address || address + bytes > TASK_SIZE_MAX)
		return -EFAULT;
	span->pages = kvmalloc_array(num, sizeof(*span->pages),
				     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!span->pages)
		return -ENOMEM;

	while (pinned < num) {
		got = pin_user_pages_fast(start + (unsigned long)pinned * PAGE_SIZE,
					  num - pinned, write ? FOLL_WRITE : 0,
					  span->pages + pinned);
		if (got <= 0)
			break;
		pinned += got;
	}
	span->num_pages = pinned;
	span->write = false;	/* nothing written yet */
	if (pinned < num) {
		spyre_host_span_release(span);
		return got < 0 ? got : -EFAULT;
	}

	span->mapping = vmap(span->pages, num, VM_MAP, write ? PAGE_KERNEL : PAGE_KERNEL_RO);
	if (!span->mapping) {
		spyre_host_span_release(span);
		return -ENOMEM;
	}
	span->write = write;
	span->vaddr = (u8 *)span->mapping + offset_in_page(address);
	span->bytes = bytes;
	return 0;
}

void spyre_host_span_release(struct spyre_host_span *span)
{
	if (!span->pages)
		return;
	if (span->mapping)
		vunmap(span->mapping);
	unpin_user_pages_dirty_lock(span->pages, span->num_pages, span->write);
	kvfree(span->pages);
	span->pages = NULL;
}
