// SPDX-License-Identifier: MIT
/*
 * Builder: operations on IEEE_INT32, which the card computes exactly. They have the names of
 * the operations on floats; the format of the inputs decides.
 */
#include "libspyre/sdsc/graph/integer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"

static spyre_status integer_alpha(const struct build_call *call);
static spyre_status integer_where(const struct build_call *call);
static spyre_status integer_reverse(const struct build_call *call);

#define FLAGS (BUILD_INTEGER | BUILD_LX)
#define UNARY(name, func) { name, func, BUILD_POINTWISE, 1, 1, FLAGS, NULL, { { 0 } } }
#define BINARY(name, func) { name, func, BUILD_POINTWISE, 2, 2, FLAGS, NULL, \
	  { { "other", NULL, NAN } } }
#define ALPHA(name, func) { name, func, BUILD_POINTWISE, 2, 2, FLAGS, integer_alpha, \
	  { { "other", NULL, NAN }, { "alpha", NULL, 1 } } }
#define REDUCTION(name, func) { name, func, BUILD_REDUCE, 1, 1, FLAGS, build_reduce, \
	  { { "dim", NULL, -1 }, { "keepdim", NULL, 0 } } }
#define CLIP(name) { name, "intclip", BUILD_POINTWISE, 1, 1, FLAGS, NULL, \
	  { { "min", "clipMin", -INFINITY }, { "max", "clipMax", INFINITY } } }

static const struct build_op operations[] = {
	ALPHA("add", "intadd"),
	ALPHA("sub", "intsub"),
	{ "revsub", "intsub", BUILD_POINTWISE, 2, 2, FLAGS, integer_reverse,
	  { { "other", NULL, NAN } } },
	BINARY("mul", "intmul"),
	BINARY("maximum", "intmaximum"),
	BINARY("minimum", "intminimum"),
	BINARY("eq", "intequal"),
	BINARY("ne", "intnotequal"),
	BINARY("gt", "intgreaterthan"),
	BINARY("lt", "intlesserthan"),
	BINARY("ge", "intgreaterequal"),
	BINARY("le", "intlesserequal"),
	BINARY("bitwise_and", "intand"),
	BINARY("bitwise_or", "intor"),
	BINARY("bitwise_xor", "intxor"),
	BINARY("left_shift", "intshiftleft"),
	BINARY("right_shift", "intshiftright"),
	BINARY("floor_divide", "intfloordiv"),
	BINARY("trunc_divide", "inttruncdiv"),
	BINARY("remainder", "intremainder"),
	BINARY("fmod", "intfmod"),
	UNARY("neg", "intneg"),
	UNARY("abs", "intabs"),
	UNARY("bitwise_not", "intnot"),
	CLIP("clip"),
	CLIP("clamp"),
	{ "where", "intwhere3", BUILD_POINTWISE, 1, 3, FLAGS, integer_where,
	  { { "input", NULL, NAN }, { "other", NULL, NAN } } },
	REDUCTION("sum", "intsum"),
	REDUCTION("amax", "intmax"),
	REDUCTION("amin", "intmin"),
};

const struct build_op *build_integer_find(const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	return NULL;
}

static bool is_integer(const struct build_call *call, uint32_t input)
{
	return call->in[input] < call->graph->num_tensors &&
	       build_operand(call->graph, call->in[input])->layout.device_format ==
	       SPYRE_FORMAT_IEEE_INT32;
}

const struct build_op *build_integer_choice(const struct build_call *call)
{
	const struct build_op *op;
	uint32_t input = 0;

	if (!call->num_inputs)
		return call->op;
	/* The first input of where is a condition, often a bool in another format. */
	if (!strcmp(call->op->name, "where"))
		input = call->num_inputs - 1;
	if (input >= BUILD_MAX_INPUTS || !is_integer(call, input))
		return call->op;
	op = build_integer_find(call->op->name);
	return op ? op : call->op;
}

spyre_status build_integer_number(const char *op, double value, int32_t *number)
{
	if (value != floor(value) || value < INT32_MIN || value > INT32_MAX)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: %.17g is not an integer of 32 bits, which IEEE_INT32 holds",
				   op, value);
	*number = (int32_t)value;
	return SPYRE_SUCCESS;
}

void build_integer_constant(struct ir_sdsc *s, const char *name, int32_t value)
{
	struct ir_constant *c = &s->constant[s->num_constants++];

	snprintf(c->name, sizeof(c->name), "%s", name);
	c->format = SPYRE_FMT_IEEE_INT32;
	c->bits = (uint32_t)value;
}

/* A clip to one value does not depend on what memory holds. */
spyre_status build_integer_fill(spyre_sdsc_graph *g, double value, uint32_t *tensor)
{
	spyre_sdsc_attribute range[2] = { { "min", value }, { "max", value } };
	struct build_call call = { .graph = g, .op = build_integer_find("clip"), .attr = range,
				   .num_attrs = 2, .num_inputs = 1, .out = tensor };
	spyre_sdsc_operand scalar = { 0 };
	struct build_use use[2];

	build_layout(&scalar, SPYRE_FORMAT_IEEE_INT32, -1, 0);
	TRY(build_new_tensor(g, &scalar, tensor));
	use[0] = use[1] = build_use_of(g, *tensor);
	return build_add_step(&call, use);
}

/* Adds the operation itself, without its recipe. */
static spyre_status plain(const struct build_call *call)
{
	struct build_use uses[BUILD_MAX_INPUTS + 1] = { 0 };

	for (uint32_t i = 0; i < call->num_inputs; i++)
		uses[i] = build_use_of(call->graph, call->in[i]);
	uses[call->num_inputs] = build_use_of(call->graph, *call->out);
	TRY(build_align(call, uses));
	return build_add_step(call, uses);
}

/* a + alpha b, a - alpha b; modulo 2^32, like the sum itself. */
static spyre_status integer_alpha(const struct build_call *call)
{
	spyre_sdsc_attribute alpha = { "other", build_attr(call, "alpha") };
	struct build_call own = *call;

	if (alpha.value != 1) {
		own.in[1] = SPYRE_SDSC_NEW;
		TRY(build_add(call->graph, "mul", &alpha, 1, &call->in[1], 1, &own.in[1]));
	}
	return plain(&own);
}

/* b - a */
static spyre_status integer_reverse(const struct build_call *call)
{
	struct build_call own = *call;

	own.in[0] = call->in[1];
	own.in[1] = call->in[0];
	return plain(&own);
}

/* Makes the condition an integer and numbers tensors. */
static spyre_status integer_where(const struct build_call *call)
{
	spyre_sdsc_attribute to = { "format", SPYRE_FORMAT_IEEE_INT32 };
	struct build_call own = *call;

	if (!is_integer(call, 0)) {
		own.in[0] = SPYRE_SDSC_NEW;
		TRY(build_add(call->graph, "cast", &to, 1, &call->in[0], 1, &own.in[0]));
	}
	return build_where(&own);
}
