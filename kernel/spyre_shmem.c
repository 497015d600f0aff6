// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of a buffer, and windows through which the kernel accesses them.
 *
 * The file's page cache is the only record of populated pages: every folio in it
 * was added under the lock and holds one reference for the buffer.
 */
#include <linux/fs.h>
#include <linux/iosys-map.h>
#include <linux/memcontrol.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <drm/drm_prime.h>

#include "spyre_charge.h"
#include "spyre_compat.h"
#include "spyre_shmem.h"
#include "spyre_shmem_page.h"

/* Windows begin and end at multiples of this size, as huge pages do. */
#define SPYRE_WINDOW_SHIFT 21
#define SPYRE_WINDOW_BYTES BIT_ULL(SPYRE_WINDOW_SHIFT)
/* If all windows add up to this many times the buffer's size, the next one covers all of it. */
#define SPYRE_WINDOWS_MAX 4

/**
 * struct spyre_window - a range of a buffer at a kernel address
 */
struct spyre_window {
	/** @next: entry in the buffer's list. */
	struct spyre_window *next;
	/** @start: first byte, a multiple of the granule. */
	u64 start;
	/** @end: end of the last byte. */
	u64 end;
	/** @vaddr: address of @start. */
	u8 *vaddr;
	/** @mapping: address from vmap(), NULL if the pages are contiguous in the direct map. */
	void *mapping;
};

/* The module's tmpfs; NULL: files are of the kernel's own mount, without huge pages. */
static struct vfsmount *spyre_shmem_mnt;

void spyre_shmem_mount(void)
{
	char options[] = "huge=within_size";
	struct file_system_type *type;
	struct vfsmount *mnt;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		return;
	type = get_fs_type("tmpfs");
	if (!type)
		return;
	mnt = vfs_kern_mount(type, SB_KERNMOUNT, type->name, options);
	if (!IS_ERR(mnt))
		spyre_shmem_mnt = mnt;
}

void spyre_shmem_unmount(void)
{
	if (spyre_shmem_mnt)
		kern_unmount(spyre_shmem_mnt);
	spyre_shmem_mnt = NULL;
}

int spyre_shmem_init(struct spyre_shmem *shmem, struct drm_device *drm, u64 size)
{
	struct drm_gem_object *obj = &shmem->base;
	struct file *filp;

	mutex_init(&shmem->lock);
	shmem->memcg = get_mem_cgroup_from_mm(current->mm);
	drm_gem_private_object_init(drm, obj, size);

	shmem->reach = kvcalloc(DIV_ROUND_UP_ULL(size, SPYRE_WINDOW_BYTES),
				sizeof(*shmem->reach), SPYRE_GFP);
	if (!shmem->reach)
		return -ENOMEM;
	if (spyre_shmem_mnt)
		filp = shmem_file_setup_with_mnt(spyre_shmem_mnt, "spyre", size,
						 SPYRE_SHMEM_NORESERVE);
	else
		filp = shmem_file_setup("spyre", size, SPYRE_SHMEM_NORESERVE);
	/* shmem returns ENOSPC if it cannot allocate an inode; here ENOSPC means a full card. */
	if (IS_ERR(filp))
		return PTR_ERR(filp) == -ENOSPC ? -ENOMEM : PTR_ERR(filp);
	/* These pages cannot be reclaimed, so reclaim should not scan them. */
	mapping_set_unevictable(filp->f_mapping);
	obj->filp = filp;
	return drm_gem_create_mmap_offset(obj);
}

static void spyre_shmem_release_pages(struct spyre_shmem *shmem)
{
	struct file *filp = shmem->base.filp;
	struct folio_batch batch;
	pgoff_t index = 0;
	u32 i;

	folio_batch_init(&batch);
	while (filemap_get_folios(filp->f_mapping, &index, -1, &batch)) {
		for (i = 0; i < folio_batch_count(&batch); i++)
			folio_put(batch.folios[i]);
		folio_batch_release(&batch);
		cond_resched();
	}
	/* Frees the pages now: the file itself may be freed later, by task work. */
	shmem_truncate_range(file_inode(filp), 0, -1);
}

