// SPDX-License-Identifier: MIT
/* Ordered table of disjoint address ranges. */
#include <stdlib.h>
#include <string.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/array.h"

/* Number of ranges that start at or below @address. */
static size_t upper_bound(const struct spyre_drm_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->range[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool spyre_drm_ranges_reserve(struct spyre_drm_ranges *ranges)
{
	return spyre_array_reserve(&ranges->range, &ranges->capacity, ranges->count + 1,
				   sizeof(*ranges->range));
}

void spyre_drm_ranges_insert(struct spyre_drm_ranges *ranges, struct spyre_drm_range range)
{
	size_t at = upper_bound(ranges, range.start);

	memmove(&ranges->range[at + 1], &ranges->range[at],
		(ranges->count - at) * sizeof(*ranges->range));
	ranges->range[at] = range;
	ranges->count++;
}

const struct spyre_drm_range *spyre_drm_ranges_find(const struct spyre_drm_ranges *ranges,
						    uint64_t address)
{
	size_t at = upper_bound(ranges, address);

	if (!at || address - ranges->range[at - 1].start >= ranges->range[at - 1].bytes)
		return NULL;
	return &ranges->range[at - 1];
}

bool spyre_drm_ranges_remove(struct spyre_drm_ranges *ranges, uint64_t start,
			     struct spyre_drm_range *removed)
{
	size_t at = upper_bound(ranges, start);

	if (!at || ranges->range[at - 1].start != start)
		return false;
	*removed = ranges->range[at - 1];
	memmove(&ranges->range[at - 1], &ranges->range[at],
		(ranges->count - at) * sizeof(*ranges->range));
	ranges->count--;
	return true;
}

void spyre_drm_ranges_fini(struct spyre_drm_ranges *ranges)
{
	free(ranges->range);
	memset(ranges, 0, sizeof(*ranges));
}
