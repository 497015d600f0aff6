// SPDX-License-Identifier: MIT
/*
 * maskbyindex: sets elements to the mask value if their coordinate along one
 * dimension is at least an index, which does not vary along that dimension.
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/rules.h"

enum { OUT, IN, INDEX };

/* Finds the dimension that the index lacks; of several, the output's stick dimension. */
static spyre_status find_dim(struct lower *l, const struct ir_tensor *const *tensor,
			     uint32_t *dim)
{
	const struct ir_sdsc *s = l->sdsc;
	uint32_t found = 0;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (s->el[d] > 1 && !lower_varies(tensor[OUT], d))
			return lower_unsupported(l, "the output does not vary along %s",
						 s->dim[d]);
		if (!lower_varies(tensor[OUT], d) || lower_varies(tensor[INDEX], d))
			continue;
		if (s->size[d] > 1 || d == tensor[OUT]->stick) {
			*dim = d;
			found++;
		}
	}
	if (lower_varies(tensor[OUT], tensor[OUT]->stick) &&
	    !lower_varies(tensor[INDEX], tensor[OUT]->stick))
		*dim = tensor[OUT]->stick;
	else if (found != 1)
		return lower_unsupported(l, "the index does not vary along %u dimensions, none of them the stick dimension %s; let it lack one of them only",
					 found, s->dim[tensor[OUT]->stick]);
	return SPYRE_SUCCESS;
}

/* Along the sticks lanes are coordinates; along another dim elements are processed one by one. */
static spyre_status set_lanes(struct lower *l, const struct ir_tensor *const *tensor, uint32_t dim,
			      struct spyre_instr *in)
{
	const struct ir_tensor *out = tensor[OUT], *x = tensor[IN];

	in->lanes = 1;
	if (dim != out->stick || !lower_varies(x, dim))
		return SPYRE_SUCCESS;
	if (x->stick != dim)
		return lower_unsupported(l, "the input has its sticks along %s, the output along %s; restickify it first",
					 l->sdsc->dim[x->stick], l->sdsc->dim[dim]);
	in->lanes = x->lanes < out->lanes ? x->lanes : out->lanes;
	return SPYRE_SUCCESS;
}

spyre_status lower_mask_by_index(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	const uint32_t index[3] = { s->output, s->input[0], s->input[1] };
	const struct ir_tensor *const tensor[3] = { &s->tensor[index[OUT]], &s->tensor[index[IN]],
						    &s->tensor[index[INDEX]] };
	struct nest model = { .in = { .opcode = SPYRE_OP_SFU, .func = (uint16_t)func,
				      .num_views = 3 },
			      .ordered = true };
	uint32_t dim = 0;
	spyre_status status;

	status = find_dim(l, tensor, &dim);
	if (!status)
		status = set_lanes(l, tensor, dim, &model.in);
	if (!status && s->size[dim] > 1 << 24)
		status = lower_unsupported(l, "%" PRId64 " coordinates along %s, at most %u",
					   s->size[dim], s->dim[dim], 1u << 24);
	if (!status)
		status = lower_constant(l, "samv-maskvalue", &model.in.imm[0]);
	if (!status)
		status = lower_dims(l, &model, tensor, 3, dim, s->el, 0, 1u << dim);
	for (uint32_t c = 0; c < s->num_cores && !status; c++) {
		struct nest nest = model;

		for (uint32_t i = 0; i < 3; i++)
			lower_view(&nest.view[i], tensor[i], &l->address[index[i]][c]);
		if (nest.in.lanes > 1)
			nest.view[INDEX].lanes = SPYRE_LANES_SPLAT;
		nest.in.imm[1] = s->slice[c][dim] * (uint32_t)s->el[dim];
		status = encoder_stream(l->encoder, s->core[c]);
		if (!status)
			status = nest_emit(l, &nest);
	}
	return status;
}
