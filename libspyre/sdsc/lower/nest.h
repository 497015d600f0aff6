/* SPDX-License-Identifier: MIT */
/* Loop nests of instructions. Internal. */
#ifndef SPYRE_SDSC_NEST_H
#define SPYRE_SDSC_NEST_H

#include <stddef.h>
#include <string.h>

#include "libspyre/sdsc/lower/lower.h"

/*
 * A loop nest of an instruction before it is fitted to the machine's limits: up to
 * NEST_MAX_DIMS dims of any count in any order.
 */
#define NEST_MAX_DIMS 48u	/* dims, and parts of sticks of all views */

struct nest_dim {
	uint64_t count;
	bool reduce;
	/* MASKBYINDEX: the coordinate falls by so much per step, 0 if it does not fall. */
	uint64_t falls;
	uint64_t stride[SPYRE_MAX_VIEWS];
};

struct nest {
	struct spyre_instr in;		/* counts and masks are filled by nest_emit() */
	struct spyre_view view[SPYRE_MAX_VIEWS];	/* strides are filled by nest_emit(), too */
	/*
	 * GATHER, SCATTER: bytes between rows of the indirect view. An index takes the place of
	 * the coordinate along one more dim, of one point, which nest_emit() adds.
	 */
	uint64_t row;
	bool ordered;		/* the order of reduced dims affects the result and is kept */
	uint32_t num_dims;
	struct nest_dim dim[NEST_MAX_DIMS];
};

/* Copies a nest without the dims that it does not have, which are most of its 4 KiB. */
static inline void nest_copy(struct nest *to, const struct nest *from)
{
	memcpy(to, from, offsetof(struct nest, dim) + from->num_dims * sizeof(from->dim[0]));
}

/* Orders, merges and splits the dims and adds the instructions that result. */
spyre_status nest_emit(struct lower *l, struct nest *nest);

#endif /* SPYRE_SDSC_NEST_H */
