// SPDX-License-Identifier: MIT
/*
 * Every operation of the builder, compiled and run on shapes that can be divided
 * and shapes that cannot, compared with plain loops. SPYRE_BACKEND chooses the
 * card.
 */
#include "sdsc_operation.h"

/* Plain loops */

static double apply(const char *name, double a, double b, double c)
{
	static const char *const unary[] = { "relu", "neg", "abs", "exp", "log", "sqrt", "rsqrt",
		"reciprocal", "tanh", "sigmoid", "silu", "gelu", "mish", "floor", "identity",
		"relu6", "fastexp", "fastsigmoid", "dl16tofp32", "fp32todl16", "fill",
		"cast", "sin", "cos", "erf" };
	double sigmoid = 1 / (1 + exp(-a));
	double v[] = { fmax(a, 0), -a, fabs(a), exp(a), log(a), sqrt(a), 1 / sqrt(a), 1 / a,
		tanh(a), sigmoid, a * sigmoid, a * 0.5 * (1 + erf(a / sqrt(2))),
		a * tanh(log1p(exp(a))), floor(a), a, fmin(fmax(a, 0), 6), exp(a), sigmoid, a, a,
		a, a, sin(a), cos(a), erf(a) };
	static const char *const binary[] = { "add", "sub", "revsub", "mul", "div", "maximum",
		"minimum", "eq", "ne", "gt", "lt", "ge", "le", "swiglu" };
	double w[] = { a + b, a - b, b - a, a * b, a / b, fmax(a, b), fmin(a, b), a == b, a != b,
		a > b, a < b, a >= b, a <= b, a * sigmoid * b };

	for (size_t i = 0; i < sizeof(unary) / sizeof(unary[0]); i++)
		if (!strcmp(unary[i], name))
			return v[i];
	for (size_t i = 0; i < sizeof(binary) / sizeof(binary[0]); i++)
		if (!strcmp(binary[i], name))
			return w[i];
	ck_assert_str_eq(name, "where");
	return a != 0 ? b : c;
}

static void pointwise(const struct operation *op)
{
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)apply(op->name, at(&in[0], &out, i),
				       inputs > 1 ? at(&in[1], &out, i) : 0,
				       inputs > 2 ? at(&in[2], &out, i) : 0);
}

static void clip(const struct operation *op)
{
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)fmin(fmax(in[0].data[i], attribute(op, "min", -INFINITY)),
				      attribute(op, "max", INFINITY));
}

static void softplus(const struct operation *op)
{
	double beta = attribute(op, "beta", 1);

	for (size_t i = 0; i < out.elements; i++) {
		double x = in[0].data[i] * beta;

		want[i] = (float)(x > attribute(op, "threshold", 20) ? in[0].data[i] :
				  log1p(exp(x)) / beta);
	}
}

static void constant(const struct operation *op)
{
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)attribute(op, "value", 0);
}

static void reduce(const struct operation *op)
{
	double *sum = calloc(out.elements, sizeof(*sum));
	uint32_t mask = reduced(op);

	for (size_t i = 0; i < out.elements; i++)
		sum[i] = !strcmp(op->name, "amax") ? -INFINITY :
			 !strcmp(op->name, "amin") ? INFINITY : 0;
	for (size_t i = 0; i < in[0].elements; i++) {
		double *s = &sum[fold(&in[0], mask, i)], x = in[0].data[i];

		if (!strcmp(op->name, "amax"))
			*s = fmax(*s, x);
		else if (!strcmp(op->name, "amin"))
			*s = fmin(*s, x);
		else if (!strcmp(op->name, "absmax"))
			*s = fmax(*s, fabs(x));
		else
			*s += x;
	}
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)(!strcmp(op->name, "mean") ?
				  sum[i] * out.elements / in[0].elements : sum[i]);
	free(sum);
}

/* Rows along a dim: start of row @r, and the step within it. */
static size_t row(int dim, size_t r, size_t *step)
{
	*step = 1;
	for (uint32_t d = dim + 1; d < in[0].rank; d++)
		*step *= in[0].size[d];
	return r / *step * *step * in[0].size[dim] + r % *step;
}

