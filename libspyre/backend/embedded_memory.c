// SPDX-License-Identifier: MIT
/*
 * LPDDR5 and LX of an embedded card. Each segment of a context's address space is
 * one reservation of host addresses, so that segment | offset is a host
 * pointer after one addition; mapping a range for the first time makes its
 * pages accessible. The table of mapped ranges decides which addresses a job
 * may use. Ranges are multiples of SPYRE_VA_PAGE on every host, so that where
 * pages are larger, neighbours may share one.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libspyre/backend/embedded.h"
#include "libspyre/base/array.h"
#include "libspyre/base/error.h"

#define SEGMENT_BYTES (1ull << SPYRE_SEGMENT_SHIFT)
#define ALL_LX_BYTES ((size_t)SPYRE_MAX_CORES * SPYRE_LX_BYTES)

/* Reserves address space for the LX of all cores; pages are populated when first touched. */
static bool lx_reserve(struct embedded_lx *lx)
{
	uint8_t *map = mmap(NULL, ALL_LX_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return false;
	madvise(map, ALL_LX_BYTES, MADV_DONTFORK);
	lx->map = map;
	for (uint32_t c = 0; c < SPYRE_MAX_CORES; c++)
		lx->core[c] = map + (size_t)c * SPYRE_LX_BYTES;
	return true;
}

static void lx_release(struct embedded_lx *lx)
{
	if (lx->map)
		munmap(lx->map, ALL_LX_BYTES);
}

spyre_status embedded_memory_init(struct embedded_card *card)
{
	if (lx_reserve(&card->lx[0]) && lx_reserve(&card->lx[1]))
		return SPYRE_SUCCESS;
	lx_release(&card->lx[0]);
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
			   "cannot reserve %zu bytes of addresses for the scratchpads of embedded card %d: %s; check ulimit -v",
			   2 * ALL_LX_BYTES, card->device->index, strerror(errno));
}

static spyre_status segment_reserve(struct embedded_card *card, unsigned int segment)
{
	uint8_t *base;

	if (card->segment[segment])
		return SPYRE_SUCCESS;
	base = mmap(NULL, SEGMENT_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (base == MAP_FAILED)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "cannot reserve 16 GiB of addresses for segment %u: %s; check ulimit -v",
				   segment, strerror(errno));
	madvise(base, SEGMENT_BYTES, MADV_DONTFORK);
	madvise(base, SEGMENT_BYTES, MADV_HUGEPAGE);
	card->segment[segment] = base;
	return SPYRE_SUCCESS;
}

/* Index of the first entry that ends above @va. */
static uint32_t map_find(const struct embedded_card *card, uint64_t va)
{
	uint32_t low = 0, high = card->num_maps;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (card->maps[mid].va + card->maps[mid].bytes > va)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

struct embedded_map *embedded_find_map(struct embedded_card *card, uint64_t va, uint64_t bytes)
{
	uint32_t i = map_find(card, va);

	return i < card->num_maps && embedded_map_holds(&card->maps[i], va, bytes) ?
	       &card->maps[i] : NULL;
}

static bool map_reserve_entry(struct embedded_card *card)
{
	return spyre_array_reserve(&card->maps, &card->max_maps, card->num_maps + 1,
				   sizeof(*card->maps));
}

/* Makes all pages of a range accessible. */
static bool range_open(uint8_t *host, uint64_t bytes)
{
	const uintptr_t before = (uintptr_t)host % (uintptr_t)sysconf(_SC_PAGESIZE);

	return !mprotect(host - before, before + bytes, PROT_READ | PROT_WRITE);
}

/* Makes a range read as zero, and frees those of its pages that have no other range. */
static void range_clear(uint8_t *host, uint64_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uint64_t before = -(uintptr_t)host % page;
	uint64_t whole;

	if (before >= bytes) {
		memset(host, 0, bytes);
		return;
	}
	whole = (bytes - before) / page * page;
	memset(host, 0, before);
	madvise(host + before, whole, MADV_DONTNEED);
	memset(host + before + whole, 0, bytes - before - whole);
}

static spyre_status map_locked(struct embedded_card *card, uint64_t va, uint64_t bytes)
{
	unsigned int segment = va >> SPYRE_SEGMENT_SHIFT;
	uint64_t offset = va & (SEGMENT_BYTES - 1);
	uint32_t at = map_find(card, va);

	if (!bytes || ((va | bytes) & (SPYRE_VA_PAGE - 1)) || segment >= SPYRE_DATA_SEGMENTS ||
	    bytes > SEGMENT_BYTES - offset ||
	    (at < card->num_maps && card->maps[at].va < va + bytes))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "device range 0x%" PRIx64 " + 0x%" PRIx64
				   " is unaligned, outside the data segments or in use", va, bytes);
	TRY(segment_reserve(card, segment));
	if (!map_reserve_entry(card) ||
	    !range_open(card->segment[segment] + offset, bytes))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no host memory to back %" PRIu64 " bytes of LPDDR5: %s", bytes,
				   strerror(errno));
	/* Such a job may have written bytes after the range was unmapped. */
	range_clear(card->segment[segment] + offset, bytes);
	memmove(&card->maps[at + 1], &card->maps[at],
		(card->num_maps - at) * sizeof(card->maps[0]));
	card->maps[at] = (struct embedded_map){ .va = va, .bytes = bytes };
	card->num_maps++;
	return SPYRE_SUCCESS;
}

