/* SPDX-License-Identifier: MIT */
/* Layouts of operands. Internal. */
#ifndef SPYRE_SDSC_GRAPH_LAYOUT_H
#define SPYRE_SDSC_GRAPH_LAYOUT_H

#include "libspyre/sdsc/graph/graph.h"

/* Finds the host dim of each device dim; dense row-major strides are assumed. */
spyre_status build_normalize(const char *op, uint32_t index, spyre_sdsc_operand *o);
/*
 * The host dim along sticks, -1 if each element has a stick of its own or there is
 * no layout. No index: it is checked before it is one.
 */
int build_stick_dim(const spyre_sdsc_operand *o);
/*
 * A row-major layout with sticks along @stick (-1: an element per stick); dims
 * with a bit in @pad have whole sticks' worth of room.
 */
void build_layout(spyre_sdsc_operand *o, spyre_format format, int stick, uint32_t pad);
/* Adds dim @dim of size 1. */
void build_unsqueeze(spyre_sdsc_operand *o, uint32_t dim);
void build_swap_dims(spyre_sdsc_operand *o, uint32_t a, uint32_t b);
/*
 * Adds a tensor to @s: @dim[] is the iteration dim of each host dim, -1 for
 * none; @stick the one along sticks, which the tensor varies along if @varies.
 */
spyre_status build_place_tensor(struct ir_sdsc *s, const char *op, const spyre_sdsc_operand *o,
				const int *dim, uint32_t stick, bool varies);
/* Dims of one point that came up with a tensor, from @first on, are dims of all. */
void build_share_singles(struct ir_sdsc *s, uint32_t first);

#endif /* SPYRE_SDSC_GRAPH_LAYOUT_H */