static void softmax(const struct operation *op)
{
	int dim = (int)attribute(op, "dim", -1);
	size_t n, step;

	dim += dim < 0 ? in[0].rank : 0;
	n = in[0].size[dim];
	for (size_t r = 0; r < in[0].elements / n; r++) {
		size_t start = row(dim, r, &step);
		double top = -INFINITY, sum = 0;

		for (size_t i = 0; i < n; i++)
			top = fmax(top, in[0].data[start + i * step]);
		for (size_t i = 0; i < n; i++)
			sum += exp(in[0].data[start + i * step] - top);
		for (size_t i = 0; i < n; i++) {
			double x = in[0].data[start + i * step] - top;

			want[start + i * step] = (float)(!strcmp(op->name, "softmax") ?
							 exp(x) / sum : x - log(sum));
		}
	}
}

static void norm(const struct operation *op)
{
	size_t n = in[0].size[in[0].rank - 1];

	for (size_t r = 0; r < in[0].elements / n; r++) {
		const float *x = &in[0].data[r * n];
		double mean = 0, square = 0;

		for (size_t i = 0; i < n; i++) {
			mean += x[i] / n;
			square += (double)x[i] * x[i] / n;
		}
		if (!strcmp(op->name, "rms_norm"))
			mean = 0;
		for (size_t i = 0; i < n; i++)
			want[r * n + i] = (float)((x[i] - mean) /
				sqrt(square - mean * mean + attribute(op, "eps", 1e-5)) *
				(inputs > 1 ? in[1].data[i] : 1) +
				(inputs > 2 ? in[2].data[i] : 0));
	}
}

/* Returns the matrix of a batch index of @full. */
static const float *matrix(const struct value *v, const struct value *full, size_t batch)
{
	size_t index = 0, step = v->size[v->rank - 1] * v->size[v->rank - 2];

	for (uint32_t i = 2; i < full->rank; i++) {
		uint32_t d = full->rank - 1 - i;

		if (i < v->rank) {
			if (v->size[v->rank - 1 - i] > 1)
				index += batch % full->size[d] * step;
			step *= v->size[v->rank - 1 - i];
		}
		batch /= full->size[d];
	}
	return &v->data[index];
}

static void product(const struct value *a, const struct value *b, bool transposed,
		    const struct value *bias)
{
	size_t m = out.size[out.rank - 2], n = out.size[out.rank - 1];
	size_t k = a->size[a->rank - 1];

	for (size_t i = 0; i < out.elements; i++) {
		const float *x = matrix(a, &out, i / (m * n)), *y = matrix(b, &out, i / (m * n));
		size_t r = i / n % m, c = i % n;
		double sum = bias ? at(bias, &out, i) : 0;

		for (size_t l = 0; l < k; l++)
			sum += (double)x[r * k + l] * (transposed ? y[c * k + l] : y[l * n + c]);
		want[i] = (float)sum;
	}
}

static void matmul(const struct operation *op)
{
	product(&in[0], &in[1], attribute(op, "transpose_b", 0) != 0, NULL);
}

static void linear(const struct operation *op)
{
	product(&in[0], &in[1], true, inputs > 2 ? &in[2] : NULL);
}

static void addmm(const struct operation *op)
{
	product(&in[1], &in[2], false, &in[0]);
}

static void vector(const struct operation *op)
{
	size_t k = in[1].elements;

	for (size_t i = 0; i < out.elements; i++) {
		double sum = 0;

		for (size_t l = 0; l < k; l++)
			sum += (double)in[0].data[i * k + l] * in[1].data[l];
		want[i] = (float)sum;
	}
}

