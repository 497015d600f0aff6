/* SPDX-License-Identifier: MIT */
/* Layouts of operands. Internal. */
#ifndef SPYRE_SDSC_GRAPH_LAYOUT_H
#define SPYRE_SDSC_GRAPH_LAYOUT_H

#include "libspyre/sdsc/graph/graph.h"

/* Finds the host dim of each device dim; dense row-major strides are assumed. */
spyre_status build_normalize(const char *op, uint32_t index, spyre_sdsc_operand *o);
/*
 * The host dim along sticks; -1, which is no index, if each element has its own
 * stick or there is no layout.
 */
int build_stick_dim(const spyre_sdsc_operand *o);
/*
 * Makes a row-major layout with sticks along @stick (-1: an element per stick).
 * Dims with a bit in @pad are padded to multiples of a stick's elements.
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
/* Adds dims of size 1, which build_place_tensor() made from @first on, to all tensors. */
void build_share_singles(struct ir_sdsc *s, uint32_t first);

#endif /* SPYRE_SDSC_GRAPH_LAYOUT_H */
