// SPDX-License-Identifier: MIT
/* Builder: the table of operations by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/integer.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/recipes.h"

#define UNARY(name, func, flags) { name, func, BUILD_POINTWISE, 1, 1, flags, NULL, { { 0 } } }
#define BINARY(name, func, flags) { name, func, BUILD_POINTWISE, 2, 2, flags, NULL, \
	  { { "other", NULL, NAN } } }
#define REDUCTION(name, func, flags) \
	{ name, func, BUILD_REDUCE, 1, 1, flags, build_reduce, \
	  { { "dim", NULL, -1 }, { "keepdim", NULL, 0 } } }
#define RECIPE(name, least, most, recipe, ...) \
	{ name, name, BUILD_RECIPE, least, most, 0, recipe, { __VA_ARGS__ } }

static const struct build_op operations[] = {
	{ "add", "add", BUILD_POINTWISE, 2, 2, BUILD_LX | BUILD_IN_PLACE, build_alpha,
	  { { "other", NULL, NAN }, { "alpha", NULL, 1 } } },
	{ "sub", "sub", BUILD_POINTWISE, 2, 2, BUILD_LX | BUILD_IN_PLACE, build_alpha,
	  { { "other", NULL, NAN }, { "alpha", NULL, 1 } } },
	BINARY("revsub", "revsub", 0),
	BINARY("mul", "mul", BUILD_LX),
	BINARY("div", "realdiv", 0),
	BINARY("maximum", "maximum", 0),
	BINARY("minimum", "minimum", 0),
	BINARY("fmod", "fmod", 0),
	BINARY("remainder", "remainder", 0),
	BINARY("eq", "equal", 0),
	BINARY("ne", "notequal", 0),
	BINARY("gt", "greaterthan", 0),
	BINARY("lt", "lesserthan", 0),
	BINARY("ge", "greaterequal", 0),
	BINARY("le", "lesserequal", 0),
	UNARY("relu", "relufwd", 0),
	UNARY("relu6", "relu6fwd", 0),
	UNARY("neg", "neg", 0),
	UNARY("abs", "abs", 0),
	UNARY("exp", "exp", BUILD_LX | BUILD_IN_PLACE),
	UNARY("fastexp", "fastexp", 0),
	UNARY("log", "log", 0),
	UNARY("sqrt", "sqrt", 0),
	UNARY("rsqrt", "rsqrt", BUILD_LX | BUILD_IN_PLACE),
	UNARY("reciprocal", "reciprocal", 0),
	UNARY("tanh", "tanh", 0),
	UNARY("sigmoid", "sigmoid", 0),
	UNARY("fastsigmoid", "fastsigmoid", 0),
	UNARY("silu", "silu", BUILD_LX),
	UNARY("gelu", "gelufwd", 0),
	UNARY("mish", "mish", 0),
	UNARY("floor", "floor", 0),
	UNARY("sin", "sin", 0),
	UNARY("cos", "cos", 0),
	UNARY("erf", "erf", 0),
	UNARY("identity", "identity", BUILD_LX),
	{ "clip", "clip", BUILD_POINTWISE, 1, 1, 0, NULL,
	  { { "min", "clipMin", -INFINITY }, { "max", "clipMax", INFINITY } } },
	{ "softplus", "softplus", BUILD_POINTWISE, 1, 1, 0, NULL,
	  { { "beta", "softplusBeta", 1 }, { "threshold", "softplusThresh", 20 } } },
	{ "clamp", "clip", BUILD_POINTWISE, 1, 1, 0, NULL,
	  { { "min", "clipMin", -INFINITY }, { "max", "clipMax", INFINITY } } },
	{ "leaky_relu", "leakyrelufwd", BUILD_POINTWISE, 1, 1, 0, NULL,
	  { { "negative_slope", "negativeSlope", 0.01 } } },
	{ "where", "where3", BUILD_POINTWISE, 1, 3, 0, build_where,
	  { { "input", NULL, NAN }, { "other", NULL, NAN } } },
	{ "bias_add", "biasadd", BUILD_POINTWISE, 2, 2, 0, NULL, { { 0 } } },
	{ "fnms", "fnms", BUILD_POINTWISE, 3, 3, 0, NULL, { { 0 } } },
	{ "batchnormfwd", "batchnormfwd", BUILD_POINTWISE, 3, 3, 0, NULL, { { 0 } } },
	{ "dl16tofp32", "dl16tofp32", BUILD_POINTWISE, 1, 1, BUILD_CONVERTS, build_cast,
	  { { 0 } } },
	{ "fp32todl16", "fp32todl16", BUILD_POINTWISE, 1, 1, BUILD_CONVERTS, build_cast,
	  { { 0 } } },
	{ "fp8todl16", "fp8todl16", BUILD_POINTWISE, 1, 1, BUILD_CONVERTS, build_cast, { { 0 } } },
	{ "int32tofp32", "int32tofp32", BUILD_POINTWISE, 1, 1, BUILD_CONVERTS, build_cast,
	  { { 0 } } },
	{ "fp32toint32", "fp32toint32", BUILD_POINTWISE, 1, 1, BUILD_CONVERTS, build_cast,
	  { { 0 } } },
	{ "qfp8ch", "qfp8ch", BUILD_POINTWISE, 1, 2, BUILD_CONVERTS, build_quantise, { { 0 } } },
	{ "csqint8ch", "csqint8ch", BUILD_POINTWISE, 1, 2, BUILD_CONVERTS, build_quantise,
	  { { 0 } } },
	REDUCTION("quant_scale_int8", "quantscalepertoken", 0),
	REDUCTION("quant_scale_fp8", "quantscalepertokenfp8", 0),
	{ "mask_by_index", "maskbyindex", BUILD_POINTWISE, 2, 2, BUILD_CONVERTS | BUILD_IN_PLACE,
	  NULL,
	  { { "value", "samv-maskvalue", -INFINITY }, { "rows", NULL, NAN },
	    { "width", NULL, 0 } } },
	{ "cast", "identity", BUILD_POINTWISE, 1, 1, BUILD_CONVERTS, build_cast,
	  { { "format", NULL, NAN } } },
	{ "layernormscale", "layernormscale", BUILD_POINTWISE, 1, 1, BUILD_SPLAT, NULL,
	  { { "eps", "eps", 1e-5 } } },
	{ "layernormnorm", "layernormnorm", BUILD_POINTWISE, 5, 5, 0, NULL, { { 0 } } },
	REDUCTION("sum", "sum", BUILD_LX),
	REDUCTION("mean", "mean", BUILD_LX),
	REDUCTION("amax", "max", BUILD_LX),
	REDUCTION("amin", "min", 0),
	REDUCTION("absmax", "absmax", 0),
	REDUCTION("exx2", "exx2", 0),
	REDUCTION("exx2_zeromean", "exx2_zeromean", 0),
	RECIPE("ceil", 1, 1, build_ceil, { 0 }),
	RECIPE("sign", 1, 1, build_sign, { 0 }),
	RECIPE("square", 1, 1, build_square, { 0 }),
	{ "pow", "pow", BUILD_POINTWISE, 1, 2, 0, build_pow, { { "exponent", NULL, NAN } } },
	RECIPE("logical_not", 1, 1, build_logical_not, { 0 }),
	RECIPE("logical_and", 2, 2, build_logical, { 0 }),
	RECIPE("logical_or", 2, 2, build_logical, { 0 }),
	RECIPE("logical_xor", 2, 2, build_logical, { 0 }),
	RECIPE("bitwise_and", 2, 2, build_logical, { 0 }),
	RECIPE("bitwise_or", 2, 2, build_logical, { 0 }),
	RECIPE("bitwise_xor", 2, 2, build_logical, { 0 }),
	RECIPE("bitwise_not", 1, 1, build_logical_not, { 0 }),
	RECIPE("trunc", 1, 1, build_trunc, { 0 }),
	RECIPE("round", 1, 1, build_round, { 0 }),
	RECIPE("gelu_tanh", 1, 1, build_gelu_tanh, { 0 }),
	RECIPE("batch_norm", 3, 5, build_batch_norm, { "eps", NULL, 1e-5 }),
	RECIPE("var", 1, 1, build_var, { "dim", NULL, -1 }, { "keepdim", NULL, 0 },
	       { "correction", NULL, 1 }),
	RECIPE("std", 1, 1, build_var, { "dim", NULL, -1 }, { "keepdim", NULL, 0 },
	       { "correction", NULL, 1 }),
	RECIPE("vector_norm", 1, 1, build_vector_norm, { "dim", NULL, -1 },
	       { "keepdim", NULL, 0 }, { "ord", NULL, 2 }),
	{ "topk", "topkvalue", BUILD_TOPK, 1, 1, 0, build_topk,
	  { { "k", NULL, NAN }, { "dim", NULL, -1 }, { "largest", NULL, 1 } } },
	{ "topk_indices", "topkindex", BUILD_TOPK, 1, 1, BUILD_CONVERTS, build_topk,
	  { { "k", NULL, NAN }, { "dim", NULL, -1 }, { "largest", NULL, 1 } } },
	RECIPE("argmax", 1, 1, build_argmax, { "dim", NULL, -1 }, { "keepdim", NULL, 0 }),
	RECIPE("argmin", 1, 1, build_argmax, { "dim", NULL, -1 }, { "keepdim", NULL, 0 }),
	{ "conv2d", "conv2d", BUILD_WINDOW, 2, 3, 0, build_conv2d,
	  { { "stride", NULL, 1 }, { "padding", NULL, 0 }, { "dilation", NULL, 1 } } },
	{ "depthwise_conv2d", "depthwiseconv2dnative", BUILD_WINDOW, 2, 3, 0, build_conv2d,
	  { { "stride", NULL, 1 }, { "padding", NULL, 0 }, { "dilation", NULL, 1 } } },
	{ "max_pool2d", "maxpoolfwd", BUILD_WINDOW, 1, 1, 0, build_pool2d,
	  { { "kernel_size", NULL, NAN }, { "stride", NULL, NAN }, { "padding", NULL, 0 },
	    { "dilation", NULL, 1 }, { "ceil_mode", NULL, 0 } } },
	{ "avg_pool2d", "avgpoolfwd", BUILD_WINDOW, 1, 1, 0, build_pool2d,
	  { { "kernel_size", NULL, NAN }, { "stride", NULL, NAN }, { "padding", NULL, 0 },
	    { "count_include_pad", NULL, 1 }, { "divisor_override", NULL, NAN },
	    { "ceil_mode", NULL, 0 } } },
	{ "avgpoolnmap", "avgpoolnmapfwd", BUILD_WINDOW, 2, 2, 0, build_pool2d,
	  { { "kernel_size", NULL, NAN }, { "stride", NULL, NAN }, { "padding", NULL, 0 },
	    { "ceil_mode", NULL, 0 } } },
	RECIPE("scaled_mm", 4, 5, build_scaled_mm, { 0 }),
	RECIPE("mm", 2, 2, build_mm, { 0 }),
	RECIPE("bmm", 2, 2, build_mm, { 0 }),
	{ "matmul", "batchmatmul", BUILD_MATMUL, 2, 2, 0, build_matmul,
	  { { "transpose_b", NULL, 0 } } },
	{ "wide_matmul", "batchmatmul", BUILD_MATMUL, 2, 2, BUILD_CONVERTS, build_matmul,
	  { { "transpose_b", NULL, 0 } } },
	{ "index_matmul", "batchmatmul", BUILD_MATMUL, 3, 3, 0, build_index_matmul,
	  { { "transpose_b", NULL, 0 } } },
	{ "restickify", "ReStickifyOpHBM", BUILD_RESTICK, 1, 1, 0, build_transpose,
	  { { "dim0", NULL, -1 }, { "dim1", NULL, -1 }, { "stick", NULL, NAN } } },
	RECIPE("transpose", 1, 1, build_transpose,
	       { "dim0", NULL, -2 }, { "dim1", NULL, -1 }, { "stick", NULL, NAN }),
	RECIPE("fill", 0, 1, build_fill, { "value", NULL, 0 }, { "format", NULL, NAN }),
	RECIPE("softmax", 1, 1, build_softmax, { "dim", NULL, -1 }),
	RECIPE("log_softmax", 1, 1, build_log_softmax, { "dim", NULL, -1 }),
	RECIPE("layer_norm", 1, 3, build_layer_norm, { "eps", NULL, 1e-5 }),
	RECIPE("rms_norm", 1, 2, build_rms_norm, { "eps", NULL, 1e-5 }),
	RECIPE("swiglu", 2, 2, build_swiglu, { 0 }),
	RECIPE("linear", 2, 3, build_linear, { 0 }),
	RECIPE("addmm", 3, 3, build_addmm, { 0 }),
	{ "index_select", "identity", BUILD_INDEX, 2, 2, BUILD_CONVERTS, build_index,
	  { { "dim", NULL, 0 }, { "wrap", NULL, 0 } } },
	{ "embedding", "identity", BUILD_INDEX, 2, 2, BUILD_CONVERTS, build_index,
	  { { "dim", NULL, 0 }, { "wrap", NULL, 0 } } },
	{ "gather", "identity", BUILD_INDEX, 2, 2, BUILD_CONVERTS, build_index,
	  { { "dim", NULL, -1 }, { "wrap", NULL, 0 } } },
	{ "index_put", "identity", BUILD_INDEX, 3, 3, BUILD_CONVERTS, build_index,
	  { { "dim", NULL, 0 }, { "wrap", NULL, 0 } } },
	{ "scatter", "identity", BUILD_INDEX, 3, 3, BUILD_CONVERTS, build_index,
	  { { "dim", NULL, -1 }, { "wrap", NULL, 0 } } },
	RECIPE("attention", 3, 5, build_attention, { "scale", NULL, NAN }, { "heads", NULL, 1 },
	       { "causal", NULL, 0 }, { "offset", NULL, 0 }, { "window", NULL, 0 },
	       { "sinks", NULL, 0 }),
};

#define NUM_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

const char *const *spyre_sdsc_operations(void)
{
	static const char *const names[] = {
		"add", "sub", "revsub", "mul", "div", "maximum", "minimum", "eq", "ne", "gt", "lt",
		"ge", "le", "relu", "relu6", "neg", "abs", "exp", "fastexp", "log", "sqrt", "rsqrt",
		"reciprocal", "tanh", "sigmoid", "fastsigmoid", "silu", "gelu", "mish", "floor",
		"identity", "clip", "softplus", "where", "dl16tofp32", "fp32todl16", "cast",
		"layernormscale", "layernormnorm", "sum", "mean", "amax", "amin", "absmax", "exx2",
		"matmul", "restickify", "transpose", "fill", "softmax", "log_softmax", "layer_norm",
		"rms_norm", "swiglu", "linear", "addmm", "attention",
		"clamp", "leaky_relu", "bias_add", "fnms", "batchnormfwd", "exx2_zeromean", "ceil",
		"sign", "square", "pow", "logical_not", "logical_and", "logical_or", "logical_xor",
		"bitwise_and", "gelu_tanh", "batch_norm", "var", "std", "vector_norm", "topk",
		"topk_indices", "argmax", "argmin", "conv2d", "depthwise_conv2d", "max_pool2d",
		"avg_pool2d", "avgpoolnmap", "mm", "bmm", "fp8todl16", "int32tofp32",
		"fp32toint32", "qfp8ch", "csqint8ch", "quant_scale_int8", "quant_scale_fp8",
		"mask_by_index", "scaled_mm", "bitwise_or", "bitwise_xor", "bitwise_not", "trunc",
		"round", "sin", "cos", "erf", "fmod", "remainder",
		"index_select", "embedding", "gather", "index_put", "scatter",
		"index_matmul", "wide_matmul",
		/* Those that only integers have (integer.c). */
		"left_shift", "right_shift", "floor_divide", "trunc_divide", NULL,
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) ==
		       NUM_OPERATIONS + BUILD_NUM_INTEGER_NAMES + 1,
		       "every operation has its name here");
	return names;
}

const struct build_op *build_op_find(const char *name)
{
	for (size_t i = 0; i < NUM_OPERATIONS; i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	return build_integer_find(name);
}

spyre_status spyre_sdsc_operation_inputs(const char *name, uint32_t *least, uint32_t *most)
{
	const struct build_op *op;

	if (!name || !least || !most)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_operation_inputs: op, least or most is NULL");
	op = build_op_find(name);
	if (!op)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "\"%s\" is not an operation of the builder; spyre_sdsc_operations() lists them",
				   name);
	*least = op->inputs;
	*most = op->most_inputs;
	return SPYRE_SUCCESS;
}
