/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Results of the SFU's functions for all DL16 numbers. A function of one DL16 number
 * has 65,536 results, and reading one takes a tenth of the time of computing it. Contexts
 * share the tables, which have no data of any of them.
 */
#ifndef SPYRE_MODEL_TABLE_H
#define SPYRE_MODEL_TABLE_H

#include "core.h"

#define SPYRE_TABLE_CODES 65536u
/* Codes that a thread computes at once, and the least elements for which it does so. */
#define SPYRE_TABLE_BLOCK 128u
#define SPYRE_TABLE_BLOCKS (SPYRE_TABLE_CODES / SPYRE_TABLE_BLOCK)
#define SPYRE_TABLES 14u

/*
 * Threads claim blocks in ascending order and never wait for each other: until all
 * blocks are filled, they compute their elements directly.
 */
struct spyre_table {
	u16 code[SPYRE_TABLE_CODES];
	u32 claimed;		/* blocks that threads have begun to fill; may exceed the number */
	u32 filled;		/* blocks that are complete */
	u8 pad[56];		/* to a multiple of 64 bytes */
};

static_assert(SPYRE_TABLES * sizeof(struct spyre_table) <= SPYRE_TABLES_BYTES, "tables fit");

/* Returns the table that has the results of @run, or NULL if none has. */
struct spyre_table *spyre_table_of(struct spyre_host *host, const struct spyre_sfu_run *run);

/* Returns true if all of the table's codes are there. */
bool spyre_table_ready(const struct spyre_table *table);

/*
 * Fills at most as many codes as the @elements that the caller has to compute, so that
 * a function's first elements take at most twice as long. @cost is that of an element.
 * Returns false to stop.
 */
bool spyre_table_fill(struct spyre_core *core, struct spyre_table *table,
		      const struct spyre_sfu_run *run, u64 elements, u64 cost);

/* Looks up the elements of @run, which may be in place. */
void spyre_table_look_up(const struct spyre_table *table, const struct spyre_sfu_run *run);

#endif /* SPYRE_MODEL_TABLE_H */