spyre_status embedded_mem_map(struct spyre_card *base, uint64_t va, uint64_t bytes)
{
	struct embedded_card *card = (struct embedded_card *)base;
	uint64_t total = card->device->config.lpddr_bytes;
	spyre_status status = embedded_card_check(card);

	if (status)
		return status;
	if (!embedded_charge(card->device, bytes))
		return spyre_error(SPYRE_ERROR_OUT_OF_DEVICE_MEMORY,
				   "embedded card %d: %" PRIu64 " bytes wanted, %" PRIu64 " of %"
				   PRIu64 " free", card->device->index, bytes,
				   total - atomic_load(&card->device->memory_used), total);
	pthread_rwlock_wrlock(&card->maps_lock);
	status = map_locked(card, va, bytes);
	pthread_rwlock_unlock(&card->maps_lock);
	if (status)
		embedded_uncharge(card->device, bytes);
	return status;
}

void embedded_mem_unmap(struct spyre_card *base, uint64_t va, uint64_t bytes)
{
	struct embedded_card *card = (struct embedded_card *)base;
	uint8_t *host;
	uint32_t at;

	pthread_rwlock_wrlock(&card->maps_lock);
	at = map_find(card, va);
	if (at == card->num_maps || card->maps[at].va != va || card->maps[at].bytes != bytes) {
		pthread_rwlock_unlock(&card->maps_lock);
		return;
	}
	host = embedded_host(card, va);
	/*
	 * The pages are freed and read as zero when the range is mapped again. The
	 * range stays accessible: a job that another thread is submitting may
	 * have resolved its addresses already and reads zeros instead of a SIGSEGV.
	 */
	range_clear(host, bytes);
	embedded_warm_forget(card, &card->maps[at]);
	card->num_maps--;
	memmove(&card->maps[at], &card->maps[at + 1],
		(card->num_maps - at) * sizeof(card->maps[0]));
	pthread_rwlock_unlock(&card->maps_lock);
	embedded_uncharge(card->device, bytes);
}

void embedded_memory_fini(struct embedded_card *card)
{
	for (unsigned int i = 0; i < SPYRE_DATA_SEGMENTS; i++)
		if (card->segment[i])
			munmap(card->segment[i], SEGMENT_BYTES);
	for (uint32_t i = 0; i < card->num_maps; i++)
		embedded_uncharge(card->device, card->maps[i].bytes);
	free(card->maps);
	lx_release(&card->lx[0]);
	lx_release(&card->lx[1]);
}

spyre_status embedded_mem_info(struct spyre_card *base, uint64_t *total, uint64_t *used)
{
	struct embedded_card *card = (struct embedded_card *)base;

	*total = card->device->config.lpddr_bytes;
	*used = atomic_load(&card->device->memory_used);
	return SPYRE_SUCCESS;
}

spyre_status embedded_host_alloc(struct spyre_card *card, size_t bytes, void **address)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for %zu bytes of pinned host memory: %s", bytes, strerror(errno));
	*address = map;
	return SPYRE_SUCCESS;
}

void embedded_host_free(struct spyre_card *card, void *address, size_t bytes)
{
	munmap(address, bytes);
}
