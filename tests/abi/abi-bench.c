/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds per call: an ioctl that does nothing, and SUBMIT. Medians of
 * BATCHES batches. abi-bench [--json]
 */
#include "abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 9
#define MANY 64

static int fd;
static struct abi_queue queue;
static struct drm_spyre_cb blocks[MANY];

static int empty_ioctl(uint32_t calls)
{
	struct drm_spyre_dev_query args = { 0 };
	int ret = 0;

	while (calls-- && !ret)
		ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args);
	return ret;
}

static int submit(uint32_t calls, uint32_t count, bool wait)
{
	int ret = 0;

	while (calls-- && !ret) {
		ret = abi_submit(&queue, blocks, count, NULL);
		if (wait && !ret)
			ret = abi_wait(&queue, 10000);
	}
	return ret;
}

static int submit_one(uint32_t calls)
{
	return submit(calls, 1, false);
}

static int submit_many(uint32_t calls)
{
	return submit(calls, MANY, false);
}

static int submit_one_wait(uint32_t calls)
{
	return submit(calls, 1, true);
}

static int submit_many_wait(uint32_t calls)
{
	return submit(calls, MANY, true);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median ns per call; the work that a batch leaves running is not timed. */
static double measure(int (*run)(uint32_t calls), uint32_t calls)
{
	double ns[BATCHES];
	uint64_t start;
	int i, ret;

	run(calls / 4 + 1);
	abi_wait(&queue, 60000);
	for (i = 0; i < BATCHES; i++) {
		start = abi_now_ns();
		ret = run(calls);
		ns[i] = (double)(abi_now_ns() - start) / calls;
		abi_wait(&queue, 60000);
		if (ret) {
			fprintf(stderr, "abi-bench: %s\n", strerror(-ret));
			exit(1);
		}
	}
	qsort(ns, BATCHES, sizeof(ns[0]), by_value);
	return ns[BATCHES / 2];
}

static const struct {
	const char *key, *text;
	int (*run)(uint32_t calls);
	uint32_t calls, blocks;
} cases[] = {
	{ "empty_ioctl", "empty ioctl (DEV_QUERY, pointer 0)", empty_ioctl, 20000, 1 },
	{ "submit_1", "SUBMIT of 1 TIMESTAMP", submit_one, 500, 1 },
	{ "submit_64", "SUBMIT of 64 TIMESTAMPs", submit_many, 100, MANY },
	{ "submit_1_wait", "SUBMIT of 1, then wait", submit_one_wait, 300, 1 },
	{ "submit_64_wait", "SUBMIT of 64, then wait", submit_many_wait, 100, MANY },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	double ns[CASES];
	size_t i;

	fd = abi_open();
	queue = abi_queue(fd, 0);
	for (i = 0; i < MANY; i++)
		blocks[i] = abi_cb_timestamp();
	for (i = 0; i < CASES; i++)
		ns[i] = measure(cases[i].run, cases[i].calls);
	if (json)
		printf("{\"batches\": %d, \"unit\": \"ns\"", BATCHES);
	for (i = 0; i < CASES; i++) {
		if (json)
			printf(", \"%s\": %.0f, \"%s_per_block\": %.1f", cases[i].key, ns[i],
			       cases[i].key, ns[i] / cases[i].blocks);
		else
			printf("%-36s %10.0f ns per call %10.1f ns per block %8.2f empty ioctls\n",
			       cases[i].text, ns[i], ns[i] / cases[i].blocks,
			       ns[i] / cases[i].blocks / ns[0]);
	}
	if (json)
		puts("}");
	abi_queue_free(&queue);
	return 0;
}
