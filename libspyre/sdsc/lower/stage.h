/* SPDX-License-Identifier: MIT */
/*
 * Stages: one pointwise step over a box of a core's share, on tensors with any
 * sticks or packs, and on tiles in the part of LX that no tensor uses. Internal.
 */
#ifndef SPYRE_SDSC_STAGE_H
#define SPYRE_SDSC_STAGE_H

#include "libspyre/sdsc/lower/box.h"

struct stage_operand {
	const struct ir_tensor *tensor;
	struct address at;	/* of coordinate 0 */
	bool tile;		/* holds a box only: coordinate 0 is the box's start */
};

struct stage {
	struct spyre_instr in;	/* opcode, func, immediates, number of views */
	struct stage_operand operand[SPYRE_MAX_VIEWS];
	uint64_t row;			/* GATHER, SCATTER: bytes between rows of the table */
};

/*
 * Adds the instructions of a stage over @box, whose dims start at whole units of
 * all tensors; dims that the output lacks count once. REDUCE takes a single point,
 * which makes MEAN a multiplication. GATHER and SCATTER have the indices as operand 2; the
 * dims are those of the selected rows.
 */
spyre_status stage_emit(struct lower *l, const struct stage *stage, const struct box *box);

/*
 * Makes a dense tile for a box of @like with sticks of @lanes elements along
 * @lane_dim (128 bytes or not); returns its bytes, rounded up to sticks.
 */
uint64_t tile_make(const struct ir_sdsc *s, const struct box *box, const struct ir_tensor *like,
		   enum spyre_fmt format, uint32_t lane_dim, uint32_t lanes,
		   struct ir_tensor *tile);
/* Operand of a tile at @offset in the LX that no tensor uses. */
struct stage_operand tile_operand(const struct lower *l, const struct ir_tensor *tile,
				  uint64_t offset);
struct stage_operand tensor_operand(const struct lower *l, uint32_t tensor, uint32_t core);

#endif /* SPYRE_SDSC_STAGE_H */
