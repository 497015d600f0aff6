/* SPDX-License-Identifier: MIT */
/*
 * Names of bundle.mlir -> index into the caller's array, whose entries begin
 * with their name. The last entry is the only one that can be removed, as
 * scopes end. Names are the file's choice, so the hash has a secret seed.
 * Internal.
 */
#ifndef SPYRE_SDSC_NAME_TABLE_H
#define SPYRE_SDSC_NAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the text. */
struct name {
	const char *text;
	uint32_t len;
};

struct name_table {
	uint64_t *slots;	/* hash << 32 | index + 1, 0: free */
	uint32_t mask, num;
	uint64_t seed;
};

#define NAME_NONE UINT32_MAX

uint32_t name_find(const struct name_table *table, const void *entries, size_t entry_bytes,
		   const struct name *name);

enum name_result { NAME_ADDED, NAME_EXISTS, NAME_NO_MEMORY };

/* Entry number table->num, of that name; the caller fills it in. */
enum name_result name_add(struct name_table *table, const void *entries, size_t entry_bytes,
			  const struct name *name);
/* The entry added last. */
void name_remove_last(struct name_table *table, const struct name *name);
void name_fini(struct name_table *table);

#endif /* SPYRE_SDSC_NAME_TABLE_H */
