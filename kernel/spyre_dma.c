// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory of the DMA engine: user pages, pinned and mapped from the
 * submission until the job is freed, or those of a registered buffer, mapped
 * only.
 *
 * A job may wait for any fence, for any time, so the pins are long-term pins and
 * count against RLIMIT_MEMLOCK.  They are charged to the user, not to the mm,
 * because a worker releases them, possibly after the process has exited.
 */
#include <linux/bvec.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/io_uring/cmd.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "spyre_charge.h"
#include "spyre_compat.h"
#include "spyre_dma.h"
#include "spyre_file.h"
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

/* Returns the number of pages of [address, address + bytes), 0 if it is not in user space. */
static u64 spyre_host_span_count(u64 address, u64 bytes)
{
	if (address + bytes < address || address + bytes > TASK_SIZE_MAX)
		return 0;
	return DIV_ROUND_UP(bytes + offset_in_page(address), PAGE_SIZE);
}

/* Page tables of the mapping are not charged; they are no larger than this list. */
static int spyre_host_span_alloc(struct spyre_host_span *span, u64 num)
{
	span->pages = kvmalloc_array(num, sizeof(*span->pages), SPYRE_GFP);
	return span->pages ? 0 : -ENOMEM;
}

/* Called before anything is allocated or pinned, so that a rejected span has no cost. */
static int spyre_host_span_charge(struct spyre_host_span *span, u64 pages)
{
	const unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = current_user();
	unsigned long locked;

	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		return 0;
	locked = atomic_long_read(&user->locked_vm);
	do {
		if (locked > limit || pages > limit - locked)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &locked, locked + pages));
	span->user = get_uid(user);
	span->charged = pages;
	return 0;
}

static void spyre_host_span_uncharge(struct spyre_host_span *span)
{
	if (!span->user)
		return;
	atomic_long_sub(span->charged, &span->user->locked_vm);
	free_uid(span->user);
	span->user = NULL;
}

static int spyre_host_span_pin_pages(struct spyre_host_span *span, u64 address, u32 num,
				     bool write)
{
	const unsigned long start = address & PAGE_MASK;
	const unsigned int flags = FOLL_LONGTERM | (write ? FOLL_WRITE : 0);
	int got;

	span->pinned = true;
	while (span->num_pages < num) {
		got = pin_user_pages_fast(start + (unsigned long)span->num_pages * PAGE_SIZE,
					  num - span->num_pages, flags,
					  span->pages + span->num_pages);
		if (got <= 0)
			return got ?: -EFAULT;
		span->num_pages += got;
		atomic64_add((u64)got << PAGE_SHIFT, &span->sfile->pinned);
	}
	return 0;
}

int spyre_host_span_pin(struct spyre_host_span *span, struct spyre_file *sfile, u64 address,
			u64 bytes, bool write)
{
	const u64 num = spyre_host_span_count(address, bytes);
	int ret;

	if (!num)
		return -EFAULT;
	span->sfile = sfile;
	ret = spyre_host_span_charge(span, num);
	if (!ret)
		ret = spyre_host_span_alloc(span, num);
	if (!ret)
		ret = spyre_host_span_pin_pages(span, address, num, write);
	if (ret) {
		spyre_host_span_release(span);
		return ret;
	}
	return spyre_host_span_map(span, num, offset_in_page(address), bytes, write);
}

/* Lists the pages of contiguous segments; false if these cannot form one mapping. */
static bool spyre_host_span_collect(struct spyre_host_span *span, struct iov_iter *iter, u64 num)
{
	const struct bio_vec *segment = iter->bvec;
	size_t skip = iter->iov_offset, left = iter->count;
	u32 count = 0;

	for (; left; segment++, skip = 0) {
		const size_t bytes = min(segment->bv_len - skip, left);
		struct page *page = segment->bv_page;
		size_t at = segment->bv_offset + skip, end = at + bytes;

		/* Only the first segment may begin, and only the last may end, within a page. */
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
	const u64 num = spyre_host_span_count(address, bytes);
	struct iov_iter iter;
	int ret;

	if (!num)
		return -EFAULT;

	ret = spyre_uring_import_fixed(address, bytes, write ? READ : WRITE, &iter, cmd,
				       spyre_uring_issue_flags(cmd));
	if (ret)
		return ret;
	ret = spyre_host_span_alloc(span, num);
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
	if (span->mapping)
		vunmap(span->mapping);
	if (span->pinned) {
		unpin_user_pages_dirty_lock(span->pages, span->num_pages, span->write);
		atomic64_sub((u64)span->num_pages << PAGE_SHIFT, &span->sfile->pinned);
	}
	spyre_host_span_uncharge(span);
	kvfree(span->pages);
	*span = (struct spyre_host_span) {};
}
