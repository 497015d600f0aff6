// SPDX-License-Identifier: MIT
/* Reductions over stick and other dimensions, with masks and partial results. */
#include "libspyre/sdsc/lower.h"

#define FP32_ONE 0x3f800000u

static bool exx2(enum spyre_func func)
{
	return func == SPYRE_FUNC_EXX2 || func == SPYRE_FUNC_EXX2_ZEROMEAN;
}

struct reduction {
	const struct ir_tensor *out, *in;
	uint32_t out_index, in_index;
	uint32_t dims;		/* bit per reduced dim */
	bool lanes;		/* the stick dim is among them */
	uint32_t scale_bits;	/* of a mean or exx2, fp32 */
	/* Valid elements along each dim, per core index; the rest is masked. */
	int64_t valid[SPYRE_MAX_CORES][IR_MAX_DIMS];
	uint32_t absent;	/* cores whose whole share is masked */
};

/* A mask hides the end of a dim; @valid becomes what is left of a core's share. */
static spyre_status apply_mask(struct lower *l, struct reduction *r, const struct ir_mask *m)
{
	const struct ir_sdsc *s = l->sdsc;

	if (!m->length)
		return SPYRE_SUCCESS;
	if (!(r->dims >> m->dim & 1))
		return lower_unsupported(l, "coordinateMasking_ of %s, which is not reduced",
					 s->dim[m->dim]);
	if (m->start + m->length < s->size[m->dim])
		return lower_unsupported(l, "coordinateMasking_ of %s hides %lld elements from %lld on; only the end of a dimension can be hidden",
					 s->dim[m->dim], (long long)m->length,
					 (long long)m->start);
	for (uint32_t c = 0; c < s->num_cores; c++) {
		int64_t left = m->start - (int64_t)s->slice[c][m->dim] * s->el[m->dim];

		if (left < r->valid[c][m->dim])
			r->valid[c][m->dim] = left < 0 ? 0 : left;
		if (!r->valid[c][m->dim])
			r->absent |= 1u << c;
	}
	return SPYRE_SUCCESS;
}

static spyre_status check_shapes(struct lower *l, const struct reduction *r)
{
	const struct ir_sdsc *s = l->sdsc;

	if (r->out->stick != r->in->stick)
		return lower_unsupported(l, "input sticks along %s, output sticks along %s",
					 s->dim[r->in->stick], s->dim[r->out->stick]);
	if (r->out->lanes != r->in->lanes)
		return lower_unsupported(l, "sticks of %u elements in, of %u out", r->in->lanes,
					 r->out->lanes);
	if (!lower_varies(r->in, r->in->stick))
		return lower_unsupported(l, "the input does not vary along its stick dimension");
	return SPYRE_SUCCESS;
}

/* The valid count runs through the reduced dims, so only one of them may be cut. */
static spyre_status set_valid(struct lower *l, const struct reduction *r, struct nest *nest,
			      uint32_t core, int64_t *el)
{
	uint32_t stick = r->in->stick;
	uint64_t valid;

	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		el[d] = r->valid[core][d];
	if (!r->lanes || r->valid[core][stick] == l->sdsc->el[stick])
		return SPYRE_SUCCESS;
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		if ((r->dims >> d & 1) && d != stick && el[d] > 1)
			return lower_unsupported(l, "a masked stick reduction that also reduces %s",
						 l->sdsc->dim[d]);
	valid = (uint64_t)el[stick];
	el[stick] = (int64_t)((valid + r->in->lanes - 1) / r->in->lanes * r->in->lanes);
	nest->in.valid = valid == (uint64_t)el[stick] ? 0 : valid;
	return SPYRE_SUCCESS;
}

