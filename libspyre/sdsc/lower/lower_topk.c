// SPDX-License-Identifier: MIT
/*
 * topkvalue and topkindex. If the input's sticks are along the searched dimension
 * and the output's are along the ranks, an instruction finds a stick of ranks;
 * else it finds one rank, element by element.
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/rules.h"

#define MAX_RANKS 65536u		/* limit of a TOPK instruction */
#define MAX_PLACES (1u << 24)		/* elements searched by a TOPK instruction */
#define MAX_INSTRS 4096u		/* of one core */

struct topk {
	enum spyre_func func;
	const struct ir_tensor *tensor[2];	/* out, in */
	uint32_t index[2];
	uint32_t search;	/* dim */
	uint32_t rank;		/* dim of the output, or IR_NO_DIM */
	bool sticks;		/* a stick of ranks at once */
	bool smallest;
	uint64_t k;		/* ranks above it are 0 */
	uint64_t valid;		/* elements that are searched */
};

static spyre_status find_dims(struct lower *l, struct topk *t)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = t->tensor[0], *in = t->tensor[1];
	uint32_t searched = 0, ranks = 0;

	t->rank = IR_NO_DIM;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (s->size[d] > 1 && lower_varies(in, d) && !lower_varies(out, d)) {
			t->search = d;
			searched++;
		}
		if (s->size[d] > 1 && lower_varies(out, d) && !lower_varies(in, d)) {
			t->rank = d;
			ranks++;
		}
	}
	if (searched != 1 || ranks > 1)
		return lower_unsupported(l, "the input varies along %u dimensions that the output lacks, the output along %u that the input lacks; there must be one to search and at most one for the ranks",
					 searched, ranks);
	if (s->slices[t->search] > 1)
		return lower_unsupported(l, "%s is searched and divided over %" PRId64 " cores; divide another dimension",
					 s->dim[t->search], s->slices[t->search]);
	t->sticks = in->stick == t->search &&
		    out->stick == (t->rank == IR_NO_DIM ? t->search : t->rank);
	return SPYRE_SUCCESS;
}

/* True if a constant is at least 1; gives its integer part. */
static bool whole_number(uint32_t bits, uint64_t *out)
{
	uint32_t exponent = bits >> 23, mantissa = (bits & 0x7fffff) | 0x800000;

	if (exponent < 127 || exponent > 127 + 39)
		return false;
	exponent -= 127;
	*out = exponent > 23 ? (uint64_t)mantissa << (exponent - 23) : mantissa >> (23 - exponent);
	return true;
}

static spyre_status read_constants(struct lower *l, struct topk *t)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = t->tensor[0];
	spyre_status status = SPYRE_SUCCESS;
	uint32_t bits = 0;

	t->k = t->rank != IR_NO_DIM ? (uint64_t)s->size[t->rank] :
	       out->stick == t->search ? out->lanes : 1;
	if (lower_has_constant(l, "k")) {
		status = lower_constant(l, "k", &bits);
		if (!status && (!whole_number(bits, &t->k) || bits >> 31))
			status = lower_unsupported(l, "constant k is not 1 or more");
	}
	if (!status && t->rank == IR_NO_DIM &&
	    t->k > (out->stick == t->search ? out->lanes : 1))
		status = lower_unsupported(l, "k is %" PRIu64 ", the output has no dimension for so many ranks",
					   t->k);
	if (!status && t->k > MAX_RANKS)
		status = lower_unsupported(l, "%" PRIu64 " ranks, at most %u", t->k, MAX_RANKS);
	if (!status && lower_has_constant(l, "largest")) {
		status = lower_constant(l, "largest", &bits);
		t->smallest = !(bits << 1);
	}
	return status;
}

/* Applies coordinateMasking_, which may hide only the end of the searched dimension. */
static spyre_status apply_masks(struct lower *l, struct topk *t)
{
	const struct ir_sdsc *s = l->sdsc;

	t->valid = (uint64_t)s->size[t->search];
	for (uint32_t i = 0; i < s->num_masks; i++) {
		const struct ir_mask *m = &s->mask[i];

		if (!m->length)
			continue;
		if (m->dim != t->search || m->start + m->length < s->size[m->dim] || !m->start)
			return lower_unsupported(l, "coordinateMasking_ of %s hides %" PRId64 " elements from %" PRId64 " on; only the end of %s can be hidden",
						 s->dim[m->dim], m->length, m->start,
						 s->dim[t->search]);
		if ((uint64_t)m->start < t->valid)
			t->valid = (uint64_t)m->start;
	}
	if (t->valid > MAX_PLACES)
		return lower_unsupported(l, "%" PRIu64 " elements to search, at most %u", t->valid,
					 MAX_PLACES);
	return SPYRE_SUCCESS;
}

