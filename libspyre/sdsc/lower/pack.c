// SPDX-License-Identifier: MIT
/*
 * Packs: see pack.h.
 *
 * Interleaving: row r of a group of p has the signed elements s(r), and the word
 * is s(p-1) * m^(p-1) + sum of u(r) * m^r, m = 256 or 16, where u = s, or s + m
 * if s < 0. All steps are exact in fp32, and the word has the elements' bits.
 */
#include "libspyre/sdsc/lower/pack.h"

#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"

#define WORDS 64u		/* of a stick */

bool pack_matches(const struct ir_tensor *t, const struct pack_rule *rule)
{
	uint32_t n = 0;

	while (n < PACK_MAX_PARTS && rule->size[n])
		n++;
	if (n != t->num_parts)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++)
			if (t->part[i].size % 256 != rule->size[i] ||
			    (rule->dim[i] == rule->dim[k]) != (t->part[i].dim == t->part[k].dim))
				return false;
	return true;
}

const char *pack_text(const struct ir_sdsc *s, const struct ir_tensor *t, char *text, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < t->num_parts && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s %u", i ? ", " : "[",
					 s->dim[t->part[i].dim], t->part[i].size);
	if (used < size)
		snprintf(text + used, size - used, "]");
	return text;
}

bool pack_interleaves(const struct ir_tensor *t)
{
	return t->num_parts == 2 && t->part[1].size == WORDS &&
	       t->part[0].size * spyre_fmt_bits(t->format) == 16;
}

struct interleave {
	pack_source source;
	void *arg;
	uint32_t tile_bytes;
	uint32_t core;
	uint32_t p, low, n;	/* rows of a word, their dim, the columns' dim */
};

/* LX from the scratch on: powers of m, rows, words, sums, then memory of the source. */
struct layout {
	struct ir_tensor power, rows, words;
	uint64_t at_rows, at_words, at_sums, at_source, end;
};

/* Splits @dim: its last digit, of @p values, becomes dim @low. */
static bool split_dim(struct ir_tensor *t, uint32_t dim, uint32_t low, uint32_t p)
{
	uint32_t i = 0;

	t->scale[low] = t->scale[dim];
	if (!lower_varies(t, dim))
		return true;
	t->order[t->num_order++] = low;
	while (i < t->num_parts && t->part[i].dim != dim)
		i++;
	if (i == t->num_parts) {
		t->stride[low] = t->stride[dim];
		return !__builtin_mul_overflow(t->stride[dim], p, &t->stride[dim]);
	}
	if (t->part[i].size == p) {
		t->part[i].dim = low;
		return true;
	}
	if (t->part[i].size < p || t->num_parts == IR_MAX_PARTS)
		return false;
	memmove(&t->part[i + 1], &t->part[i], (t->num_parts - i) * sizeof(t->part[0]));
	t->num_parts++;
	t->part[i] = (struct ir_part){ low, p };
	t->part[i + 1].size /= p;
	return true;
}

/* Copies the SDSC with the dim of the rows split in two. */
static spyre_status split_rows(struct lower *l, const struct interleave *x, struct ir_sdsc *s)
{
	uint32_t dim = s->tensor[s->output].part[0].dim;

	if (s->num_dims == IR_MAX_DIMS)
		return lower_unsupported(l, "a pack in a space of %u dimensions, at most %u",
					 s->num_dims, IR_MAX_DIMS - 1);
	if (s->el[dim] % x->p)
		return lower_unsupported(l, "a core's share of %s is %lld, no multiple of the pack's %u",
					 s->dim[dim], (long long)s->el[dim], x->p);
	snprintf(s->dim[x->low], sizeof(s->dim[0]), "(rows of a word)");
	s->num_dims++;
	s->size[x->low] = s->el[x->low] = x->p;
	s->slices[x->low] = 1;
	s->size[dim] /= x->p;
	s->el[dim] /= x->p;
	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (!split_dim(&s->tensor[i], dim, x->low, x->p))
			return lower_unsupported(l, "Tensor%u has sticks along %s in parts of less than %u",
						 i, s->dim[dim], x->p);
	return SPYRE_SUCCESS;
}

static void plan(const struct lower *l, const struct interleave *x, const struct box *box,
		 struct layout *m)
{
	const struct ir_tensor *out = &l->sdsc->tensor[l->sdsc->output];
	struct ir_tensor like = *out;
	uint64_t bytes, elements;

	memset(&m->power, 0, sizeof(m->power));
	m->power.format = SPYRE_FMT_IEEE_FP32;
	m->power.num_parts = 1;
	m->power.part[0] = (struct ir_part){ x->n, 32 };
	m->at_rows = (uint64_t)x->p * SPYRE_STICK_BYTES;
	bytes = tile_make(l->sdsc, box, out, out->format, x->n, WORDS, &m->rows);
	m->at_words = m->at_rows + bytes;
	like.scale[x->low] = 0;
	for (uint32_t k = 0; k < like.num_order; k++)
		if (like.order[k] == x->low)
			like.order[k] = like.order[--like.num_order];
	bytes = tile_make(l->sdsc, box, &like, SPYRE_FMT_SENINT16, x->n, WORDS, &m->words);
	m->at_sums = m->at_words + bytes;
	m->at_source = m->at_sums + bytes;
	elements = bytes / 2 * x->p;
	m->end = m->at_source + elements * x->tile_bytes + SPYRE_STICK_BYTES;
}

