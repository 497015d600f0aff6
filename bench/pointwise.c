// SPDX-License-Identifier: MIT
/*
 * Pointwise work and chains on 4096 x 4096 DL16 against memcpy that reads and
 * writes as many bytes. The last rows of each result are checked.
 */
#include "bench/device.h"
#include "bench/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096
#define BYTES ((size_t)SIZE * SIZE * 2)
#define CHECKED_ROWS 8

/* A row of the result, in double. */
typedef void (*row_fn)(double *out, const double *a, const double *b);

struct operation {
	const char *name;
	bool bundle;		/* from --bundles, otherwise of the builder */
	int inputs;
	bool vectors;		/* inputs after the first are one row of ones */
	row_fn row;
	double aim;
};

static void row_add(double *out, const double *a, const double *b)
{
	for (int i = 0; i < SIZE; i++)
		out[i] = a[i] + b[i];
}

static void row_mul(double *out, const double *a, const double *b)
{
	for (int i = 0; i < SIZE; i++)
		out[i] = a[i] * b[i];
}

static void row_gelu(double *out, const double *a, const double *b)
{
	for (int i = 0; i < SIZE; i++)
		out[i] = a[i] * 0.5 * erfc(-a[i] * sqrt(0.5));
}

static void row_softmax(double *out, const double *a, const double *b)
{
	double sum = 0, max = a[0];

	for (int i = 0; i < SIZE; i++)
		max = a[i] > max ? a[i] : max;
	for (int i = 0; i < SIZE; i++)
		sum += out[i] = exp(a[i] - max);
	for (int i = 0; i < SIZE; i++)
		out[i] /= sum;
}

static void row_layernorm(double *out, const double *a, const double *b)
{
	double sum = 0, squares = 0, mean, scale;

	for (int i = 0; i < SIZE; i++) {
		sum += a[i];
		squares += a[i] * a[i];
	}
	mean = sum / SIZE;
	scale = 1 / sqrt(squares / SIZE - mean * mean + 1e-5);
	for (int i = 0; i < SIZE; i++)
		out[i] = (a[i] - mean) * scale + 1;
}

struct pointwise {
	const struct operation *op;
	struct bench_device device;
	struct bench_tensor tensor[4];
	spyre_arg args[4];
	spyre_kernel *kernel;
	uint16_t *half[4];
	size_t moved;		/* bytes read and written */
	char *from, *to;
};

static double run_spyre(void *state)
{
	struct pointwise *p = state;
	const double start = bench_now();

	if (bench_failed(spyre_launch(p->device.stream, p->kernel, p->args, p->op->inputs + 1),
			 "launching") ||
	    bench_failed(spyre_stream_synchronize(p->device.stream), "running"))
		return -1;
	return bench_now() - start;
}

static double run_memcpy(void *state)
{
	struct pointwise *p = state;
	const double start = bench_now();

	memcpy(p->to, p->from, p->moved / 2);
	__asm__ volatile("" : : "r"(p->to) : "memory");
	return bench_now() - start;
}

static bool prepare_tensor(struct pointwise *p, int i, bool vector)
{
	const int64_t size[2] = { SIZE, SIZE };
	const size_t count = vector ? SIZE : (size_t)SIZE * SIZE;
	uint32_t seed = 1 + i;

	p->half[i] = calloc(count, 2);
	if (!p->half[i] ||
	    !bench_tensor_create(&p->device, &p->tensor[i], p->half[i], SPYRE_FORMAT_IEEE_FP16,
				 vector ? 1 : 2, size))
		return false;
	for (size_t j = 0; j < count; j++)
		p->half[i][j] = bench_half(vector ? 1 : bench_quarter(&seed));
	p->args[i] = (spyre_arg){ p->tensor[i].address, &p->tensor[i].layout };
	p->moved += count * 2;
	return i == p->op->inputs ||
	       !bench_failed(spyre_copy_h2d(p->device.context, p->tensor[i].address,
					    &p->tensor[i].layout, &p->tensor[i].host),
			     "copying to the card");
}

static bool prepare(struct pointwise *p, const struct bench_options *options)
{
	const struct operation *op = p->op;

	for (int i = 0; i <= op->inputs; i++) {
		if (!prepare_tensor(p, i, op->vectors && i && i < op->inputs))
			return false;
	}
	p->from = aligned_alloc(4096, 2 * BYTES);
	p->to = aligned_alloc(4096, 2 * BYTES);
	if (!p->from || !p->to)
		return false;
	memset(p->from, 1, 2 * BYTES);
	if (op->bundle)
		return bench_kernel_load(&p->device, options->bundles, op->name, &p->kernel);
	return bench_kernel_build(&p->device, op->name, p->tensor, op->inputs + 1, 0, &p->kernel);
}

/* Steps of a chain are rounded to 9 fraction bits each; e^x magnifies that. */
static bool check(struct pointwise *p)
{
	const struct operation *op = p->op;
	const uint16_t *got = p->half[op->inputs];
	double a[SIZE], b[SIZE], want[SIZE];

	if (bench_failed(spyre_copy_d2h(p->device.context, &p->tensor[op->inputs].host,
					p->args[op->inputs].address, p->args[op->inputs].layout),
			 "copying the result back"))
		return false;
	for (size_t row = SIZE - CHECKED_ROWS; row < SIZE; row++) {
		for (int i = 0; i < SIZE; i++) {
			a[i] = bench_float(p->half[0][row * SIZE + i]);
			b[i] = op->inputs == 2 ? bench_float(p->half[1][row * SIZE + i]) : 0;
		}
		op->row(want, a, b);
		for (int i = 0; i < SIZE; i++) {
			const double x = bench_float(got[row * SIZE + i]);

			if (fabs(x - want[i]) <= fabs(want[i]) / 64 + 1e-3 / SIZE)
				continue;
			fprintf(stderr, "spyre-bench: %s: element %zu, %d is %g, not %g\n",
				op->name, row, i, x, want[i]);
			return false;
		}
	}
	return true;
}

static bool measure(struct bench_report *report, const struct bench_options *options,
		    const struct operation *op)
{
	struct bench_result result = { .unit = "GB/s", .peer = "memcpy, same bytes",
				       .aim = op->aim };
	struct pointwise p = { .op = op };
	const struct bench_pair pair = { run_spyre, run_memcpy, &p, 20 };
	bool ok;

	snprintf(result.name, sizeof(result.name), "%s 4096x4096 DL16", op->name);
	if (!bench_wanted(options, result.name))
		return true;
	ok = bench_device_open(&p.device) && prepare(&p, options) &&
	     bench_interleave(&pair, options->samples, &result) && check(&p);
	if (ok)
		bench_add_rate(report, &result, p.moved / 1e9);
	spyre_kernel_unload(p.kernel);
	bench_device_close(&p.device);
	for (int i = 0; i < 4; i++)
		free(p.half[i]);
	free(p.from);
	free(p.to);
	return ok;
}

bool bench_pointwise(struct bench_report *report, const struct bench_options *options)
{
	static const struct operation operations[] = {
		{ "add", false, 2, false, row_add, 0.6 },
		{ "mul", false, 2, false, row_mul, 0.6 },
		{ "gelu", true, 1, false, row_gelu, 0.5 },
		{ "softmax", true, 1, false, row_softmax, 0.5 },
		{ "layernorm", true, 3, true, row_layernorm, 0.5 },
	};

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (operations[i].bundle && !options->bundles) {
			fprintf(stderr, "spyre-bench: %s left out: no --bundles\n",
				operations[i].name);
			continue;
		}
		if (!measure(report, options, &operations[i]))
			return false;
	}
	return true;
}
