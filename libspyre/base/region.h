/* SPDX-License-Identifier: MIT */
/* Regions: memory of many small objects that live equally long. Internal. */
#ifndef SPYRE_REGION_H
#define SPYRE_REGION_H

#include <stddef.h>
#include <stdint.h>

struct spyre_region_chunk;

/* An empty region is all zeros. */
struct spyre_region {
	struct spyre_region_chunk *chunks;	/* the last one first */
	uint8_t *free;
	size_t bytes_free;
};

/* Returns @bytes bytes with any contents, aligned as by malloc(); NULL if there is no memory. */
void *spyre_region_alloc(struct spyre_region *region, size_t bytes);
/* Frees all objects of a region; it is empty then. */
void spyre_region_fini(struct spyre_region *region);

#endif /* SPYRE_REGION_H */
