// SPDX-License-Identifier: MIT
/* Names of bundle.mlir: see name_table.h. */
#include "libspyre/sdsc/parse/name_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#define XXH_INLINE_ALL	/* inlined: names are short, so a call would cost as much as the hash */
#include <xxhash.h>

#define FIRST_SLOTS 512u	/* enough for one SDSC on 32 cores */

static uint64_t secret;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void draw_secret(void)
{
	struct timespec now;

	if (getrandom(&secret, sizeof(secret), GRND_NONBLOCK) == sizeof(secret))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	secret = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)(uintptr_t)&now;
}

static uint32_t hash_of(const struct name_table *table, const struct name *name)
{
	return (uint32_t)XXH3_64bits_withSeed(name->text, name->len, table->seed);
}

static uint32_t search(const struct name_table *table, const void *entries, size_t entry_bytes,
		       const struct name *name, uint32_t hash)
{
	for (uint32_t at = hash & table->mask; table->slots[at]; at = (at + 1) & table->mask) {
		uint32_t index = (uint32_t)table->slots[at] - 1;
		const struct name *found;

		if (table->slots[at] >> 32 != hash)
			continue;
		found = (const void *)((const char *)entries + index * entry_bytes);
		if (name_equal(found, name))
			return index;
	}
	return NAME_NONE;
}

uint32_t name_find(const struct name_table *table, const void *entries, size_t entry_bytes,
		   const struct name *name)
{
	if (!table->slots)
		return NAME_NONE;
	return search(table, entries, entry_bytes, name, hash_of(table, name));
}

/* Inserts in the order of the entries, so that the last one can be removed. */
static void insert(uint64_t *slots, uint32_t mask, uint64_t slot)
{
	uint32_t at = (uint32_t)(slot >> 32) & mask;

	while (slots[at])
		at = (at + 1) & mask;
	slots[at] = slot;
}

static bool grow(struct name_table *table)
{
	uint32_t slots = table->slots ? (table->mask + 1) * 2 : FIRST_SLOTS;
	uint64_t *old = table->slots, *in_order, *bigger = calloc(slots, sizeof(*bigger));

	in_order = malloc((table->num + 1) * sizeof(*in_order));
	if (!bigger || !in_order) {
		free(bigger);
		free(in_order);
		return false;
	}
	for (uint32_t i = 0; old && i <= table->mask; i++)
		if (old[i])
			in_order[(uint32_t)old[i] - 1] = old[i];
	for (uint32_t i = 0; i < table->num; i++)
		insert(bigger, slots - 1, in_order[i]);
	free(in_order);
	free(old);
	table->slots = bigger;
	table->mask = slots - 1;
	return true;
}

enum name_result name_add(struct name_table *table, const void *entries, size_t entry_bytes,
			  const struct name *name)
{
	uint32_t hash;

	if (!table->slots) {
		pthread_once(&once, draw_secret);
		table->seed = secret;
	}
	hash = hash_of(table, name);
	if (table->slots &&
	    search(table, entries, entry_bytes, name, hash) != NAME_NONE)
		return NAME_EXISTS;
	if ((!table->slots || table->num >= (table->mask + 1) / 2) && !grow(table))
		return NAME_NO_MEMORY;
	table->num++;
	insert(table->slots, table->mask, (uint64_t)hash << 32 | table->num);
	return NAME_ADDED;
}

void name_remove_last(struct name_table *table, const struct name *name)
{
	uint32_t at = hash_of(table, name) & table->mask;

	while ((uint32_t)table->slots[at] != table->num)
		at = (at + 1) & table->mask;
	table->slots[at] = 0;
	table->num--;
}

void name_fini(struct name_table *table)
{
	free(table->slots);
	memset(table, 0, sizeof(*table));
}
