/* SPDX-License-Identifier: MIT */
/*
 * Maps names of bundle.mlir to indices into the caller's array, whose entries
 * begin with their name. Only the last entry can be removed, at the end of a
 * scope. The file chooses the names, so the hash has a secret seed against
 * collisions. Internal.
 */
#ifndef SPYRE_SDSC_NAME_TABLE_H
#define SPYRE_SDSC_NAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A name in the text. */
struct name {
	const char *text;
	uint32_t len;
};

struct name_table {
	uint64_t *slots;	/* hash << 32 | index + 1; 0 if free */
	uint32_t mask, num;
	uint64_t seed;
};

#define NAME_NONE UINT32_MAX

static inline bool name_equal(const struct name *a, const struct name *b)
{
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

uint32_t name_find(const struct name_table *table, const void *entries, size_t entry_bytes,
		   const struct name *name);

enum name_result { NAME_ADDED, NAME_EXISTS, NAME_NO_MEMORY };

/* Adds a name with the index table->num; the caller fills in the entry. */
enum name_result name_add(struct name_table *table, const void *entries, size_t entry_bytes,
			  const struct name *name);
/* Removes the entry that was added last. */
void name_remove_last(struct name_table *table, const struct name *name);
void name_fini(struct name_table *table);

#endif /* SPYRE_SDSC_NAME_TABLE_H */
