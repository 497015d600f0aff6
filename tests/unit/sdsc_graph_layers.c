// SPDX-License-Identifier: MIT
/* Layers of the builder: products in fp32, convolutions, pooling, top-k, batch norm. */
#include "sdsc_operation.h"

/* The offset of [N, C, H, W]; coordinates before the first dim are 0. */
static size_t place(const struct value *v, size_t n, size_t c, size_t h, size_t w)
{
	const int64_t *size = v->size + (v->rank == 4);

	return ((n * (size_t)size[0] + c) * (size_t)size[1] + h) * (size_t)size[2] + w;
}

/* The value of the attribute for an axis: given once, or once per axis. */
static int64_t along(const struct operation *op, const char *name, int axis, double fallback)
{
	double value = fallback;

	for (int i = 0; i < MAX_ATTRS && op->attr[i].name; i++) {
		if (strcmp(op->attr[i].name, name))
			continue;
		value = op->attr[i].value;
		if (!axis--)
			break;
	}
	return (int64_t)value;
}

struct axis {
	int64_t taps, stride, padding, dilation;
};

static struct axis axis_of(const struct operation *op, int k)
{
	struct axis a = { .taps = strstr(op->name, "conv") ? in[1].size[2 + k] :
			  along(op, "kernel_size", k, 0) };

	a.stride = along(op, "stride", k, strstr(op->name, "conv") ? 1 : (double)a.taps);
	a.padding = along(op, "padding", k, 0);
	a.dilation = along(op, "dilation", k, 1);
	return a;
}

/* Computes one output from the elements in its window. */
static double output(const struct operation *op, size_t n, size_t c, size_t h, size_t w)
{
	const struct axis a = axis_of(op, 0), b = axis_of(op, 1);
	const int64_t *size = in[0].size + in[0].rank - 2;
	bool pools = strstr(op->name, "pool"), deep = !strcmp(op->name, "conv2d");
	size_t depth = deep ? (size_t)in[0].size[in[0].rank - 3] : 1;
	double sum = 0, top = -INFINITY, count = 0;

	for (int64_t i = 0; i < a.taps; i++)
		for (int64_t j = 0; j < b.taps; j++) {
			int64_t y = (int64_t)h * a.stride + i * a.dilation - a.padding;
			int64_t x = (int64_t)w * b.stride + j * b.dilation - b.padding;

			if (y < 0 || y >= size[0] || x < 0 || x >= size[1])
				continue;
			count++;
			for (size_t l = 0; l < depth; l++) {
				double v = in[0].data[place(&in[0], n, deep ? l : c, (size_t)y,
							    (size_t)x)];

				top = fmax(top, v);
				sum += pools ? v : v * in[1].data[place(&in[1], c, l, (size_t)i,
									(size_t)j)];
			}
		}
	if (!strcmp(op->name, "max_pool2d"))
		return top;
	if (!pools)
		return sum + (inputs > 2 ? in[2].data[c] : 0);
	if (!attribute(op, "count_include_pad", 1))
		return sum / count;
	return sum / attribute(op, "divisor_override", (double)(a.taps * b.taps));
}

void window(const struct operation *op)
{
	const int64_t *size = out.size + out.rank - 3;
	size_t i = 0;

	for (size_t n = 0; n < (size_t)(out.rank == 4 ? out.size[0] : 1); n++)
		for (size_t c = 0; c < (size_t)size[0]; c++)
			for (size_t h = 0; h < (size_t)size[1]; h++)
				for (size_t w = 0; w < (size_t)size[2]; w++)
					want[i++] = (float)output(op, n, c, h, w);
}

static void nmap(const struct operation *op)
{
	window(op);
	for (size_t i = 0; i < out.elements; i++)
		want[i] *= (float)(axis_of(op, 0).taps * axis_of(op, 1).taps) *
			   (float)at(&in[1], &out, i);
}

