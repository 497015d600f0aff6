// SPDX-License-Identifier: MIT
/*
 * Pages of LPDDR5 and LX are populated when first touched, and zeroing them takes longer than
 * many a kernel or copy. A submission therefore populates the pages of its operands before its
 * job's time limit starts, in granules of 2 MiB as the driver does. Allocated memory that no job
 * uses stays unbacked.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "libspyre/backend/embedded.h"

#define GRANULE_BYTES (1ull << EMBEDDED_GRANULE_SHIFT)
#define SEGMENT_MASK ((1ull << SPYRE_SEGMENT_SHIFT) - 1)

enum { MAP_HEAD = 1, MAP_TAIL = 2 };	/* granules that a mapping shares with others */

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Populates all pages of a range. A failure (Linux before 5.14, or memory is short) is ignored:
 * the job then faults the pages in itself.
 */
static void populate(uint8_t *at, uint64_t bytes, bool write)
{
	const uintptr_t before = (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE);
	int saved = errno;

	madvise(at - before, before + bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	errno = saved;
}

/* Finds the word and the bit that record a populated granule of @map. */
static uint64_t *granule_bit(struct embedded_card *card, struct embedded_map *map, uint64_t va,
			     bool write, uint64_t *bit)
{
	uint64_t start = va & ~(GRANULE_BYTES - 1), index;

	if (start < map->va || start + GRANULE_BYTES > map->va + map->bytes) {
		*bit = start < map->va ? MAP_HEAD : MAP_TAIL;
		return &map->warm[write];
	}
	index = (va & SEGMENT_MASK) >> EMBEDDED_GRANULE_SHIFT;
	*bit = 1ull << index % 64;
	return &card->warm[write][va >> SPYRE_SEGMENT_SHIFT][index / 64];
}

void embedded_warm_run(struct embedded_card *card, struct embedded_map *map, uint64_t va,
		       uint64_t bytes, bool write)
{
	uint64_t end = va + bytes, map_end = map->va + map->bytes;
	uint64_t first_granule = va >> EMBEDDED_GRANULE_SHIFT;
	uint64_t end_granule = ((end - 1) >> EMBEDDED_GRANULE_SHIFT) + 1;

	while (va < end) {
		uint64_t start = va & ~(GRANULE_BYTES - 1), next = start + GRANULE_BYTES, bit;
		uint64_t *word = granule_bit(card, map, va, write, &bit);

		if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) {
			start = start > map->va ? start : map->va;
			populate(embedded_host(card, start),
				 (next < map_end ? next : map_end) - start, write);
			__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
		}
		va = next;
	}
	atomic_store_explicit(&map->warm_run[write], first_granule << 32 | end_granule,
			      memory_order_relaxed);
}

void embedded_warm_forget(struct embedded_card *card, struct embedded_map *map)
{
	uint64_t bit;

	for (uint64_t va = map->va; va < map->va + map->bytes; va += GRANULE_BYTES)
		for (int write = 0; write < 2; write++)
			*granule_bit(card, map, va, write, &bit) &= ~bit;
	for (int write = 0; write < 2; write++) {
		map->warm[write] = 0;
		atomic_store_explicit(&map->warm_run[write], 0, memory_order_relaxed);
	}
}

void embedded_warm_lx(struct embedded_lx *lx, const struct spyre_prog_header *header)
{
	for (uint32_t c = 0; c < header->num_cores; c++) {
		if (atomic_load_explicit(&lx->warm[c], memory_order_relaxed) >= header->lx_bytes)
			continue;
		populate(lx->core[c], header->lx_bytes, true);
		atomic_store_explicit(&lx->warm[c], header->lx_bytes, memory_order_relaxed);
	}
}
