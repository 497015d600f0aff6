// SPDX-License-Identifier: MIT
/*
 * Cost of a minimal launch and of waiting for it, compared with two threads that
 * wake each other through a futex: the least that a hand-over can cost. One stick is
 * run by the thread that launches it; 288 are handed to a worker of the card and
 * back. A graph of launches is held against the same launches, one by one.
 */
#include "bench/device.h"
#include "bench/pingpong.h"

#include <stdio.h>

#define ROUNDS 2000
#define GRAPH_LAUNCHES 1000

struct launch {
	struct bench_device device;
	struct bench_tensor tensor[3];
	spyre_arg args[3];
	spyre_kernel *kernel;
	/* The same on so many sticks that a worker of the card takes it. */
	struct bench_tensor wide[3];
	spyre_arg wide_args[3];
	spyre_kernel *wide_kernel;
	spyre_event *event;
	spyre_graph *graph;
	int rounds;
	int queued;		/* launches before each synchronize */
	struct bench_pingpong pingpong;
};

static double run_ping_pong(void *state)
{
	struct launch *l = state;

	return bench_pingpong(&l->pingpong, l->rounds);
}

static double run_launch(void *state)
{
	struct launch *l = state;
	const double start = bench_now();

	for (int i = 0; i < l->rounds; i += l->queued) {
		for (int j = 0; j < l->queued; j++) {
			if (bench_failed(spyre_launch(l->device.stream, l->kernel, l->args, 3),
					 "launching"))
				return -1;
		}
		if (bench_failed(spyre_stream_synchronize(l->device.stream), "waiting"))
			return -1;
	}
	return (bench_now() - start) / l->rounds;
}

static double run_graph(void *state)
{
	struct launch *l = state;
	const double start = bench_now();

	for (int i = 0; i < l->rounds; i += GRAPH_LAUNCHES)
		if (bench_failed(spyre_graph_launch(l->graph, l->device.stream), "launching") ||
		    bench_failed(spyre_stream_synchronize(l->device.stream), "waiting"))
			return -1;
	return (bench_now() - start) / l->rounds;
}

static double run_wide(void *state)
{
	struct launch *l = state;
	const double start = bench_now();

	for (int i = 0; i < l->rounds; i++) {
		if (bench_failed(spyre_launch(l->device.stream, l->wide_kernel, l->wide_args, 3),
				 "launching") ||
		    bench_failed(spyre_stream_synchronize(l->device.stream), "waiting"))
			return -1;
	}
	return (bench_now() - start) / l->rounds;
}

static double run_event(void *state)
{
	struct launch *l = state;
	const double start = bench_now();

	for (int i = 0; i < l->rounds; i++) {
		if (bench_failed(spyre_event_record(l->event, l->device.stream), "recording") ||
		    bench_failed(spyre_event_synchronize(l->event), "waiting"))
			return -1;
	}
	return (bench_now() - start) / l->rounds;
}

static bool capture(struct launch *l)
{
	spyre_stream *stream = l->device.stream;

	if (bench_failed(spyre_stream_begin_capture(stream), "capturing"))
		return false;
	for (int i = 0; i < GRAPH_LAUNCHES; i++)
		if (bench_failed(spyre_launch(stream, l->kernel, l->args, 3), "recording"))
			return false;
	return !bench_failed(spyre_stream_end_capture(stream, &l->graph), "capturing");
}

static bool prepare(struct launch *l)
{
	const int64_t size[2] = { 1, 64 }, wide[2] = { 288, 64 };

	for (int i = 0; i < 3; i++) {
		if (!bench_tensor_create(&l->device, &l->tensor[i], NULL,
					 SPYRE_FORMAT_IEEE_FP16, 2, size) ||
		    !bench_tensor_create(&l->device, &l->wide[i], NULL,
					 SPYRE_FORMAT_IEEE_FP16, 2, wide))
			return false;
		l->args[i] = (spyre_arg){ l->tensor[i].address, &l->tensor[i].layout };
		l->wide_args[i] = (spyre_arg){ l->wide[i].address, &l->wide[i].layout };
	}
	return bench_kernel_build(&l->device, "add", l->wide, 3, 1, &l->wide_kernel) &&
	       bench_kernel_build(&l->device, "add", l->tensor, 3, 1, &l->kernel) &&
	       !bench_failed(spyre_event_create(l->device.context, 0, &l->event),
			     "creating an event") && capture(l);
}

static bool add_graph(struct launch *l, struct bench_report *report,
		      const struct bench_options *options)
{
	const struct bench_pair pair = { run_graph, run_launch, l, 20 };
	struct bench_result result = { .unit = "us", .peer = "the same, one by one" };

	l->queued = l->rounds = GRAPH_LAUNCHES;
	snprintf(result.name, sizeof(result.name), "%sa launch of a graph of %d",
		 options->vm ? "VM: " : "", GRAPH_LAUNCHES);
	if (!bench_interleave(&pair, options->samples, &result))
		return false;
	bench_add_time(report, &result, 1e6);
	return true;
}

bool bench_launch(struct bench_report *report, const struct bench_options *options)
{
	static const struct {
		const char *name;
		double (*run)(void *state);
		int queued;
		double aim;
	} kind[] = {
		{ "launch + synchronize, 1 stick", run_launch, 1, 1.3 },
		{ "a launch of 8 queued", run_launch, 8, 0 },
		{ "a launch of 64 queued", run_launch, 64, 0.25 },
		{ "a launch of 1000 queued", run_launch, 1000, 0 },
		{ "launch + synchronize, 288 sticks", run_wide, 1, 0 },
		{ "record + synchronize an event", run_event, 1, 1.3 },
	};
	struct launch l = { .rounds = options->vm ? ROUNDS / 10 : ROUNDS };
	bool ok = bench_device_open(&l.device) && prepare(&l);

	for (size_t i = 0; ok && i < sizeof(kind) / sizeof(kind[0]); i++) {
		const struct bench_pair pair = { kind[i].run, run_ping_pong, &l, 20 };
		struct bench_result result = { .unit = "us", .peer = "futex ping-pong, 2 threads",
					       .aim = options->vm ? 0 : kind[i].aim };

		l.queued = kind[i].queued;
		l.rounds = (options->vm ? ROUNDS / 10 : ROUNDS) / l.queued * l.queued;
		l.rounds = l.rounds ? l.rounds : l.queued;
		snprintf(result.name, sizeof(result.name), "%s%s", options->vm ? "VM: " : "",
			 kind[i].name);
		ok = bench_interleave(&pair, options->samples, &result);
		if (ok)
			bench_add_time(report, &result, 1e6);
	}
	ok = ok && add_graph(&l, report, options);
	spyre_graph_destroy(l.graph);
	spyre_event_destroy(l.event);
	spyre_kernel_unload(l.kernel);
	spyre_kernel_unload(l.wide_kernel);
	bench_device_close(&l.device);
	return ok;
}
