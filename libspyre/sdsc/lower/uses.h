/* SPDX-License-Identifier: MIT */
/* Tensors in HBM that the statements of a bundle read and write, in their order. Internal. */
#ifndef SPYRE_SDSC_USES_H
#define SPYRE_SDSC_USES_H

#include "libspyre/sdsc/lower/place.h"

struct use {
	uint32_t stmt, arg;
	enum ir_base base;
	bool write;			/* an output; it has only a place, no range */
	int64_t first, end;		/* bytes, over all cores, in the first iteration */
	int64_t reach;			/* last byte (exclusive) over all iterations */
};

struct uses {
	struct use *list;
	size_t num, capacity;
};

/* Bytes of a memory that a statement has written; @value tells the memory. */
struct use_range {
	struct ir_value value;
	uint32_t stmt;
	uint32_t readers;		/* first statement that may read them */
	int64_t first, end;
};

/* Collects the uses of all statements, the first time; false if there is no memory. */
bool uses_collect(struct uses *uses, struct lower *l);
/*
 * Until another output replaces the bytes: *@alone is set if a statement reads a tensor that
 * begins in them; *@used is the first one behind range->stmt that reads any of them, or 0.
 */
void uses_find(const struct uses *uses, const struct use_range *range, bool *alone,
	       uint32_t *used);

#endif /* SPYRE_SDSC_USES_H */
