// SPDX-License-Identifier: MIT
/*
 * ReStickifyOpHBM, and conversions to sticks along another dimension. Whole
 * tiles of one format go directly; the rest is padded to tiles in LX.
 */
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower_convert.h"
#include "libspyre/sdsc/lower/rules.h"
#include "libspyre/sdsc/lower/stage.h"

#define MAX_LOOPS 4u
#define MAX_UNROLL 4096u

struct loop {
	uint64_t count;
	uint64_t stride[2];		/* of output and input */
};

struct restick {
	uint32_t lane, row;		/* stick dims of input and output */
	uint32_t edge;			/* of a tile, elements */
	enum spyre_func func;		/* conversion to another format */
	uint32_t core;
	struct ir_tensor in;		/* in the output's format, if its bits are moved */
	struct ir_tensor tile[2];	/* input and output of the transposition, in LX */
	struct box padded;
};

struct tiles {
	struct spyre_instr in;
	struct spyre_view view[2];
	uint32_t num_loops;
	struct loop loop[IR_MAX_DIMS];
	uint32_t budget;
};

/* Loops beyond the fourth or longer than the counters become one instruction per iteration. */
static spyre_status write_tiles(struct lower *l, struct tiles *t, uint32_t next)
{
	struct tiles part = *t;
	spyre_status status = SPYRE_SUCCESS;
	uint32_t left = t->num_loops - next;

	if (left <= MAX_LOOPS) {
		for (uint32_t i = 0; i < left; i++) {
			if (t->loop[next + i].count > SPYRE_MAX_COUNT)
				return lower_unsupported(l, "%llu tiles along a dimension",
							 (unsigned long long)
							 t->loop[next + i].count);
			part.in.count[i] = (uint32_t)t->loop[next + i].count;
			for (uint32_t v = 0; v < 2; v++)
				part.view[v].stride[i] = t->loop[next + i].stride[v];
		}
		if (!t->budget--)
			return lower_unsupported(l, "the tiles need more than %u instructions",
						 MAX_UNROLL);
		return encoder_instr(l->encoder, &part.in, part.view);
	}
	for (uint64_t i = 0; i < t->loop[next].count && !status; i++) {
		status = write_tiles(l, &part, next + 1);
		for (uint32_t v = 0; v < 2; v++)
			part.view[v].offset += t->loop[next].stride[v];
	}
	t->budget = part.budget;
	return status;
}

/* Transposes @box, whole tiles, from @from to @to: out[j][i] = in[i][j]. */
static spyre_status transpose(struct lower *l, const struct restick *r,
			      const struct stage_operand *to, const struct stage_operand *from,
			      const struct box *box)
{
	const struct stage_operand *o[2] = { to, from };
	struct tiles t = { .in = { .opcode = SPYRE_OP_RESTICK, .num_dims = 6, .num_views = 2,
				   .lanes = r->edge,
				   .count = { 1, 1, 1, 1, r->edge, r->edge } },
			   .budget = MAX_UNROLL };

	for (uint32_t v = 0; v < 2; v++) {
		lower_view(&t.view[v], o[v]->tensor, &o[v]->at);
		for (uint32_t d = 0; d < l->sdsc->num_dims && !o[v]->tile; d++)
			t.view[v].offset += ir_bits(o[v]->tensor, d, (uint64_t)box->start[d]) / 8;
	}
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++) {
		uint64_t unit = d == r->lane || d == r->row ? r->edge : 1;
		struct loop loop = { .count = (uint64_t)box->len[d] / unit };

		for (uint32_t v = 0; v < 2; v++)
			loop.stride[v] = ir_bits(o[v]->tensor, d, unit) / 8;
		if (loop.count > 1)
			t.loop[t.num_loops++] = loop;
	}
	t.view[1].stride[4] = ir_bits(from->tensor, r->row, 1) / 8;
	t.view[0].stride[5] = ir_bits(to->tensor, r->lane, 1) / 8;
	return write_tiles(l, &t, 0);
}

static bool is_direct(const struct lower *l, const struct restick *r, const struct box *box)
{
	const struct ir_tensor *out = &l->sdsc->tensor[l->sdsc->output];

	return r->in.format == out->format && lower_varies(&r->in, r->row) &&
	       box->len[r->lane] % r->edge == 0 && box->len[r->row] % r->edge == 0;
}

