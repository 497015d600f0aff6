// SPDX-License-Identifier: MIT
/* Partial results of a tile that several cores share: see lower.h. */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/partial.h"

#define FP32_ONE 0x3f800000u

uint64_t partial_tile(const struct ir_sdsc *s, uint32_t lanes, const int64_t *size,
		      struct ir_tensor *tile)
{
	uint64_t step;

	*tile = s->tensor[s->output];
	tile->format = SPYRE_FMT_IEEE_FP32;
	tile->word = 4;
	tile->lanes = lanes;
	tile->num_parts = 1;
	tile->part[0] = (struct ir_part){ tile->stick, lanes };
	tile->lx = true;
	memset(tile->gap, 0, sizeof(tile->gap));
	memset(tile->stride, 0, sizeof(tile->stride));
	step = (uint64_t)tile->word * tile->lanes;
	for (uint32_t k = 0; k < tile->num_order; k++) {
		uint32_t d = tile->order[k];
		uint64_t n = (uint64_t)size[d];

		if (!lower_varies(tile, d))
			continue;
		tile->stride[d] = step;
		if (d == tile->stick)
			n = (n + tile->lanes - 1) / tile->lanes;
		if (__builtin_mul_overflow(step, n, &step))
			return SPYRE_LX_BYTES + 1ull;
	}
	return step;
}

enum spyre_fmt partial_format(enum spyre_func func)
{
	return spyre_func_integer(func) ? SPYRE_FMT_IEEE_INT32 : SPYRE_FMT_IEEE_FP32;
}

bool partial_leaders(const struct lower *l, uint32_t absent, uint32_t *leader)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct address *at = l->address[s->output];
	bool shared = false;

	for (uint32_t c = 0; c < s->num_cores; c++) {
		leader[c] = c;
		if (s->tensor[s->output].lx || absent >> c & 1)
			continue;
		for (uint32_t i = 0; i < c; i++)
			if (!(absent >> i & 1) && !memcmp(&at[i], &at[c], sizeof(*at))) {
				leader[c] = i;
				shared = true;
				break;
			}
	}
	return shared;
}

spyre_status partial_plan(struct lower *l, uint32_t absent, struct partial *p)
{
	return partial_plan_lanes(l, absent, 0, p);
}

/* Cores find the others of the same output by its address, which shows nothing in LX. */
static spyre_status check_private(struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];

	for (uint32_t d = 0; d < s->num_dims && out->lx; d++)
		if (s->slices[d] > 1 && !lower_varies(out, d))
			return lower_unsupported(l, "%s is split over %" PRId64 " cores and the output is in LX, which is private to a core",
						 s->dim[d], s->slices[d]);
	return SPYRE_SUCCESS;
}

spyre_status partial_plan_lanes(struct lower *l, uint32_t absent, uint32_t lanes,
				struct partial *p)
{
	const struct ir_sdsc *s = l->sdsc;
	uint64_t bytes;

	memset(p, 0, sizeof(*p));
	TRY(check_private(l));
	p->absent = absent;
	p->active = partial_leaders(l, absent, p->leader);
	if (!p->active)
		return SPYRE_SUCCESS;
	if (lanes < s->tensor[s->output].lanes)
		lanes = s->tensor[s->output].lanes;
	bytes = partial_tile(s, lanes, s->el, &p->tile);
	if (bytes > SPYRE_LX_BYTES || l->scratch > SPYRE_LX_BYTES - bytes)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: partial results need %" PRIu64 " bytes of LX from byte %u on, a core has %u; split the reduced dimension less or the others more",
				   s->file, bytes, l->scratch, SPYRE_LX_BYTES);
	p->tile_address.operand = SPYRE_VIEW_LX;
	p->tile_address.offset = l->scratch;
	p->tile_bytes = bytes;
	return SPYRE_SUCCESS;
}

bool partial_core(const struct partial *p, const struct ir_sdsc *s, uint32_t core)
{
	if (!p->active || p->absent >> core & 1)
		return false;
	for (uint32_t c = 0; c < s->num_cores; c++)
		if (c != core && p->leader[c] == p->leader[core] && !(p->absent >> c & 1))
			return true;
	return false;
}