static void transpose(const struct operation *op)
{
	int a = (int)attribute(op, "dim0", -2), b = (int)attribute(op, "dim1", -1);
	bool swaps = !strcmp(op->name, "transpose");

	for (size_t i = 0; i < out.elements; i++) {
		size_t c[6], rest = i, index = 0, step = 1, swap;

		for (uint32_t d = out.rank; d-- > 0; rest /= out.size[d])
			c[d] = rest % out.size[d];
		if (swaps) {
			int x = a < 0 ? a + (int)out.rank : a, y = b < 0 ? b + (int)out.rank : b;

			swap = c[x];
			c[x] = c[y];
			c[y] = swap;
		}
		for (uint32_t d = in[0].rank; d-- > 0; step *= in[0].size[d])
			index += c[d] * step;
		want[i] = in[0].data[index];
	}
}

/* The keys that a row attends to, and what masks and sinks add. */
struct visible {
	size_t first, end, width;
	const float *mask, *sink;
};

/* Attends from one row of a query to the lanes from @first of its keys. */
static void attend_row(const float *q, const float *k, const float *v, const struct visible *see,
		       float *to, size_t d, size_t e, double scale)
{
	double score[320], top = see->sink ? *see->sink : -INFINITY, sum;

	for (size_t j = see->first; j < see->end; j++) {
		score[j] = see->mask ? see->mask[j] : 0;
		for (size_t l = 0; l < d; l++)
			score[j] += q[l] * scale * k[j * see->width + l];
		top = fmax(top, score[j]);
	}
	sum = see->sink ? exp(*see->sink - top) : 0;
	for (size_t j = see->first; j < see->end; j++)
		sum += score[j] = exp(score[j] - top);
	for (size_t l = 0; l < e; l++) {
		double sum_v = 0;

		for (size_t j = see->first; j < see->end; j++)
			sum_v += score[j] / sum * v[j * (see->width / d) * e + l];
		to[l] = (float)sum_v;
	}
}

/* Of 4 inputs the last is the sinks if the attribute says so, else the mask. */
static void attention(const struct operation *op)
{
	size_t s = in[0].size[in[0].rank - 2], width = in[0].size[in[0].rank - 1];
	size_t t = in[1].size[in[1].rank - 2], heads = (size_t)attribute(op, "heads", 1);
	size_t d = width / heads, columns = in[2].size[in[2].rank - 1], e = columns / heads;
	size_t rank = in[0].rank, many = rank > 2 ? in[0].size[rank - 3] : 1;
	size_t shared = rank > 2 ? many / in[1].size[rank - 3] : 1;
	double scale = attribute(op, "scale", 1 / sqrt((double)d));
	bool causal = attribute(op, "causal", 0) != 0, sinks = attribute(op, "sinks", 0) != 0;
	size_t window = (size_t)attribute(op, "window", 0);

	for (size_t row = 0; row < in[0].elements / width; row++)
		for (size_t h = 0; h < heads; h++) {
			size_t batch = row / s, keys = batch / shared;
			size_t end = row % s + (size_t)attribute(op, "offset", 0) + 1;
			struct visible see = { .end = causal && end < t ? end : t, .width = width };

			if (window && end > window)
				see.first = end - window;
			if (inputs > 3 + sinks)
				see.mask = in[3].data + row % s * t;
			if (sinks)
				see.sink = in[inputs - 1].data + batch % many;
			attend_row(in[0].data + row * width + h * d,
				   in[1].data + keys * t * width + h * d,
				   in[2].data + keys * t * columns + h * e, &see,
				   want + row * columns + h * e, d, e, scale);
		}
}