static int64_t round_up(int64_t n, int64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Makes both tiles for a box, the second after the first; returns their bytes. */
static uint64_t make_tiles(const struct lower *l, struct restick *r, const struct box *box,
			   uint64_t *second)
{
	const struct ir_tensor *out = &l->sdsc->tensor[l->sdsc->output];

	r->padded = *box;
	r->padded.len[r->lane] = round_up(box->len[r->lane], r->edge);
	r->padded.len[r->row] = round_up(box->len[r->row], r->edge);
	*second = tile_make(l->sdsc, &r->padded, out, out->format, r->lane, r->edge, &r->tile[0]);
	return *second + tile_make(l->sdsc, &r->padded, out, out->format, r->row, r->edge,
				   &r->tile[1]);
}

static uint64_t need(struct lower *l, void *arg, const struct box *box)
{
	uint64_t second;

	return is_direct(l, arg, box) ? 0 : make_tiles(l, arg, box, &second);
}

static spyre_status copy(struct lower *l, enum spyre_func func, const struct stage_operand *to,
			 const struct stage_operand *from, const struct box *box)
{
	struct stage stage = { .in = { .opcode = SPYRE_OP_MOVE, .num_views = 2 },
			       .operand = { *to, *from } };

	if (to->tensor->format != from->tensor->format) {
		stage.in.opcode = SPYRE_OP_SFU;
		stage.in.func = (uint16_t)func;
	}
	return stage_emit(l, &stage, box);
}

static spyre_status emit_block(struct lower *l, void *arg, const struct box *box)
{
	struct restick *r = arg;
	struct stage_operand out = tensor_operand(l, l->sdsc->output, r->core);
	struct stage_operand in = tensor_operand(l, l->sdsc->input[0], r->core);
	struct stage_operand first, last;
	uint64_t second;

	in.tensor = &r->in;
	if (is_direct(l, r, box))
		return transpose(l, r, &out, &in, box);
	make_tiles(l, r, box, &second);
	first = tile_operand(l, &r->tile[0], 0);
	last = tile_operand(l, &r->tile[1], second);
	TRY(copy(l, r->func, &first, &in, box));
	TRY(transpose(l, r, &last, &first, &r->padded));
	return copy(l, r->func, &out, &last, box);
}

/* Emits whole tiles first, then the rest of either dim. */
static spyre_status emit_core(struct lower *l, const struct blocks *blocks, const struct box *box,
			      const struct restick *r)
{
	const uint32_t dims[2] = { r->lane, r->row };
	spyre_status status;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t d = dims[i];
		int64_t rest = box->len[d] % r->edge;
		struct box part = *box;

		if (!rest || rest == box->len[d])
			continue;
		part.len[d] -= rest;
		status = emit_core(l, blocks, &part, r);
		part.start[d] += part.len[d];
		part.len[d] = rest;
		return status ? status : emit_core(l, blocks, &part, r);
	}
	return box_blocks(l, blocks, box);
}

spyre_status lower_restickify(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output], *in = &s->tensor[s->input[0]];
	struct restick r = { .lane = in->stick, .row = out->stick, .edge = out->lanes,
			     .func = func ? func : SPYRE_FUNC_IDENTITY, .in = *in };
	struct blocks blocks = { .need = need, .emit = emit_block, .arg = &r };
	spyre_status status = convert_check(l, in, out);
	struct box box;

	if (status)
		return status;
	if (r.lane == r.row || !lower_varies(in, r.lane) || !lower_varies(in, r.row))
		return lower_convert(l, r.func);
	if (out->word < 1 || out->word > 4)
		return lower_unsupported(l, "no rule for %s; elements take 1, 2 or 4 bytes",
					 spyre_format_name((spyre_format)out->format));
	if (convert_is_raw(l, in, out))
		r.in.format = out->format;
	box_share(s, &box);
	for (uint32_t d = 0; d < s->num_dims; d++)
		blocks.align[d] = d == r.lane || d == r.row ? 128 : 1;
	for (r.core = 0; r.core < s->num_cores && !status; r.core++) {
		status = encoder_stream(l->encoder, s->core[r.core]);
		if (!status)
			status = emit_core(l, &blocks, &box, &r);
	}
	return status;
}
