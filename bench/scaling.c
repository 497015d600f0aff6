// SPDX-License-Identifier: MIT
/*
 * What a second host thread is worth: two embedded cards, which differ in the
 * number of their threads, alternate on the same work. Times; the ratio is that of
 * two threads to one, 0.5 at best.
 */
#include "bench/device.h"

#include <stdio.h>
#include <stdlib.h>

struct side {
	struct bench_device device;
	struct bench_tensor tensor[3];
	spyre_arg args[3];
	spyre_kernel *kernel;
};

struct scaling {
	struct side side[2];	/* all threads, one */
	void *host;
};

static double launch(struct side *side)
{
	const double start = bench_now();

	if (bench_failed(spyre_launch(side->device.stream, side->kernel, side->args, 3),
			 "launching") ||
	    bench_failed(spyre_stream_synchronize(side->device.stream), "running"))
		return -1;
	return bench_now() - start;
}

static double copy(struct side *side)
{
	const double start = bench_now();

	if (bench_failed(spyre_copy_h2d(side->device.context, side->args[0].address,
					side->args[0].layout, &side->tensor[0].host), "copying"))
		return -1;
	return bench_now() - start;
}

static double launch_all(void *state)
{
	return launch(&((struct scaling *)state)->side[0]);
}

static double launch_one(void *state)
{
	return launch(&((struct scaling *)state)->side[1]);
}

static double copy_all(void *state)
{
	return copy(&((struct scaling *)state)->side[0]);
}

static double copy_one(void *state)
{
	return copy(&((struct scaling *)state)->side[1]);
}

static bool prepare(struct side *side, int card, int threads, const char *op, uint32_t cores,
		    const int64_t *size, void *host)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", threads);
	setenv("SPYRE_EMBEDDED_THREADS", text, 1);
	if (!bench_device_open_card(&side->device, card))
		return false;
	for (int i = 0; i < 3; i++) {
		if (!bench_tensor_create(&side->device, &side->tensor[i], i ? NULL : host,
					 SPYRE_FORMAT_IEEE_FP16, 2, size))
			return false;
		side->args[i] = (spyre_arg){ side->tensor[i].address, &side->tensor[i].layout };
	}
	return bench_kernel_build(&side->device, op, side->tensor, 3, cores, &side->kernel);
}

bool bench_scaling(struct bench_report *report, const struct bench_options *options)
{
	static const struct {
		const char *name, *op;
		uint32_t cores;
		int64_t size;
		bool copy;
	} work[] = {
		{ "matmul 1024x1024x1024", "matmul", 32, 1024, false },
		{ "matmul 1024x1024x1024, one core", "matmul", 1, 1024, false },
		{ "add 4096x4096", "add", 32, 4096, false },
		{ "add 4096x4096, one core", "add", 1, 4096, false },
		{ "tiled H2D 32 MiB fp16", "add", 32, 4096, true },
	};
	const size_t bytes = 4096 * 4096 * 2;
	struct scaling s = { .host = calloc(1, bytes) };
	bool ok = s.host && options->threads > 1;

	if (s.host && !ok)
		fprintf(stderr, "spyre-bench: no scaling with one thread\n");
	setenv("SPYRE_EMBEDDED_CARDS", "2", 1);
	for (size_t i = 0; ok && i < sizeof(work) / sizeof(work[0]); i++) {
		const int64_t size[2] = { work[i].size, work[i].size };
		const struct bench_pair pair = {
			work[i].copy ? copy_all : launch_all,
			work[i].copy ? copy_one : launch_one, &s, 20,
		};
		struct bench_result result = { .unit = "ms", .peer = "one thread" };

		snprintf(result.name, sizeof(result.name), "%d threads: %s", options->threads,
			 work[i].name);
		ok = prepare(&s.side[0], 0, options->threads, work[i].op, work[i].cores, size,
			     s.host) &&
		     prepare(&s.side[1], 1, 1, work[i].op, work[i].cores, size, s.host) &&
		     bench_interleave(&pair, options->samples, &result);
		if (ok)
			bench_add_time(report, &result, 1e3);
		for (int j = 0; j < 2; j++) {
			spyre_kernel_unload(s.side[j].kernel);
			bench_device_close(&s.side[j].device);
			s.side[j] = (struct side){ 0 };
		}
	}
	free(s.host);
	return ok || options->threads == 1;
}
