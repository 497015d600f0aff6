// SPDX-License-Identifier: MIT
/* spyre-perf: measures collectives, in the manner of nccl-tests. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/perf/perf.h"

static int complain(const struct perf_rank *rank)
{
	fprintf(stderr, "spyre-perf: rank %u: %s\n", rank->rank, spyre_last_error());
	return PERF_FAILED;
}

static spyre_status open_memory(struct perf_rank *rank)
{
	const uint64_t bytes = perf_size_of(rank->options, rank->options->max_bytes).bytes;
	spyre_device_properties properties = { .struct_size = sizeof(properties) };
	spyre_status status = spyre_context_get_properties(rank->context, &properties);

	rank->clock_khz = properties.clock_khz;
	if (!status)
		status = spyre_mem_alloc(rank->context, bytes, &rank->send);
	if (!status)
		status = spyre_mem_alloc(rank->context, bytes, &rank->recv);
	if (!status)
		status = spyre_mem_alloc(rank->context, (uint64_t)(rank->options->ranks + 1) *
					 PERF_STICK, &rank->numbers);
	return status;
}

static uint64_t next_size(const struct perf_options *options, uint64_t bytes)
{
	return options->step_factor ? bytes * options->step_factor : bytes + options->step_bytes;
}

/* Only rank 0 has a table. */
static int measure_all(struct perf_rank *rank, struct perf_table *table)
{
	const struct perf_options *options = rank->options;
	struct perf_row row;

	for (uint64_t bytes = options->min_bytes; bytes <= options->max_bytes;
	     bytes = next_size(options, bytes)) {
		if (perf_measure(rank, bytes, &row))
			return complain(rank);
		if (table && !perf_table_row(table, &row)) {
			fputs("spyre-perf: no memory for the results\n", stderr);
			return PERF_FAILED;
		}
	}
	return PERF_OK;
}

int perf_rank_main(struct perf_rank *rank)
{
	const uint64_t bytes = perf_size_of(rank->options, rank->options->max_bytes).bytes;
	struct perf_table *table = NULL;
	int status;

	rank->host = malloc(bytes);
	if (!rank->host || (!rank->rank && !(table = perf_table_open(rank)))) {
		fprintf(stderr, "spyre-perf: rank %u: cannot allocate %llu bytes of host memory\n",
			rank->rank, (unsigned long long)bytes);
		free(rank->host);
		return PERF_FAILED;
	}
	status = open_memory(rank) ? complain(rank) : measure_all(rank, table);
	if (table && !status)
		status = perf_table_close(table);
	else
		perf_table_drop(table);
	free(rank->host);
	return status;
}

int main(int argc, char **argv)
{
	struct perf_options options;
	int status;

	if (!perf_parse_options(argc, argv, &options, &status))
		return status;
	if (!perf_values_init(&options)) {
		fprintf(stderr, "spyre-perf: cannot make the values of %s\n", options.format->name);
		return PERF_FAILED;
	}
	return perf_run_ranks(&options);
}
