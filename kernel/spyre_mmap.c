// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of buffers in user space: pages are mapped when they are touched, huge
 * ones as a whole.  A mapping holds the buffer, not the card, so it can be used
 * after the file was closed and the card unplugged.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include <drm/drm_gem.h>
#include <drm/drm_vma_manager.h>

#include "spyre_compat.h"
#include "spyre_shmem.h"
#include "spyre_shmem_page.h"

/* Number of pages around a fault that are also mapped if they are present. */
#define SPYRE_FAULT_AROUND 16

static pgoff_t spyre_fault_index(struct vm_fault *vmf)
{
	struct drm_gem_object *obj = vmf->vma->vm_private_data;

	/* dma-bufs are mapped at the same offset as the node. */
	return vmf->pgoff - drm_vma_node_start(&obj->vma_node);
}

static struct folio *spyre_fault_folio(struct spyre_shmem *shmem, pgoff_t index)
{
	struct folio *folio = spyre_shmem_peek(shmem, index);

	if (folio)
		return folio;
	guard(mutex)(&shmem->lock);
	return spyre_shmem_get(shmem, index);
}

static void spyre_fault_around(struct vm_fault *vmf, struct spyre_shmem *shmem, pgoff_t index)
{
	struct vm_area_struct *vma = vmf->vma;
	const unsigned long span = SPYRE_FAULT_AROUND * PAGE_SIZE;
	const unsigned long first = max(round_down(vmf->address, span), vma->vm_start);
	const unsigned long last = min(round_down(vmf->address, span) + span, vma->vm_end);
	unsigned long address;
	struct folio *folio;
	pgoff_t at;

	index -= (vmf->address - first) >> PAGE_SHIFT;
	for (address = first, at = index; address < last; address += PAGE_SIZE, at++) {
		folio = spyre_shmem_peek(shmem, at);
		if (!folio)
			continue;
		if (vmf_insert_pfn(vma, address, page_to_pfn(folio_file_page(folio, at))) !=
		    VM_FAULT_NOPAGE)
			return;
	}
}

static vm_fault_t spyre_shmem_fault(struct vm_fault *vmf)
{
	struct spyre_shmem *shmem = to_spyre_shmem(vmf->vma->vm_private_data);
	const pgoff_t index = spyre_fault_index(vmf);
	struct folio *folio;
	vm_fault_t ret;

	if (index >= shmem->base.size >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	folio = spyre_fault_folio(shmem, index);
	/* VM_FAULT_OOM would repeat the fault endlessly. */
	if (IS_ERR(folio))
		return VM_FAULT_SIGBUS;
	ret = vmf_insert_pfn(vmf->vma, vmf->address & PAGE_MASK,
			     page_to_pfn(folio_file_page(folio, index)));
	if (ret == VM_FAULT_NOPAGE)
		spyre_fault_around(vmf, shmem, index);
	return ret;
}

#ifdef CONFIG_ARCH_SUPPORTS_PMD_PFNMAP
static vm_fault_t spyre_shmem_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	struct vm_area_struct *vma = vmf->vma;
	struct spyre_shmem *shmem = to_spyre_shmem(vma->vm_private_data);
	const unsigned long address = vmf->address & PMD_MASK;
	const pgoff_t index = spyre_fault_index(vmf) - ((vmf->address - address) >> PAGE_SHIFT);
	struct folio *folio;

	if (order != HPAGE_PMD_ORDER || address < vma->vm_start ||
	    address + PMD_SIZE > vma->vm_end)
		return VM_FAULT_FALLBACK;
	if (!IS_ALIGNED(index, HPAGE_PMD_NR) ||
	    index + HPAGE_PMD_NR > shmem->base.size >> PAGE_SHIFT)
		return VM_FAULT_FALLBACK;
	folio = spyre_fault_folio(shmem, index);
	if (IS_ERR(folio) || folio_order(folio) < HPAGE_PMD_ORDER)
		return VM_FAULT_FALLBACK;
	return spyre_vmf_insert_pfn_pmd(vmf, page_to_pfn(folio_file_page(folio, index)),
					vma->vm_flags & VM_WRITE);
}
#endif

const struct vm_operations_struct spyre_shmem_vm_ops = {
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
	.fault = spyre_shmem_fault,
#ifdef CONFIG_ARCH_SUPPORTS_PMD_PFNMAP
	.huge_fault = spyre_shmem_huge_fault,
#endif
};

int spyre_shmem_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	/* A private copy would not be the card's memory any more. */
	if (spyre_vma_is_cow(vma))
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	return 0;
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
unsigned long spyre_shmem_get_unmapped_area(struct file *filp, unsigned long address,
					    unsigned long bytes, unsigned long pgoff,
					    unsigned long flags)
{
	/* Offset 0: alignment follows the buffer, not its offset in the node's address space. */
	return thp_get_unmapped_area(filp, address, bytes, 0, flags);
}
#endif
