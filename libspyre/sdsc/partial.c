// SPDX-License-Identifier: MIT
/* Partial results of a tile that several cores share: see lower.h. */
#include <inttypes.h>
#include <string.h>

#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/lower.h"

/* An fp32 tile with the output's lanes, dense in LX. */
static void make_tile(const struct ir_sdsc *s, struct ir_tensor *tile)
{
	uint64_t step;

	*tile = s->tensor[s->output];
	tile->format = SPYRE_FMT_IEEE_FP32;
	tile->word = 4;
	tile->lx = true;
	memset(tile->gap, 0, sizeof(tile->gap));
	memset(tile->stride, 0, sizeof(tile->stride));
	step = (uint64_t)tile->word * tile->lanes;
	for (uint32_t k = 0; k < tile->num_order; k++) {
		uint32_t d = tile->order[k];

		if (!lower_varies(tile, d))
			continue;
		tile->stride[d] = step;
		step *= (uint64_t)(d == tile->stick ?
				   (s->el[d] + tile->lanes - 1) / tile->lanes : s->el[d]);
	}
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
	const struct ir_sdsc *s = l->sdsc;
	uint64_t bytes;

	memset(p, 0, sizeof(*p));
	p->absent = absent;
	p->active = partial_leaders(l, absent, p->leader);
	if (!p->active)
		return SPYRE_SUCCESS;
	make_tile(s, &p->tile);
	bytes = lower_box_bytes(s, &p->tile);
	if (bytes > SPYRE_LX_BYTES || l->scratch > SPYRE_LX_BYTES - bytes)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: partial results need %" PRIu64 " bytes of LX from byte %u on, a core has %u; split the reduced dimension less or the others more",
				   s->file, bytes, l->scratch, SPYRE_LX_BYTES);
	p->tile_address.operand = SPYRE_VIEW_LX;
	p->tile_address.offset = l->scratch;
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

/* result = own tile <func> the tile of core @peer; @peer < 0: result = own tile * scale. */
static spyre_status combine_one(struct lower *l, const struct partial *p, uint32_t core,
				int peer, bool store, enum spyre_func func, uint32_t scale_bits)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];
	const struct ir_tensor *tensor[3] = { store ? out : &p->tile, &p->tile, &p->tile };
	struct nest nest = { .in = { .opcode = SPYRE_OP_SFU, .lanes = out->lanes } };
	uint32_t skip = 0, reduce = 0;
	spyre_status status;

	for (uint32_t d = 0; d < s->num_dims; d++)
		skip |= lower_varies(out, d) ? 0 : 1u << d;
	lower_view(&nest.view[0], tensor[0],
		   store ? &l->address[s->output][core] : &p->tile_address);
	lower_view(&nest.view[1], &p->tile, &p->tile_address);
	nest.in.num_views = 2;
	if (peer < 0) {
		nest.in.opcode = SPYRE_OP_REDUCE;
		nest.in.func = SPYRE_FUNC_MEAN;
		nest.in.imm[0] = scale_bits;
		nest.dim[nest.num_dims++] = (struct nest_dim){ .count = 1, .reduce = true };
	} else {
		nest.in.func = func == SPYRE_FUNC_AMAX || func == SPYRE_FUNC_QUANTSCALE ?
			       SPYRE_FUNC_MAX :
			       func == SPYRE_FUNC_AMIN ? SPYRE_FUNC_MIN : SPYRE_FUNC_ADD;
		lower_view(&nest.view[2], &p->tile, &p->tile_address);
		nest.view[2].operand = (uint16_t)(SPYRE_VIEW_RING | s->core[peer]);
		nest.in.num_views = 3;
	}
	status = lower_dims(l, &nest, tensor, nest.in.num_views, out->stick, s->el, skip, reduce);
	return status == SPYRE_SUCCESS ? nest_emit(l, &nest) : status;
}

spyre_status partial_combine(struct lower *l, const struct partial *p, enum spyre_func func,
			     uint32_t scale_bits)
{
	const struct ir_sdsc *s = l->sdsc;
	bool scaled = func == SPYRE_FUNC_MEAN || func == SPYRE_FUNC_QUANTSCALE;
	spyre_status status = encoder_phase(l->encoder);

	for (uint32_t core = 0; core < s->num_cores && status == SPYRE_SUCCESS; core++) {
		uint32_t left = 0;

		if (p->leader[core] != core || !partial_core(p, s, core))
			continue;
		status = encoder_stream(l->encoder, s->core[core]);
		for (uint32_t c = core + 1; c < s->num_cores; c++)
			left += p->leader[c] == core;
		for (uint32_t c = core + 1; c < s->num_cores && status == SPYRE_SUCCESS; c++) {
			if (p->leader[c] != core)
				continue;
			left--;
			status = combine_one(l, p, core, (int)c,
					     !left && !scaled, func, 0);
		}
		if (status == SPYRE_SUCCESS && scaled)
			status = combine_one(l, p, core, -1, true, func, scale_bits);
	}
	return status;
}
