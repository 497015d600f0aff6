// SPDX-License-Identifier: MIT
/* Builder: pointwise operations that are composed of others. */
#include <math.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fill.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/recipes.h"

#define NEW SPYRE_SDSC_NEW
#define IN(...) ((const uint32_t[]){ __VA_ARGS__ })
#define COUNT(...) (sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define DO(g, op, out, ...) \
	TRY(build_add(g, op, NULL, 0, IN(__VA_ARGS__), COUNT(__VA_ARGS__), out))

/* An operation on a tensor and a number. */
static spyre_status with(spyre_sdsc_graph *g, const char *op, uint32_t in, double value,
			 uint32_t *out)
{
	spyre_sdsc_attribute other = { "other", value };

	return build_add(g, op, &other, 1, &in, 1, out);
}

static spyre_format format_of(const struct build_call *call, uint32_t tensor)
{
	return build_operand(call->graph, tensor)->layout.device_format;
}

/* Adds the operation itself, without its recipe. */
static spyre_status plain(const struct build_call *call)
{
	struct build_use uses[BUILD_MAX_INPUTS + 1] = { 0 };
	struct build_call own = *call;

	for (uint32_t i = 0; i < call->num_inputs; i++)
		uses[i] = build_use_of(call->graph, call->in[i]);
	uses[call->num_inputs] = build_use_of(call->graph, *call->out);
	TRY(build_align(&own, uses));
	return build_add_step(&own, uses);
}

/* Converts @tensor to fp32, or returns it if it has that format. */
static spyre_status widened(const struct build_call *call, uint32_t tensor, uint32_t *wide)
{
	spyre_sdsc_attribute format = { "format", SPYRE_FORMAT_IEEE_FP32 };

	*wide = tensor;
	if (format_of(call, tensor) == SPYRE_FORMAT_IEEE_FP32)
		return SPYRE_SUCCESS;
	*wide = NEW;
	return build_add(call->graph, "cast", &format, 1, &tensor, 1, wide);
}

/* a + alpha b, a - alpha b: alpha is a number of fp32, and the result is rounded once. */
spyre_status build_alpha(const struct build_call *call)
{
	bool subtracts = !strcmp(call->op->name, "sub");
	spyre_format format = format_of(call, call->in[0]);
	spyre_sdsc_attribute narrow = { "format", format };
	double alpha = build_attr(call, "alpha");
	uint32_t a, b, factor, wide = NEW;
	spyre_sdsc_graph *g = call->graph;
	struct build_call own = *call;

	if (alpha == -1)
		own.op = build_op_find(subtracts ? "add" : "sub");
	if (fabs(alpha) == 1)
		return plain(&own);
	TRY(build_constant(g, SPYRE_FORMAT_IEEE_FP32, subtracts ? alpha : -alpha, &factor));
	TRY(widened(call, call->in[0], &a));
	TRY(widened(call, call->in[1], &b));
	if (format == SPYRE_FORMAT_IEEE_FP32)
		return build_add(g, "fnms", NULL, 0, IN(factor, b, a), 3, call->out);
	DO(g, "fnms", &wide, factor, b, a);
	return build_add(g, "cast", &narrow, 1, &wide, 1, call->out);
}

/* Selects by a condition from tensors or numbers. */
spyre_status build_where(const struct build_call *call)
{
	static const char *const names[2] = { "input", "other" };
	struct build_call own = *call;
	uint32_t next = 1;

	own.num_inputs = 3;
	for (uint32_t i = 0; i < 2; i++) {
		if (build_has_attr(call, names[i])) {
			TRY(build_constant(call->graph, format_of(call, call->in[0]),
					   build_attr(call, names[i]), &own.in[1 + i]));
			continue;
		}
		if (next == call->num_inputs)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "where takes a condition and two operands, each an input or one of the attributes \"input\" and \"other\"; it got %u inputs",
					   call->num_inputs);
		own.in[1 + i] = call->in[next++];
	}
	if (next != call->num_inputs)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "where has %u inputs besides the attributes \"input\" and \"other\", expected %u",
				   call->num_inputs, next);
	return plain(&own);
}

spyre_status build_ceil(const struct build_call *call)
{
	uint32_t minus = NEW, down = NEW;

	DO(call->graph, "neg", &minus, call->in[0]);
	DO(call->graph, "floor", &down, minus);
	DO(call->graph, "neg", call->out, down);
	return SPYRE_SUCCESS;
}

spyre_status build_sign(const struct build_call *call)
{
	uint32_t above = NEW, below = NEW;

	TRY(with(call->graph, "gt", call->in[0], 0, &above));
	TRY(with(call->graph, "lt", call->in[0], 0, &below));
	DO(call->graph, "sub", call->out, above, below);
	return SPYRE_SUCCESS;
}

