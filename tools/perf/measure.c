// SPDX-License-Identifier: MIT
/* One size: a check of the values, the modelled cycles and the time, out of place and in place. */
#include "config.h"

#include <string.h>
#include <time.h>

#include "tools/perf/perf.h"

/* A rank's numbers, which all ranks get. A stick, since that is the unit of collectives. */
struct numbers {
	double seconds;
	uint64_t cycles;
	uint64_t wrong;
	uint8_t rest[PERF_STICK - 24];
};

_Static_assert(sizeof(struct numbers) == PERF_STICK, "numbers of a rank are a stick");

#define TRY(call) do { \
	spyre_status try_ = (call); \
	if (try_) \
		return try_; \
} while (0)

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* A matrix of one stick in a row, whose rows are contiguous on the card. */
static spyre_status layout_of(const struct perf_options *options, uint64_t bytes,
			      spyre_layout *layout)
{
	const int64_t size[] = {
		(int64_t)(bytes / PERF_STICK),
		(int64_t)(PERF_STICK / spyre_format_bytes(options->format->device)),
	};

	return spyre_layout_init(layout, 2, size, options->format->host);
}

static spyre_status call_init(struct perf_call *call, struct perf_rank *rank, struct perf_size size,
			      enum perf_place place)
{
	*call = (struct perf_call){
		.rank = rank, .size = size, .send = rank->send,
		.recv = place == PERF_IN_PLACE ? rank->send : rank->recv,
	};
	TRY(layout_of(rank->options, size.bytes, &call->whole));
	return layout_of(rank->options, size.part_bytes, &call->part);
}

static uint64_t send_bytes(const struct perf_call *call)
{
	const struct perf_operation *operation = call->rank->options->operation;

	return operation->sends_part ? call->size.part_bytes : call->size.bytes;
}

static spyre_status fill(const struct perf_call *call)
{
	struct perf_rank *rank = call->rank;

	/* Bytes that no value has show where nothing was received. */
	memset(rank->host, 0xa5, call->size.bytes);
	TRY(spyre_memcpy_h2d_async(rank->stream, call->recv, rank->host, call->size.bytes));
	TRY(spyre_stream_synchronize(rank->stream));
	perf_fill(rank->options, rank->rank, 0, rank->host, send_bytes(call));
	TRY(spyre_memcpy_h2d_async(rank->stream, call->send, rank->host, send_bytes(call)));
	return spyre_stream_synchronize(rank->stream);
}

static spyre_status compare(const struct perf_call *call, uint64_t *wrong)
{
	const struct perf_operation *operation = call->rank->options->operation;
	struct perf_rank *rank = call->rank;
	struct perf_source source;
	uint64_t at = 0;

	*wrong = 0;
	TRY(spyre_memcpy_d2h_async(rank->stream, rank->host, call->recv, call->size.bytes));
	TRY(spyre_stream_synchronize(rank->stream));
	for (uint32_t i = 0; operation->source(rank, &call->size, i, &source); i++) {
		*wrong += perf_compare(rank->options, &source, rank->host + at);
		at += source.bytes;
	}
	return SPYRE_SUCCESS;
}

static spyre_status barrier(struct perf_rank *rank)
{
	TRY(spyre_barrier(rank->comm, rank->stream));
	return spyre_stream_synchronize(rank->stream);
}

static spyre_status add_cycles(spyre_activity_log *log, uint64_t *cycles)
{
	spyre_activity records[64];
	uint32_t count;

	do {
		TRY(spyre_activity_read(log, records, sizeof(records[0]), 64, &count, NULL));
		for (uint32_t i = 0; i < count; i++)
			*cycles += records[i].cycles;
	} while (count);
	return SPYRE_SUCCESS;
}

/* Executes one call, with the cycles of all its commands. The log has those of all threads. */
static spyre_status run_logged(const struct perf_call *call, spyre_activity_log *log,
			       uint64_t *cycles)
{
	struct perf_rank *rank = call->rank;

	TRY(rank->options->operation->run(call));
	TRY(spyre_context_synchronize(rank->context));
	TRY(barrier(rank));
	*cycles = 0;
	if (!log)
		return SPYRE_SUCCESS;
	TRY(add_cycles(log, cycles));
	if (rank->options->threads)
		*cycles /= rank->options->local;
	return SPYRE_SUCCESS;
}