/* The function that combines two tiles of the reduction @func. */
static uint16_t combining(enum spyre_func func)
{
	switch (func) {
	case SPYRE_FUNC_AMAX:
	case SPYRE_FUNC_QUANTSCALE:
		return SPYRE_FUNC_MAX;
	case SPYRE_FUNC_AMIN:
		return SPYRE_FUNC_MIN;
	case SPYRE_FUNC_MUL:
		return SPYRE_FUNC_MUL;
	case SPYRE_FUNC_INT_SUM:
		return SPYRE_FUNC_INT_ADD;
	case SPYRE_FUNC_INT_AMAX:
		return SPYRE_FUNC_INT_MAX;
	case SPYRE_FUNC_INT_AMIN:
		return SPYRE_FUNC_INT_MIN;
	default:
		return SPYRE_FUNC_ADD;
	}
}

/* result = own tile <func> the tile of core @peer */
static spyre_status combine_one(struct lower *l, const struct partial *p, uint32_t core,
				uint32_t peer, bool store, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];
	const struct ir_tensor *tensor[3] = { store ? out : &p->tile, &p->tile, &p->tile };
	struct nest nest = { .in = { .opcode = spyre_func_integer(func) ? SPYRE_OP_INT :
									  SPYRE_OP_SFU,
				     .func = combining(func), .num_views = 3,
				     .lanes = p->lanes ? p->lanes : out->lanes } };
	uint32_t skip = 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		skip |= lower_varies(out, d) ? 0 : 1u << d;
	lower_view(&nest.view[0], tensor[0],
		   store ? &l->address[s->output][core] : &p->tile_address);
	lower_view(&nest.view[1], &p->tile, &p->tile_address);
	lower_view(&nest.view[2], &p->tile, &p->tile_address);
	nest.view[2].operand = (uint16_t)(SPYRE_VIEW_RING | s->core[peer]);
	TRY(lower_dims(l, &nest, tensor, 3, out->stick, s->el, skip, 0));
	return nest_emit(l, &nest);
}

/* result = own tile * scale; if only lane 0 holds a result, it fills the whole stick */
static spyre_status store_scaled(struct lower *l, const struct partial *p, uint32_t core,
				 uint32_t scale_bits)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];
	const struct ir_tensor *tensor[2] = { out, &p->tile };
	struct nest nest = { .in = { .opcode = SPYRE_OP_REDUCE, .func = SPYRE_FUNC_MEAN,
				     .num_views = 2, .imm = { scale_bits },
				     .lanes = p->lanes > 1 ? p->lanes : out->lanes } };
	uint32_t skip = 0;

	if (p->tile.format == SPYRE_FMT_IEEE_INT32) {
		nest.in.func = SPYRE_FUNC_INT_SUM;
		nest.in.imm[0] = 0;
	}

	for (uint32_t d = 0; d < s->num_dims; d++)
		skip |= lower_varies(out, d) ? 0 : 1u << d;
	lower_view(&nest.view[0], out, &l->address[s->output][core]);
	lower_view(&nest.view[1], &p->tile, &p->tile_address);
	if (p->lanes == 1) {
		nest.in.flags = SPYRE_INSTR_REDUCE_LANES;
		nest.in.valid = 1;
	} else {
		nest.dim[nest.num_dims++] = (struct nest_dim){ .count = 1, .reduce = true };
	}
	TRY(lower_dims(l, &nest, tensor, 2, out->stick, s->el, skip, 0));
	return nest_emit(l, &nest);
}

spyre_status partial_combine(struct lower *l, const struct partial *p, enum spyre_func func,
			     uint32_t scale_bits)
{
	const struct ir_sdsc *s = l->sdsc;
	spyre_status status = encoder_phase(l->encoder);
	/* If the result is neither scaled nor spread, the last sum stores it. */
	bool scaled = func == SPYRE_FUNC_MEAN || func == SPYRE_FUNC_QUANTSCALE;
	bool apart = scaled || p->lanes;

	for (uint32_t core = 0; core < s->num_cores && !status; core++) {
		uint32_t left = 0;

		if (p->leader[core] != core || !partial_core(p, s, core))
			continue;
		status = encoder_stream(l->encoder, s->core[core]);
		for (uint32_t c = core + 1; c < s->num_cores; c++)
			left += p->leader[c] == core;
		for (uint32_t c = core + 1; c < s->num_cores && !status; c++) {
			if (p->leader[c] != core)
				continue;
			left--;
			status = combine_one(l, p, core, c, !left && !apart, func);
		}
		if (!status && apart)
			status = store_scaled(l, p, core, scaled ? scale_bits : FP32_ONE);
	}
	return status;
}