static spyre_status emit_core(struct lower *l, const struct reduction *r,
			      const struct partial *p, enum spyre_func func, uint32_t core)
{
	bool tile = partial_core(p, l->sdsc, core);
	const struct ir_tensor *tensor[2] = { tile ? &p->tile : r->out, r->in };
	struct nest nest = { .in = { .opcode = SPYRE_OP_REDUCE, .func = (uint16_t)func,
				     .num_views = 2, .lanes = r->in->lanes } };
	int64_t el[IR_MAX_DIMS];
	spyre_status status;

	if (r->lanes)
		nest.in.flags = SPYRE_INSTR_REDUCE_LANES;
	if (func == SPYRE_FUNC_MEAN && tile)
		nest.in.func = SPYRE_FUNC_SUM;
	else if (exx2(func) && tile)
		nest.in.imm[0] = FP32_ONE;	/* scaled once, when combined */
	else if (func == SPYRE_FUNC_MEAN || exx2(func))
		nest.in.imm[0] = r->scale_bits;
	status = set_valid(l, r, &nest, core, el);
	if (status == SPYRE_SUCCESS)
		status = encoder_stream(l->encoder, l->sdsc->core[core]);
	if (status == SPYRE_SUCCESS)
		status = lower_dims(l, &nest, tensor, 2, r->in->stick, el, 0, r->dims);
	if (status != SPYRE_SUCCESS)
		return status;
	lower_view(&nest.view[0], tensor[0],
		   tile ? &p->tile_address : &l->address[r->out_index][core]);
	lower_view(&nest.view[1], r->in, &l->address[r->in_index][core]);
	return nest_emit(l, &nest);
}

/* exx2 with useZeroMean takes the mean as 0, as exx2_zeromean does. */
static spyre_status set_zero_mean(struct lower *l, enum spyre_func *func)
{
	uint32_t bits = 0;
	spyre_status status;

	if (*func != SPYRE_FUNC_EXX2 || !lower_has_constant(l, "useZeroMean"))
		return SPYRE_SUCCESS;
	status = lower_constant(l, "useZeroMean", &bits);
	if (bits << 1)
		*func = SPYRE_FUNC_EXX2_ZEROMEAN;
	return status;
}

static spyre_status set_scale(struct lower *l, struct reduction *r, enum spyre_func func)
{
	if (func == SPYRE_FUNC_MEAN)
		return lower_constant(l, "scaling_factor", &r->scale_bits);
	if (!exx2(func))
		return SPYRE_SUCCESS;
	if (!r->lanes)
		return lower_unsupported(l, "the stick dimension %s is not reduced",
					 l->sdsc->dim[r->in->stick]);
	return lower_constant(l, "exx2scale", &r->scale_bits);
}

spyre_status lower_reduce(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct reduction r = { .out_index = s->output, .in_index = s->input[0] };
	struct partial partial;
	spyre_status status;

	r.out = &s->tensor[r.out_index];
	r.in = &s->tensor[r.in_index];
	for (uint32_t d = 0; d < s->num_dims; d++) {
		r.dims |= lower_varies(r.out, d) ? 0 : 1u << d;
		for (uint32_t c = 0; c < s->num_cores; c++)
			r.valid[c][d] = s->el[d];
	}
	r.lanes = r.dims >> r.in->stick & 1;
	status = check_shapes(l, &r);
	if (status == SPYRE_SUCCESS)
		status = set_zero_mean(l, &func);
	if (status == SPYRE_SUCCESS)
		status = set_scale(l, &r, func);
	for (uint32_t i = 0; i < s->num_masks && status == SPYRE_SUCCESS; i++)
		status = apply_mask(l, &r, &s->mask[i]);
	if (status == SPYRE_SUCCESS && r.absent == (uint32_t)((1ull << s->num_cores) - 1))
		status = lower_unsupported(l, "coordinateMasking_ hides everything");
	if (status == SPYRE_SUCCESS)
		status = partial_plan(l, r.absent, &partial);
	for (uint32_t c = 0; c < s->num_cores && status == SPYRE_SUCCESS; c++)
		if (!(r.absent >> c & 1))
			status = emit_core(l, &r, &partial, func, c);
	if (status != SPYRE_SUCCESS || !partial.active)
		return status;
	if (func == SPYRE_FUNC_ABSMAX)
		func = SPYRE_FUNC_AMAX;
	if (exx2(func))	/* sums in two lanes */
		func = SPYRE_FUNC_MEAN;
	return partial_combine(l, &partial, func, r.scale_bits);
}