void spyre_shmem_fini(struct spyre_shmem *shmem)
{
	struct spyre_window *window;

	while ((window = shmem->windows)) {
		shmem->windows = window->next;
		vunmap(window->mapping);
		kfree(window);
	}
	kvfree(shmem->reach);
	if (shmem->base.filp)
		spyre_shmem_release_pages(shmem);
	drm_gem_object_release(&shmem->base);
	mem_cgroup_put(shmem->memcg);
	mutex_destroy(&shmem->lock);
}

struct folio *spyre_shmem_peek(struct spyre_shmem *shmem, pgoff_t index)
{
	struct folio *folio = filemap_get_folio(shmem->base.filp->f_mapping, index);

	if (IS_ERR(folio))
		return NULL;
	/* A populated folio has the buffer's own reference; one being zeroed is not up to date. */
	folio_put(folio);
	return folio_test_uptodate(folio) ? folio : NULL;
}

struct folio *spyre_shmem_get(struct spyre_shmem *shmem, pgoff_t index)
{
	struct address_space *mapping = shmem->base.filp->f_mapping;
	struct folio *folio = spyre_shmem_peek(shmem, index);
	struct mem_cgroup *old;
	u64 start;

	lockdep_assert_held(&shmem->lock);
	if (folio)
		return folio;
	/* A cgroup at its limit causes an error of the call, not an OOM kill. */
	old = set_active_memcg(shmem->memcg);
	folio = shmem_read_folio_gfp(mapping, index, mapping_gfp_mask(mapping) |
				     __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	set_active_memcg(old);
	if (IS_ERR(folio))
		return folio;
	start = folio_pos(folio);
	WRITE_ONCE(shmem->resident, shmem->resident +
		   min_t(u64, folio_size(folio), shmem->base.size - start));
	return folio;
}

/* Populates pages and lists them. */
static int spyre_shmem_populate(struct spyre_shmem *shmem, pgoff_t first, pgoff_t num,
				struct page **pages)
{
	const pgoff_t end = first + num;
	struct folio *folio;
	pgoff_t index, next;

	for (index = first; index < end;) {
		if (fatal_signal_pending(current))
			return -EINTR;
		folio = spyre_shmem_get(shmem, index);
		if (IS_ERR(folio))
			return PTR_ERR(folio);
		next = min(folio_next_index(folio), end);
		for (; index < next; index++)
			*pages++ = folio_file_page(folio, index);
		cond_resched();
	}
	return 0;
}

/* Populates a range and lists it, to be freed with kvfree(). */
static struct page **spyre_shmem_list(struct spyre_shmem *shmem, u64 start, u64 bytes)
{
	const pgoff_t num = bytes >> PAGE_SHIFT;
	struct page **pages __free(kvfree) =
		kvmalloc_array(num, sizeof(*pages), SPYRE_GFP);
	int ret;

	if (!pages)
		return ERR_PTR(-ENOMEM);
	ret = spyre_shmem_populate(shmem, start >> PAGE_SHIFT, num, pages);
	return ret ? ERR_PTR(ret) : no_free_ptr(pages);
}

static bool spyre_pages_are_contiguous(struct page **pages, pgoff_t num)
{
	const unsigned long pfn = page_to_pfn(pages[0]);
	pgoff_t i;

	if (IS_ENABLED(CONFIG_HIGHMEM))
		return false;
	for (i = 1; i < num; i++)
		if (page_to_pfn(pages[i]) != pfn + i)
			return false;
	return true;
}

static struct spyre_window *spyre_window_find(struct spyre_shmem *shmem, u64 start, u64 end)
{
	struct spyre_window *window;

	/* Pairs with the release in spyre_window_publish(). */
	window = smp_load_acquire(&shmem->reach[start >> SPYRE_WINDOW_SHIFT]);
	return window && window->end >= end ? window : NULL;
}

static void spyre_window_publish(struct spyre_shmem *shmem, struct spyre_window *window)
{
	struct spyre_window **reach = &shmem->reach[window->start >> SPYRE_WINDOW_SHIFT];
	u64 at;

	window->next = shmem->windows;
	shmem->windows = window;
	shmem->windows_bytes += window->end - window->start;
	for (at = window->start; at < window->end; at += SPYRE_WINDOW_BYTES, reach++)
		if (!*reach || (*reach)->end < window->end)
			/* Pairs with the acquire in spyre_window_find(). */
			smp_store_release(reach, window);
}

static struct spyre_window *spyre_window_add(struct spyre_shmem *shmem, u64 start, u64 end)
{
	const u64 size = shmem->base.size;
	struct spyre_window *window __free(kfree) =
		kzalloc(sizeof(*window), SPYRE_GFP);
	struct page **pages __free(kvfree) = NULL;
	pgoff_t num;

