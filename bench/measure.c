// SPDX-License-Identifier: MIT
/* Interleaved samples and their medians. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

bool bench_wanted(const struct bench_options *options, const char *name)
{
	return !options->match || strstr(name, options->match);
}

static void settle(unsigned int ms)
{
	struct timespec pause = { ms / 1000, ms % 1000 * 1000000l };

	if (ms)
		nanosleep(&pause, NULL);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, int count, double q)
{
	const double at = q * (count - 1);
	const int low = (int)at, high = low + 1 < count ? low + 1 : low;

	return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

static double median(double *samples, int count, double *spread)
{
	double middle;

	qsort(samples, count, sizeof(*samples), compare);
	middle = quantile(samples, count, 0.5);
	*spread = 50 * (quantile(samples, count, 0.75) - quantile(samples, count, 0.25)) / middle;
	return middle;
}

bool bench_interleave(const struct bench_pair *pair, int samples, struct bench_result *result)
{
	double ours[BENCH_MAX_SAMPLES], peer[BENCH_MAX_SAMPLES];

	if (samples > BENCH_MAX_SAMPLES)
		samples = BENCH_MAX_SAMPLES;
	if (pair->ours(pair->state) < 0 || pair->peer(pair->state) < 0)
		return false;
	for (int i = 0; i < samples; i++) {
		settle(pair->settle_ms);
		ours[i] = pair->ours(pair->state);
		settle(pair->settle_ms);
		peer[i] = pair->peer(pair->state);
		if (ours[i] < 0 || peer[i] < 0)
			return false;
	}
	result->samples = samples;
	result->value = median(ours, samples, &result->spread);
	result->peer_value = median(peer, samples, &result->peer_spread);
	/* median() has sorted them. */
	result->best = ours[0];
	result->peer_best = peer[0];
	return true;
}

static void append(struct bench_report *report, const struct bench_result *result)
{
	const int capacity = sizeof(report->result) / sizeof(report->result[0]);

	if (report->count < capacity)
		report->result[report->count++] = *result;
	fprintf(stderr, "    %s: done\n", result->name);
}

void bench_add_rate(struct bench_report *report, struct bench_result *result, double work)
{
	result->value = work / result->value;
	result->peer_value = work / result->peer_value;
	result->best = work / result->best;
	result->peer_best = work / result->peer_best;
	result->higher_is_better = true;
	append(report, result);
}

void bench_add_time(struct bench_report *report, struct bench_result *result, double scale)
{
	result->value *= scale;
	result->peer_value *= scale;
	result->best *= scale;
	result->peer_best *= scale;
	result->higher_is_better = false;
	append(report, result);
}

bool bench_failed(spyre_status status, const char *what)
{
	if (status == SPYRE_SUCCESS)
		return false;
	fprintf(stderr, "spyre-bench: %s: %s: %s\n", what, spyre_status_name(status),
		spyre_last_error());
	return true;
}
