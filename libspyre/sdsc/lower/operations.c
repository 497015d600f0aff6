// SPDX-License-Identifier: MIT
/* The operations that the card has a rule for, by opFuncName. */
#include "libspyre/sdsc/lower/operations.h"

#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower_apart.h"
#include "libspyre/sdsc/lower/lower_indirect.h"
#include "libspyre/sdsc/lower/rules.h"
#include "libspyre/sdsc/lower/window.h"

static const struct {
	const char *name;
	lower_rule_fn *lower;
	enum spyre_func func;
	uint32_t inputs;
} operations[] = {
	{ "relufwd", lower_pointwise, SPYRE_FUNC_RELU, 1 },
	{ "neg", lower_pointwise, SPYRE_FUNC_NEG, 1 },
	{ "abs", lower_pointwise, SPYRE_FUNC_ABS, 1 },
	{ "exp", lower_pointwise, SPYRE_FUNC_EXP, 1 },
	{ "fastexp", lower_pointwise, SPYRE_FUNC_EXP, 1 },
	{ "log", lower_pointwise, SPYRE_FUNC_LOG, 1 },
	{ "sqrt", lower_pointwise, SPYRE_FUNC_SQRT, 1 },
	{ "rsqrt", lower_pointwise, SPYRE_FUNC_RSQRT, 1 },
	{ "reciprocal", lower_pointwise, SPYRE_FUNC_RECIPROCAL, 1 },
	{ "tanh", lower_pointwise, SPYRE_FUNC_TANH, 1 },
	{ "sigmoid", lower_pointwise, SPYRE_FUNC_SIGMOID, 1 },
	{ "fastsigmoid", lower_pointwise, SPYRE_FUNC_SIGMOID, 1 },
	{ "silu", lower_pointwise, SPYRE_FUNC_SILU, 1 },
	{ "gelufwd", lower_pointwise, SPYRE_FUNC_GELU, 1 },
	{ "mish", lower_pointwise, SPYRE_FUNC_MISH, 1 },
	{ "softplus", lower_pointwise, SPYRE_FUNC_SOFTPLUS, 1 },
	{ "sin", lower_pointwise, SPYRE_FUNC_SIN, 1 },
	{ "cos", lower_pointwise, SPYRE_FUNC_COS, 1 },
	{ "erf", lower_pointwise, SPYRE_FUNC_ERF, 1 },
	{ "floor", lower_pointwise, SPYRE_FUNC_FLOOR, 1 },
	{ "clip", lower_pointwise, SPYRE_FUNC_CLIP, 1 },
	{ "relu6fwd", lower_pointwise, SPYRE_FUNC_CLIP, 1 },
	{ "layernormscale", lower_pointwise, SPYRE_FUNC_LAYERNORMSCALE, 1 },
	{ "add", lower_pointwise, SPYRE_FUNC_ADD, 2 },
	{ "sub", lower_pointwise, SPYRE_FUNC_SUB, 2 },
	{ "revsub", lower_pointwise, SPYRE_FUNC_REVSUB, 2 },
	{ "realdiv", lower_pointwise, SPYRE_FUNC_REALDIV, 2 },
	{ "mul", lower_pointwise, SPYRE_FUNC_MUL, 2 },
	{ "maximum", lower_pointwise, SPYRE_FUNC_MAX, 2 },
	{ "minimum", lower_pointwise, SPYRE_FUNC_MIN, 2 },
	{ "equal", lower_pointwise, SPYRE_FUNC_EQ, 2 },
	{ "notequal", lower_pointwise, SPYRE_FUNC_NE, 2 },
	{ "greaterthan", lower_pointwise, SPYRE_FUNC_GT, 2 },
	{ "lesserthan", lower_pointwise, SPYRE_FUNC_LT, 2 },
	{ "greaterequal", lower_pointwise, SPYRE_FUNC_GE, 2 },
	{ "lesserequal", lower_pointwise, SPYRE_FUNC_LE, 2 },
	{ "pow", lower_pointwise, SPYRE_FUNC_POW, 2 },
	{ "fmod", lower_pointwise, SPYRE_FUNC_FMOD, 2 },
	{ "remainder", lower_pointwise, SPYRE_FUNC_REMAINDER, 2 },
	{ "where3", lower_pointwise, SPYRE_FUNC_WHERE, 3 },
	{ "layernormnorm", lower_pointwise, SPYRE_FUNC_LAYERNORMNORM, 5 },
	{ "sum", lower_reduce, SPYRE_FUNC_SUM, 1 },
	{ "mean", lower_reduce, SPYRE_FUNC_MEAN, 1 },
	{ "max", lower_reduce, SPYRE_FUNC_AMAX, 1 },
	{ "min", lower_reduce, SPYRE_FUNC_AMIN, 1 },
	{ "absmax", lower_reduce, SPYRE_FUNC_ABSMAX, 1 },
	{ "exx2", lower_reduce, SPYRE_FUNC_EXX2, 1 },
	{ "sumnonstick", lower_reduce, SPYRE_FUNC_SUM, 1 },
	{ "meannonstick", lower_reduce, SPYRE_FUNC_MEAN, 1 },
	{ "maxnonstick", lower_reduce, SPYRE_FUNC_AMAX, 1 },
	{ "minnonstick", lower_reduce, SPYRE_FUNC_AMIN, 1 },
	{ "absmaxnonstick", lower_reduce, SPYRE_FUNC_ABSMAX, 1 },
	{ "prodnonstick", lower_prod, SPYRE_FUNC_MUL, 1 },
	/* convolutions, windows, indices */
	{ "biasadd", lower_pointwise, SPYRE_FUNC_ADD, 2 },
	{ "batchnormfwd", lower_pointwise, SPYRE_FUNC_MULADD, 3 },
	{ "fnms", lower_pointwise, SPYRE_FUNC_FNMS, 3 },
	{ "leakyrelufwd", lower_pointwise, SPYRE_FUNC_LEAKYRELU, 1 },
	{ "exx2_zeromean", lower_reduce, SPYRE_FUNC_EXX2_ZEROMEAN, 1 },
	{ "conv2d", lower_conv, SPYRE_FUNC_NONE, 2 },
	{ "conv2dfp8", lower_conv, SPYRE_FUNC_NONE, 2 },
	{ "conv2dint8", lower_conv, SPYRE_FUNC_NONE, 2 },
	{ "depthwiseconv2dnative", lower_window, SPYRE_FUNC_MULSUM, 2 },
	{ "avgpoolfwd", lower_window, SPYRE_FUNC_MEAN, 1 },
	{ "avgpoolnmapfwd", lower_window, SPYRE_FUNC_MULSUM, 2 },
	{ "maxpoolfwd", lower_window, SPYRE_FUNC_AMAX, 1 },
	{ "topkvalue", lower_topk, SPYRE_FUNC_TOPK_VALUE, 1 },
	{ "topkindex", lower_topk, SPYRE_FUNC_TOPK_INDEX, 1 },
	{ "maskbyindex", lower_mask_by_index, SPYRE_FUNC_MASKBYINDEX, 2 },
	/* products, formats, packs */
	{ "batchmatmul", lower_matmul, SPYRE_FUNC_NONE, 2 },
	{ "batchmatmulfp8", lower_matmul, SPYRE_FUNC_NONE, 2 },
	{ "batchmatmulint8", lower_matmul, SPYRE_FUNC_NONE, 2 },
	{ "batchmatmulint4", lower_matmul, SPYRE_FUNC_NONE, 2 },
	{ "ReStickifyOpHBM", lower_restickify, SPYRE_FUNC_NONE, 1 },
	{ "identity", lower_convert, SPYRE_FUNC_IDENTITY, 1 },
	{ "dl16tofp32", lower_convert, SPYRE_FUNC_IDENTITY, 1 },
	{ "fp32todl16", lower_convert, SPYRE_FUNC_IDENTITY, 1 },
	{ "fp8todl16", lower_convert, SPYRE_FUNC_IDENTITY, 1 },
	{ "int32tofp32", lower_convert, SPYRE_FUNC_IDENTITY, 1 },
	{ "fp32toint32", lower_convert, SPYRE_FUNC_TRUNC, 1 },
	{ "shuffle", lower_shuffle, SPYRE_FUNC_NONE, 1 },
	{ "qfp8ch", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "qfp8mb", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "qfp8wt", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "csqint8ch", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "csqint8mb", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "csqint8wt", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "csqint4", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "csqint4wt", lower_quant, SPYRE_FUNC_NONE, 1 },
	{ "quantscalepertoken", lower_reduce, SPYRE_FUNC_QUANTSCALE, 1 },
	{ "quantscalepertokenfp8", lower_reduce, SPYRE_FUNC_QUANTSCALE, 1 },
	/* 32-bit integers */
	{ "intneg", lower_pointwise, SPYRE_FUNC_INT_NEG, 1 },
	{ "intabs", lower_pointwise, SPYRE_FUNC_INT_ABS, 1 },
	{ "intnot", lower_pointwise, SPYRE_FUNC_INT_NOT, 1 },
	{ "intclip", lower_pointwise, SPYRE_FUNC_INT_CLIP, 1 },
	{ "intadd", lower_pointwise, SPYRE_FUNC_INT_ADD, 2 },
	{ "intsub", lower_pointwise, SPYRE_FUNC_INT_SUB, 2 },
	{ "intmul", lower_pointwise, SPYRE_FUNC_INT_MUL, 2 },
	{ "intmaximum", lower_pointwise, SPYRE_FUNC_INT_MAX, 2 },
	{ "intminimum", lower_pointwise, SPYRE_FUNC_INT_MIN, 2 },
	{ "intequal", lower_pointwise, SPYRE_FUNC_INT_EQ, 2 },
	{ "intnotequal", lower_pointwise, SPYRE_FUNC_INT_NE, 2 },
	{ "intgreaterthan", lower_pointwise, SPYRE_FUNC_INT_GT, 2 },
	{ "intlesserthan", lower_pointwise, SPYRE_FUNC_INT_LT, 2 },
	{ "intgreaterequal", lower_pointwise, SPYRE_FUNC_INT_GE, 2 },
	{ "intlesserequal", lower_pointwise, SPYRE_FUNC_INT_LE, 2 },
	{ "intand", lower_pointwise, SPYRE_FUNC_INT_AND, 2 },
	{ "intor", lower_pointwise, SPYRE_FUNC_INT_OR, 2 },
	{ "intxor", lower_pointwise, SPYRE_FUNC_INT_XOR, 2 },
	{ "intshiftleft", lower_pointwise, SPYRE_FUNC_INT_SHL, 2 },
	{ "intshiftright", lower_pointwise, SPYRE_FUNC_INT_SHR, 2 },
	{ "intfloordiv", lower_pointwise, SPYRE_FUNC_INT_FLOORDIV, 2 },
	{ "intremainder", lower_pointwise, SPYRE_FUNC_INT_REMAINDER, 2 },
	{ "inttruncdiv", lower_pointwise, SPYRE_FUNC_INT_TRUNCDIV, 2 },
	{ "intfmod", lower_pointwise, SPYRE_FUNC_INT_FMOD, 2 },
	{ "intwhere3", lower_pointwise, SPYRE_FUNC_INT_WHERE, 3 },
	{ "intsum", lower_reduce, SPYRE_FUNC_INT_SUM, 1 },
	{ "intmax", lower_reduce, SPYRE_FUNC_INT_AMAX, 1 },
	{ "intmin", lower_reduce, SPYRE_FUNC_INT_AMIN, 1 },
	{ "intsumnonstick", lower_reduce, SPYRE_FUNC_INT_SUM, 1 },
	{ "intmaxnonstick", lower_reduce, SPYRE_FUNC_INT_AMAX, 1 },
	{ "intminnonstick", lower_reduce, SPYRE_FUNC_INT_AMIN, 1 },
};