	if (!window)
		return ERR_PTR(-ENOMEM);
	start = round_down(start, SPYRE_WINDOW_BYTES);
	end = min(round_up(end, SPYRE_WINDOW_BYTES), size);
	if (shmem->windows_bytes + (end - start) > SPYRE_WINDOWS_MAX * size) {
		start = 0;
		end = size;
	}
	pages = spyre_shmem_list(shmem, start, end - start);
	if (IS_ERR(pages))
		return ERR_CAST(pages);

	num = (end - start) >> PAGE_SHIFT;
	/*
	 * The direct map continues behind the buffer, while a vmap ends at a guard page:
	 * with KASAN every access beyond a window must be detected.
	 */
	if (!IS_ENABLED(CONFIG_KASAN) && spyre_pages_are_contiguous(pages, num)) {
		window->vaddr = page_address(pages[0]);
	} else {
		window->mapping = vmap(pages, num, VM_MAP, PAGE_KERNEL);
		window->vaddr = window->mapping;
	}
	if (!window->vaddr)
		return ERR_PTR(-ENOMEM);
	window->start = start;
	window->end = end;
	spyre_window_publish(shmem, window);
	return no_free_ptr(window);
}

void *spyre_shmem_map(struct spyre_shmem *shmem, u64 offset, u64 bytes)
{
	struct spyre_window *window = spyre_window_find(shmem, offset, offset + bytes);

	if (!window) {
		if (mutex_lock_interruptible(&shmem->lock))
			return ERR_PTR(-ERESTARTSYS);
		window = spyre_window_find(shmem, offset, offset + bytes);
		if (!window)
			window = spyre_window_add(shmem, offset, offset + bytes);
		mutex_unlock(&shmem->lock);
		if (IS_ERR(window))
			return ERR_CAST(window);
	}
	return window->vaddr + (offset - window->start);
}

/*
 * Attaching populates all pages and creates a window of them, because a signal or
 * lack of memory can be reported here.  Both stay as long as the buffer, so
 * there is nothing to undo.
 */
int spyre_shmem_pin(struct drm_gem_object *obj)
{
	return PTR_ERR_OR_ZERO(spyre_shmem_map(to_spyre_shmem(obj), 0, obj->size));
}

void spyre_shmem_unpin(struct drm_gem_object *obj)
{
}

struct sg_table *spyre_shmem_get_sg_table(struct spyre_shmem *shmem, u32 max_segment)
{
	const u64 size = shmem->base.size;
	struct sg_table *table __free(kfree) = kzalloc(sizeof(*table), SPYRE_GFP);
	struct page **pages __free(kvfree) = NULL;
	int ret;

	if (!table)
		return ERR_PTR(-ENOMEM);
	scoped_guard(mutex, &shmem->lock)
		pages = spyre_shmem_list(shmem, 0, size);
	if (IS_ERR(pages))
		return ERR_CAST(pages);
	ret = sg_alloc_table_from_pages_segment(table, pages, size >> PAGE_SHIFT, 0, size,
						max_segment, SPYRE_GFP);
	return ret ? ERR_PTR(ret) : no_free_ptr(table);
}

/* The dma-buf core warns of errors here, so only an importer that has not attached gets one. */
int spyre_shmem_vmap(struct drm_gem_object *obj, struct iosys_map *map)
{
	struct spyre_window *window = spyre_window_find(to_spyre_shmem(obj), 0, obj->size);

	if (!window)
		return -EINVAL;
	iosys_map_set_vaddr(map, window->vaddr);
	return 0;
}

void spyre_shmem_vunmap(struct drm_gem_object *obj, struct iosys_map *map)
{
}
