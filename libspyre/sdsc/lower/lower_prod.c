// SPDX-License-Identifier: MIT
/*
 * Products over dims other than the stick: the card has no reduction that multiplies, so
 * each core multiplies the points of its share, one SFU instruction per point, in an fp32
 * tile in LX. The last product is rounded to the output's format.
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/box.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/partial.h"
#include "libspyre/sdsc/lower/rules.h"

#define MAX_POINTS 4096	/* of a core: each is an instruction */

struct product {
	const struct ir_tensor *out, *in;
	uint32_t out_index, in_index;
	uint32_t dims;			/* bit per reduced dim */
	int64_t points;			/* of a core's share, along the reduced dims */
	struct partial partial;		/* its tile serves cores that share no output as well */
};

/* Adds the bytes of point @number of the reduced dims to an address. */
static struct address point_address(const struct lower *l, const struct product *p,
				    uint32_t core, int64_t number)
{
	struct address at = l->address[p->in_index][core];

	for (uint32_t d = l->sdsc->num_dims; d-- > 0;) {
		if (!(p->dims >> d & 1))
			continue;
		at.offset += box_bytes(p->in, d, number % l->sdsc->el[d]);
		number /= l->sdsc->el[d];
	}
	return at;
}

/* target = @left * point @number, or the point alone if there is no @left. */
static spyre_status multiply(struct lower *l, const struct product *p, uint32_t core,
			     const struct ir_tensor *target, const struct address *to,
			     const struct ir_tensor *left, const struct address *from,
			     int64_t number)
{
	const struct address point = point_address(l, p, core, number);
	const struct ir_tensor *tensor[3] = { target, left ? left : p->in, p->in };
	uint32_t views = left ? 3 : 2;
	struct nest nest = { .in = { .opcode = SPYRE_OP_SFU, .num_views = (uint8_t)views,
				     .func = left ? SPYRE_FUNC_MUL : SPYRE_FUNC_IDENTITY } };

	nest.in.lanes = p->in->lanes < p->out->lanes ? p->in->lanes : p->out->lanes;
	lower_view(&nest.view[0], target, to);
	if (left)
		lower_view(&nest.view[1], left, from);
	lower_view(&nest.view[views - 1], p->in, &point);
	TRY(lower_dims(l, &nest, tensor, views, p->out->stick, l->sdsc->el, p->dims, 0));
	return nest_emit(l, &nest);
}

static spyre_status emit_core(struct lower *l, const struct product *p, uint32_t core)
{
	const struct address *out = &l->address[p->out_index][core];
	const struct address *tile = &p->partial.tile_address;
	bool part = partial_core(&p->partial, l->sdsc, core);
	int64_t next = 0;

	TRY(encoder_stream(l->encoder, l->sdsc->core[core]));
	while (next < p->points) {
		bool store = next == p->points - 1 && !part;

		TRY(multiply(l, p, core, store ? p->out : &p->partial.tile, store ? out : tile,
			     next ? &p->partial.tile : NULL, tile, next));
		next++;
	}
	return SPYRE_SUCCESS;
}

/* Makes the tile; partial_plan() has made it if cores share an output. */
static spyre_status make_tile(struct lower *l, struct product *p)
{
	struct partial *partial = &p->partial;
	uint64_t bytes;

	TRY(partial_plan_lanes(l, 0, p->in->lanes, partial));
	if (partial->active)
		return SPYRE_SUCCESS;
	bytes = partial_tile(l->sdsc, p->in->lanes > p->out->lanes ? p->in->lanes : p->out->lanes,
			     l->sdsc->el, &partial->tile);
	if (bytes > SPYRE_LX_BYTES || l->scratch > SPYRE_LX_BYTES - bytes)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: a product needs %" PRIu64 " bytes of LX from byte %u on, a core has %u; divide the work over more cores",
				   l->sdsc->file, bytes, l->scratch, SPYRE_LX_BYTES);
	partial->tile_address = (struct address){ .operand = SPYRE_VIEW_LX, .offset = l->scratch };
	return SPYRE_SUCCESS;
}

static spyre_status check(struct lower *l, struct product *p)
{
	const struct ir_sdsc *s = l->sdsc;

	if (p->in->stick != p->out->stick || !lower_varies(p->in, p->in->stick) ||
	    !lower_varies(p->out, p->out->stick))
		return lower_unsupported(l, "a product over the stick dimension %s, or into sticks along another; restickify the operand",
					 s->dim[p->in->stick]);
	TRY(lower_unmasked(l, p->dims));
	p->points = 1;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (!(p->dims >> d & 1))
			continue;
		if (s->el[d] > MAX_POINTS / p->points)
			return lower_unsupported(l, "a product of more than %d elements per core; divide the work over more cores",
						 MAX_POINTS);
		p->points *= s->el[d];
	}
	return SPYRE_SUCCESS;
}

spyre_status lower_prod(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct product p = { .out_index = s->output, .in_index = s->input[0] };

	p.out = &s->tensor[p.out_index];
	p.in = &s->tensor[p.in_index];
	for (uint32_t d = 0; d < s->num_dims; d++)
		p.dims |= lower_varies(p.out, d) ? 0 : 1u << d;
	TRY(check(l, &p));
	TRY(make_tile(l, &p));
	for (uint32_t core = 0; core < s->num_cores; core++)
		TRY(emit_core(l, &p, core));
	return p.partial.active ? partial_combine(l, &p.partial, func, 0) : SPYRE_SUCCESS;
}
