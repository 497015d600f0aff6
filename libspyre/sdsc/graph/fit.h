/* SPDX-License-Identifier: MIT */
/* Adaption of operands to the layouts that operations need. Internal. */
#ifndef SPYRE_SDSC_FIT_H
#define SPYRE_SDSC_FIT_H

#include "libspyre/sdsc/graph/graph.h"

int64_t build_whole_sticks(int64_t size, int64_t lanes);
/* Elements of a stick. */
int64_t build_lanes(const spyre_sdsc_operand *o);
/*
 * True if steps may read @size elements along @dim. The lanes of the last stick
 * belong to a tensor; padding beyond that only if it is known to be zero.
 */
bool build_may_read(const spyre_sdsc_graph *graph, const struct build_use *use, uint32_t dim,
		    int64_t size);
/* True if steps may write @size elements; the padding of arguments is never written. */
bool build_may_write(const spyre_sdsc_graph *graph, const struct build_use *use, uint32_t dim,
		     int64_t size);
/* True if dim @dim is padded with zeros to a multiple of a stick's elements. */
bool build_is_clean(const struct build_use *use, uint32_t dim);
/* Copies a tensor so that the lanes beyond dim @k, which is along its sticks, are zeros. */
spyre_status build_clean_lanes(spyre_sdsc_graph *graph, struct build_use *use, uint32_t k);
/* Restricts a view to @count elements along @dim; along sticks @start is whole sticks. */
void build_cut(struct build_use *use, uint32_t dim, int64_t start, int64_t count);
/* The view of a whole tensor; empty for SPYRE_SDSC_NEW. */
struct build_use build_use_of(const spyre_sdsc_graph *graph, uint32_t tensor);
/* Adds one step of an operation without a recipe, on given views. */
spyre_status build_emit(spyre_sdsc_graph *graph, const char *op, const struct build_use *in,
			uint32_t num_inputs, struct build_use *out);
/*
 * Copies a tensor and pads the dims in @pad (bits) to multiples of a stick's
 * elements, with zeros if @clean.
 */
spyre_status build_pad_copy(spyre_sdsc_graph *graph, struct build_use *use, uint32_t pad,
			    bool clean);
/*
 * Restickifies @from along @stick, or with -1 to one stick per element. Makes
 * @to if it is SPYRE_SDSC_NEW.
 */
spyre_status build_restick(spyre_sdsc_graph *graph, struct build_use from, int stick,
			   struct build_use *to);
/* Copies a dense vector along the sticks to one with an element per stick. */
spyre_status build_sparse(spyre_sdsc_graph *graph, struct build_use *use);
spyre_status build_restick_new(spyre_sdsc_graph *graph, struct build_use *use, int stick);
/* Restickifies inputs whose sticks are along another dim than those of the output. */
spyre_status build_align(const struct build_call *call, struct build_use *uses);

#endif /* SPYRE_SDSC_FIT_H */
