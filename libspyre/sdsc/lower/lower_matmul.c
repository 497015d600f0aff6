// SPDX-License-Identifier: MIT
/*
 * batchmatmul in all formats. A has K in its lanes, B and C have N. All other dims
 * are rows, if B does not vary along them, or batches.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower_matmul.h"
#include "libspyre/sdsc/lower/matmul_pt.h"
#include "libspyre/sdsc/lower/matmul_split.h"
#include "libspyre/sdsc/lower/pack.h"
#include "libspyre/sdsc/lower/partial.h"
#include "libspyre/sdsc/lower/rules.h"

#define C MATMUL_C
#define A MATMUL_A
#define B MATMUL_B

#define BIT(format) (1u << SPYRE_FMT_##format)
#define FLOATS (BIT(SEN169_FP16) | BIT(IEEE_FP16) | BIT(BFLOAT16) | BIT(IEEE_FP32))
#define FLOAT8 (BIT(SEN143_FP8) | BIT(SEN152_FP8))

static const struct family {
	const char *op;
	uint32_t from, to;
	struct pack_rule a, b;
} families[] = {
	{ "batchmatmul", FLOATS, FLOATS, { { 0 }, { 0 } }, { { 0 }, { 0 } } },
	{ "batchmatmulfp8", FLOAT8, FLOATS, { { 128 }, { 0 } }, { { 2, 64 }, { 0, 1 } } },
	{ "batchmatmulint8", BIT(SENINT8), FLOATS | BIT(IEEE_INT32),
	  { { 128 }, { 0 } }, { { 2, 64 }, { 0, 1 } } },
	{ "batchmatmulint4", BIT(SENINT4), FLOATS | BIT(IEEE_INT32),
	  { { 16, 2, 8 }, { 0, 1, 0 } }, { { 4, 64 }, { 0, 1 } } },
};

/* Finds K, the dim that the output lacks. Dims of size 1 count only if no longer one is missing. */
static spyre_status find_k(struct lower *l, struct matmul *m)
{
	const struct ir_sdsc *s = l->sdsc;
	uint32_t found = 0, longer = 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		longer += !lower_varies(m->tensor[C], d) && s->size[d] > 1;
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (!lower_varies(m->tensor[C], d) && (s->size[d] > 1 || !longer)) {
			m->k = d;
			found++;
		}
	if (found != 1)
		return lower_unsupported(l, "%u dimensions are not in the output, there must be one to sum over",
					 found);
	return SPYRE_SUCCESS;
}

static spyre_status check_stick(struct lower *l, const struct matmul *m, uint32_t role,
				const struct pack_rule *rule)
{
	const struct ir_tensor *t = m->tensor[role];
	char text[256];

	if (rule->size[0] ? pack_matches(t, rule) : t->num_parts == 1)
		return SPYRE_SUCCESS;
	return lower_unsupported(l, "Tensor%u is %s in sticks of %s, for which the PT has no rule (docs/sdsc.md lists the supported ones)",
				 m->index[role], spyre_format_name((spyre_format)t->format),
				 pack_text(l->sdsc, t, text, sizeof(text)));
}

static spyre_status check_formats(struct lower *l, struct matmul *m)
{
	const struct family *f = families;
	spyre_status status;

	while (strcmp(f->op, l->sdsc->op))
		f++;
	for (uint32_t i = 0; i < 3; i++) {
		enum spyre_fmt format = m->tensor[i]->format;

		if (!((i == C ? f->to : f->from) >> format & 1))
			return lower_unsupported(l, "Tensor%u is %s, for which the PT has no rule as %s of this operation",
						 m->index[i],
						 spyre_format_name((spyre_format)format),
						 i == C ? "result" : "input");
	}
	status = check_stick(l, m, A, &f->a);
	if (!status)
		status = check_stick(l, m, B, &f->b);
	if (!status)
		status = check_stick(l, m, C, &families[0].b);
	m->sum = FLOATS >> m->tensor[A]->format & 1 || FLOAT8 >> m->tensor[A]->format & 1 ?
		 SPYRE_FMT_IEEE_FP32 : SPYRE_FMT_IEEE_INT32;
	m->paired = m->tensor[A]->num_parts == 3;
	m->rows = m->paired ? m->tensor[A]->part[1].dim : 0;
	return status;
}

/* Assigns the inputs to A and B by their sticks. */
static spyre_status find_inputs(struct lower *l, struct matmul *m)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *a, *b;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t role = s->tensor[s->input[i]].stick == m->k ? A : B;

		m->index[role] = s->input[i];
		m->tensor[role] = &s->tensor[s->input[i]];
	}
	a = m->tensor[A];
	b = m->tensor[B];
	if (!a || !b || b->stick != m->n || !lower_varies(a, m->k) || !lower_varies(b, m->k) ||
	    !lower_varies(b, m->n) || lower_varies(a, m->n))
		return lower_unsupported(l, "one input must have its sticks along %s, the other and the output along %s",
					 s->dim[m->k], s->dim[m->n]);
	for (uint32_t i = 2; i < s->num_inputs; i++)
		if (s->input[i] != s->output)
			return lower_unsupported(l, "%u inputs; a product has two", s->num_inputs);
	return SPYRE_SUCCESS;
}

