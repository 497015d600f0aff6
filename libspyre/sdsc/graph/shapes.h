/* SPDX-License-Identifier: MIT */
/* Dims and tensors of steps. Internal. */
#ifndef SPYRE_SDSC_SHAPES_H
#define SPYRE_SDSC_SHAPES_H

#include "libspyre/sdsc/graph/graph.h"

int build_add_dim(struct build_step *step, const char *name, int64_t size, int key);
/* Adds a constant, stored in DL16 if the first tensor is DL16, else in fp32. */
void build_add_constant(struct ir_sdsc *s, const char *name, float value);
/* Names the operation; the last of @count operands is its output. */
void build_finish(struct build_step *step, const struct build_use *uses, uint32_t count,
		  const char *func);
/* Makes the dims and tensors of a step, without a division of the work. */
spyre_status build_shapes(const struct build_call *call, struct build_use *uses,
			  struct build_step *step);

#endif /* SPYRE_SDSC_SHAPES_H */
