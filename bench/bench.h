/* SPDX-License-Identifier: MIT */
/*
 * Code shared by the benchmarks: medians of interleaved samples and one list of
 * results. Every figure is compared with a peer measured in the same run.
 */
#ifndef SPYRE_BENCH_H
#define SPYRE_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <spyre/spyre.h>

#define BENCH_MAX_SAMPLES 99

struct bench_options {
	int samples;		/* per figure, at least 5 */
	int threads;		/* of the host: the card's workers and OpenBLAS */
	const char *node;	/* accel node of the submit benchmark */
	const char *match;	/* only rows whose name has this in it, or NULL */
	const char *bundles;	/* folder that bench/chains.py filled, or NULL */
	bool vm;		/* the figures that only make sense in the VM */
};

/* One figure. For rates the ratio is ours / peer, for times also: the reader
 * is told which way is good. */
struct bench_result {
	char name[64];
	char unit[16];
	char peer[48];
	double value;		/* medians */
	double peer_value;
	double best;		/* what other load disturbed least */
	double peer_best;
	/* Half the distance between the quartiles, in percent of the median. */
	double spread;
	double peer_spread;
	bool higher_is_better;
	double aim;		/* of the ratio; 0: none */
	bool aim_is_value;	/* the aim is one of value, in @unit */
	int samples;
};

struct bench_report {
	struct bench_result result[128];
	int count;
};

/* A pair of measured functions: each returns the seconds that it took, or a
 * negative number after printing why it could not. */
struct bench_pair {
	double (*ours)(void *state);
	double (*peer)(void *state);
	void *state;
	/* Pause before each sample, so that one side's spinning threads are
	 * asleep when the other is measured. */
	unsigned int settle_ms;
};

double bench_now(void);
bool bench_wanted(const struct bench_options *options, const char *name);

/* Warms both up, then alternates; fills value, peer_value (medians of
 * seconds) and spreads. False if one of the functions failed. */
bool bench_interleave(const struct bench_pair *pair, int samples, struct bench_result *result);

/* Appends a result whose times become rates of @work per second (in @unit),
 * or stay times scaled by @scale, and says so on stderr. */
void bench_add_rate(struct bench_report *report, struct bench_result *result, double work);
void bench_add_time(struct bench_report *report, struct bench_result *result, double scale);

/* Prints the library's last error with what was tried. Returns true on error. */
bool bench_failed(spyre_status status, const char *what);

void bench_print(const struct bench_report *report);
bool bench_write_json(const struct bench_report *report, const char *path,
		      const struct bench_options *options);
bool bench_read_json(struct bench_report *report, const char *path);
void bench_print_machine(const struct bench_options *options);

/* The benchmarks. Each returns false after printing why if it could not run. */
bool bench_matmul(struct bench_report *report, const struct bench_options *options);
bool bench_pointwise(struct bench_report *report, const struct bench_options *options);
bool bench_scaling(struct bench_report *report, const struct bench_options *options);
bool bench_copy(struct bench_report *report, const struct bench_options *options);
bool bench_launch(struct bench_report *report, const struct bench_options *options);
bool bench_load(struct bench_report *report, const struct bench_options *options);
bool bench_submit(struct bench_report *report, const struct bench_options *options);
bool bench_uring(struct bench_report *report, const struct bench_options *options);
bool bench_transfer(struct bench_report *report, const struct bench_options *options);
bool bench_comm(struct bench_report *report, const struct bench_options *options);
bool bench_processes(struct bench_report *report, const struct bench_options *options);

#endif /* SPYRE_BENCH_H */
