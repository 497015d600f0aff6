/* SPDX-License-Identifier: MIT */
/* Operands brought into the form that operations need. Internal. */
#ifndef SPYRE_SDSC_FIT_H
#define SPYRE_SDSC_FIT_H

#include "libspyre/sdsc/graph/graph.h"

int64_t build_whole_sticks(int64_t size, int64_t lanes);
/* Elements of a stick. */
int64_t build_lanes(const spyre_sdsc_operand *o);
/*
 * True if steps may go as far as @size along @dim: lanes of a last stick are a
 * tensor's own, what lies beyond that is if its padding is.
 */
bool build_has_room(const spyre_sdsc_graph *graph, const struct build_use *use, uint32_t dim,
		    int64_t size);
/* The same for an output; what an argument has beyond its size is never written. */
bool build_may_write(const spyre_sdsc_graph *graph, const struct build_use *use, uint32_t dim,
		     int64_t size);
/* True if zeros follow up to a whole stick's worth of dim @dim. */
bool build_is_clean(const struct build_use *use, uint32_t dim);
/* A copy with zeros in the lanes beyond dim @k, which is along its sticks. */
spyre_status build_clean_lanes(spyre_sdsc_graph *graph, struct build_use *use, uint32_t k);
/* A tensor as it is; SPYRE_SDSC_NEW has no view yet. */
struct build_use build_use_of(const spyre_sdsc_graph *graph, uint32_t tensor);
/* One step of a plain operation on given views. */
spyre_status build_emit(spyre_sdsc_graph *graph, const char *op, const struct build_use *in,
			uint32_t num_inputs, struct build_use *out);
/*
 * A copy that has room for whole sticks along the dims in @pad (bits). With
 * @clean, the room holds zeros.
 */
spyre_status build_pad_copy(spyre_sdsc_graph *graph, struct build_use *use, uint32_t pad,
			    bool clean);
/*
 * Brings @from into sticks along @stick, or with -1 into one stick per element;
 * @to may be left open.
 */
spyre_status build_restick(spyre_sdsc_graph *graph, struct build_use from, int stick,
			   struct build_use *to);
/* A dense vector along the sticks as one with an element per stick. */
spyre_status build_sparse(spyre_sdsc_graph *graph, struct build_use *use);
spyre_status build_restick_new(spyre_sdsc_graph *graph, struct build_use *use, int stick);
/* Inputs of pointwise operations that have their sticks along another dim than the output. */
spyre_status build_align(const struct build_call *call, struct build_use *uses);

#endif /* SPYRE_SDSC_FIT_H */