/* Checks that the format holds all indices exactly. */
static spyre_status check_index(struct lower *l, const struct topk *t)
{
	uint64_t most;

	if (t->func != SPYRE_FUNC_TOPK_INDEX)
		return SPYRE_SUCCESS;
	switch (t->tensor[0]->format) {
	case SPYRE_FMT_SEN169_FP16:
		most = 1024;
		break;
	case SPYRE_FMT_IEEE_FP16:
		most = 2048;
		break;
	case SPYRE_FMT_BFLOAT16:
		most = 256;
		break;
	case SPYRE_FMT_IEEE_FP32:
	case SPYRE_FMT_IEEE_INT32:
	case SPYRE_FMT_SENUINT32:
		most = 1 << 24;
		break;
	default:
		most = 0;
	}
	if (t->valid - 1 > most)
		return lower_unsupported(l, "indices up to %" PRIu64 " in %s, which holds them exactly up to %" PRIu64 "; use IEEE_INT32, SENUINT32 or IEEE_FP32 for more",
					 t->valid - 1,
					 spyre_format_name((spyre_format)t->tensor[0]->format),
					 most);
	return SPYRE_SUCCESS;
}

/* Bytes from a core's first rank to its rank @r. */
static uint64_t rank_bytes(const struct topk *t, uint64_t r)
{
	const struct ir_tensor *out = t->tensor[0];
	uint64_t stride = t->rank == IR_NO_DIM ? 0 : out->stride[t->rank];

	if (t->rank != IR_NO_DIM && out->stick != t->rank)
		return r * stride;
	return r / out->lanes * stride + r % out->lanes * out->word;
}

/* Sets ranks from k on to 0, as x < x, which is false also for NaN. */
static spyre_status emit_zeros(struct lower *l, struct nest *nest)
{
	uint32_t kept = 0;

	nest->in = (struct spyre_instr){ .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_LT,
					 .num_views = 3, .lanes = nest->in.lanes };
	for (uint32_t d = 0; d < nest->num_dims; d++) {
		if (nest->dim[d].reduce)
			continue;
		nest->dim[kept] = nest->dim[d];
		nest->dim[kept].stride[1] = nest->dim[kept].stride[2] = 0;
		kept++;
	}
	nest->num_dims = kept;
	nest->view[1].lanes = SPYRE_LANES_SPLAT;
	nest->view[2] = nest->view[1];
	return nest_emit(l, nest);
}

/* Emits a stick of ranks, from @rank on, at rank @r of the core's share of the output. */
static spyre_status emit_ranks(struct lower *l, const struct topk *t, uint64_t rank, uint64_t r,
			       const struct nest *model)
{
	uint64_t lanes = model->in.lanes;
	struct nest nest;

	nest_copy(&nest, model);
	nest.view[0].offset += rank_bytes(t, r);
	if (rank >= t->k)
		return emit_zeros(l, &nest);
	nest.in.imm[0] = (uint32_t)rank;
	nest.in.imm[1] = (uint32_t)(t->k - rank < lanes ? t->k - rank : lanes);
	return nest_emit(l, &nest);
}

static spyre_status emit_core(struct lower *l, const struct topk *t, uint32_t core)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = t->tensor[0], *in = t->tensor[1];
	struct nest nest = { .in = { .opcode = SPYRE_OP_TOPK, .func = (uint16_t)t->func,
				     .num_views = 2, .lanes = 1,
				     .flags = t->smallest ? SPYRE_INSTR_SMALLEST : 0 },
			     .ordered = true };
	uint64_t ranks = 1, first = 0;
	int64_t el[IR_MAX_DIMS];
	spyre_status status;

	memcpy(el, s->el, sizeof(el));
	el[t->search] = (int64_t)t->valid;
	if (in->stick == t->search) {
		el[t->search] = (int64_t)((t->valid + in->lanes - 1) / in->lanes * in->lanes);
		nest.in.valid = (uint64_t)el[t->search] == t->valid ? 0 : t->valid;
	}
	if (t->sticks)
		nest.in.lanes = in->lanes < out->lanes ? in->lanes : out->lanes;
	if (out->stick == t->search)
		ranks = out->lanes;
	if (t->rank != IR_NO_DIM) {
		ranks = (uint64_t)el[t->rank];
		first = (uint64_t)s->slice[core][t->rank] * ranks;
	}
	if (ranks / nest.in.lanes > MAX_INSTRS)
		return lower_unsupported(l, "%" PRIu64 " ranks per core, at most %u", ranks,
					 MAX_INSTRS * nest.in.lanes);
	lower_view(&nest.view[0], out, &l->address[t->index[0]][core]);
	lower_view(&nest.view[1], in, &l->address[t->index[1]][core]);
	status = lower_dims(l, &nest, t->tensor, 2, t->search, el,
			    t->rank == IR_NO_DIM ? 0 : 1u << t->rank, 1u << t->search);
	if (!status)
		status = encoder_stream(l->encoder, s->core[core]);
	for (uint64_t r = 0; r < ranks && !status; r += nest.in.lanes)
		status = emit_ranks(l, t, first + r, r, &nest);
	return status;
}

spyre_status lower_topk(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct topk t = { .func = func, .index = { s->output, s->input[0] } };
	spyre_status status;

	t.tensor[0] = &s->tensor[t.index[0]];
	t.tensor[1] = &s->tensor[t.index[1]];
	status = find_dims(l, &t);
	if (!status)
		status = read_constants(l, &t);
	if (!status)
		status = apply_masks(l, &t);
	if (!status)
		status = check_index(l, &t);
	for (uint32_t c = 0; c < s->num_cores && !status; c++)
		status = emit_core(l, &t, c);
	return status;
}