/* Sorts the places of a row by insertion. */
static void sort_row(const float *x, size_t step, size_t n, bool largest, size_t *order)
{
	for (size_t i = 0; i < n; i++) {
		size_t j = i;

		for (; j && (largest ? x[order[j - 1] * step] < x[i * step] :
			     x[order[j - 1] * step] > x[i * step]); j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
}

void topk(const struct operation *op)
{
	bool values = !strcmp(op->name, "topk");
	bool largest = strcmp(op->name, "argmin") && attribute(op, "largest", 1) != 0;
	size_t k = (size_t)attribute(op, "k", 1), n, step = 1, order[2100];
	int dim = (int)attribute(op, "dim", -1);

	dim += dim < 0 ? (int)in[0].rank : 0;
	n = (size_t)in[0].size[dim];
	for (uint32_t d = (uint32_t)dim + 1; d < in[0].rank; d++)
		step *= (size_t)in[0].size[d];
	for (size_t r = 0; r < in[0].elements / n; r++) {
		const float *x = &in[0].data[r / step * step * n + r % step];

		sort_row(x, step, n, largest, order);
		for (size_t i = 0; i < k; i++)
			want[(r / step * k + i) * step + r % step] =
				values ? x[order[i] * step] : (float)order[i];
	}
}

static void batch_norm(const struct operation *op)
{
	size_t step = 1;

	for (uint32_t d = 2; d < in[0].rank; d++)
		step *= (size_t)in[0].size[d];
	for (size_t i = 0; i < out.elements; i++) {
		size_t c = i / step % (size_t)in[0].size[1];
		double scale = 1 / sqrt(in[2].data[c] + attribute(op, "eps", 1e-5));

		want[i] = (float)((in[0].data[i] - in[1].data[c]) * scale *
				  (inputs > 3 ? in[3].data[c] : 1) +
				  (inputs > 4 ? in[4].data[c] : 0));
	}
}

static void product(const struct operation *op)
{
	size_t m = (size_t)out.size[out.rank - 2], n = (size_t)out.size[out.rank - 1];
	size_t k = (size_t)in[0].size[in[0].rank - 1];

	(void)op;
	for (size_t i = 0; i < out.elements; i++) {
		size_t b = i / (m * n), r = i / n % m, c = i % n;
		double sum = 0;

		for (size_t l = 0; l < k; l++)
			sum += (double)in[0].data[(b * m + r) * k + l] *
			       in[1].data[(in[1].rank > 2 ? b * k * n : 0) + l * n + c];
		want[i] = (float)sum;
	}
}

void matrix_transpose(const struct operation *op)
{
	size_t n = (size_t)out.size[1];

	(void)op;
	for (size_t i = 0; i < out.elements; i++)
		want[i] = in[0].data[i % n * (size_t)in[0].size[1] + i / n];
}

static void copy(const struct operation *op)
{
	bool whole = out.operand.layout.device_format == SPYRE_FORMAT_IEEE_INT32;

	(void)op;
	for (size_t i = 0; i < out.elements; i++)
		want[i] = whole ? truncf(in[0].data[i]) : in[0].data[i];
}

static void filled(const struct operation *op)
{
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)attribute(op, "value", 0);
}

static void scaled(const struct operation *op)
{
	(void)op;
	for (size_t i = 0; i < out.elements; i++) {
		want[i] = in[0].data[i] / (inputs > 1 ? (float)at(&in[1], &out, i) : 1);
		if (out.operand.layout.device_format == SPYRE_FORMAT_SENINT8)
			want[i] = rintf(want[i]);
	}
}

static void scale(const struct operation *op)
{
	double most = strstr(op->name, "fp8") ? 448 : 127;
	uint32_t mask = reduced(op);

	memset(want, 0, out.elements * sizeof(*want));
	for (size_t i = 0; i < in[0].elements; i++) {
		float *w = &want[fold(&in[0], mask, i)];

		*w = fmaxf(*w, (float)(fabs(in[0].data[i]) / most));
	}
}

static void scaled_mm(const struct operation *op)
{
	product(op);
	for (size_t i = 0; i < out.elements; i++)
		want[i] = (float)(want[i] * at(&in[2], &out, i) * at(&in[3], &out, i) +
				  (inputs > 4 ? at(&in[4], &out, i) : 0));
}

static void mask(const struct operation *op)
{
	size_t n = (size_t)out.size[out.rank - 1];

	for (size_t i = 0; i < out.elements; i++)
		want[i] = (double)(i % n) >= at(&in[1], &out, i) ?
			  (float)attribute(op, "value", 0) : in[0].data[i];
}

/* Sticks along channels. */
#define C(...) { { __VA_ARGS__, END }, CHANNELS, 0 }
#define INT32(...) { { __VA_ARGS__, END }, DENSE, SPYRE_FORMAT_IEEE_INT32 }
#define FP8(...) { { __VA_ARGS__, END }, DENSE, SPYRE_FORMAT_SEN143_FP8 }
#define INT8(...) { { __VA_ARGS__, END }, DENSE, SPYRE_FORMAT_SENINT8 }
#define INT32S(...) { { __VA_ARGS__, END }, SPARSE, SPYRE_FORMAT_IEEE_INT32 }

const struct operation layer_operations[] = {
	{ "mm", product, 1e-4, FP32, { D(33, 70), D(70, 50), D(33, 50) }, { { 0 } }, 0 },
	{ "mm", product, 2e-2, DL16, { D(33, 70), D(70, 50), D(33, 50) }, { { 0 } }, 0 },
	{ "bmm", product, 1e-4, FP32, { D(3, 32, 64), D(3, 64, 96), D(3, 32, 96) }, { { 0 } }, 0 },
	{ "transpose", matrix_transpose, 0, FP32, { D(50, 70), D(70, 50) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { C(2, 64, 8, 8), D(64, 64, 3, 3), C(2, 64, 6, 6) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(2, 3, 9, 11), D(8, 3, 3, 3), D(2, 8, 5, 6) }, { { "stride", 2 }, { "padding", 1 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(1, 5, 7, 9), D(70, 5, 1, 1), D(70), D(1, 70, 7, 9) }, { { 0 } }, 0 },
	{ "conv2d", window, 1e-3, FP32, { D(3, 8, 10), D(40, 3, 3, 2), D(40, 6, 8) }, { { "stride", 1 }, { "padding", 1 }, { "padding", 0 }, { "dilation", 2 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(1, 5, 3, 3), D(70, 5, 3, 3), D(70), C(1, 70, 1, 1) }, { { 0 } }, 0 },
	{ "depthwise_conv2d", window, 1e-2, DL16, { D(2, 5, 9, 9), D(5, 1, 3, 3), D(2, 5, 9, 9) }, { { "padding", 1 } }, 0 },
	{ "depthwise_conv2d", window, 1e-2, DL16, { C(1, 70, 8, 8), D(70, 1, 3, 3), D(70), C(1, 70, 4, 4) }, { { "padding", 1 }, { "stride", 2 } }, 0 },
	{ "max_pool2d", window, 0, DL16, { C(2, 64, 8, 8), C(2, 64, 4, 4) }, { { "kernel_size", 2 } }, 0 },
	{ "max_pool2d", window, 0, DL16, { D(2, 5, 9, 11), D(2, 5, 5, 6) }, { { "kernel_size", 3 }, { "stride", 2 }, { "padding", 1 } }, 0 },
	{ "max_pool2d", window, 0, FP32, { D(5, 8, 8), D(5, 4, 4) }, { { "kernel_size", 3 }, { "stride", 2 }, { "ceil_mode", 1 } }, 0 },
	{ "avg_pool2d", window, E16, DL16, { C(2, 64, 8, 8), C(2, 64, 4, 4) }, { { "kernel_size", 2 } }, 0 },
	{ "avg_pool2d", window, E16, DL16, { D(2, 5, 9, 11), D(2, 5, 5, 6) }, { { "kernel_size", 3 }, { "stride", 2 }, { "padding", 1 } }, 0 },
	{ "avg_pool2d", window, 3e-3, DL16, { C(2, 5, 9, 11), C(2, 5, 5, 6) }, { { "kernel_size", 3 }, { "stride", 2 }, { "padding", 1 }, { "count_include_pad", 0 } }, 0 },
	{ "avg_pool2d", window, E16, DL16, { C(64, 7, 7), C(64, 1, 1) }, { { "kernel_size", 7 }, { "divisor_override", 10 } }, 0 },
	{ "avgpoolnmap", nmap, E16, DL16, { C(2, 64, 8, 8), C(1, 64, 4, 4), C(2, 64, 4, 4) }, { { "kernel_size", 2 } }, 0 },
	{ "topk", topk, 0, DL16, { D(10, 150), D(10, 5) }, { { "k", 5 } }, 0 },
	{ "topk", topk, 0, DL16, { D(150), D(70) }, { { "k", 70 }, { "largest", 0 } }, 0 },
	{ "topk", topk, 0, FP32, { D(7, 3, 64), D(7, 3, 33) }, { { "k", 33 } }, 0 },
	{ "topk", topk, 0, DL16, { D(100, 70), D(4, 70) }, { { "k", 4 }, { "dim", 0 } }, 0 },
	{ "topk", topk, 0, DL16, { D(10, 150), S(10, 1) }, { { "k", 1 } }, 0 },
	{ "topk_indices", topk, 0, DL16, { D(10, 150), D(10, 5) }, { { "k", 5 } }, 0 },
	{ "topk_indices", topk, 0, DL16, { D(10, 150), INT32(10, 5) }, { { "k", 5 } }, 0 },
	{ "topk_indices", topk, 0, FP32, { D(33, 100), INT32(33, 40) }, { { "k", 40 }, { "largest", 0 } }, 0 },
	{ "topk", topk, 0, DL16, { D(2051), D(2051) }, { { "k", 2051 } }, 0 },
	{ "topk_indices", topk, 0, DL16, { D(2, 2100), INT32(2, 2049) }, { { "k", 2049 } }, 0 },
	{ "argmax", topk, 0, DL16, { D(10, 150), INT32S(10) }, { { 0 } }, 0 },
	{ "argmin", topk, 0, DL16, { D(10, 150), INT32S(150) }, { { "dim", 0 } }, 0 },
	{ "cast", copy, 0, DL16, { D(10, 70), INT32(10, 70) }, { { 0 } }, 0 },
	{ "cast", copy, 0, FP32, { D(3, 33), INT32(3, 33) }, { { 0 } }, 0 },
	{ "fp32toint32", copy, 0, FP32, { D(64, 64), INT32(64, 64) }, { { 0 } }, 0 },
	{ "cast", copy, 0.07, DL16, { D(10, 70), FP8(10, 70) }, { { 0 } }, 0 },
	{ "cast", copy, 0.07, FP32, { D(3, 5, 33), FP8(3, 5, 33) }, { { 0 } }, 0 },
	{ "cast", copy, 0, DL16, { FP8(10, 70), D(10, 70) }, { { 0 } }, 0 },
	{ "fp8todl16", copy, 0, DL16, { FP8(10, 256), D(10, 256) }, { { 0 } }, 0 },
	{ "int32tofp32", copy, 0, FP32, { INT32(3, 33), D(3, 33) }, { { 0 } }, 0 },
	{ "cast", copy, 0, DL16, { INT32(10, 70), D(10, 70) }, { { 0 } }, 0 },
	{ "cast", copy, 0, DL16, { INT32(10, 70), INT32(10, 70) }, { { 0 } }, 0 },
	{ "fill", filled, 0, DL16, { INT32(10, 70) }, { { "value", -123456 } }, 0 },
	{ "fill", filled, 0, DL16, { INT8(3, 5, 70) }, { { "value", 7 } }, 0 },
	{ "fill", filled, 0, DL16, { FP8(100) }, { { "value", 0.5 } }, 0 },
	{ "csqint8ch", scaled, 0, FP32, { D(10, 70), INT8(10, 70) }, { { 0 } }, 0 },
	{ "csqint8ch", scaled, 0, FP32, { D(10, 70), D(70), INT8(10, 70) }, { { 0 } }, 1 },
	{ "cast", scaled, 0, DL16, { D(3, 128), INT8(3, 128) }, { { 0 } }, 0 },
	{ "qfp8ch", scaled, 0.07, DL16, { D(10, 70), S(10, 1), FP8(10, 70) }, { { 0 } }, 1 },
	{ "qfp8ch", scaled, 0.07, FP32, { D(3, 33), D(33), FP8(3, 33) }, { { 0 } }, 1 },
	{ "quant_scale_fp8", scale, E16, DL16, { D(10, 70), S(10) }, { { 0 } }, 0 },
	{ "quant_scale_int8", scale, E16, FP32, { D(10, 70), D(70) }, { { "dim", 0 } }, 0 },
	{ "scaled_mm", scaled_mm, 1e-5, FP32, { FP8(33, 70), FP8(70, 50), S(33, 1), D(1, 50), D(33, 50) }, { { 0 } }, 0 },
	{ "scaled_mm", scaled_mm, 2e-2, DL16, { FP8(64, 128), FP8(128, 64), SCALAR, SCALAR, D(64), D(64, 64) }, { { 0 } }, 0 },
	{ "scaled_mm", scaled_mm, 2e-3, FP32, { FP8(7, 128), FP8(128, 70), SCALAR, D(70), F16(7, 70) }, { { 0 } }, 0 },
	{ "mask_by_index", mask, 0, DL16, { D(10, 70), S(10, 1), D(10, 70) }, { { "value", -9 } }, 1 },
	{ "mask_by_index", mask, 0, FP32, { D(3, 5, 33), D(3, 5, 1), D(3, 5, 33) }, { { "value", -1 } }, 1 },
	{ "batch_norm", batch_norm, E16, DL16, { C(2, 70, 5, 6), D(70), D(70), D(70), D(70), C(2, 70, 5, 6) }, { { 0 } }, 1 },
	{ "batch_norm", batch_norm, E16, DL16, { D(2, 5, 9, 70), D(5), D(5), D(5), D(5), D(2, 5, 9, 70) }, { { "eps", 0.01 } }, 1 },
	{ "batch_norm", batch_norm, 1e-5, FP32, { D(7, 33), D(33), D(33), D(7, 33) }, { { 0 } }, 1 },
};

const int num_layer_operations = sizeof(layer_operations) / sizeof(layer_operations[0]);