static spyre_status count_cycles(const struct perf_call *call, uint64_t *cycles)
{
	const struct perf_rank *rank = call->rank;
	spyre_activity_log *log = NULL;
	spyre_status status;

	/* One thread counts for all, once none of them has other work. */
	TRY(barrier(call->rank));
	if (!rank->options->threads || rank->rank == rank->options->first)
		TRY(spyre_activity_open(0, &log));
	status = barrier(call->rank);
	if (!status)
		status = run_logged(call, log, cycles);
	spyre_activity_close(log);
	return status;
}

static spyre_status run_many(const struct perf_call *call, uint32_t count)
{
	struct perf_rank *rank = call->rank;

	for (uint32_t i = 0; i < count; i++) {
		TRY(rank->options->operation->run(call));
		if (rank->options->blocking)
			TRY(spyre_stream_synchronize(rank->stream));
	}
	return spyre_stream_synchronize(rank->stream);
}

static spyre_status take_time(const struct perf_call *call, double *seconds)
{
	const struct perf_options *options = call->rank->options;
	double start;

	TRY(run_many(call, options->warmup));
	TRY(barrier(call->rank));
	start = now();
	TRY(run_many(call, options->iterations));
	*seconds = (now() - start) / options->iterations;
	return SPYRE_SUCCESS;
}

static spyre_comm_part numbers_part(const struct perf_rank *rank, uint32_t index)
{
	return (spyre_comm_part){
		.address = rank->numbers + (uint64_t)index * PERF_STICK,
		.format = rank->options->format->device, .rows = 1, .row_bytes = PERF_STICK,
		.pitch = PERF_STICK,
	};
}

/* Exchanges the numbers; the result is that of the slowest rank, with all wrong elements. */
static spyre_status combine(struct perf_rank *rank, struct numbers *own, struct perf_result *result)
{
	const uint32_t n = rank->options->ranks;
	const spyre_comm_part send = numbers_part(rank, n);
	spyre_comm_part recv[SPYRE_COMM_MAX_RANKS];
	struct numbers all[SPYRE_COMM_MAX_RANKS];

	for (uint32_t i = 0; i < n; i++)
		recv[i] = numbers_part(rank, i);
	TRY(spyre_memcpy_h2d_async(rank->stream, send.address, own, sizeof(*own)));
	TRY(spyre_all_gather_v(rank->comm, &send, recv, rank->stream));
	TRY(spyre_memcpy_d2h_async(rank->stream, all, rank->numbers, n * sizeof(all[0])));
	TRY(spyre_stream_synchronize(rank->stream));
	*result = (struct perf_result){ .valid = true };
	for (uint32_t i = 0; i < n; i++) {
		if (all[i].seconds > result->seconds)
			result->seconds = all[i].seconds;
		if (all[i].cycles > result->cycles)
			result->cycles = all[i].cycles;
		result->wrong += all[i].wrong;
	}
	return SPYRE_SUCCESS;
}

static spyre_status measure_place(struct perf_rank *rank, struct perf_size size,
				  enum perf_place place, struct perf_result *result)
{
	const struct perf_options *options = rank->options;
	struct numbers own = { 0 };
	struct perf_call call;

	TRY(call_init(&call, rank, size, place));
	if (options->check) {
		TRY(fill(&call));
		TRY(options->operation->run(&call));
		TRY(compare(&call, &own.wrong));
	}
	TRY(take_time(&call, &own.seconds));
	TRY(count_cycles(&call, &own.cycles));
	return combine(rank, &own, result);
}

spyre_status perf_measure(struct perf_rank *rank, uint64_t bytes, struct perf_row *row)
{
	*row = (struct perf_row){ .size = perf_size_of(rank->options, bytes) };
	TRY(measure_place(rank, row->size, PERF_OUT_OF_PLACE, &row->result[PERF_OUT_OF_PLACE]));
	if (!rank->options->operation->in_place)
		return SPYRE_SUCCESS;
	return measure_place(rank, row->size, PERF_IN_PLACE, &row->result[PERF_IN_PLACE]);
}
