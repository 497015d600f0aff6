// SPDX-License-Identifier: MIT
/* Bitmaps of a chunk. */
#include <stdlib.h>
#include <string.h>

#include "libspyre/runtime/chunk.h"

static void bits_set(uint64_t *map, uint32_t first, uint32_t n, bool value)
{
	while (n) {
		uint32_t bit = first % 64;
		uint32_t take = 64 - bit < n ? 64 - bit : n;
		uint64_t mask = (take == 64 ? ~0ull : (1ull << take) - 1) << bit;

		if (value)
			map[first / 64] |= mask;
		else
			map[first / 64] &= ~mask;
		first += take;
		n -= take;
	}
}

/* First unit from @from on whose bit is @value, SPYRE_CHUNK_UNITS if none is. */
static uint32_t bits_find(const uint64_t *map, uint32_t from, bool value)
{
	uint64_t word;

	if (from >= SPYRE_CHUNK_UNITS)
		return SPYRE_CHUNK_UNITS;
	word = (value ? map[from / 64] : ~map[from / 64]) & (~0ull << from % 64);
	for (uint32_t i = from / 64;;) {
		if (word)
			return i * 64 + __builtin_ctzll(word);
		if (++i == SPYRE_CHUNK_WORDS)
			return SPYRE_CHUNK_UNITS;
		word = value ? map[i] : ~map[i];
	}
}

struct spyre_chunk *spyre_chunk_new(void)
{
	struct spyre_chunk *chunk = calloc(1, sizeof(*chunk));

	if (!chunk)
		return NULL;
	memset(chunk->clean, 0xff, sizeof(chunk->clean));
	chunk->longest = SPYRE_CHUNK_UNITS;
	return chunk;
}

int spyre_chunk_take(struct spyre_chunk *chunk, uint32_t units)
{
	uint32_t first = 0, longest = 0;

	if (units > chunk->longest)
		return -1;
	for (;;) {
		uint32_t end;

		first = bits_find(chunk->clean, first, true);
		if (first == SPYRE_CHUNK_UNITS)
			break;
		end = bits_find(chunk->clean, first, false);
		if (end - first >= units) {
			bits_set(chunk->clean, first, units, false);
			chunk->start[first / 64] |= 1ull << first % 64;
			chunk->units[first] = units;
			chunk->num_used += units;
			return first;
		}
		if (end - first > longest)
			longest = end - first;
		first = end;
	}
	chunk->longest = longest;
	return -1;
}

uint32_t spyre_chunk_longest(const struct spyre_chunk *chunk)
{
	uint32_t first = 0, longest = 0;

	for (;;) {
		uint32_t end;

		first = bits_find(chunk->clean, first, true);
		if (first == SPYRE_CHUNK_UNITS)
			return longest;
		end = bits_find(chunk->clean, first, false);
		if (end - first > longest)
			longest = end - first;
		first = end;
	}
}

bool spyre_chunk_end(struct spyre_chunk *chunk, uint32_t first, uint32_t *units)
{
	if (!(chunk->start[first / 64] >> first % 64 & 1))
		return false;
	chunk->start[first / 64] &= ~(1ull << first % 64);
	*units = chunk->units[first];
	return true;
}

void spyre_chunk_give(struct spyre_chunk *chunk, uint32_t first, uint32_t units)
{
	bits_set(chunk->dirty, first, units, true);
	chunk->num_used -= units;
	chunk->num_dirty += units;
}

bool spyre_chunk_find(const struct spyre_chunk *chunk, uint32_t unit, uint32_t *first,
		      uint32_t *units)
{
	uint32_t i = unit / 64;
	uint64_t word = chunk->start[i] & (~0ull >> (63 - unit % 64));

	while (!word) {
		if (!i--)
			return false;
		word = chunk->start[i];
	}
	*first = i * 64 + 63 - __builtin_clzll(word);
	*units = chunk->units[*first];
	return unit < *first + *units;
}
