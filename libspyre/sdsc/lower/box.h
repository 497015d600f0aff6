/* SPDX-License-Identifier: MIT */
/*
 * Boxes of a core's share: the elements that coordinateMasking_ does not hide, cut
 * so that each box is walked in whole sticks or lies within one. Internal.
 */
#ifndef SPYRE_SDSC_BOX_H
#define SPYRE_SDSC_BOX_H

#include "libspyre/sdsc/lower/lower.h"

struct box {
	int64_t start[IR_MAX_DIMS], len[IR_MAX_DIMS];
};

/* The whole share of a core. */
void box_share(const struct ir_sdsc *s, struct box *box);

#define BOX_MAX_PIECES 96u	/* of a dim */

struct piece {
	int64_t start, size;	/* coordinates within the share */
	bool masked;
};

/* A share cut along each dim; a box is one piece of each. */
struct cuts {
	uint32_t num[IR_MAX_DIMS];
	uint32_t at[IR_MAX_DIMS];	/* the current box, by piece */
	struct piece piece[IR_MAX_DIMS][BOX_MAX_PIECES];
};

/* The masked and visible parts of a core's share along a dim, ascending. */
uint32_t box_visible(const struct ir_sdsc *s, uint32_t core, uint32_t dim, struct piece *piece);

/*
 * Cuts a core's share for tensors that are walked along @lane_dim, @lanes elements
 * at a time. False if a dim would need more than BOX_MAX_PIECES.
 */
bool box_cut(const struct ir_sdsc *s, uint32_t core, const struct ir_tensor *const *tensor,
	     uint32_t num_tensors, uint32_t lane_dim, uint32_t lanes, struct cuts *cuts);

/* Cuts pieces longer than @max, a multiple of the sticks; false if they are too many. */
bool box_limit(struct cuts *cuts, uint32_t dim, int64_t max);

/* True if the current box is masked along one of the dims with a bit in @dims. */
bool box_masked(const struct cuts *cuts, uint32_t dims);
/* Advances to the next box along @dims; after the last one returns false and restarts. */
bool box_next(struct cuts *cuts, uint32_t dims);
/* Bytes from a share's start to the current box. */
uint64_t box_offset(const struct ir_sdsc *s, const struct ir_tensor *t, const struct cuts *cuts);
/* Bytes from coordinate 0 to @x along a dim. */
uint64_t box_bytes(const struct ir_tensor *t, uint32_t dim, int64_t x);

/* Cuts a box into parts, each of whose needs fits in LX. */
struct blocks {
	uint64_t (*need)(struct lower *l, void *arg, const struct box *box);
	spyre_status (*emit)(struct lower *l, void *arg, const struct box *box);
	void *arg;
	int64_t align[IR_MAX_DIMS];	/* of the cuts, 0: the dim stays whole */
};

spyre_status box_blocks(struct lower *l, const struct blocks *b, const struct box *box);

/* Lets cuts end at whole sticks, along the dims that can be cut without another result. */
void box_align(const struct ir_sdsc *s, int64_t *align);
/* Makes @inner the operation on a box and @part its SDSC: shares and addresses are the box's. */
void box_narrow(const struct lower *l, const struct box *box, struct lower *inner,
		struct ir_sdsc *part);

#endif /* SPYRE_SDSC_BOX_H */
