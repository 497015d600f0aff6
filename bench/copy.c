// SPDX-License-Identifier: MIT
/*
 * Tiled, converting copies: up to 4 MiB, which stay in caches, against a loop that converts
 * as well, larger ones against memcpy of as many bytes of the host.
 */
#include "bench/convert.h"
#include "bench/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
	const char *name;
	spyre_format format;
	int64_t rows, columns;
	bool transposed;	/* the host's rows lie side by side */
	bool pinned;
	double aim;
};

#define FP16 SPYRE_FORMAT_IEEE_FP16
#define FP32 SPYRE_FORMAT_IEEE_FP32
#define BF16 SPYRE_FORMAT_BFLOAT16
#define CACHED (4u << 20)

static const struct shape shapes[] = {
	{ "1 KiB fp16", FP16, 8, 64, false, false, 0.8 },
	{ "16 KiB fp16", FP16, 64, 128, false, false, 0.8 },
	{ "256 KiB fp16", FP16, 512, 256, false, false, 0.8 },
	{ "4 MiB fp16", FP16, 2048, 1024, false, false, 0.8 },
	{ "64 MiB fp16", FP16, 4096, 8192, false, false, 0.8 },
	{ "64 MiB fp16, pinned", FP16, 4096, 8192, false, true, 0.8 },
	{ "256 MiB fp16", FP16, 16384, 8192, false, false, 0.8 },
	{ "64 MiB fp32", FP32, 4096, 4096, false, false, 0.8 },
	{ "64 MiB bf16", BF16, 4096, 8192, false, false, 0.8 },
	{ "64 MiB fp16, rows of 100", FP16, 335544, 100, false, false, 0.4 },
	{ "64 MiB fp16, rows of 150", FP16, 223696, 150, false, false, 0.4 },
	{ "64 MiB fp32, rows of 100", FP32, 167772, 100, false, false, 0.4 },
	{ "64 MiB fp16, transposed", FP16, 4096, 8192, true, false, 0.4 },
	{ "64 MiB fp32, transposed", FP32, 4096, 4096, true, false, 0.4 },
};

struct copy {
	const struct shape *shape;
	struct bench_device device;
	struct bench_tensor tensor;
	size_t bytes;
	int rounds;		/* of one sample */
	char *host, *other;
};

static double run_h2d(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i++) {
		if (bench_failed(spyre_copy_h2d(c->device.context, c->tensor.address,
						&c->tensor.layout, &c->tensor.host),
				 "copying to the card"))
			return -1;
	}
	return bench_now() - start;
}

static double run_d2h(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i++) {
		if (bench_failed(spyre_copy_d2h(c->device.context, &c->tensor.host,
						c->tensor.address, &c->tensor.layout),
				 "copying from the card"))
			return -1;
	}
	return bench_now() - start;
}

static double run_memcpy(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i++) {
		memcpy(c->other, c->host, c->bytes);
		/* The compiler must believe that somebody reads it. */
		__asm__ volatile("" : : "r"(c->other) : "memory");
	}
	return bench_now() - start;
}

static double run_loop_h2d(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i++)
		bench_convert_to_card((uint16_t *)c->other, (const uint16_t *)c->host,
				      c->shape->rows, c->shape->columns);
	return bench_now() - start;
}

static double run_loop_d2h(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i++)
		bench_convert_to_host((uint16_t *)c->host, (const uint16_t *)c->other,
				      c->shape->rows, c->shape->columns);
	return bench_now() - start;
}

/* Numbers from 1 to 2, in fp16 without the last bit that DL16 does not have. */
static void fill(const struct shape *shape, char *host, size_t bytes)
{
	uint16_t *half = (uint16_t *)host;
	uint32_t *word = (uint32_t *)host;

	if (shape->format == FP32) {
		for (size_t i = 0; i < bytes / 4; i++)
			word[i] = 0x3f800000 | (i * 2654435761u >> 20 & 0xffe) << 11;
		return;
	}
	for (size_t i = 0; i < bytes / 2; i++)
		half[i] = shape->format == BF16 ? 0x3f80 | (i * 2654435761u >> 20 & 0x7f) :
						  0x3c00 | (i * 2654435761u >> 20 & 0x3fe);
}

static bool check(struct copy *c)
{
	bool same;

	memcpy(c->other, c->host, c->bytes);
	memset(c->host, 0, c->bytes);
	same = run_d2h(c) >= 0 && !memcmp(c->other, c->host, c->bytes);
	if (!same)
		fprintf(stderr, "spyre-bench: a tensor came back from the card changed\n");
	return same;
}

static bool prepare(struct copy *c, const struct shape *shape)
{
	const int64_t size[2] = { shape->rows, shape->columns };
	void *pinned = NULL;

	c->bytes = shape->rows * shape->columns * (shape->format == FP32 ? 4 : 2);
	/* A sample is 20 MiB at least, but not more than 2,000 copies. */
	c->rounds = c->bytes >= 20 << 20 ? 1 : (int)((20 << 20) / c->bytes);
	if (c->rounds > 2000)
		c->rounds = 2000;
	c->other = aligned_alloc(4096, (c->bytes + 4095) & ~(size_t)4095);
	if (shape->pinned) {
		if (bench_failed(spyre_host_alloc(c->device.context, c->bytes, &pinned),
				 "pinned memory"))
			return false;
		c->host = pinned;
	} else {
		c->host = aligned_alloc(4096, (c->bytes + 4095) & ~(size_t)4095);
	}
	if (!c->host || !c->other ||
	    !bench_tensor_create(&c->device, &c->tensor, c->host, shape->format, 2, size))
		return false;
	if (shape->transposed) {
		c->tensor.host.stride[0] = 1;
		c->tensor.host.stride[1] = shape->rows;
	}
	fill(shape, c->host, c->bytes);
	return true;
}

static bool measure(struct bench_report *report, const struct bench_options *options,
		    const struct shape *shape)
{
	static const struct {
		const char *name;
		double (*run)(void *state);
		double (*loop)(void *state);
	} direction[] = { { "H2D", run_h2d, run_loop_h2d }, { "D2H", run_d2h, run_loop_d2h } };
	struct copy c = { .shape = shape };
	bool ok, loop;

	if (!bench_wanted(options, shape->name))
		return true;
	ok = bench_device_open(&c.device) && prepare(&c, shape);
	loop = c.bytes <= CACHED && shape->format == FP16 && bench_can_convert();

	for (int i = 0; ok && i < 2; i++) {
		const struct bench_pair pair = { direction[i].run,
						loop ? direction[i].loop : run_memcpy, &c, 20 };
		struct bench_result result = { .unit = "GB/s", .aim = shape->aim };

		snprintf(result.peer, sizeof(result.peer), "%s",
			 loop ? "conversion loop, F16C" : "memcpy");
		snprintf(result.name, sizeof(result.name), "tiled %s %s", direction[i].name,
			 shape->name);
		ok = bench_interleave(&pair, options->samples, &result);
		if (ok)
			bench_add_rate(report, &result, (double)c.bytes * c.rounds / 1e9);
	}
	ok = ok && run_h2d(&c) >= 0 && check(&c);
	if (shape->pinned && c.host)
		spyre_host_free(c.device.context, c.host);
	else
		free(c.host);
	free(c.other);
	bench_device_close(&c.device);
	return ok;
}

bool bench_copy(struct bench_report *report, const struct bench_options *options)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!measure(report, options, &shapes[i]))
			return false;
	}
	return true;
}
