// SPDX-License-Identifier: MIT
/* Growing arrays. */
#define _GNU_SOURCE	/* MADV_HUGEPAGE */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libspyre/base/array.h"

#define FIRST_CAPACITY 8
/* Arrays of at least this many bytes ask for huge pages; see region.c for what that saves. */
#define HUGE_BYTES ((size_t)4 << 20)

/* Includes the page that the array begins in: realloc() cannot move a mapping of two kinds. */
static void ask_for_huge_pages(void *data, size_t bytes)
{
	size_t before = (uintptr_t)data % (uintptr_t)sysconf(_SC_PAGESIZE);

	if (bytes < HUGE_BYTES)
		return;
	madvise((char *)data - before, before + bytes, MADV_HUGEPAGE);
}

void *spyre_array_alloc(size_t bytes)
{
	void *data = malloc(bytes);

	if (data)
		ask_for_huge_pages(data, bytes);
	return data;
}

bool spyre_array_grow(void *array, size_t *capacity, size_t count, size_t size)
{
	size_t grown = *capacity ? *capacity : FIRST_CAPACITY, bytes;
	void *data;

	while (grown < count)
		if (__builtin_mul_overflow(grown, (size_t)2, &grown))
			return false;
	if (__builtin_mul_overflow(grown, size, &bytes))
		return false;
	/* *@array may have any pointer type, so only memcpy may read it. */
	memcpy(&data, array, sizeof(data));
	data = realloc(data, bytes);
	if (!data)
		return false;
	ask_for_huge_pages(data, bytes);
	memcpy(array, &data, sizeof(data));
	*capacity = grown;
	return true;
}
