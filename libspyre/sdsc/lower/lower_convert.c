// SPDX-License-Identifier: MIT
/*
 * Conversions to another format or pack. Elements that keep their format are moved
 * bit by bit, all others go through the SFU.
 */
#include <string.h>

#include "libspyre/sdsc/lower/lower_convert.h"
#include "libspyre/sdsc/lower/rules.h"
#include "libspyre/sdsc/lower/stage.h"

#define BIT(format) (1u << SPYRE_FMT_##format)
#define FLOAT16 (BIT(SEN169_FP16) | BIT(IEEE_FP16) | BIT(BFLOAT16))
#define FLOAT32 BIT(IEEE_FP32)
#define FLOAT8 (BIT(SEN143_FP8) | BIT(SEN152_FP8))
#define WORDS32 (BIT(IEEE_INT32) | BIT(SENUINT32))

static const struct {
	const char *op;
	uint32_t from, to;
} rules[] = {
	{ "identity", FLOAT16 | FLOAT32, FLOAT16 | FLOAT32 },
	{ "ReStickifyOpHBM", FLOAT16 | FLOAT32, FLOAT16 | FLOAT32 },
	{ "dl16tofp32", FLOAT16, FLOAT32 },
	{ "fp32todl16", FLOAT32, FLOAT16 },
	{ "fp8todl16", FLOAT8, FLOAT16 | FLOAT32 },
	{ "int32tofp32", WORDS32, FLOAT32 },
	{ "fp32toint32", FLOAT32, BIT(IEEE_INT32) },
};

static bool in_set(uint32_t set, const struct ir_tensor *t)
{
	return set >> t->format & 1;
}

bool convert_is_raw(const struct lower *l, const struct ir_tensor *in, const struct ir_tensor *out)
{
	if (strcmp(l->sdsc->op, "identity") && strcmp(l->sdsc->op, "ReStickifyOpHBM"))
		return false;
	return in->format == out->format || (in_set(WORDS32, in) && in_set(WORDS32, out));
}

static spyre_status check_formats(struct lower *l, const struct ir_tensor *in,
				  const struct ir_tensor *out)
{
	if (convert_is_raw(l, in, out))
		return SPYRE_SUCCESS;
	for (uint32_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (!strcmp(rules[i].op, l->sdsc->op) && in_set(rules[i].from, in) &&
		    in_set(rules[i].to, out))
			return SPYRE_SUCCESS;
	return lower_unsupported(l, "no rule from %s to %s",
				 spyre_format_name((spyre_format)in->format),
				 spyre_format_name((spyre_format)out->format));
}

spyre_status convert_check(struct lower *l, const struct ir_tensor *in,
			   const struct ir_tensor *out)
{
	const struct ir_sdsc *s = l->sdsc;
	spyre_status status = check_formats(l, in, out);

	for (uint32_t d = 0; d < s->num_dims && !status; d++)
		if (s->el[d] > 1 && !lower_varies(out, d))
			status = lower_unsupported(l, "the output does not vary along %s",
						   s->dim[d]);
	return status;
}

/* True if sticks are along different dims and the tiles can be transposed. */
static bool needs_transpose(const struct ir_tensor *in, const struct ir_tensor *out)
{
	return in->num_parts == 1 && out->num_parts == 1 && in->stick != out->stick &&
	       lower_varies(in, out->stick) && lower_varies(in, in->stick) && out->word &&
	       out->word <= 4;
}

/* Moves handle whole bytes and cannot splat within a stick; the SFU can, for fp32-exact formats. */
static bool by_sfu(const struct ir_tensor *in, const struct ir_tensor *out, bool raw)
{
	bool splat = !lower_varies(in, out->part[0].dim);

	return !raw || in->format == SPYRE_FMT_SENINT4 ||
	       (splat && in_set(FLOAT16 | FLOAT32 | BIT(SENINT8) | BIT(SENINT16), in));
}

spyre_status lower_convert(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output], *in = &s->tensor[s->input[0]];
	bool raw = convert_is_raw(l, in, out);
	struct ir_tensor as = *in;
	struct stage stage = { .in = { .opcode = SPYRE_OP_MOVE, .num_views = 2 } };
	spyre_status status = convert_check(l, in, out);
	struct box box;

	if (!status && needs_transpose(in, out))
		return lower_restickify(l, func);
	if (by_sfu(in, out, raw)) {
		stage.in.opcode = SPYRE_OP_SFU;
		stage.in.func = (uint16_t)func;
	} else {
		as.format = out->format;
	}
	box_share(s, &box);
	for (uint32_t c = 0; c < s->num_cores && !status; c++) {
		stage.operand[0] = tensor_operand(l, s->output, c);
		stage.operand[1] = tensor_operand(l, s->input[0], c);
		stage.operand[1].tensor = &as;
		status = encoder_stream(l->encoder, s->core[c]);
		if (!status)
			status = stage_emit(l, &stage, &box);
	}
	return status;
}
