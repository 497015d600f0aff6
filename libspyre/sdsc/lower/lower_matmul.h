/* SPDX-License-Identifier: MIT */
/* Matrix products: roles of tensors and dims, and tiles of sums. Internal. */
#ifndef SPYRE_SDSC_LOWER_MATMUL_H
#define SPYRE_SDSC_LOWER_MATMUL_H

#include "libspyre/sdsc/lower/stage.h"

#define MATMUL_C 0u
#define MATMUL_A 1u
#define MATMUL_B 2u

struct matmul {
	const struct ir_tensor *tensor[3];
	uint32_t index[3];
	uint32_t k, n;			/* dims */
	bool paired;			/* A's sticks hold pairs of rows */
	uint32_t rows;			/* dim of the paired rows */
	enum spyre_fmt sum;		/* IEEE_FP32, or IEEE_INT32 for integers */
	/* The first core (index) with the same output, for each core index. */
	uint32_t leader[SPYRE_MAX_CORES];
	bool split;			/* some cores have another leader than themselves */
	bool phase_used;		/* the SDSC's first phase has instructions */
	uint32_t core;			/* the current core */
};

/* Assigns the roles; fails for products that the PT has no rule for. */
spyre_status matmul_roles(struct lower *l, struct matmul *m);

/* Makes a tile for the sums of @box; returns its bytes. */
uint64_t matmul_tile(const struct lower *l, const struct matmul *m, const struct box *box,
		     struct ir_tensor *tile);
/* Stores a tile of sums in the result. */
spyre_status matmul_store(struct lower *l, const struct matmul *m, const struct box *box,
			  const struct stage_operand *tile);
/* Computes @box on a core that shares its result with no other. */
spyre_status matmul_alone(struct lower *l, const struct matmul *m, const struct box *box);

#endif /* SPYRE_SDSC_LOWER_MATMUL_H */