static spyre_status check_sums(struct lower *l, const struct matmul *m)
{
	const struct ir_sdsc *s = l->sdsc;

	if (s->slices[m->k] > 1 && m->tensor[C]->lx)
		return lower_unsupported(l, "%s is split over %d cores and the output is in LX, which is private to a core",
					 s->dim[m->k], (int)s->slices[m->k]);
	return lower_unmasked(l, 1u << m->k);
}

static spyre_status check_shares(struct lower *l, const struct matmul *m)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t depth = spyre_pt_depth(m->tensor[A]->format), columns = 64;

	for (uint32_t i = 0; i < 3; i += 2)
		if ((int64_t)ir_unit(m->tensor[i], m->n) < columns)
			columns = (int64_t)ir_unit(m->tensor[i], m->n);
	if (s->el[m->k] % depth || s->el[m->n] % columns)
		return lower_unsupported(l, "a core's share is %s %" PRId64 " and %s %" PRId64 "; they must be multiples of %" PRId64 " and %" PRId64,
					 s->dim[m->k], s->el[m->k], s->dim[m->n], s->el[m->n],
					 depth, columns);
	if (m->paired && (m->rows == m->n || lower_varies(m->tensor[B], m->rows) ||
			  !lower_varies(m->tensor[A], m->rows)))
		return lower_unsupported(l, "%s pairs of %s, along which the second input varies or the first does not",
					 spyre_format_name((spyre_format)m->tensor[A]->format),
					 s->dim[m->rows]);
	return SPYRE_SUCCESS;
}

spyre_status matmul_roles(struct lower *l, struct matmul *m)
{
	const struct ir_sdsc *s = l->sdsc;

	memset(m, 0, sizeof(*m));
	m->index[C] = s->output;
	m->tensor[C] = &s->tensor[s->output];
	m->n = m->tensor[C]->stick;
	TRY(find_k(l, m));
	TRY(find_inputs(l, m));
	TRY(check_formats(l, m));
	TRY(check_shares(l, m));
	return check_sums(l, m);
}

uint64_t matmul_tile(const struct lower *l, const struct matmul *m, const struct box *box,
		     struct ir_tensor *tile)
{
	uint32_t lanes = (uint32_t)ir_unit(m->tensor[B], m->n);
	struct box even = *box;

	if (m->paired)
		even.len[m->rows] += even.len[m->rows] & 1;
	return tile_make(l->sdsc, &even, m->tensor[C], m->sum, m->n, lanes, tile);
}

spyre_status matmul_store(struct lower *l, const struct matmul *m, const struct box *box,
			  const struct stage_operand *tile)
{
	struct stage stage = { .in = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_IDENTITY,
				       .num_views = 2 } };

	stage.operand[0] = tensor_operand(l, m->index[C], m->core);
	stage.operand[1] = *tile;
	if (m->tensor[C]->format == m->sum) {
		stage.in.opcode = SPYRE_OP_MOVE;
		stage.in.func = SPYRE_FUNC_NONE;
	}
	return stage_emit(l, &stage, box);
}

/* True if the PT writes the result directly, without a tile of sums. */
static bool is_direct(const struct matmul *m, const struct box *box)
{
	if (m->paired && box->len[m->rows] % 2)
		return false;
	return m->tensor[C]->format == m->sum || box->len[m->k] <= matmul_max_k(m);
}

spyre_status matmul_alone(struct lower *l, const struct matmul *m, const struct box *box)
{
	struct stage_operand to = tensor_operand(l, m->index[C], m->core);
	struct ir_tensor tile;

	if (is_direct(m, box))
		return matmul_emit(l, m, box, &to, false);
	matmul_tile(l, m, box, &tile);
	to = tile_operand(l, &tile, 0);
	TRY(matmul_emit(l, m, box, &to, false));
	return matmul_store(l, m, box, &to);
}

static uint64_t need(struct lower *l, void *arg, const struct box *box)
{
	struct ir_tensor tile;

	return is_direct(arg, box) ? 0 : matmul_tile(l, arg, box, &tile);
}

static spyre_status emit_block(struct lower *l, void *arg, const struct box *box)
{
	return matmul_alone(l, arg, box);
}

spyre_status lower_matmul(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct matmul m;
	struct blocks blocks = { .need = need, .emit = emit_block, .arg = &m };
	spyre_status status = matmul_roles(l, &m);
	struct box box;

	if (status)
		return status;
	m.split = partial_leaders(l, 0, m.leader);
	if (m.split)
		return matmul_split(l, &m);
	box_share(s, &box);
	for (uint32_t d = 0; d < s->num_dims; d++)
		blocks.align[d] = d == m.k ? 0 : d == m.n ? 64 : m.paired && d == m.rows ? 2 : 1;
	for (m.core = 0; m.core < s->num_cores && !status; m.core++) {
		status = encoder_stream(l->encoder, s->core[m.core]);
		if (!status)
			status = box_blocks(l, &blocks, &box);
	}
	return status;
}
