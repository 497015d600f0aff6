// SPDX-License-Identifier: MIT
/* Tiled, converting copies of 64 MiB of fp16 against memcpy of as many bytes. */
#include "bench/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 4096
#define COLUMNS 8192
#define BYTES ((size_t)ROWS * COLUMNS * 2)

struct copy {
	struct bench_device device;
	struct bench_tensor tensor;
	char *host, *other;
};

static double run_h2d(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	if (bench_failed(spyre_copy_h2d(c->device.context, c->tensor.address, &c->tensor.layout,
					&c->tensor.host), "copying to the card"))
		return -1;
	return bench_now() - start;
}

static double run_d2h(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	if (bench_failed(spyre_copy_d2h(c->device.context, &c->tensor.host, c->tensor.address,
					&c->tensor.layout), "copying from the card"))
		return -1;
	return bench_now() - start;
}

static double run_memcpy(void *state)
{
	struct copy *c = state;
	const double start = bench_now();

	memcpy(c->other, c->host, BYTES);
	/* The compiler must believe that somebody reads it. */
	__asm__ volatile("" : : "r"(c->other) : "memory");
	return bench_now() - start;
}

static bool measure(struct bench_report *report, const struct bench_options *options,
		    struct copy *c, const char *host_kind)
{
	static const struct {
		const char *name;
		double (*run)(void *state);
	} direction[] = { { "H2D", run_h2d }, { "D2H", run_d2h } };

	for (int i = 0; i < 2; i++) {
		const struct bench_pair pair = { direction[i].run, run_memcpy, c, 20 };
		struct bench_result result = { .unit = "GB/s", .peer = "memcpy", .aim = 0.5 };

		snprintf(result.name, sizeof(result.name), "tiled %s 64 MiB fp16, %s",
			 direction[i].name, host_kind);
		if (!bench_interleave(&pair, options->samples, &result))
			return false;
		bench_add_rate(report, &result, BYTES / 1e9);
	}
	return true;
}

/* fp16 numbers from 1 to 2 whose last bit DL16 does not have: 0. */
static void fill(char *host)
{
	uint16_t *half = (uint16_t *)host;

	for (size_t i = 0; i < BYTES / 2; i++)
		half[i] = 0x3c00 | (i * 2654435761u >> 20 & 0x3fe);
}

static bool check(struct copy *c)
{
	char *copy = malloc(BYTES);
	bool same;

	if (!copy)
		return false;
	memcpy(copy, c->host, BYTES);
	memset(c->host, 0, BYTES);
	same = run_d2h(c) >= 0 && !memcmp(copy, c->host, BYTES);
	if (!same)
		fprintf(stderr, "spyre-bench: a tensor came back from the card changed\n");
	free(copy);
	return same;
}

static bool with_host_memory(struct bench_report *report, const struct bench_options *options,
			     struct copy *c, char *host, const char *host_kind)
{
	c->host = host;
	c->tensor.host.data = host;
	fill(host);
	return measure(report, options, c, host_kind) && run_h2d(c) >= 0 && check(c);
}

bool bench_copy(struct bench_report *report, const struct bench_options *options)
{
	const int64_t size[2] = { ROWS, COLUMNS };
	struct copy c = { 0 };
	char *pageable = aligned_alloc(4096, BYTES);
	void *pinned = NULL;
	bool ok = bench_device_open(&c.device) &&
		  bench_tensor_create(&c.device, &c.tensor, NULL, 2, size);

	c.other = aligned_alloc(4096, BYTES);
	ok = ok && pageable && c.other &&
	     !bench_failed(spyre_host_alloc(c.device.context, BYTES, &pinned), "pinned memory") &&
	     with_host_memory(report, options, &c, pageable, "pageable") &&
	     with_host_memory(report, options, &c, pinned, "pinned");
	if (pinned)
		spyre_host_free(c.device.context, pinned);
	bench_device_close(&c.device);
	free(pageable);
	free(c.other);
	return ok;
}
