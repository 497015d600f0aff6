// SPDX-License-Identifier: MIT
/* Operations on IEEE_INT32; results and operands are small enough for the harness's floats. */
#include "sdsc_operation.h"

#define INT32 SPYRE_FORMAT_IEEE_INT32

static int64_t divide(int64_t a, int64_t b, bool down)
{
	return b ? a / b - (down && a % b && (a < 0) != (b < 0)) : -1;
}

static int64_t shift(int64_t a, int64_t b, bool left)
{
	bool inside = b >= 0 && b < 32;

	if (left)
		return inside ? (int32_t)(uint32_t)((uint64_t)a << b) : 0;
	return inside ? a >> b : a >> 31;
}

static double apply(const struct operation *op, int64_t a, int64_t b, int64_t c)
{
	int64_t alpha = (int64_t)attribute(op, "alpha", 1);
	int64_t right = inputs > 1 ? b : (int64_t)attribute(op, "other", 0);
	const struct {
		const char *name;
		int64_t value;
	} all[] = {
		{ "add", a + alpha * right }, { "sub", a - alpha * right }, { "mul", a * right },
		{ "revsub", right - a },
		{ "maximum", a > right ? a : right }, { "minimum", a < right ? a : right },
		{ "eq", a == right }, { "ne", a != right }, { "gt", a > right },
		{ "lt", a < right }, { "ge", a >= right }, { "le", a <= right },
		{ "bitwise_and", a & right }, { "bitwise_or", a | right },
		{ "bitwise_xor", a ^ right }, { "left_shift", shift(a, right, true) },
		{ "right_shift", shift(a, right, false) },
		{ "floor_divide", divide(a, right, true) },
		{ "trunc_divide", divide(a, right, false) },
		{ "remainder", right ? a - right * divide(a, right, true) : a },
		{ "fmod", right ? a % right : a },
		{ "neg", -a }, { "abs", a < 0 ? -a : a }, { "bitwise_not", ~a },
		{ "square", a * a }, { "sign", (a > 0) - (a < 0) }, { "logical_not", !a },
		{ "logical_and", a && b }, { "logical_or", a || b }, { "logical_xor", !a != !b },
		{ "clip", (int64_t)fmin(fmax((double)a, attribute(op, "min", -INFINITY)),
					attribute(op, "max", INFINITY)) },
		{ "clamp", (int64_t)fmin(fmax((double)a, attribute(op, "min", -INFINITY)),
					 attribute(op, "max", INFINITY)) },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, op->name))
			return (double)all[i].value;
	ck_assert_str_eq(op->name, "where");
	/* A number takes the place of an input. */
	return a ? attribute(op, "input", (double)b) :
		   attribute(op, "other", (double)(inputs > 2 ? c : b));
}

static void pointwise(const struct operation *op)
{
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)apply(op, (int64_t)at(&in[0], &out, i),
				       inputs > 1 ? (int64_t)at(&in[1], &out, i) : 0,
				       inputs > 2 ? (int64_t)at(&in[2], &out, i) : 0);
}

static void reduction(const struct operation *op)
{
	uint32_t mask = reduced(op);

	for (size_t i = 0; i < out.elements; i++)
		want[i] = strcmp(op->name, "sum") ? NAN : 0;
	for (size_t i = 0; i < in[0].elements; i++) {
		float *to = &want[fold(&in[0], mask, i)], x = in[0].data[i];

		if (!strcmp(op->name, "sum"))
			*to += x;
		else
			*to = strcmp(op->name, "amax") ? fminf(*to, x) : fmaxf(*to, x);
	}
}

/* The exact number 2^24 + 1 is not a number of fp32. */
#define ODD 16777217
#define ONE(name) \
	{ name, pointwise, 0, INT32, { D(10, 150), D(10, 150) }, { { 0 } }, 0 }, \
	{ name, pointwise, 0, INT32, { S(5, 7), S(5, 7) }, { { 0 } }, 0 }
#define TWO(name) \
	{ name, pointwise, 0, INT32, { D(20, 70), D(20, 70), D(20, 70) }, { { 0 } }, 0 }, \
	{ name, pointwise, 0, INT32, { D(2, 1, 33), D(5, 1), D(2, 5, 33) }, { { 0 } }, 0 }
#define WITH(name, number) \
	{ name, pointwise, 0, INT32, { D(3, 33), D(3, 33) }, { { "other", number } }, 0 }
#define REDUCED(name) \
	{ name, reduction, 0, INT32, { D(100, 150), S(100) }, { { 0 } }, 0 }, \
	{ name, reduction, 0, INT32, { D(100, 150), D(150) }, { { "dim", 0 } }, 0 }, \
	{ name, reduction, 0, INT32, { D(7, 9, 33), S(9) }, { { "dim", 0 }, { "dim", 2 } }, 0 }, \
	{ name, reduction, 0, INT32, { D(4, 5), S(4, 1) }, { { "dim", 1 }, { "keepdim", 1 } }, 0 }

const struct operation integer_operations[] = {
	ONE("neg"), ONE("abs"), ONE("bitwise_not"), ONE("square"), ONE("sign"), ONE("logical_not"),
	TWO("add"), TWO("sub"), TWO("revsub"), TWO("mul"), TWO("maximum"), TWO("minimum"), TWO("eq"), TWO("ne"),
	TWO("gt"), TWO("lt"), TWO("ge"), TWO("le"), TWO("bitwise_and"), TWO("bitwise_or"),
	TWO("bitwise_xor"), TWO("right_shift"), TWO("floor_divide"), TWO("trunc_divide"),
	TWO("remainder"), TWO("fmod"), TWO("logical_and"), TWO("logical_or"), TWO("logical_xor"),
	WITH("add", 5), WITH("revsub", 5), WITH("mul", -3), WITH("remainder", ODD), WITH("remainder", 0),
	WITH("floor_divide", 7), WITH("floor_divide", 0), WITH("left_shift", 3),
	WITH("left_shift", 40), WITH("right_shift", -1), WITH("eq", 3), WITH("lt", ODD),
	WITH("bitwise_and", 0xff),
	{ "add", pointwise, 0, INT32, { D(5, 40), D(40), D(5, 40) }, { { "alpha", -3 } }, 0 },
	{ "sub", pointwise, 0, INT32, { T(40, 70), D(70), T(40, 70) }, { { "alpha", 2 } }, 0 },
	{ "clamp", pointwise, 0, INT32, { D(5, 70), D(5, 70) }, { { "min", -7 }, { "max", 11 } }, 0 },
	{ "clip", pointwise, 0, INT32, { D(5, 70), D(5, 70) }, { { "min", -1e30 }, { "max", 3 } }, 0 },
	{ "clamp", pointwise, 0, INT32, { D(70), D(70) }, { { "min", -ODD }, { "max", -ODD + 1 } }, 0 },
	{ "where", pointwise, 0, INT32, { D(20, 70), D(20, 70), D(70), D(20, 70) }, { { 0 } }, 0 },
	{ "where", pointwise, 0, INT32, { F16(20, 70), D(20, 70), D(70), D(20, 70) }, { { 0 } }, 0 },
	{ "where", pointwise, 0, INT32, { F16(3, 10), D(3, 10), D(3, 10) }, { { "input", ODD + 1 } }, 0 },
	{ "where", pointwise, 0, INT32, { D(20, 70), D(20, 70) }, { { "input", 2 }, { "other", -1 } }, 0 },
	REDUCED("sum"), REDUCED("amax"), REDUCED("amin"),
};
const int num_integer_operations = sizeof(integer_operations) / sizeof(integer_operations[0]);
