// SPDX-License-Identifier: MIT
/* Growing arrays. */
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"

#define FIRST_CAPACITY 8

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
	memcpy(array, &data, sizeof(data));
	*capacity = grown;
	return true;
}
