// SPDX-License-Identifier: MIT
/* spyre-bench: every figure of docs/performance.md. scripts/bench runs it. */
#define _GNU_SOURCE
#include "bench/bench.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	bool (*run)(struct bench_report *report, const struct bench_options *options);
	bool in_vm, outside;
} suite[] = {
	{ "matmul", bench_matmul, false, true },
	{ "pointwise", bench_pointwise, false, true },
	{ "copy", bench_copy, false, true },
	{ "launch", bench_launch, true, true },
	{ "load", bench_load, false, true },
	{ "submit", bench_submit, true, false },
	{ "uring", bench_uring, true, false },
	{ "transfer", bench_transfer, true, false },
	{ "processes", bench_processes, true, false },
	{ "scaling", bench_scaling, false, true },
	{ "comm", bench_comm, false, false },
};

#define SUITE_SIZE (sizeof(suite) / sizeof(suite[0]))

static void usage(FILE *out)
{
	fputs("usage: spyre-bench [options] [matmul|pointwise|copy|launch|load|submit|\n"
	      "                              uring|transfer|processes|scaling|comm]...\n"
	      "  --json FILE     also write the results to FILE\n"
	      "  --include FILE  begin with the results in FILE (of another run)\n"
	      "  --samples N     samples per figure, 5 to 99 (9)\n"
	      "  --threads N     host threads of card and peer (all CPUs)\n"
	      "  --match TEXT    only rows with TEXT in their name\n"
	      "  --bundles DIR   bundles of bench/chains.py: gelu, softmax, layernorm\n"
	      "  --vm            the figures of the kernel module: launch, submit, uring, ...\n"
	      "  --node PATH     accel node of submit (/dev/accel/accel0)\n",
	      out);
}

static int usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static int number(const char *text, int low, int high, const char *option)
{
	char *end;
	const long value = strtol(text, &end, 10);

	if (*end || end == text || value < low || value > high) {
		fprintf(stderr, "spyre-bench: %s takes a number from %d to %d, not '%s'\n", option,
			low, high, text);
		exit(2);
	}
	return (int)value;
}

static bool known(const char *name)
{
	for (size_t i = 0; i < SUITE_SIZE; i++) {
		if (!strcmp(suite[i].name, name))
			return true;
	}
	fprintf(stderr, "spyre-bench: no benchmark '%s'\n", name);
	return false;
}

static bool wanted(size_t i, const struct bench_options *options, int argc, char **argv)
{
	for (int a = 0; a < argc; a++) {
		if (!strcmp(argv[a], suite[i].name))
			return true;
	}
	return !argc && (options->vm ? suite[i].in_vm : suite[i].outside);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "include", required_argument, NULL, 'i' },
		{ "samples", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 't' },
		{ "match", required_argument, NULL, 'm' },
		{ "bundles", required_argument, NULL, 'b' },
		{ "vm", no_argument, NULL, 'v' },
		{ "node", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct bench_options options = {
		.samples = 9, .threads = usable_cpus(), .node = "/dev/accel/accel0",
	};
	static struct bench_report report;
	const char *json = NULL;
	char threads[16];
	bool ok = true;
	int option;

	while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (option) {
		case 'j': json = optarg; break;
		case 'i': ok = bench_read_json(&report, optarg) && ok; break;
		case 's': options.samples = number(optarg, 5, 99, "--samples"); break;
		case 't': options.threads = number(optarg, 1, 1024, "--threads"); break;
		case 'm': options.match = optarg; break;
		case 'b': options.bundles = optarg; break;
		case 'v': options.vm = true; break;
		case 'n': options.node = optarg; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	}
	for (int a = optind; a < argc; a++) {
		if (!known(argv[a]))
			return 2;
	}
	snprintf(threads, sizeof(threads), "%d", options.threads);
	setenv("SPYRE_EMBEDDED_THREADS", threads, 1);

	bench_print_machine(&options);
	for (size_t i = 0; i < SUITE_SIZE; i++) {
		if (wanted(i, &options, argc - optind, argv + optind))
			ok = suite[i].run(&report, &options) && ok;
	}
	bench_print(&report);
	if (json)
		ok = bench_write_json(&report, json, &options) && ok;
	return ok ? 0 : 1;
}
