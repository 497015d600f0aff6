// SPDX-License-Identifier: MIT
/*
 * Cards of one process: an all_reduce of one stick, against threads that wake each other
 * through a futex; copies between two cards, against memcpy of the same bytes; and how the time of
 * an all_reduce grows with the number of ranks, against two ranks and the same bytes.
 */
#include "bench/device.h"
#include "bench/pingpong.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 8
#define ROUNDS 1000
#define COPY_BYTES (16u << 20)
#define STICK 128
#define REDUCE_BYTES (8u << 20)

/* Ranks of this thread. */
struct ranks {
	uint32_t count;
	spyre_comm *comm[RANKS];
	spyre_layout layout;
};

struct comm {
	struct bench_device device[RANKS];
	spyre_devptr from[RANKS], to[RANKS];
	struct ranks two, many;
	struct bench_pingpong pingpong;
	int rounds;
	int queued;		/* calls before each synchronize */
	uint64_t bytes;		/* of a copy */
	char *host, *other;
};

/* One stick in a row, so that the rows are contiguous on the card. */
static bool ranks_open(struct comm *c, struct ranks *ranks, uint32_t count, uint64_t bytes)
{
	const int64_t size[] = { (int64_t)(bytes / STICK), STICK / 4 };
	spyre_context *context[RANKS];

	ranks->count = count;
	for (uint32_t i = 0; i < count; i++)
		context[i] = c->device[i].context;
	return !bench_failed(spyre_layout_init(&ranks->layout, 2, size, SPYRE_FORMAT_IEEE_FP32),
			     "making a layout") &&
	       !bench_failed(spyre_comm_init_all(context, count, NULL, ranks->comm),
			     "creating communicators");
}

static void ranks_close(struct ranks *ranks)
{
	for (uint32_t i = 0; i < ranks->count; i++)
		spyre_comm_destroy(ranks->comm[i]);
	*ranks = (struct ranks){ 0 };
}

static bool all_reduce(struct comm *c, struct ranks *ranks)
{
	const spyre_reduction sum = { .op = SPYRE_REDUCE_SUM };

	if (bench_failed(spyre_group_begin(), "beginning a group"))
		return false;
	for (uint32_t i = 0; i < ranks->count; i++)
		if (bench_failed(spyre_all_reduce(ranks->comm[i], c->from[i], c->to[i],
						  &ranks->layout, sum, c->device[i].stream),
				 "all_reduce"))
			return false;
	return !bench_failed(spyre_group_end(), "ending a group");
}

static bool finish(struct comm *c, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (bench_failed(spyre_stream_synchronize(c->device[i].stream), "waiting"))
			return false;
	return true;
}

/* Seconds of a call. */
static double run_ranks(struct comm *c, struct ranks *ranks)
{
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i += c->queued) {
		for (int j = 0; j < c->queued; j++)
			if (!all_reduce(c, ranks))
				return -1;
		if (!finish(c, ranks->count))
			return -1;
	}
	return (bench_now() - start) / c->rounds;
}

/* An all_reduce moves 2 (n - 1) / n of its bytes to and from each of n ranks. */
static double run_per_byte(struct comm *c, struct ranks *ranks)
{
	const double seconds = run_ranks(c, ranks);

	return seconds / (2.0 * (ranks->count - 1) * REDUCE_BYTES);
}

static double run_stick(void *state)
{
	struct comm *c = state;

	return run_ranks(c, &c->two);
}

static double run_two(void *state)
{
	struct comm *c = state;

	return run_per_byte(c, &c->two);
}

static double run_many(void *state)
{
	struct comm *c = state;

	return run_per_byte(c, &c->many);
}

static double run_pingpong(void *state)
{
	struct comm *c = state;

	return bench_pingpong(&c->pingpong, c->rounds);
}

static double run_copy(void *state)
{
	struct comm *c = state;
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i++)
		if (bench_failed(spyre_memcpy_peer_async(c->device[1].stream, c->device[1].context,
							 c->to[1], c->device[0].context,
							 c->from[0], c->bytes), "copying") ||
		    bench_failed(spyre_stream_synchronize(c->device[1].stream), "waiting"))
			return -1;
	return (bench_now() - start) / c->rounds;
}

static double run_memcpy(void *state)
{
	struct comm *c = state;
	const double start = bench_now();

	for (int i = 0; i < c->rounds; i++)
		memcpy(c->other, c->host, c->bytes);
	return (bench_now() - start) / c->rounds;
}

