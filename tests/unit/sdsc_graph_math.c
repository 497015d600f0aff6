// SPDX-License-Identifier: MIT
/* Elementwise operations and statistics that consist of other operations. */
#include "sdsc_operation.h"

#define BFLOAT SPYRE_FORMAT_BFLOAT16

static double apply(const struct operation *op, double a, double b, double c)
{
	const char *name = op->name;
	double other = attribute(op, "other", 0), alpha = attribute(op, "alpha", 1);
	double e = attribute(op, "exponent", 0);
	double right = inputs > 1 ? b : other;
	const struct {
		const char *name;
		double value;
	} all[] = {
		{ "ceil", ceil(a) }, { "sign", (a > 0) - (a < 0) }, { "square", a * a },
		{ "pow", pow(a, inputs > 1 ? b : e) }, { "fmod", fmod(a, right) },
		{ "remainder", a - right * floor(a / right) }, { "logical_not", a == 0 }, { "logical_and", a && b },
		{ "logical_or", a || b }, { "logical_xor", !a != !b }, { "bitwise_and", a && b },
		{ "bitwise_or", a || b }, { "bitwise_xor", !a != !b }, { "bitwise_not", a == 0 },
		{ "trunc", trunc(a) }, { "round", rint(a) },
		{ "gelu_tanh", 0.5 * a * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a))) },
		{ "leaky_relu", a > 0 ? a : a * attribute(op, "negative_slope", 0.01) },
		{ "bias_add", a + b }, { "fnms", c - a * b },
		{ "clamp", fmin(fmax(a, attribute(op, "min", -INFINITY)),
				attribute(op, "max", INFINITY)) },
		{ "add", a + alpha * right }, { "sub", a - alpha * right }, { "mul", a * right },
		{ "cast", a }, { "ge", a >= right }, { "div", a / right }, { "revsub", right - a },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return all[i].value;
	ck_assert_str_eq(name, "where");
	return a != 0 ? attribute(op, "input", b) :
	       attribute(op, "other", attribute(op, "input", 1e9) == 1e9 && inputs > 2 ? c : b);
}

static void pointwise(const struct operation *op)
{
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)apply(op, at(&in[0], &out, i),
				       inputs > 1 ? at(&in[1], &out, i) : 0,
				       inputs > 2 ? at(&in[2], &out, i) : 0);
}

/* Sums over the reduced dims of f(x), for each output. */
static double *sums(const struct operation *op, double p, const double *mean)
{
	double *sum = calloc(out.elements, sizeof(*sum));
	uint32_t mask = reduced(op);

	for (size_t i = 0; i < in[0].elements; i++) {
		size_t o = fold(&in[0], mask, i);
		double x = in[0].data[i];

		if (mean)
			sum[o] += (x - mean[o]) * (x - mean[o]);
		else if (isinf(p))
			sum[o] = fmax(sum[o], fabs(x));
		else
			sum[o] += p == 0 ? x != 0 : p < 0 ? x : pow(fabs(x), p);
	}
	return sum;
}

static void variance(const struct operation *op)
{
	double n = (double)in[0].elements / (double)out.elements, *sum, *square;

	sum = sums(op, -1, NULL);
	for (size_t i = 0; i < out.elements; i++)
		sum[i] /= n;
	square = sums(op, 0, sum);
	for (size_t i = 0; i < out.elements; i++) {
		double v = square[i] / (n - attribute(op, "correction", 1));

		want[i] = (float)(strcmp(op->name, "std") ? v : sqrt(v));
	}
	free(sum);
	free(square);
}

static void vector_norm(const struct operation *op)
{
	double p = attribute(op, "ord", 2), *sum = sums(op, p, NULL);

	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)(p == 0 || isinf(p) ? sum[i] : pow(sum[i], 1 / p));
	free(sum);
}

#define SIMPLE(name, tol) \
	{ name, pointwise, tol, DL16, { D(100, 150), D(100, 150) }, { { 0 } }, 0 }, \
	{ name, pointwise, tol, FP32, { D(3, 33), D(3, 33) }, { { 0 } }, 0 }, \
	{ name, pointwise, tol, DL16, { S(5, 7), S(5, 7) }, { { 0 } }, 0 }
