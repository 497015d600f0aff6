// SPDX-License-Identifier: MIT
/*
 * DL16 matrix products through spyre_launch() against OpenBLAS with the same
 * number of threads: sgemm, once per batch, and sgemv for one row. The
 * product is checked against theirs.
 */
#include "bench/device.h"
#include "bench/half.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* cblas.h need not be installed: four calls of a stable C interface. */
typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
			 const float *a, int lda, const float *b, int ldb, float beta, float *c,
			 int ldc);
typedef void (*sgemv_fn)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
			 const float *x, int incx, float beta, float *y, int incy);
#define ROW_MAJOR 101
#define NO_TRANS 111
#define TRANS 112

struct blas {
	sgemm_fn sgemm;
	sgemv_fn sgemv;
};

/* Sizes, and how often one sample repeats the product. */
struct shape {
	const char *name;
	int batch, m, k, n;
	int rounds;
	double aim;
};

struct matmul {
	const struct blas *blas;
	const struct shape *shape;
	struct bench_device device;
	struct bench_tensor tensor[3];
	spyre_arg args[3];
	spyre_kernel *kernel;
	size_t count[3];
	uint16_t *half[3];
	float *full[3];
};

static double run_spyre(void *state)
{
	struct matmul *m = state;
	const double start = bench_now();

	for (int i = 0; i < m->shape->rounds; i++) {
		if (bench_failed(spyre_launch(m->device.stream, m->kernel, m->args, 3),
				 "launching") ||
		    bench_failed(spyre_stream_synchronize(m->device.stream), "running matmul"))
			return -1;
	}
	return bench_now() - start;
}

static void blas_once(struct matmul *m)
{
	const struct shape *s = m->shape;

	if (s->m == 1) {
		m->blas->sgemv(ROW_MAJOR, TRANS, s->k, s->n, 1, m->full[1], s->n, m->full[0], 1, 0,
			       m->full[2], 1);
		return;
	}
	for (size_t i = 0; i < (size_t)s->batch; i++)
		m->blas->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, s->m, s->n, s->k, 1,
			       m->full[0] + i * s->m * s->k, s->k, m->full[1] + i * s->k * s->n,
			       s->n, 0, m->full[2] + i * s->m * s->n, s->n);
}

static double run_blas(void *state)
{
	struct matmul *m = state;
	const double start = bench_now();

	for (int i = 0; i < m->shape->rounds; i++)
		blas_once(m);
	return bench_now() - start;
}

static bool load_openblas(struct blas *blas, int threads)
{
	void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
	void (*set_threads)(int count);

	if (!library) {
		fprintf(stderr, "spyre-bench: no peer for matmul: %s\n", dlerror());
		return false;
	}
	*(void **)&blas->sgemm = dlsym(library, "cblas_sgemm");
	*(void **)&blas->sgemv = dlsym(library, "cblas_sgemv");
	*(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
	if (!blas->sgemm || !blas->sgemv || !set_threads) {
		fprintf(stderr, "spyre-bench: libopenblas.so.0 is not OpenBLAS: %s\n", dlerror());
		return false;
	}
	set_threads(threads);
	return true;
}

static void fill(uint16_t *half, float *full, size_t count, uint32_t seed)
{
	for (size_t i = 0; i < count; i++) {
		full[i] = bench_quarter(&seed);
		half[i] = bench_half(full[i]);
	}
}

static bool prepare(struct matmul *m)
{
	const struct shape *s = m->shape;
	const int64_t size[3][3] = {
		{ s->batch, s->m, s->k }, { s->batch, s->k, s->n }, { s->batch, s->m, s->n },
	};
	const int skip = s->batch == 1;

	for (int i = 0; i < 3; i++) {
		m->count[i] = (size_t)(size[i][0] * size[i][1] * size[i][2]);
		m->half[i] = calloc(m->count[i], sizeof(uint16_t));
		m->full[i] = calloc(m->count[i], sizeof(float));
		if (!m->half[i] || !m->full[i]) {
			fprintf(stderr, "spyre-bench: no memory for the matrices\n");
			return false;
		}
		if (i < 2)
			fill(m->half[i], m->full[i], m->count[i], 1 + i);
		if (!bench_tensor_create(&m->device, &m->tensor[i], m->half[i],
					 SPYRE_FORMAT_IEEE_FP16, 3 - skip, size[i] + skip))
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
	for (size_t i = 0; i < m->count[2]; i++) {
		const float got = bench_float(m->half[2][i]), want = m->full[2][i];

		if (!(fabsf(got - want) <= fabsf(want) / 1024)) {
			fprintf(stderr, "spyre-bench: the product's element %zu is %g, not %g\n", i,
				got, want);
			return false;
		}
	}
	return true;
}

static bool measure(struct bench_report *report, const struct bench_options *options,
		    const struct blas *blas, const struct shape *shape)
{
	struct bench_result result = { .unit = "GFLOP/s", .aim = shape->aim };
	struct matmul m = { .blas = blas, .shape = shape };
	const struct bench_pair pair = { run_spyre, run_blas, &m, 100 };
	bool ok;

	snprintf(result.name, sizeof(result.name), "matmul %s DL16", shape->name);
	if (!bench_wanted(options, result.name))
		return true;
	snprintf(result.peer, sizeof(result.peer), "OpenBLAS %s, %d threads",
		 shape->m == 1 ? "sgemv" : "sgemm", options->threads);
	ok = bench_device_open(&m.device) && prepare(&m) &&
	     bench_interleave(&pair, options->samples, &result) && check(&m);
	if (ok)
		bench_add_rate(report, &result,
			       2.0 * shape->rounds * shape->batch * shape->m * shape->k *
			       shape->n / 1e9);
	spyre_kernel_unload(m.kernel);
	bench_device_close(&m.device);
	for (int i = 0; i < 3; i++) {
		free(m.half[i]);
		free(m.full[i]);
	}
	return ok;
}

bool bench_matmul(struct bench_report *report, const struct bench_options *options)
{
	static const struct shape shapes[] = {
		{ "2048x2048x2048", 1, 2048, 2048, 2048, 1, 0.9 },
		{ "512x1024x256", 1, 512, 1024, 256, 8, 1.0 },
		{ "1x4096x4096", 1, 1, 4096, 4096, 4, 1.5 },
		{ "8x 128x256x128", 8, 128, 256, 128, 16, 1.0 },
	};
	struct blas blas;

	if (!load_openblas(&blas, options->threads))
		return false;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!measure(report, options, &blas, &shapes[i]))
			return false;
	}
	return true;
}