lower_rule_fn *lower_rule(const char *op)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].name, op))
			return operations[i].lower;
	return NULL;
}

bool lower_takes_share(lower_rule_fn *rule)
{
	return rule == lower_pointwise || rule == lower_reduce || rule == lower_matmul ||
	       rule == lower_convert || rule == lower_restickify;
}

/* True if an operation supports packs: sticks with elements of several dims. */
static bool takes_packs(size_t operation)
{
	return operations[operation].lower == lower_matmul ||
	       operations[operation].lower == lower_convert ||
	       operations[operation].lower == lower_conv ||
	       operations[operation].lower == lower_quant;
}

spyre_status operation_emit(struct lower *l, lower_rule_fn *rule, enum spyre_func func)
{
	if (l->sdsc->indirect)
		return lower_indirect(l, rule, func);
	TRY(encoder_phase(l->encoder));
	return rule(l, func);
}

spyre_status lower_sdsc(struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	bool clash = l->pass != LOWER_ALL;
	size_t i;

	l->encoder->file = s->file;
	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].name, s->op))
			break;
	if (i == sizeof(operations) / sizeof(operations[0]))
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: opFuncName \"%s\": the card has no rule for this operation (docs/sdsc.md lists those it has)",
				   s->file, s->op);
	if (s->num_inputs < operations[i].inputs)
		return spyre_error(SPYRE_ERROR_PARSE, "%s: %s takes %u inputs, inputLabeledDs has %u",
				   s->file, s->op, operations[i].inputs, s->num_inputs);
	for (uint32_t t = 0; t < s->num_tensors; t++) {
		if (s->tensor[t].num_parts > 1 && !takes_packs(i))
			return lower_unsupported(l, "Tensor%u is %s with elements of several dimensions in a stick",
						 t, spyre_format_name(
							 (spyre_format)s->tensor[t].format));
		TRY(lower_resolve(l, t));
	}
	if (s->has_window)
		TRY(window_check_starts(l));
	/* lower_indirect() and lower_shuffle() have rules of their own for what overlaps. */
	if (!clash && !s->tensor[s->output].indexed && operations[i].lower != lower_shuffle)
		TRY(lower_clashes(l, operations[i].lower, &clash));
	if (clash && l->pass == LOWER_ALL && operations[i].lower == lower_reduce &&
	    lower_reduce_stores_last(l))
		clash = false;
	return (clash ? lower_apart : operation_emit)(l, operations[i].lower, operations[i].func);
}