#define PAIR(name) \
	{ name, pointwise, 0, DL16, { D(64, 128), D(64, 128), D(64, 128) }, { { 0 } }, 0 }, \
	{ name, pointwise, 0, FP32, { D(5, 33), D(33), D(5, 33) }, { { 0 } }, 0 }
#define POWER(e, tol) \
	{ "pow", pointwise, tol, DL16, { D(10, 70), D(10, 70) }, { { "exponent", e } }, 1 }, \
	{ "pow", pointwise, tol, FP32, { D(3, 33), D(3, 33) }, { { "exponent", e } }, 1 }

const struct operation math_operations[] = {
	SIMPLE("ceil", 0), SIMPLE("sign", 0), SIMPLE("square", E16), SIMPLE("logical_not", 0),
	SIMPLE("gelu_tanh", E16), SIMPLE("leaky_relu", E16),
	PAIR("logical_and"), PAIR("logical_or"), PAIR("logical_xor"),
	{ "bitwise_or", pointwise, 0, DL16, { D(5, 70), D(5, 70), D(5, 70) }, { { 0 } }, 1 },
	{ "bitwise_xor", pointwise, 0, DL16, { D(5, 70), D(70), D(5, 70) }, { { 0 } }, 1 },
	{ "bitwise_not", pointwise, 0, DL16, { D(5, 70), D(5, 70) }, { { 0 } }, 1 },
	SIMPLE("trunc", 0), SIMPLE("round", 0),
	{ "bitwise_and", pointwise, 0, DL16, { D(5, 70), D(5, 70), D(5, 70) }, { { 0 } }, 1 },
	POWER(2, E16), POWER(3, E16), POWER(-2, E16), POWER(0.5, E16), POWER(-0.5, E16),
	POWER(65, E16), POWER(-90.5, E16),
	{ "pow", pointwise, E16, DL16, { D(10, 70), D(10, 70), D(10, 70) }, { { 0 } }, 1 },
	{ "pow", pointwise, E16, FP32, { D(5, 33), D(33), D(5, 33) }, { { 0 } }, 1 },
	{ "fmod", pointwise, E16, DL16, { D(10, 70), D(10, 70), D(10, 70) }, { { 0 } }, 0 },
	{ "fmod", pointwise, E16, FP32, { D(5, 33), D(33), D(5, 33) }, { { 0 } }, 0 },
	{ "fmod", pointwise, E16, DL16, { D(10, 70), D(10, 70) }, { { "other", 0.75 } }, 0 },
	{ "remainder", pointwise, E16, DL16, { D(10, 70), D(10, 70), D(10, 70) }, { { 0 } }, 0 },
	{ "remainder", pointwise, E16, BFLOAT, { D(5, 70), D(70), D(5, 70) }, { { 0 } }, 0 },
	{ "remainder", pointwise, E16, FP32, { D(3, 33), D(3, 33) }, { { "other", -0.75 } }, 0 },
	POWER(1.7, E16), POWER(0, 0), POWER(1, 0), POWER(5, E16),
	{ "pow", pointwise, E16, DL16, { D(10, 70), D(10, 70) }, { { "exponent", 3 } }, 0 },
	{ "pow", pointwise, E16, DL16, { SCALAR, SCALAR }, { { "exponent", 3 } }, 1 },
	{ "pow", pointwise, E16, DL16, { S(5, 7), S(5, 7) }, { { "exponent", 3 } }, 1 },
	{ "pow", pointwise, 1e-2, BFLOAT, { D(5, 70), D(5, 70) }, { { "exponent", 3 } }, 1 },
	{ "leaky_relu", pointwise, E16, DL16, { D(5, 70), D(5, 70) }, { { "negative_slope", 0.5 } }, 0 },
	{ "clamp", pointwise, 0, DL16, { D(100, 150), D(100, 150) }, { { "min", -0.5 }, { "max", 1 } }, 0 },
	{ "bias_add", pointwise, E16, DL16, { D(100, 150), D(150), D(100, 150) }, { { 0 } }, 0 },
	{ "bias_add", pointwise, E16, FP32, { D(3, 33), D(33), D(3, 33) }, { { 0 } }, 0 },
	{ "fnms", pointwise, E16, DL16, { D(100, 150), D(150), D(100, 150), D(100, 150) }, { { 0 } }, 0 },
	{ "fnms", pointwise, E16, FP32, { D(33), D(33), SCALAR, D(33) }, { { 0 } }, 0 },
	{ "add", pointwise, E16, DL16, { D(10, 70), D(10, 70), D(10, 70) }, { { "alpha", 0.5 } }, 0 },
	{ "sub", pointwise, E16, DL16, { D(10, 70), D(70), D(10, 70) }, { { "alpha", -0.3 } }, 0 },
	{ "add", pointwise, E16, DL16, { D(10, 70), D(10, 70) }, { { "other", 1.5 } }, 0 },
	{ "sub", pointwise, E16, FP32, { D(10, 70), D(10, 70) }, { { "other", 2 }, { "alpha", 3 } }, 0 },
	{ "mul", pointwise, E16, DL16, { S(7), S(7) }, { { "other", 3 } }, 0 },
	{ "div", pointwise, E16, DL16, { D(10, 70), D(10, 70) }, { { "other", 8 } }, 0 },
	{ "ge", pointwise, 0, DL16, { D(10, 70), D(10, 70) }, { { "other", 1 } }, 0 },
	{ "where", pointwise, 0, DL16, { D(10, 70), D(10, 70) }, { { "input", 2 }, { "other", -1 } }, 0 },
	{ "where", pointwise, 0, DL16, { D(10, 70), D(70), D(10, 70) }, { { "other", -1 } }, 0 },
	{ "where", pointwise, 0, FP32, { D(10, 70), D(10, 70), D(10, 70) }, { { "input", 4 } }, 0 },
	{ "cast", pointwise, 0, DL16, { S(5, 7), { { 5, 7, END }, SPARSE, FP32 } }, { { 0 } }, 0 },
	{ "cast", pointwise, E16, FP32, { SCALAR, { { END }, DENSE, DL16 } }, { { 0 } }, 0 },
	/* dense columns, repeated along the sticks */
	{ "mul", pointwise, E16, DL16, { D(100, 150), D(100, 1), D(100, 150) }, { { 0 } }, 0 },
	{ "bias_add", pointwise, E16, DL16, { T(100, 150), D(150), T(100, 150) }, { { 0 } }, 0 },
	{ "sub", pointwise, E16, FP32, { T(40, 70), D(70), T(40, 70) }, { { 0 } }, 0 },
	{ "var", variance, 1e-2, DL16, { D(100, 150), S(100) }, { { 0 } }, 0 },
	{ "var", variance, 1e-2, DL16, { D(100, 150), D(150) }, { { "dim", 0 }, { "correction", 0 } }, 0 },
	{ "var", variance, 1e-3, FP32, { D(3, 5, 33), S(5) }, { { "dim", 0 }, { "dim", 2 } }, 0 },
	{ "std", variance, 1e-2, DL16, { D(100, 150), D(100, 1) }, { { 0 } }, 0 },
	{ "std", variance, 1e-3, FP32, { D(5, 33), SCALAR }, { { "dim", 0 }, { "dim", 1 } }, 0 },
	{ "vector_norm", vector_norm, 1e-2, DL16, { D(100, 150), S(100) }, { { 0 } }, 0 },
	{ "vector_norm", vector_norm, 1e-3, FP32, { D(5, 33), SCALAR }, { { "dim", 0 }, { "dim", 1 } }, 0 },
	{ "vector_norm", vector_norm, 1e-2, DL16, { D(5, 70), D(70) }, { { "dim", 0 }, { "ord", 1 } }, 0 },
	{ "vector_norm", vector_norm, 0, DL16, { D(5, 70), S(5) }, { { "ord", INFINITY } }, 0 },
	{ "vector_norm", vector_norm, 1e-2, DL16, { D(5, 70), S(5) }, { { "ord", 0 } }, 0 },
	{ "vector_norm", vector_norm, 1e-2, FP32, { D(5, 70), D(70) }, { { "dim", 0 }, { "ord", 3 } }, 0 },
};

const int num_math_operations = sizeof(math_operations) / sizeof(math_operations[0]);
