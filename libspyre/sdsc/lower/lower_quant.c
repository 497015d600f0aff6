// SPDX-License-Identifier: MIT
/*
 * Quantisation: x [times a constant] [divided by a scale], rounded to the
 * nearest number of a narrow format and saturated, in the operation's pack.
 */
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/pack.h"
#include "libspyre/sdsc/lower/rules.h"

#define BIT(format) (1u << SPYRE_FMT_##format)
#define FLOATS (BIT(SEN169_FP16) | BIT(IEEE_FP16) | BIT(BFLOAT16) | BIT(IEEE_FP32))
#define FLOAT8 (BIT(SEN143_FP8) | BIT(SEN152_FP8))

static const struct rule {
	const char *op;
	uint32_t to;
	struct pack_rule pack;		/* or plain sticks */
} rules[] = {
	{ "qfp8ch", FLOAT8, { { 128 }, { 0 } } },
	{ "qfp8mb", FLOAT8, { { 8, 2, 8 }, { 0, 1, 0 } } },
	{ "qfp8wt", FLOAT8, { { 2, 64 }, { 0, 1 } } },
	{ "csqint8ch", BIT(SENINT8), { { 128 }, { 0 } } },
	{ "csqint8mb", BIT(SENINT8), { { 8, 2, 8 }, { 0, 1, 0 } } },
	{ "csqint8wt", BIT(SENINT8), { { 2, 64 }, { 0, 1 } } },
	{ "csqint4", BIT(SENINT4), { { 16, 2, 8 }, { 0, 1, 0 } } },
	{ "csqint4wt", BIT(SENINT4), { { 4, 64 }, { 0, 1 } } },
};

struct quant {
	uint32_t x, scale;		/* tensors */
	bool has_scale, has_factor;
	uint32_t factor;		/* fp32 bits */
	uint32_t core;
};

static spyre_status check_formats(struct lower *l, const struct quant *q)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];
	const struct rule *rule = rules;
	uint32_t index[2] = { q->x, q->scale };
	char text[256];

	while (strcmp(rule->op, s->op))
		rule++;
	for (uint32_t i = 0; i < 1 + q->has_scale; i++)
		if (!(FLOATS >> s->tensor[index[i]].format & 1))
			return lower_unsupported(l, "%s is %s, it has to be a float of 16 or 32 bits",
						 i ? "the scale" : "the input",
						 spyre_format_name((spyre_format)
								   s->tensor[index[i]].format));
	if (!(rule->to >> out->format & 1))
		return lower_unsupported(l, "no rule to %s",
					 spyre_format_name((spyre_format)out->format));
	if (out->num_parts != 1 && !pack_matches(out, &rule->pack))
		return lower_unsupported(l, "no rule to %s in sticks of %s",
					 spyre_format_name((spyre_format)out->format),
					 pack_text(s, out, text, sizeof(text)));
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (s->el[d] > 1 && !lower_varies(out, d))
			return lower_unsupported(l, "the output does not vary along %s", s->dim[d]);
	return SPYRE_SUCCESS;
}

static spyre_status find_operands(struct lower *l, struct quant *q)
{
	const struct ir_sdsc *s = l->sdsc;
	static const char *const factors[] = { "mulConst", "scaling_factor" };
	uint32_t inputs = s->num_inputs;

	if (inputs > 1 && s->input[inputs - 1] == s->output)
		inputs--;
	if (inputs > 2)
		return lower_unsupported(l, "%u inputs; there is a rule for a tensor and a scale",
					 inputs);
	q->x = s->input[0];
	q->has_scale = inputs == 2;
	if (q->has_scale)
		q->scale = s->input[1];
	for (uint32_t i = 0; i < s->num_constants; i++) {
		const char *name = s->constant[i].name;

		if (!strcmp(name, "samv-maskvalue"))
			continue;
		if (strcmp(name, factors[0]) && strcmp(name, factors[1]))
			return lower_unsupported(l, "constant %s; there is a rule for mulConst or scaling_factor",
						 name);
		if (q->has_factor)
			return lower_unsupported(l, "both mulConst and scaling_factor");
		q->has_factor = true;
		TRY(lower_constant(l, name, &q->factor));
	}
	return check_formats(l, q);
}

/* Emits one core's @box of results at @to; @tile is LX for x times the constant. */
static spyre_status quantise(struct lower *l, void *arg, uint32_t core,
			     const struct stage_operand *to, const struct box *box, uint64_t tile)
{
	const struct quant *q = arg;
	struct stage stage = { .in = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_IDENTITY,
				       .num_views = 2 } };
	struct ir_tensor scaled;
	uint32_t lane_dim = to->tensor->part[0].dim;
	spyre_status status = SPYRE_SUCCESS;

	stage.operand[0] = *to;
	stage.operand[1] = tensor_operand(l, q->x, core);
	if (q->has_factor) {
		stage.in.opcode = SPYRE_OP_REDUCE;
		stage.in.func = SPYRE_FUNC_MEAN;
		stage.in.imm[0] = q->factor;
	}
	if (q->has_factor && q->has_scale) {
		tile_make(l->sdsc, box, to->tensor, SPYRE_FMT_IEEE_FP32, lane_dim, 32, &scaled);
		stage.operand[0] = tile_operand(l, &scaled, tile);
		status = stage_emit(l, &stage, box);
		stage.operand[1] = stage.operand[0];
		stage.operand[0] = *to;
	}
	if (q->has_scale) {
		stage.in = (struct spyre_instr){ .opcode = SPYRE_OP_SFU, .num_views = 3,
						 .func = SPYRE_FUNC_REALDIV };
		stage.operand[2] = tensor_operand(l, q->scale, core);
	}
	return status ? status : stage_emit(l, &stage, box);
}

static uint64_t need(struct lower *l, void *arg, const struct box *box)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct quant *q = arg;
	struct ir_tensor tile;

	if (!q->has_factor || !q->has_scale)
		return 0;
	return tile_make(s, box, &s->tensor[s->output], SPYRE_FMT_IEEE_FP32,
			 s->tensor[s->output].part[0].dim, 32, &tile);
}

static spyre_status emit_block(struct lower *l, void *arg, const struct box *box)
{
	struct quant *q = arg;
	struct stage_operand to = tensor_operand(l, l->sdsc->output, q->core);

	return quantise(l, q, q->core, &to, box, 0);
}

spyre_status lower_quant(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct quant q = { 0 };
	struct blocks blocks = { .need = need, .emit = emit_block, .arg = &q };
	spyre_status status = find_operands(l, &q);
	struct box box;

	if (!status && pack_interleaves(&s->tensor[s->output]))
		return pack_interleave(l, quantise, &q, q.has_factor && q.has_scale ? 8 : 0);
	box_share(s, &box);
	for (uint32_t d = 0; d < s->num_dims; d++)
		blocks.align[d] = SPYRE_STICK_BYTES;
	for (q.core = 0; q.core < s->num_cores && !status; q.core++) {
		status = encoder_stream(l->encoder, s->core[q.core]);
		if (!status)
			status = box_blocks(l, &blocks, &box);
	}
	return status;
}