static const struct operation operations[] = {
	UNARY("relu", E16), UNARY("relu6", E16), UNARY("neg", E16), UNARY("abs", E16),
	UNARY("exp", E16), UNARY("fastexp", E16), UNARY("log", E16), UNARY("sqrt", E16),
	UNARY("rsqrt", E16), UNARY("reciprocal", E16), UNARY("sin", E16),
	UNARY("cos", E16), UNARY("erf", E16), UNARY("tanh", E16), UNARY("sigmoid", E16),
	UNARY("fastsigmoid", E16), UNARY("silu", E16), UNARY("gelu", E16), UNARY("mish", E16),
	UNARY("floor", E16), UNARY("identity", E16),
	BINARY("add", E16), BINARY("sub", E16), BINARY("revsub", E16), BINARY("mul", E16),
	BINARY("maximum", E16), BINARY("minimum", E16), BINARY("eq", 0), BINARY("ne", 0),
	BINARY("gt", 0), BINARY("lt", 0), BINARY("ge", 0), BINARY("le", 0),
	{ "div", pointwise, E16, DL16, { D(100, 150), D(150), D(100, 150) }, { { 0 } }, 1 },
	{ "add", pointwise, E16, DL16, { S(100), S(100), S(100) }, { { 0 } }, 0 },
	{ "add", pointwise, E16, DL16, { S(4, 100), SCALAR, S(4, 100) }, { { 0 } }, 0 },
	{ "add", pointwise, E16, DL16, { D(1), D(1), D(1) }, { { 0 } }, 0 },
	{ "add", pointwise, E16, DL16, { SCALAR, SCALAR, SCALAR }, { { 0 } }, 0 },
	{ "add", pointwise, E16, FP32, { D(1, 1, 1), SCALAR, D(1, 1, 1) }, { { 0 } }, 0 },
	{ "sum", reduce, E16, DL16, { D(1), SCALAR }, { { 0 } }, 0 },
	{ "softmax", softmax, 5e-3, DL16, { D(1, 1), D(1, 1) }, { { 0 } }, 0 },
	{ "sum", reduce, 2e-2, DL16, { D(2, 3, 4, 5, 70), D(3, 4, 70) }, { { "dim", 0 }, { "dim", 3 } }, 0 },
	{ "softmax", softmax, 5e-3, DL16, { D(2, 1, 3, 5, 70), D(2, 1, 3, 5, 70) }, { { "dim", 2 } }, 0 },
	{ "add", pointwise, E16, DL16, { T(40, 96), T(40, 96), T(40, 96) }, { { 0 } }, 0 },
	{ "add", pointwise, E16, DL16, { D(2, 3, 4, 5, 6), D(4, 1, 6), D(2, 3, 4, 5, 6) }, { { 0 } }, 0 },
	{ "add", pointwise, E16, DL16, { T(40, 96), D(40, 96), D(40, 96) }, { { 0 } }, 0 },
	{ "mul", pointwise, E16, DL16, { D(3, 40, 70), T(40, 70), T(3, 40, 70) }, { { 0 } }, 0 },
	{ "cast", pointwise, 0, DL16, { D(10, 70), F32(10, 70) }, { { 0 } }, 0 },
	{ "cast", pointwise, E16, FP32, { D(10, 70), F16(10, 70) }, { { 0 } }, 0 },
	{ "cast", pointwise, 8e-3, FP32, { D(10, 70), BF16(10, 70) }, { { 0 } }, 0 },
	{ "cast", pointwise, 8e-3, DL16, { D(10, 70), BF16(10, 70) }, { { 0 } }, 0 },
	{ "cast", pointwise, 0, DL16, { D(33), D(33) }, { { 0 } }, 0 },
	{ "cast", pointwise, E16, SPYRE_FORMAT_BFLOAT16, { D(3, 33), F16(3, 33) }, { { 0 } }, 0 },
	{ "mul", pointwise, 8e-3, SPYRE_FORMAT_BFLOAT16, { D(100, 150), D(150), D(100, 150) }, { { 0 } }, 0 },
	{ "where", pointwise, 0, DL16, { D(100, 150), D(100, 150), SCALAR, D(100, 150) }, { { 0 } }, 0 },
	{ "clip", clip, 0, DL16, { D(100, 150), D(100, 150) }, { { "min", -0.5 }, { "max", 1 } }, 0 },
	{ "clip", clip, 0, DL16, { D(33), D(33) }, { { "max", 0.5 } }, 0 },
	{ "clip", clip, 0, FP32, { D(33), D(33) }, { { "min", 0.5 } }, 0 },
	{ "softplus", softplus, E16, DL16, { D(5, 70), D(5, 70) }, { { "beta", 2 }, { "threshold", 3 } }, 0 },
	{ "dl16tofp32", pointwise, 0, DL16, { D(10, 70), F32(10, 70) }, { { 0 } }, 0 },
	{ "dl16tofp32", pointwise, 0, DL16, { D(10, 128), F32(10, 128) }, { { 0 } }, 0 },
	{ "dl16tofp32", pointwise, 0, DL16, { D(4096), F32(4096) }, { { 0 } }, 0 },
	{ "fp32todl16", pointwise, E16, FP32, { D(10, 70), F16(10, 70) }, { { 0 } }, 0 },
	{ "fp32todl16", pointwise, E16, FP32, { D(3, 5, 150), F16(3, 5, 150) }, { { 0 } }, 0 },
	{ "sum", reduce, 2e-2, DL16, { D(100, 150), S(100) }, { { 0 } }, 0 },
	{ "sum", reduce, 2e-2, DL16, { D(100, 150), D(150) }, { { "dim", 0 } }, 0 },
	{ "sum", reduce, 2e-2, DL16, { D(256, 64), D(64) }, { { "dim", 0 } }, 0 },
	{ "sum", reduce, 2e-2, DL16, { D(4, 5, 70), D(4, 70) }, { { "dim", 1 } }, 0 },
	{ "sum", reduce, 2e-2, DL16, { D(4, 5, 70), D(4, 1, 70) }, { { "dim", 1 } }, 0 },
	{ "sum", reduce, 2e-2, DL16, { D(4, 6, 70), SCALAR }, { { "dim", 0 }, { "dim", 1 }, { "dim", 2 } }, 0 },
	{ "mean", reduce, 2e-3, DL16, { D(4, 6, 70), S(6) }, { { "dim", 0 }, { "dim", -1 } }, 0 },
	{ "mean", reduce, 2e-3, FP32, { D(33, 100), S(33) }, { { 0 } }, 0 },
	{ "mean", reduce, 2e-3, DL16, { S(8, 12), S(12) }, { { "dim", 0 } }, 0 },
	{ "amax", reduce, 0, DL16, { D(100, 150), S(100) }, { { 0 } }, 0 },
	{ "amax", reduce, 0, DL16, { D(100, 150), D(100, 1) }, { { 0 } }, 0 },
	{ "amin", reduce, 0, DL16, { D(100, 150), D(1, 150) }, { { "dim", 0 } }, 0 },
	{ "amin", reduce, 0, DL16, { D(3, 33), S(3) }, { { 0 } }, 0 },
	{ "absmax", reduce, 0, DL16, { D(3, 33), S(3) }, { { 0 } }, 0 },
	{ "absmax", reduce, 0, DL16, { D(1, 33), D(33) }, { { "dim", 0 } }, 0 },
	{ "sum", reduce, E16, DL16, { D(7, 1), S(7) }, { { 0 } }, 0 },
	{ "softmax", softmax, 5e-3, DL16, { D(100, 150), D(100, 150) }, { { 0 } }, 0 },
	{ "softmax", softmax, 5e-3, DL16, { D(100, 150), D(100, 150) }, { { "dim", 0 } }, 0 },
	{ "softmax", softmax, 5e-3, DL16, { D(3, 33, 64), D(3, 33, 64) }, { { "dim", 1 } }, 0 },
	{ "softmax", softmax, 5e-3, DL16, { D(1, 1000), D(1, 1000) }, { { 0 } }, 0 },
	{ "log_softmax", softmax, 2e-2, DL16, { D(100, 150), D(100, 150) }, { { 0 } }, 0 },
	{ "layer_norm", norm, 1e-2, DL16, { D(100, 150), D(150), D(150), D(100, 150) }, { { 0 } }, 0 },
	{ "layer_norm", norm, 1e-2, DL16, { D(3, 33, 64), D(64), D(3, 33, 64) }, { { "eps", 1e-3 } }, 0 },
	{ "layer_norm", norm, 1e-2, DL16, { D(64, 128), D(64, 128) }, { { 0 } }, 0 },
	{ "rms_norm", norm, 1e-2, DL16, { D(100, 150), D(150), D(100, 150) }, { { 0 } }, 0 },
	{ "rms_norm", norm, 1e-2, FP32, { D(3, 33), D(3, 33) }, { { "eps", 0.01 } }, 0 },
	{ "swiglu", pointwise, 5e-3, DL16, { D(100, 150), D(100, 150), D(100, 150) }, { { 0 } }, 0 },
	{ "fill", constant, E16, DL16, { D(100, 150) }, { { "value", 3.5 } }, 0 },
	{ "fill", constant, 0, FP32, { D(33) }, { { "value", -1 } }, 0 },
	{ "fill", pointwise, 0, DL16, { SCALAR, D(100, 150) }, { { 0 } }, 0 },
	{ "transpose", transpose, 0, DL16, { D(128, 64), D(64, 128) }, { { 0 } }, 0 },
	{ "transpose", transpose, 0, DL16, { D(100, 150), D(150, 100) }, { { 0 } }, 0 },
	{ "transpose", transpose, 0, DL16, { D(3, 5, 70), D(5, 3, 70) }, { { "dim0", 0 }, { "dim1", 1 } }, 0 },
	{ "transpose", transpose, 0, DL16, { D(3, 5, 70), D(70, 5, 3) }, { { "dim0", 0 }, { "dim1", 2 } }, 0 },
	{ "restickify", transpose, 0, DL16, { D(100, 150), T(100, 150) }, { { 0 } }, 0 },
	{ "restickify", transpose, 0, DL16, { T(2, 64, 128), D(2, 64, 128) }, { { 0 } }, 0 },
	{ "wide_matmul", matmul, 1e-5, DL16, { D(64, 128), D(128, 64), F32(64, 64) }, { { 0 } }, 0 },
	{ "wide_matmul", matmul, 1e-5, DL16, { D(3, 10, 150), D(3, 150, 70), F32(3, 10, 70) }, { { 0 } }, 0 },
	{ "wide_matmul", matmul, 1e-5, DL16, { D(9, 50), D(50, 130), F32(9, 130) }, { { 0 } }, 0 },
	{ "wide_matmul", matmul, 1e-5, DL16, { D(9, 1), D(1, 40), F32(9, 40) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(64, 128), D(128, 64), D(64, 64) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(100, 150), D(150, 70), D(100, 70) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(1, 100), D(100, 33), D(1, 33) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(33, 1), D(1, 33), D(33, 33) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(33, 100), D(100, 1), D(33, 1) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(3, 33, 64), D(3, 64, 70), D(3, 33, 70) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(3, 33, 64), D(64, 70), D(3, 33, 70) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(33, 64), D(3, 64, 70), D(3, 33, 70) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(2, 1, 33, 64), D(3, 64, 70), D(2, 3, 33, 70) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(33, 100), D(70, 100), D(33, 70) }, { { "transpose_b", 1 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(33, 1), D(70, 1), D(33, 70) }, { { "transpose_b", 1 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(33, 100), D(1, 100), D(33, 1) }, { { "transpose_b", 1 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { T(70, 100), D(100, 33), D(70, 33) }, { { 0 } }, 0 },
	{ "matmul", matmul, 2e-2, DL16, { D(70, 100), T(100, 33), D(70, 33) }, { { 0 } }, 0 },
	{ "matmul", vector, 2e-2, DL16, { D(70, 100), D(100), S(70) }, { { 0 } }, 0 },
	{ "linear", linear, 2e-2, DL16, { D(3, 33, 100), D(70, 100), D(70), D(3, 33, 70) }, { { 0 } }, 0 },
	{ "linear", linear, 2e-2, DL16, { D(33, 64), D(128, 64), D(33, 128) }, { { 0 } }, 0 },
	{ "addmm", addmm, 2e-2, DL16, { D(70), D(33, 100), D(100, 70), D(33, 70) }, { { 0 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(2, 64, 64), D(2, 128, 64), D(2, 128, 64), D(2, 64, 64) }, { { 0 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(3, 33, 40), D(3, 100, 40), D(3, 100, 70), D(33, 100), D(3, 33, 70) }, { { 0 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(1, 70), D(100, 70), D(100, 70), D(1, 70) }, { { "scale", 0.25 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(3, 33, 64), D(3, 33, 64), D(3, 33, 64), D(33, 33), D(3, 33, 64) }, { { "heads", 2 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(2, 32, 64), D(2, 100, 64), D(2, 100, 64), D(2, 32, 64) }, { { "heads", 4 }, { "scale", 0.25 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(3, 40, 64), D(3, 40, 64), D(3, 40, 64), D(3, 40, 64) }, { { "causal", 1 } }, 0 },
	/* blocks of 64 rows, each with the keys it sees; groups of heads share keys */
	{ "attention", attention, 1e-2, DL16, { D(2, 16, 130, 16), D(2, 4, 150, 16), D(2, 4, 150, 16), D(2, 16, 130, 16) }, { { "causal", 1 }, { "offset", 20 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(32, 130, 16), D(32, 130, 16), D(32, 130, 16), D(130, 130), D(32, 130, 16) }, { { "causal", 1 }, { "window", 30 } }, 0 },
	{ "attention", attention, 1e-2, FP32, { D(6, 50, 40), D(2, 150, 40), D(2, 150, 33), S(6), D(6, 50, 33) }, { { "causal", 1 }, { "offset", 100 }, { "window", 64 }, { "sinks", 1 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(2, 6, 5, 64), D(2, 3, 70, 64), D(2, 3, 70, 64), D(5, 70), D(6), D(2, 6, 5, 64) }, { { "sinks", 1 } }, 0 },
	/* one row at the end of keys; a single key; heads in one stick */
	{ "attention", attention, 1e-2, DL16, { D(8, 1, 128), D(2, 200, 128), D(2, 200, 128), D(8, 1, 128) }, { { "causal", 1 }, { "offset", 199 }, { "window", 50 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(4, 3, 64), D(2, 1, 64), D(2, 1, 64), D(4), D(4, 3, 64) }, { { "causal", 1 }, { "sinks", 1 } }, 0 },
	{ "attention", attention, 1e-2, DL16, { D(3, 33, 64), D(3, 33, 64), D(3, 33, 64), D(3, 33, 64) }, { { "heads", 2 }, { "causal", 1 }, { "window", 9 } }, 0 },
};

#define COUNT (int)(sizeof(operations) / sizeof(operations[0]))

START_TEST(one_operation)
{
	run(&operations[_i / NUM_PLACINGS], _i % NUM_PLACINGS);
}
END_TEST

/* Every operation that the builder lists is run above, in sdsc_layers or in sdsc_integers. */
START_TEST(all_listed)
{
	static const char *const inner[] = { "exx2", "layernormscale", "layernormnorm",
		"batchnormfwd", "exx2_zeromean", "index_select", "embedding", "gather",
		"index_put", "scatter", "index_matmul" };

	for (const char *const *name = spyre_sdsc_operations(); *name; name++) {
		bool found = false;

		for (int i = 0; i < COUNT; i++)
			found = found || !strcmp(operations[i].name, *name);
		for (int i = 0; i < num_math_operations; i++)
			found = found || !strcmp(math_operations[i].name, *name);
		for (int i = 0; i < num_layer_operations; i++)
			found = found || !strcmp(layer_operations[i].name, *name);
		for (int i = 0; i < num_integer_operations; i++)
			found = found || !strcmp(integer_operations[i].name, *name);
		/* Parts of norms, which are tested, and operations at indices. */
		for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
			found = found || !strcmp(inner[i], *name);
		ck_assert_msg(found, "%s is not run", *name);
	}
}
END_TEST

START_TEST(queries)
{
	spyre_sdsc_attribute wide[] = { { "value", 0.3 }, { "format", SPYRE_FORMAT_IEEE_FP32 } };
	const int64_t size[] = { 4, 64 };
	spyre_sdsc_operand operand = { .rank = 2, .size = { 4, 64 } }, seen;
	uint32_t least = 0, most = 0, tensor, sum;
	spyre_sdsc_graph *graph;

	ck_ok(spyre_sdsc_operation_inputs("add", &least, &most));
	ck_assert_uint_eq(least, 2);
	ck_assert_uint_eq(most, 2);
	ck_status(spyre_sdsc_operation_inputs("addd", &least, &most), SPYRE_ERROR_UNSUPPORTED);
	ck_status(spyre_sdsc_operation_inputs(NULL, &least, &most), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_operation_inputs("add", NULL, &most), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_operation_inputs("add", &least, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_ok(spyre_layout_init(&operand.layout, 2, size, SPYRE_FORMAT_IEEE_FP16));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &tensor));
	sum = SPYRE_SDSC_NEW;
	ck_ok(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &tensor, 1, &sum));
	ck_ok(spyre_sdsc_graph_get_tensor(graph, sum, &seen));
	ck_assert_uint_eq(seen.rank, 2);
	ck_assert_int_eq(seen.size[1], 64);
	ck_status(spyre_sdsc_graph_get_tensor(graph, sum + 1, &seen), SPYRE_ERROR_INVALID_ARGUMENT);
	sum = SPYRE_SDSC_NEW;
	ck_ok(spyre_sdsc_graph_add_op(graph, "fill", wide, 2, NULL, 0, &sum));
	ck_ok(spyre_sdsc_graph_get_tensor(graph, sum, &seen));
	ck_assert_int_eq(seen.layout.device_format, SPYRE_FORMAT_IEEE_FP32);
	wide[1].value = 77;
	sum = SPYRE_SDSC_NEW;
	ck_status(spyre_sdsc_graph_add_op(graph, "fill", wide, 2, NULL, 0, &sum),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("\"format\" is 77");
	ck_status(spyre_sdsc_graph_get_tensor(NULL, sum, &seen), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_get_tensor(graph, sum, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* Padding: refusals, and outputs that would overwrite a neighbour. */
START_TEST(paddings)
{
	spyre_sdsc_operand whole = { .rank = 2, .size = { 4, 128 } };
	spyre_sdsc_operand part = { .rank = 2, .size = { 4, 100 } };
	uint32_t a, b, c, sum = SPYRE_SDSC_NEW;
	spyre_sdsc_graph *graph;

	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_ok(spyre_layout_init(&whole.layout, 2, whole.size, SPYRE_FORMAT_IEEE_FP16));
	ck_ok(spyre_layout_init(&part.layout, 2, part.size, SPYRE_FORMAT_IEEE_FP16));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &whole, &a));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &part, &b));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &part, &c));
	ck_ok(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &b, 1, &sum));
	ck_status(spyre_sdsc_graph_set_padding(NULL, a, SPYRE_SDSC_PADDING_ZERO),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_set_padding(graph, sum, SPYRE_SDSC_PADDING_ZERO),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_set_padding(graph, sum + 1, SPYRE_SDSC_PADDING_ZERO),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_set_padding(graph, a, (spyre_sdsc_padding)3),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_sdsc_graph_set_padding(graph, a, SPYRE_SDSC_PADDING_FOREIGN));
	ck_ok(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &a, 1, &a));
	ck_ok(spyre_sdsc_graph_set_padding(graph, c, SPYRE_SDSC_PADDING_FOREIGN));
	ck_status(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &b, 1, &c), SPYRE_ERROR_LAYOUT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "100 elements, sticks of 64"));
	ck_ok(spyre_sdsc_graph_set_padding(graph, c, SPYRE_SDSC_PADDING_UNKNOWN));
	ck_ok(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &b, 1, &c));
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("graph"), *q = tcase_create("queries");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, one_operation, 0, COUNT * NUM_PLACINGS);
	tcase_add_test(t, all_listed);
	tcase_add_test(q, queries);
	tcase_add_test(q, paddings);
	return run_both("graph", t, q);
}
