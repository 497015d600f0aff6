/* SPDX-License-Identifier: MIT */
/* Results that several cores compute parts of. Internal. */
#ifndef SPYRE_SDSC_PARTIAL_H
#define SPYRE_SDSC_PARTIAL_H

#include "libspyre/sdsc/lower/lower.h"

/*
 * Partial results: each core of those with the same output address computes into
 * a tile in LX, fp32 or of integers; in a second phase the first of them adds up all tiles in core
 * order over the ring and stores the result once.
 */
struct partial {
	bool active;
	/* The first core (index) with the same output, for each core index. */
	uint32_t leader[SPYRE_MAX_CORES];
	uint32_t absent;		/* cores (index mask) without a contribution */
	struct ir_tensor tile;
	struct address tile_address;
	uint64_t tile_bytes;
	/* Lanes with results per stick of the tile, 0 for all; 1 fills the output's lanes. */
	uint32_t lanes;
};

/* Sets leader[] of all cores; true if any core has another leader than itself. */
bool partial_leaders(const struct lower *l, uint32_t absent, uint32_t *leader);
/* The format of the partial results of a reduction. */
enum spyre_fmt partial_format(enum spyre_func func);
/* Makes a dense fp32 tile for @size elements of the output, @lanes per stick; returns its bytes. */
uint64_t partial_tile(const struct ir_sdsc *s, uint32_t lanes, const int64_t *size,
		      struct ir_tensor *tile);

spyre_status partial_plan(struct lower *l, uint32_t absent, struct partial *p);
/* As partial_plan(), with tiles of at least @lanes elements per stick. */
spyre_status partial_plan_lanes(struct lower *l, uint32_t absent, uint32_t lanes,
				struct partial *p);
/* True if this core computes into the tile. */
bool partial_core(const struct partial *p, const struct ir_sdsc *s, uint32_t core);
spyre_status partial_combine(struct lower *l, const struct partial *p, enum spyre_func func,
			     uint32_t scale_bits);

#endif /* SPYRE_SDSC_PARTIAL_H */
