// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory of the DMA engine: user pages, pinned and mapped from the
 * submission until the job is freed, or those of a registered buffer, mapped
 * only.
 */
#include <linux/bvec.h>
#include <linux/io_uring/cmd.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "spyre_compat.h"
#include "spyre_dma.h"
#include "spyre_uring.h"

static int spyre_host_span_map(struct spyre_host_span *span, u32 num, u32 offset, u64 bytes,
			       bool write)
{
	span->mapping = vmap(span->pages, num, VM_MAP, write ? PAGE_KERNEL : PAGE_KERNEL_RO);
	if (!span->mapping) {
		spyre_host_span_release(span);
		return -ENOMEM;
	}
	span->write = write;
	span->vaddr = (u8 *)span->mapping + offset;
	span->bytes = bytes;
	return 0;
}

static int spyre_host_span_alloc(struct spyre_host_span *span, u64 address, u64 bytes, u64 *num)
{
	*num = DIV_ROUND_UP(bytes + offset_in_page(address), PAGE_SIZE);
	if (address + bytes < address || address + bytes > TASK_SIZE_MAX)
		return -EFAULT;
	span->pages = kvmalloc_array(*num, sizeof(*span->pages),
				     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return span->pages ? 0 : -ENOMEM;
}

int spyre_host_span_pin(struct spyre_host_span *span, u64 address, u64 bytes, bool write)
{
	const unsigned long start = address & PAGE_MASK;
	int pinned = 0, got, ret;
	u64 num;

	ret = spyre_host_span_alloc(span, address, bytes, &num);
	if (ret)
		return ret;
	while (pinned < num) {
		got = pin_user_pages_fast(start + (unsigned long)pinned * PAGE_SIZE,
					  num - pinned, write ? FOLL_WRITE : 0,
					  span->pages + pinned);
		if (got <= 0)
			break;
		pinned += got;
	}
	span->pinned = true;
	span->num_pages = pinned;
	span->write = false;	/* nothing written yet */
	if (pinned < num) {
		spyre_host_span_release(span);
		return got < 0 ? got : -EFAULT;
	}
	return spyre_host_span_map(span, num, offset_in_page(address), bytes, write);
}

/* Pages of physically contiguous segments; false if they are not those of one mapping. */
static bool spyre_host_span_collect(struct spyre_host_span *span, struct iov_iter *iter, u64 num)
{
	const struct bio_vec *segment = iter->bvec;
	size_t skip = iter->iov_offset, left = iter->count;
	u32 count = 0;

	for (; left; segment++, skip = 0) {
		const size_t bytes = min(segment->bv_len - skip, left);
		struct page *page = segment->bv_page;
		size_t at = segment->bv_offset + skip, end = at + bytes;

		/* Only the first may begin, only the last end, within a page. */
		if ((count && offset_in_page(at)) || (bytes < left && offset_in_page(end)))
			return false;
		for (at &= PAGE_MASK; at < end; at += PAGE_SIZE) {
			if (count == num)
				return false;
			span->pages[count++] = nth_page(page, at >> PAGE_SHIFT);
		}
		left -= bytes;
	}
	span->num_pages = count;
	return count == num;
}

int spyre_host_span_fixed(struct spyre_host_span *span, struct io_uring_cmd *cmd, u64 address,
			  u64 bytes, bool write)
{
	struct iov_iter iter;
	u64 num;
	int ret;

	ret = spyre_uring_import_fixed(address, bytes, write ? READ : WRITE, &iter, cmd,
				       spyre_uring_issue_flags(cmd));
	if (ret)
		return ret;
	ret = spyre_host_span_alloc(span, address, bytes, &num);
	if (ret)
		return ret;
	if (!iov_iter_is_bvec(&iter) || !spyre_host_span_collect(span, &iter, num)) {
		spyre_host_span_release(span);
		return -EFAULT;
	}
	return spyre_host_span_map(span, num, offset_in_page(address), bytes, write);
}

void spyre_host_span_release(struct spyre_host_span *span)
{
	if (!span->pages)
		return;
	if (span->mapping)
		vunmap(span->mapping);
	if (span->pinned)
		unpin_user_pages_dirty_lock(span->pages, span->num_pages, span->write);
	kvfree(span->pages);
	span->pages = NULL;
}