spyre_status build_square(const struct build_call *call)
{
	DO(call->graph, "mul", call->out, call->in[0], call->in[0]);
	return SPYRE_SUCCESS;
}

/* Returns true if @value is a number of @format. */
static bool has_number(spyre_format format, double value)
{
	uint64_t element;
	double back;

	return !spyre_format_encode(format, &value, 1, &element) &&
	       !spyre_format_decode(format, &element, 1, &back) && back == value;
}

/* x^e by a single step; in fp32 if the format of x lacks e, whose error x would magnify. */
static spyre_status power(const struct build_call *call, double e)
{
	spyre_format format = format_of(call, call->in[0]);
	spyre_sdsc_attribute narrow = { "format", format };
	spyre_sdsc_graph *g = call->graph;
	uint32_t x, exponent, result = NEW;
	struct build_call own = *call;

	own.num_inputs = 2;
	if (format == SPYRE_FORMAT_IEEE_FP32 || has_number(format, e)) {
		TRY(build_constant(g, format, e, &own.in[1]));
		return plain(&own);
	}
	TRY(widened(call, call->in[0], &x));
	TRY(build_constant(g, SPYRE_FORMAT_IEEE_FP32, e, &exponent));
	DO(g, "pow", &result, x, exponent);
	return build_add(g, "cast", &narrow, 1, &result, 1, call->out);
}

/* The exponent is a tensor or a number, some of which have an operation of their own. */
spyre_status build_pow(const struct build_call *call)
{
	static const struct {
		double exponent;
		const char *op;
	} single[] = { { 1, "identity" }, { 2, "square" }, { 0.5, "sqrt" }, { -0.5, "rsqrt" },
		       { -1, "reciprocal" } };
	double e = build_attr(call, "exponent");
	spyre_sdsc_graph *g = call->graph;
	uint32_t x = call->in[0];

	if (call->num_inputs == 2 && build_has_attr(call, "exponent"))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "pow takes its exponent as an input or as the attribute \"exponent\", not both");
	if (call->num_inputs == 2)
		return plain(call);
	if (!isfinite(e))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "pow needs the attribute \"exponent\", a finite number");
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (e == single[i].exponent)
			return build_add(g, single[i].op, NULL, 0, &x, 1, call->out);
	if (e == 0) {
		uint32_t equal = NEW;	/* 1 for NaN, too */

		DO(g, "eq", &equal, x, x);
		return with(g, "ge", equal, 0, call->out);
	}
	return power(call, e);
}

spyre_status build_logical_not(const struct build_call *call)
{
	return with(call->graph, "eq", call->in[0], 0, call->out);
}

/* Reduces operands to 0 and 1 first, because any value but 0 is true. */
spyre_status build_logical(const struct build_call *call)
{
	const char *name = call->op->name;
	const char *op = strstr(name, "_or") ? "maximum" : strstr(name, "_xor") ? "ne" : "minimum";
	uint32_t a = NEW, b = NEW;

	if (!strncmp(name, "bitwise", 7))
		return build_add(call->graph, op, NULL, 0, call->in, 2, call->out);
	TRY(with(call->graph, "ne", call->in[0], 0, &a));
	TRY(with(call->graph, "ne", call->in[1], 0, &b));
	DO(call->graph, op, call->out, a, b);
	return SPYRE_SUCCESS;
}

/* Selects @yes where the condition holds, else @no. */
static spyre_status choose(spyre_sdsc_graph *g, uint32_t condition, uint32_t yes, uint32_t no,
			   uint32_t *out)
{
	return build_add(g, "where", NULL, 0, IN(condition, yes, no), 3, out);
}

/* Rounds towards zero; results of 0 keep the operand's sign. */
spyre_status build_trunc(const struct build_call *call)
{
	uint32_t x = call->in[0], below = NEW, down = NEW, up = NEW;
	spyre_sdsc_graph *g = call->graph;

	TRY(with(g, "lt", x, 0, &below));
	DO(g, "floor", &down, x);
	DO(g, "ceil", &up, x);
	return choose(g, below, up, down, call->out);
}

/*
 * Rounds to nearest, ties to even. For |x| in a format, floor |x|, the remainder
 * and half of floor |x| are numbers of the format, so each step is exact.
 */
spyre_status build_round(const struct build_call *call)
{
	uint32_t x = call->in[0], size = NEW, whole = NEW, rest = NEW, half = NEW, pair = NEW;
	uint32_t even = NEW, odd = NEW, above = NEW, tie = NEW, zero, up = NEW, more = NEW;
	uint32_t near = NEW, below = NEW, minus = NEW;
	spyre_sdsc_graph *g = call->graph;

	DO(g, "abs", &size, x);
	DO(g, "floor", &whole, size);
	DO(g, "sub", &rest, size, whole);
	TRY(with(g, "mul", whole, 0.5, &half));
	DO(g, "floor", &pair, half);
	DO(g, "add", &even, pair, pair);
	DO(g, "sub", &odd, whole, even);
	TRY(with(g, "gt", rest, 0.5, &above));
	TRY(with(g, "eq", rest, 0.5, &tie));
	TRY(build_zero(g, format_of(call, x), &zero));
	TRY(choose(g, tie, odd, zero, &more));
	DO(g, "add", &up, above, more);
	DO(g, "add", &near, whole, up);
	TRY(with(g, "lt", x, 0, &below));
	DO(g, "neg", &minus, near);
	return choose(g, below, minus, near, call->out);
}

