// SPDX-License-Identifier: MIT
/* Stages, tiles and blocks: see stage.h. */
#include "libspyre/sdsc/lower/stage.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/nest.h"

struct stage_operand tensor_operand(const struct lower *l, uint32_t tensor, uint32_t core)
{
	return (struct stage_operand){ .tensor = &l->sdsc->tensor[tensor],
				       .at = l->address[tensor][core] };
}

struct stage_operand tile_operand(const struct lower *l, const struct ir_tensor *tile,
				  uint64_t offset)
{
	return (struct stage_operand){ .tensor = tile, .tile = true,
				       .at = { .operand = SPYRE_VIEW_LX,
					       .offset = l->scratch + offset } };
}

uint64_t tile_make(const struct ir_sdsc *s, const struct box *box, const struct ir_tensor *like,
		   enum spyre_fmt format, uint32_t lane_dim, uint32_t lanes,
		   struct ir_tensor *tile)
{
	uint64_t step = (uint64_t)lanes * spyre_fmt_bits(format) / 8;

	*tile = *like;
	tile->format = format;
	tile->word = spyre_fmt_bytes(format);
	tile->lanes = lanes;
	tile->lx = true;
	tile->stick = lane_dim;
	tile->num_parts = 1;
	tile->part[0] = (struct ir_part){ lane_dim, lanes };
	memset(tile->gap, 0, sizeof(tile->gap));
	memset(tile->stride, 0, sizeof(tile->stride));
	for (uint32_t k = 0; k < tile->num_order; k++) {
		uint32_t d = tile->order[k];
		uint64_t unit = ir_unit(tile, d), n = ((uint64_t)box->len[d] + unit - 1) / unit;

		if (!lower_varies(tile, d))
			continue;
		tile->stride[d] = step;
		if (__builtin_mul_overflow(step, n, &step) || step > 1ull << 40)
			return 1ull << 40;
	}
	return (step + SPYRE_STICK_BYTES - 1) & ~(uint64_t)(SPYRE_STICK_BYTES - 1);
}

static bool indirect(const struct stage *stage)
{
	return stage->in.opcode == SPYRE_OP_GATHER || stage->in.opcode == SPYRE_OP_SCATTER;
}

/* True if operand @i holds indices, one for all lanes. */
static bool holds_indices(const struct stage *stage, uint32_t i)
{
	return indirect(stage) && i == 2;
}

/* Longest run along the output's innermost dim that is contiguous in all operands. */
static uint32_t run_of(const struct stage *stage, const struct box *box)
{
	const struct ir_tensor *out = stage->operand[0].tensor;
	uint32_t dim = out->part[0].dim, run = out->part[0].size;

	for (uint32_t i = 1; i < stage->in.num_views; i++) {
		const struct ir_tensor *t = stage->operand[i].tensor;

		if (holds_indices(stage, i))
			run = lower_varies(t, dim) ? 1 : run;
		else if (!lower_varies(t, dim))
			run = stage->in.opcode == SPYRE_OP_MOVE || indirect(stage) ? 1 : run;
		else if (t->part[0].dim != dim)
			run = 1;
		else if (t->part[0].size < run)
			run = t->part[0].size;
	}
	run = run > 128 ? 128 : run;
	return box->len[dim] < run ? (uint32_t)box->len[dim] : run;
}

/* Finds a dim whose length is not a multiple of its units; *whole is the part that is. */
static bool uneven(const struct lower *l, const struct stage *stage, const struct box *box,
		   uint32_t run, uint32_t *dim, int64_t *whole)
{
	uint32_t lane_dim = stage->operand[0].tensor->part[0].dim;

	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		for (int64_t u = 256; u > 0; u /= 2) {
			bool breaks = false;

			for (uint32_t i = 0; i < stage->in.num_views; i++)
				breaks = breaks || ir_breaks(stage->operand[i].tensor, d,
							     (uint64_t)u);
			if (d == lane_dim && (uint32_t)u == run)
				breaks = true;
			if (!breaks || u >= box->len[d] || box->len[d] % u == 0)
				continue;
			*dim = d;
			*whole = box->len[d] - box->len[d] % u;
			return true;
		}
	return false;
}

static spyre_status set_view(struct lower *l, const struct stage *stage, uint32_t index,
			     const struct box *box, const struct box *origin, struct nest *nest)
{
	const struct stage_operand *o = &stage->operand[index];
	struct spyre_view *view = &nest->view[index];
	uint64_t bits = 0;

	lower_view(view, o->tensor, &o->at);
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		bits += ir_bits(o->tensor, d, (uint64_t)(box->start[d] -
							 (o->tile ? origin->start[d] : 0)));
	if (holds_indices(stage, index) ||
	    (!lower_varies(o->tensor, stage->operand[0].tensor->part[0].dim) &&
	     nest->in.lanes > 1))
		view->lanes = SPYRE_LANES_SPLAT;
	if (bits % 8 || (spyre_fmt_bits(o->tensor->format) < 8 && nest->in.lanes % 2))
		return lower_unsupported(l, "%s elements along %s, one by one; the card moves whole bytes",
					 spyre_format_name((spyre_format)o->tensor->format),
					 l->sdsc->dim[stage->operand[0].tensor->part[0].dim]);
	view->offset += bits / 8;
	return SPYRE_SUCCESS;
}

static spyre_status emit(struct lower *l, const struct stage *stage, const struct box *box,
			 const struct box *origin)
{
	const struct ir_tensor *tensor[SPYRE_MAX_VIEWS];
	struct nest nest = { .in = stage->in, .row = stage->row };
	uint32_t dim;
	int64_t whole;
	spyre_status status = SPYRE_SUCCESS;

	nest.in.lanes = run_of(stage, box);
	if (uneven(l, stage, box, nest.in.lanes, &dim, &whole)) {
		struct box part = *box;

		part.len[dim] = whole;
		status = emit(l, stage, &part, origin);
		part.start[dim] += whole;
		part.len[dim] = box->len[dim] - whole;
		return status ? status : emit(l, stage, &part, origin);
	}
	for (uint32_t i = 0; i < nest.in.num_views && !status; i++) {
		tensor[i] = stage->operand[i].tensor;
		status = set_view(l, stage, i, box, origin, &nest);
	}
	if (!status && nest.in.opcode == SPYRE_OP_REDUCE)
		nest.dim[nest.num_dims++] = (struct nest_dim){ .count = 1, .reduce = true };
	if (!status)
		status = lower_dims(l, &nest, tensor, nest.in.num_views, tensor[0]->part[0].dim,
				    box->len, 0, 0);
	return status ? status : nest_emit(l, &nest);
}

/* True if the points of a stage differ along a dim: in the rows, or in the place of a row. */
static bool iterates(const struct stage *stage, uint32_t dim)
{
	if (stage->in.opcode != SPYRE_OP_SCATTER)
		return lower_varies(stage->operand[0].tensor, dim);
	/* The rows that are scattered may repeat one source. */
	for (uint32_t i = 0; i < stage->in.num_views; i++)
		if (lower_varies(stage->operand[i].tensor, dim))
			return true;
	return false;
}

spyre_status stage_emit(struct lower *l, const struct stage *stage, const struct box *box)
{
	struct box part = *box;

	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		if (!iterates(stage, d))
			part.len[d] = 1;
	return emit(l, stage, &part, box);
}
