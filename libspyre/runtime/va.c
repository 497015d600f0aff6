// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "libspyre/backend/backend.h"
#include "libspyre/base/array.h"
#include "libspyre/runtime/va.h"

#define SEGMENT_BYTES (1ull << SPYRE_SEGMENT_SHIFT)

static bool reserve(struct spyre_va *va, uint32_t ranges)
{
	return spyre_array_reserve(&va->free, &va->max_free, ranges, sizeof(*va->free));
}

bool spyre_va_init(struct spyre_va *va)
{
	memset(va, 0, sizeof(*va));
	if (!reserve(va, SPYRE_DATA_SEGMENTS))
		return false;
	for (uint32_t i = 0; i < SPYRE_DATA_SEGMENTS; i++) {
		uint64_t skip = i ? 0 : SPYRE_VA_PAGE;

		va->free[i].start = i * SEGMENT_BYTES + skip;
		va->free[i].bytes = SEGMENT_BYTES - skip;
	}
	va->num_free = SPYRE_DATA_SEGMENTS;
	return true;
}

void spyre_va_fini(struct spyre_va *va)
{
	free(va->free);
	va->free = NULL;
}

static void remove_at(struct spyre_va *va, uint32_t i)
{
	va->num_free--;
	memmove(&va->free[i], &va->free[i + 1], (va->num_free - i) * sizeof(va->free[0]));
}

static void insert_at(struct spyre_va *va, uint32_t i, uint64_t start, uint64_t bytes)
{
	memmove(&va->free[i + 1], &va->free[i], (va->num_free - i) * sizeof(va->free[0]));
	va->free[i] = (struct spyre_va_range){ .start = start, .bytes = bytes };
	va->num_free++;
}

uint64_t spyre_va_alloc(struct spyre_va *va, uint64_t bytes, uint64_t align)
{
	/* Freeing must not need memory: each live range may become a free one, a split adds one. */
	if (!bytes || !reserve(va, va->num_free + va->live + 2))
		return 0;
	for (uint32_t i = 0; i < va->num_free; i++) {
		struct spyre_va_range *range = &va->free[i];
		uint64_t start = (range->start + align - 1) & ~(align - 1);
		uint64_t skip = start - range->start;

		if (range->bytes < skip || range->bytes - skip < bytes)
			continue;
		range->bytes -= skip + bytes;
		if (skip) {
			uint64_t rest = range->bytes;

			range->bytes = skip;
			if (rest)
				insert_at(va, i + 1, start + bytes, rest);
		} else if (range->bytes) {
			range->start += bytes;
		} else {
			remove_at(va, i);
		}
		va->live++;
		return start;
	}
	return 0;
}

static bool adjacent(const struct spyre_va_range *low, uint64_t high)
{
	return low->start + low->bytes == high &&
	       low->start >> SPYRE_SEGMENT_SHIFT == high >> SPYRE_SEGMENT_SHIFT;
}

void spyre_va_free(struct spyre_va *va, uint64_t start, uint64_t bytes)
{
	struct spyre_va_range self = { .start = start, .bytes = bytes };
	uint32_t i = 0, high = va->num_free;

	while (i < high) {
		uint32_t mid = i + (high - i) / 2;

		if (va->free[mid].start < start)
			i = mid + 1;
		else
			high = mid;
	}
	va->live--;
	if (i < va->num_free && adjacent(&self, va->free[i].start)) {
		va->free[i].start = start;
		va->free[i].bytes += bytes;
		if (i && adjacent(&va->free[i - 1], start)) {
			va->free[i - 1].bytes += va->free[i].bytes;
			remove_at(va, i);
		}
	} else if (i && adjacent(&va->free[i - 1], start)) {
		va->free[i - 1].bytes += bytes;
	} else {
		insert_at(va, i, start, bytes);
	}
}

uint64_t spyre_va_largest(const struct spyre_va *va)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < va->num_free; i++)
		if (va->free[i].bytes > largest)
			largest = va->free[i].bytes;
	return largest;
}