spyre_status build_mm(const struct build_call *call)
{
	return build_add(call->graph, "matmul", NULL, 0, call->in, 2, call->out);
}

/*
 * x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)), as 1 + tanh(y) is 2 sigmoid(2 y). Computed in
 * fp32 and rounded once, because an exponent's error grows with the exponent.
 */
spyre_status build_gelu_tanh(const struct build_call *call)
{
	const double a = 2 * sqrt(2 / 3.14159265358979323846);
	spyre_format format = format_of(call, call->in[0]);
	spyre_sdsc_attribute narrow = { "format", format };
	uint32_t square = NEW, scaled = NEW, moved = NEW, inner = NEW, gate = NEW, wide = NEW, x;
	bool single = format == SPYRE_FORMAT_IEEE_FP32;
	spyre_sdsc_graph *g = call->graph;

	TRY(widened(call, call->in[0], &x));
	DO(g, "mul", &square, x, x);
	TRY(with(g, "mul", square, 0.044715 * a, &scaled));
	TRY(with(g, "add", scaled, a, &moved));
	DO(g, "mul", &inner, x, moved);
	DO(g, "sigmoid", &gate, inner);
	DO(g, "mul", single ? call->out : &wide, x, gate);
	return single ? SPYRE_SUCCESS : build_add(g, "cast", &narrow, 1, &wide, 1, call->out);
}

/* The factor and the summand of each channel, from the statistics and weights of @call. */
static spyre_status fold_statistics(const struct build_call *call, uint32_t *factor,
				    uint32_t *summand)
{
	uint32_t moved = NEW, scale = NEW, product = NEW, wide[4] = { 0 };
	spyre_sdsc_graph *g = call->graph;

	for (uint32_t i = 1; i < call->num_inputs; i++)
		TRY(widened(call, call->in[i], &wide[i - 1]));
	TRY(with(g, "add", wide[1], build_attr(call, "eps"), &moved));
	DO(g, "rsqrt", &scale, moved);
	*factor = scale;
	if (call->num_inputs > 3) {
		*factor = NEW;
		DO(g, "mul", factor, scale, wide[2]);
	}
	*summand = NEW;
	if (call->num_inputs > 4) {
		DO(g, "fnms", summand, wide[0], *factor, wide[3]);
		return SPYRE_SUCCESS;
	}
	DO(g, "mul", &product, wide[0], *factor);
	return build_add(g, "neg", NULL, 0, &product, 1, summand);
}

/*
 * x (w / sqrt(var + eps)) + (b - mean w / sqrt(var + eps)), along dim 1. In fp32, rounded
 * once: where a channel's mean is large against its deviation, the two terms nearly cancel.
 */
spyre_status build_batch_norm(const struct build_call *call)
{
	spyre_sdsc_attribute narrow = { "format", format_of(call, call->in[0]) };
	bool single = format_of(call, call->in[0]) == SPYRE_FORMAT_IEEE_FP32;
	uint32_t x, factor, summand, wide = NEW;
	spyre_sdsc_graph *g = call->graph;
	struct build_call norm = *call;
	struct build_use use[4];

	if (build_operand(g, call->in[0])->rank < 2)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "batch_norm: operand 0 has rank %u, expected 2 or more; channels are dimension 1",
				   build_operand(g, call->in[0])->rank);
	TRY(fold_statistics(call, &factor, &summand));
	TRY(widened(call, call->in[0], &x));
	norm.out = single ? call->out : &wide;
	use[0] = build_use_of(g, x);
	use[1] = build_use_of(g, factor);
	use[2] = build_use_of(g, summand);
	use[3] = build_use_of(g, *norm.out);
	for (uint32_t i = 1; i < 3; i++) {
		if (use[i].view.rank != 1)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "batch_norm: mean, variance, weight and bias have one dimension, not %u",
					   use[i].view.rank);
		while (use[i].view.rank < use[0].view.rank - 1)
			build_unsqueeze(&use[i].view, use[i].view.rank);
	}
	norm.op = build_op_find("batchnormfwd");
	norm.num_inputs = 3;
	TRY(build_align(&norm, use));
	TRY(build_add_step(&norm, use));
	return single ? SPYRE_SUCCESS : build_add(g, "cast", &narrow, 1, &wide, 1, call->out);
}