static uint64_t need(struct lower *l, void *arg, const struct box *box)
{
	struct layout m;

	plan(l, arg, box, &m);
	return m.end;
}

static spyre_status step(struct lower *l, enum spyre_func func, const struct box *box,
			 struct stage_operand to, struct stage_operand a, struct stage_operand b,
			 const struct stage_operand *c)
{
	struct stage stage = { .in = { .opcode = SPYRE_OP_SFU, .func = (uint16_t)func,
				       .num_views = c ? 4 : 3 },
			       .operand = { to, a, b } };

	if (c)
		stage.operand[3] = *c;
	return stage_emit(l, &stage, box);
}

/* Joins the rows to words of the output. */
static spyre_status join(struct lower *l, const struct interleave *x, const struct layout *m,
			 const struct box *all)
{
	struct stage_operand out = tensor_operand(l, l->sdsc->output, x->core);
	struct stage_operand word = tile_operand(l, &m->words, m->at_words);
	struct stage_operand sum = tile_operand(l, &m->words, m->at_sums);
	struct ir_tensor signs = m->rows, words = *out.tensor;
	struct box box = *all;
	spyre_status status = SPYRE_SUCCESS;

	signs.format = x->p == 2 ? SPYRE_FMT_SENINT8 : SPYRE_FMT_SENINT4;
	signs.scale[x->low] = 0;
	words.format = SPYRE_FMT_SENINT16;
	words.num_parts = 1;
	words.part[0] = (struct ir_part){ x->n, WORDS };
	words.scale[x->low] = 0;
	out.tensor = &words;
	box.start[x->low] = 0;
	box.len[x->low] = 1;
	for (uint32_t r = 0; r < x->p && !status; r++) {
		struct stage_operand row = tile_operand(l, &signs, m->at_rows +
							r * m->rows.stride[x->low]);
		struct stage_operand zero = tile_operand(l, &m->power, 0);
		struct stage_operand one = tile_operand(l, &m->power, SPYRE_STICK_BYTES);
		struct stage_operand power = tile_operand(l, &m->power, r * SPYRE_STICK_BYTES);

		if (r == x->p - 1)
			return step(l, SPYRE_FUNC_MULADD, &box, out, row, power, &sum);
		status = step(l, SPYRE_FUNC_LT, &box, word, row, zero, NULL);
		if (!status)
			status = step(l, SPYRE_FUNC_MULADD, &box, r ? word : sum, word, one, &row);
		if (!status && r)
			status = step(l, SPYRE_FUNC_MULADD, &box, sum, word, power, &sum);
	}
	return status;
}

static spyre_status emit_block(struct lower *l, void *arg, const struct box *box)
{
	struct interleave *x = arg;
	struct stage_operand rows;
	struct layout m;

	plan(l, x, box, &m);
	rows = tile_operand(l, &m.rows, m.at_rows);
	TRY(x->source(l, x->arg, x->core, &rows, box, m.at_source));
	return join(l, x, &m, box);
}

/* Makes sticks of 0, m, m^2, ... by CLIP with equal bounds, which ignores its input. */
static spyre_status make_powers(struct lower *l, const struct interleave *x)
{
	static const uint32_t bits[2][4] = {
		{ 0, 0x43800000 },				/* 256 */
		{ 0, 0x41800000, 0x43800000, 0x45800000 },	/* 16, 256, 4096 */
	};
	spyre_status status = SPYRE_SUCCESS;

	for (uint32_t r = 0; r < x->p && !status; r++) {
		struct spyre_instr in = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_CLIP,
					  .num_views = 2, .lanes = 32 };
		struct spyre_view view[2] = {
			{ .operand = SPYRE_VIEW_LX, .format = SPYRE_FMT_IEEE_FP32,
			  .offset = l->scratch + r * SPYRE_STICK_BYTES },
			/* CLIP would keep a NaN; bytes read as integers are never one. */
			{ .operand = SPYRE_VIEW_LX, .format = SPYRE_FMT_SENINT8,
			  .offset = l->scratch + x->p * SPYRE_STICK_BYTES },
		};

		in.imm[0] = in.imm[1] = bits[x->p == 4][r];
		status = encoder_instr(l->encoder, &in, view);
	}
	return status;
}

spyre_status pack_interleave(struct lower *l, pack_source source, void *arg, uint32_t tile_bytes)
{
	const struct ir_sdsc *whole = l->sdsc;
	const struct ir_tensor *out = &whole->tensor[whole->output];
	struct interleave x = { .source = source, .arg = arg, .tile_bytes = tile_bytes,
				.p = out->part[0].size, .low = whole->num_dims,
				.n = out->part[1].dim };
	struct blocks blocks = { .need = need, .emit = emit_block, .arg = &x };
	struct ir_sdsc s = *whole;
	struct box box;
	spyre_status status = split_rows(l, &x, &s);

	l->sdsc = &s;
	box_share(&s, &box);
	for (uint32_t d = 0; d < s.num_dims && d != x.low; d++)
		for (uint32_t i = 0; i < s.num_tensors; i++)
			if ((int64_t)ir_unit(&s.tensor[i], d) > blocks.align[d])
				blocks.align[d] = (int64_t)ir_unit(&s.tensor[i], d);
	for (x.core = 0; x.core < s.num_cores && !status; x.core++) {
		status = encoder_stream(l->encoder, s.core[x.core]);
		if (!status)
			status = make_powers(l, &x);
		if (!status)
			status = box_blocks(l, &blocks, &box);
	}
	l->sdsc = whole;
	return status;
}
