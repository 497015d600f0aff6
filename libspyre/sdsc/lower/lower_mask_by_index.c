// SPDX-License-Identifier: MIT
/*
 * maskbyindex: sets elements to the mask value if their coordinate along one
 * dimension is at least an index, which does not vary along that dimension. With
 * samv-rowdim the coordinate counts from a diagonal: it falls along the rows.
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/rules.h"

enum { OUT, IN, INDEX };

/* Finds the rows that samv-rowdim gives by their place in the memory order of the output. */
static spyre_status find_rows(struct lower *l, const struct ir_tensor *out, uint32_t *rows)
{
	uint32_t place;

	*rows = IR_NO_DIM;
	if (!lower_has_constant(l, "samv-rowdim"))
		return SPYRE_SUCCESS;
	TRY(lower_integer_constant(l, "samv-rowdim", &place));
	if (place < out->num_order)
		*rows = out->order[place];
	if (*rows == IR_NO_DIM || *rows == out->stick || !lower_varies(out, *rows))
		return lower_unsupported(l, "samv-rowdim %d, expected the place of a dimension without sticks among the %u of the output",
					 (int)place, out->num_order);
	return SPYRE_SUCCESS;
}

/* Finds the dimension that the index lacks; of several other than @rows, the output's stick dim. */
static spyre_status find_dim(struct lower *l, const struct ir_tensor *const *tensor, uint32_t rows,
			     uint32_t *dim)
{
	const struct ir_sdsc *s = l->sdsc;
	uint32_t found = 0;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (s->el[d] > 1 && !lower_varies(tensor[OUT], d))
			return lower_unsupported(l, "the output does not vary along %s",
						 s->dim[d]);
		if (d == rows || !lower_varies(tensor[OUT], d) || lower_varies(tensor[INDEX], d))
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

/* Adds the dims of the nest; those of the rows fall, the outer ones by all that is inside. */
static spyre_status add_dims(struct lower *l, struct nest *nest,
			     const struct ir_tensor *const *tensor, uint32_t dim, uint32_t rows)
{
	const struct ir_sdsc *s = l->sdsc;
	uint64_t falls = 1;
	uint32_t before;

	TRY(lower_dims(l, nest, tensor, 3, dim, s->el, rows == IR_NO_DIM ? 0 : 1u << rows,
		       1u << dim));
	before = nest->num_dims;
	if (rows == IR_NO_DIM)
		return SPYRE_SUCCESS;
	TRY(lower_dims(l, nest, tensor, 3, dim, s->el, ~(1u << rows), 0));
	for (uint32_t i = nest->num_dims; i-- > before;) {
		nest->dim[i].falls = falls;
		falls *= nest->dim[i].count;
	}
	return SPYRE_SUCCESS;
}

/* The coordinate at the start of a core's share; along rows the last one counts as 0. */
static uint32_t first_coordinate(const struct ir_sdsc *s, uint32_t core, uint32_t dim,
				 uint32_t rows)
{
	int64_t at = s->slice[core][dim] * s->el[dim];

	if (rows != IR_NO_DIM)
		at += s->size[rows] - 1 - s->slice[core][rows] * s->el[rows];
	return (uint32_t)at;
}

/* Coordinates are at most 2^24, which fp32 represents exactly. */
static spyre_status check_range(struct lower *l, uint32_t dim, uint32_t rows)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t most = s->size[dim] + (rows == IR_NO_DIM ? 0 : s->size[rows] - 1);

	if (s->size[dim] <= 1 << 24 && most <= 1 << 24)
		return SPYRE_SUCCESS;
	if (rows != IR_NO_DIM)
		return lower_unsupported(l, "%" PRId64 " coordinates along %s and %s, at most %u",
					 most, s->dim[dim], s->dim[rows], 1u << 24);
	return lower_unsupported(l, "%" PRId64 " coordinates along %s, at most %u", most,
				 s->dim[dim], 1u << 24);
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
	uint32_t dim = 0, rows = IR_NO_DIM;
	spyre_status status;

	status = find_rows(l, tensor[OUT], &rows);
	if (!status)
		status = find_dim(l, tensor, rows, &dim);
	if (!status)
		status = set_lanes(l, tensor, dim, &model.in);
	if (!status)
		status = check_range(l, dim, rows);
	if (!status)
		status = lower_constant(l, "samv-maskvalue", &model.in.imm[0]);
	if (!status && lower_has_constant(l, "samv-width"))
		status = lower_integer_constant(l, "samv-width", &model.in.imm[3]);
	if (!status && model.in.imm[3] > 1 << 24)
		status = lower_unsupported(l, "samv-width %d, from 0 to %u", (int)model.in.imm[3],
					   1u << 24);
	if (!status)
		status = add_dims(l, &model, tensor, dim, rows);
	for (uint32_t c = 0; c < s->num_cores && !status; c++) {
		struct nest nest;

		nest_copy(&nest, &model);
		for (uint32_t i = 0; i < 3; i++)
			lower_view(&nest.view[i], tensor[i], &l->address[index[i]][c]);
		if (nest.in.lanes > 1)
			nest.view[INDEX].lanes = SPYRE_LANES_SPLAT;
		nest.in.imm[1] = first_coordinate(s, c, dim, rows);
		status = encoder_stream(l->encoder, s->core[c]);
		if (!status)
			status = nest_emit(l, &nest);
	}
	return status;
}
