// SPDX-License-Identifier: MIT
/*
 * A DL16 matrix product through spyre_launch() against OpenBLAS' sgemm with
 * the same number of threads. The product is checked against sgemm's.
 */
#include "bench/device.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE 2048

/* cblas.h need not be installed: three calls of a stable C interface. */
typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
			 const float *a, int lda, const float *b, int ldb, float beta, float *c,
			 int ldc);
#define ROW_MAJOR 101
#define NO_TRANS 111

struct matmul {
	struct bench_device device;
	struct bench_tensor tensor[3];
	spyre_arg args[3];
	spyre_kernel *kernel;
	uint16_t *half[3];
	float *full[3];
	sgemm_fn sgemm;
};

/* Multiples of 1/4 from -1 to 1: exact in fp16 and in DL16. */
static float value_of(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return ((int)(*seed >> 16) % 9 - 4) / 4.0f;
}

static void fill(uint16_t *half, float *full, size_t count, uint32_t seed)
{
	for (size_t i = 0; i < count; i++) {
		full[i] = value_of(&seed);
		half[i] = 0;
		if (full[i] != 0) {
			int exponent;
			const float fraction = frexpf(fabsf(full[i]), &exponent);

			half[i] = (full[i] < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
				  ((int)(fraction * 2048) & 0x3ff);
		}
	}
}

static float half_to_float(uint16_t h)
{
	const int exponent = h >> 10 & 31, fraction = h & 1023;
	const float magnitude = exponent ? ldexpf(1024 + fraction, exponent - 25) :
					   ldexpf(fraction, -24);

	return h & 0x8000 ? -magnitude : magnitude;
}

static double run_spyre(void *state)
{
	struct matmul *m = state;
	const double start = bench_now();

	if (bench_failed(spyre_launch(m->device.stream, m->kernel, m->args, 3), "launching") ||
	    bench_failed(spyre_stream_synchronize(m->device.stream), "running matmul"))
		return -1;
	return bench_now() - start;
}

static double run_sgemm(void *state)
{
	struct matmul *m = state;
	const double start = bench_now();

	m->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, SIZE, SIZE, SIZE, 1, m->full[0], SIZE, m->full[1],
		 SIZE, 0, m->full[2], SIZE);
	return bench_now() - start;
}

static bool load_openblas(struct matmul *m, int threads)
{
	void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
	void (*set_threads)(int count);

	if (!library) {
		fprintf(stderr, "spyre-bench: no peer for matmul: %s\n", dlerror());
		return false;
	}
	*(void **)&m->sgemm = dlsym(library, "cblas_sgemm");
	*(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
	if (!m->sgemm || !set_threads) {
		fprintf(stderr, "spyre-bench: libopenblas.so.0 is not OpenBLAS: %s\n", dlerror());
		return false;
	}
	set_threads(threads);
	return true;
}

static bool prepare(struct matmul *m)
{
	const int64_t size[2] = { SIZE, SIZE };

	for (int i = 0; i < 3; i++) {
		m->half[i] = calloc(SIZE * SIZE, sizeof(uint16_t));
		m->full[i] = calloc(SIZE * SIZE, sizeof(float));
		if (!m->half[i] || !m->full[i]) {
			fprintf(stderr, "spyre-bench: no memory for the matrices\n");
			return false;
		}
		if (i < 2)
			fill(m->half[i], m->full[i], SIZE * SIZE, 1 + i);
		if (!bench_tensor_create(&m->device, &m->tensor[i], m->half[i], 2, size))
			return false;
		m->args[i] = (spyre_arg){ m->tensor[i].address, &m->tensor[i].layout };
		if (i < 2 && bench_failed(spyre_copy_h2d(m->device.context, m->tensor[i].address,
							 &m->tensor[i].layout, &m->tensor[i].host),
					  "copying a matrix to the card"))
			return false;
	}
	return bench_kernel_build(&m->device, "matmul", m->tensor, 3, 0, &m->kernel);
}

/* The result is rounded to DL16's 9 fraction bits once; its sum is exact. */
static bool check(struct matmul *m)
{
	if (bench_failed(spyre_copy_d2h(m->device.context, &m->tensor[2].host,
					m->tensor[2].address, &m->tensor[2].layout),
			 "copying the product back"))
		return false;
	for (size_t i = 0; i < SIZE * SIZE; i++) {
		const float got = half_to_float(m->half[2][i]), want = m->full[2][i];

		if (!(fabsf(got - want) <= fabsf(want) / 1024)) {
			fprintf(stderr, "spyre-bench: the product's element %zu is %g, not %g\n", i,
				got, want);
			return false;
		}
	}
	return true;
}

bool bench_matmul(struct bench_report *report, const struct bench_options *options)
{
	struct bench_result result = { .name = "matmul 2048x2048x2048 DL16", .unit = "GFLOP/s",
				       .aim = 0.5 };
	struct matmul m = { 0 };
	const struct bench_pair pair = { run_spyre, run_sgemm, &m, 200 };
	bool ok;

	snprintf(result.peer, sizeof(result.peer), "OpenBLAS sgemm, %d threads", options->threads);
	ok = load_openblas(&m, options->threads) && bench_device_open(&m.device) && prepare(&m) &&
	     bench_interleave(&pair, options->samples, &result) && check(&m);
	if (ok)
		bench_add_rate(report, &result, 2.0 * SIZE * SIZE * SIZE / 1e9);
	spyre_kernel_unload(m.kernel);
	bench_device_close(&m.device);
	for (int i = 0; i < 3; i++) {
		free(m.half[i]);
		free(m.full[i]);
	}
	return ok;
}
