/* SPDX-License-Identifier: MIT */
/* Growing arrays. Internal. */
#ifndef SPYRE_ARRAY_H
#define SPYRE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Allocates the memory of an array whose capacity is known: free() releases it. */
void *spyre_array_alloc(size_t bytes);

/* The rare half of spyre_array_reserve(). */
bool spyre_array_grow(void *array, size_t *capacity, size_t count, size_t size);

/*
 * Reserves @count elements of @size bytes in a malloc'd array. @array is
 * the address of the pointer to it, *@capacity its length in elements, which
 * doubles so that appending takes constant time. Returns false, with both as
 * they were, if there is no memory.
 */
static inline bool spyre_array_reserve(void *array, size_t *capacity, size_t count, size_t size)
{
	return count <= *capacity || spyre_array_grow(array, capacity, count, size);
}

#endif /* SPYRE_ARRAY_H */
