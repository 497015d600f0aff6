/* SPDX-License-Identifier: MIT */
/* Device addresses of a context: first fit with coalescing. Internal. */
#ifndef SPYRE_VA_H
#define SPYRE_VA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spyre_va_range {
	uint64_t start;
	uint64_t bytes;
};

/* Free ranges by address; none crosses a segment. The caller locks. */
struct spyre_va {
	struct spyre_va_range *free;
	uint32_t num_free;
	size_t max_free;
	/* Number of allocated ranges; the array reserves an entry for each to be freed. */
	uint32_t live;
};

/* Frees segments 0..6 except their first pages; false if host memory is short. */
bool spyre_va_init(struct spyre_va *va);
void spyre_va_fini(struct spyre_va *va);
/* Returns 0 if no range is large enough (or host memory is short). @align: power of two. */
uint64_t spyre_va_alloc(struct spyre_va *va, uint64_t bytes, uint64_t align);
void spyre_va_free(struct spyre_va *va, uint64_t start, uint64_t bytes);
uint64_t spyre_va_largest(const struct spyre_va *va);

#endif /* SPYRE_VA_H */
