/* SPDX-License-Identifier: MIT */
/* Packs: sticks with elements of several dimensions. Internal. */
#ifndef SPYRE_SDSC_PACK_H
#define SPYRE_SDSC_PACK_H

#include "libspyre/sdsc/lower/stage.h"

#define PACK_MAX_PARTS 3u

/* A pack of the operand stick rules: size and dim of each part. */
struct pack_rule {
	uint8_t size[PACK_MAX_PARTS];	/* inner to outer, 0 ends */
	uint8_t dim[PACK_MAX_PARTS];	/* 0 or 1 */
};

bool pack_matches(const struct ir_tensor *t, const struct pack_rule *rule);
/* Writes a stick as "[in 8, mb 2, in 8]". */
const char *pack_text(const struct ir_sdsc *s, const struct ir_tensor *t, char *text, size_t size);

/*
 * True for packs that interleave rows element by element in 16-bit words ([k 2,
 * n 64] of 8 bits, [k 4, n 64] of 4 bits). No view walks these, so rows are made
 * one by one in LX and joined to words by arithmetic.
 */
bool pack_interleaves(const struct ir_tensor *t);

/* Makes @box of the output's elements at @to, for one core. */
typedef spyre_status (*pack_source)(struct lower *l, void *arg, uint32_t core,
				    const struct stage_operand *to, const struct box *box,
				    uint64_t tile);

/* Writes such a pack. @source uses @tile_bytes of LX per element from its @tile on. */
spyre_status pack_interleave(struct lower *l, pack_source source, void *arg,
			     uint32_t tile_bytes);

#endif /* SPYRE_SDSC_PACK_H */