static bool add_stick(struct comm *c, struct bench_report *report,
		      const struct bench_options *options)
{
	static const struct {
		const char *name;
		int queued;
	} kind[] = {
		{ "all_reduce + synchronize, 1 stick", 1 },
		{ "an all_reduce of 64 queued, 1 stick", 64 },
	};
	bool ok = ranks_open(c, &c->two, 2, STICK);

	for (size_t i = 0; ok && i < sizeof(kind) / sizeof(kind[0]); i++) {
		const struct bench_pair pair = { run_stick, run_pingpong, c, 20 };
		struct bench_result result = { .unit = "us", .peer = "futex ping-pong, 2 threads",
					       .aim = 10, .aim_is_value = true };

		if (!bench_wanted(options, kind[i].name))
			continue;
		snprintf(result.name, sizeof(result.name), "%s", kind[i].name);
		c->queued = kind[i].queued;
		c->rounds = ROUNDS / c->queued * c->queued;
		ok = bench_interleave(&pair, options->samples, &result);
		if (ok)
			bench_add_time(report, &result, 1e6);
	}
	ranks_close(&c->two);
	return ok;
}

static bool add_copies(struct comm *c, struct bench_report *report,
		       const struct bench_options *options)
{
	static const uint64_t sizes[] = { 64 << 10, 1 << 20, COPY_BYTES };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct bench_pair pair = { run_copy, run_memcpy, c, 5 };
		struct bench_result result = { .unit = "GB/s", .peer = "memcpy, same bytes",
					       .aim = 0.8 };

		snprintf(result.name, sizeof(result.name), "copy %llu KiB between 2 cards",
			 (unsigned long long)sizes[i] >> 10);
		if (!bench_wanted(options, result.name))
			continue;
		c->bytes = sizes[i];
		/* 64 MiB in a sample. */
		c->rounds = (int)((64u << 20) / sizes[i]);
		if (!bench_interleave(&pair, options->samples, &result))
			return false;
		bench_add_rate(report, &result, sizes[i] / 1e9);
	}
	return true;
}

static bool add_growth(struct comm *c, struct bench_report *report,
		       const struct bench_options *options)
{
	static const uint32_t counts[] = { 4, 8 };
	bool ok = ranks_open(c, &c->two, 2, REDUCE_BYTES);

	c->queued = 1;
	c->rounds = 3;
	for (size_t i = 0; ok && i < sizeof(counts) / sizeof(counts[0]); i++) {
		const struct bench_pair pair = { run_many, run_two, c, 20 };
		struct bench_result result = { .unit = "GB/s", .peer = "2 cards", .aim = 0.9 };

		snprintf(result.name, sizeof(result.name), "all_reduce of 8 MiB, %u cards, per byte",
			 counts[i]);
		if (!bench_wanted(options, result.name))
			continue;
		ok = ranks_open(c, &c->many, counts[i], REDUCE_BYTES) &&
		     bench_interleave(&pair, options->samples, &result);
		ranks_close(&c->many);
		if (ok)
			bench_add_rate(report, &result, 1e-9);
	}
	ranks_close(&c->two);
	return ok;
}

static bool prepare(struct comm *c)
{
	int cards = 0;

	if (bench_failed(spyre_device_count(&cards), "counting cards"))
		return false;
	if (cards < RANKS) {
		fprintf(stderr, "spyre-bench: comm needs %d cards, and %d are visible; set "
			"SPYRE_EMBEDDED_CARDS=%d\n", RANKS, cards, RANKS);
		return false;
	}
	c->host = malloc(COPY_BYTES);
	c->other = malloc(COPY_BYTES);
	if (!c->host || !c->other)
		return false;
	memset(c->host, 1, COPY_BYTES);
	memset(c->other, 2, COPY_BYTES);
	for (int i = 0; i < RANKS; i++) {
		if (!bench_device_open_card(&c->device[i], i) ||
		    bench_failed(spyre_mem_alloc(c->device[i].context, COPY_BYTES, &c->from[i]),
				 "allocating") ||
		    bench_failed(spyre_mem_alloc(c->device[i].context, COPY_BYTES, &c->to[i]),
				 "allocating") ||
		    bench_failed(spyre_memcpy_h2d(c->device[i].context, c->from[i], c->host,
						  COPY_BYTES), "copying"))
			return false;
	}
	return true;
}

bool bench_comm(struct bench_report *report, const struct bench_options *options)
{
	struct comm c = { 0 };
	bool ok = prepare(&c) && add_stick(&c, report, options) &&
		  add_copies(&c, report, options) && add_growth(&c, report, options);

	for (int i = 0; i < RANKS; i++)
		if (c.device[i].context)
			bench_device_close(&c.device[i]);
	free(c.host);
	free(c.other);
	return ok;
}
