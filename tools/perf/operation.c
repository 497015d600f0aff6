// SPDX-License-Identifier: MIT
/* The operations: their calls, and the values that each rank has to receive. */
#include "config.h"

#include <stddef.h>

#include "tools/perf/perf.h"

static spyre_reduction reduction_of(const struct perf_call *call)
{
	return (spyre_reduction){ call->rank->options->op->op, PERF_FACTOR };
}

static bool is_root(const struct perf_call *call)
{
	return call->rank->rank == call->rank->options->root;
}

static spyre_status run_all_reduce(const struct perf_call *c)
{
	return spyre_all_reduce(c->rank->comm, c->send, c->recv, &c->whole, reduction_of(c),
				c->rank->stream);
}

static spyre_status run_reduce(const struct perf_call *c)
{
	return spyre_reduce(c->rank->comm, c->send, is_root(c) ? c->recv : 0, &c->whole,
			    reduction_of(c), c->rank->options->root, c->rank->stream);
}

static spyre_status run_broadcast(const struct perf_call *c)
{
	return spyre_broadcast(c->rank->comm, is_root(c) ? c->send : 0, c->recv, &c->whole,
			       c->rank->options->root, c->rank->stream);
}

static spyre_status run_all_gather(const struct perf_call *c)
{
	return spyre_all_gather(c->rank->comm, c->send, &c->part, c->recv, &c->whole,
				c->rank->stream);
}

static spyre_status run_reduce_scatter(const struct perf_call *c)
{
	return spyre_reduce_scatter(c->rank->comm, c->send, &c->whole, c->recv, &c->part,
				    reduction_of(c), c->rank->stream);
}

static spyre_status run_gather(const struct perf_call *c)
{
	return spyre_gather(c->rank->comm, c->send, &c->part, is_root(c) ? c->recv : 0, &c->whole,
			    c->rank->options->root, c->rank->stream);
}

static spyre_status run_scatter(const struct perf_call *c)
{
	return spyre_scatter(c->rank->comm, is_root(c) ? c->send : 0, &c->whole, c->recv, &c->part,
			     c->rank->options->root, c->rank->stream);
}

/* The rows of a matrix of one stick in a row are device dimension 1. */
static spyre_status run_all_to_all(const struct perf_call *c)
{
	return spyre_all_to_all(c->rank->comm, c->send, c->recv, &c->whole, 1, c->rank->stream);
}

static uint32_t last_of(const struct perf_rank *rank)
{
	return (rank->rank + rank->options->ranks - 1) % rank->options->ranks;
}

/* Every rank sends to the next one. */
static spyre_status run_sendrecv(const struct perf_call *c)
{
	const uint32_t next = (c->rank->rank + 1) % c->rank->options->ranks;
	spyre_comm_part send, recv;
	spyre_status status = spyre_comm_part_init(&send, c->send, &c->whole);

	if (!status)
		status = spyre_comm_part_init(&recv, c->recv, &c->whole);
	if (!status)
		status = spyre_group_begin();
	if (status)
		return status;
	status = spyre_send(c->rank->comm, &send, next, c->rank->stream);
	if (!status)
		status = spyre_recv(c->rank->comm, &recv, last_of(c->rank), c->rank->stream);
	return status ? status : spyre_group_end();
}

static bool one_source(uint32_t i, struct perf_source *source, uint32_t rank, uint64_t first,
		       uint64_t bytes)
{
	*source = (struct perf_source){ .rank = rank, .first = first, .bytes = bytes };
	return !i;
}

static bool from_all(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
		     struct perf_source *source)
{
	return one_source(i, source, PERF_REDUCED, 0, size->bytes);
}

static bool from_all_to_root(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
			     struct perf_source *source)
{
	return rank->rank == rank->options->root && from_all(rank, size, i, source);
}

static bool from_root(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
		      struct perf_source *source)
{
	return one_source(i, source, rank->options->root, 0, size->bytes);
}

static bool slice_of_all(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
			 struct perf_source *source)
{
	return one_source(i, source, PERF_REDUCED, size->part_bytes * rank->rank, size->part_bytes);
}

static bool slice_of_root(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
			  struct perf_source *source)
{
	return one_source(i, source, rank->options->root, size->part_bytes * rank->rank,
			  size->part_bytes);
}

static bool part_of_each(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
			 struct perf_source *source)
{
	*source = (struct perf_source){ .rank = i, .bytes = size->part_bytes };
	return i < rank->options->ranks;
}

static bool parts_to_root(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
			  struct perf_source *source)
{
	return rank->rank == rank->options->root && part_of_each(rank, size, i, source);
}

static bool slice_of_each(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
			  struct perf_source *source)
{
	part_of_each(rank, size, i, source);
	source->first = size->part_bytes * rank->rank;
	return i < rank->options->ranks;
}

static bool from_last(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
		      struct perf_source *source)
{
	return one_source(i, source, last_of(rank), 0, size->bytes);
}

const struct perf_operation perf_operations[] = {
	{ .name = "all_reduce", .reduces = true, .in_place = true, .scale = 2,
	  .run = run_all_reduce, .source = from_all },
	{ .name = "all_gather", .divided = true, .sends_part = true, .scale = 1,
	  .run = run_all_gather, .source = part_of_each },
	{ .name = "reduce_scatter", .reduces = true, .divided = true, .receives_part = true,
	  .scale = 1, .run = run_reduce_scatter, .source = slice_of_all },
	{ .name = "broadcast", .has_root = true, .in_place = true, .run = run_broadcast,
	  .source = from_root },
	{ .name = "reduce", .reduces = true, .has_root = true, .in_place = true,
	  .run = run_reduce, .source = from_all_to_root },
	{ .name = "gather", .has_root = true, .divided = true, .sends_part = true, .scale = 1,
	  .run = run_gather, .source = parts_to_root },
	{ .name = "scatter", .has_root = true, .divided = true, .receives_part = true, .scale = 1,
	  .run = run_scatter, .source = slice_of_root },
	{ .name = "all_to_all", .divided = true, .scale = 1, .run = run_all_to_all,
	  .source = slice_of_each },
	{ .name = "sendrecv", .run = run_sendrecv, .source = from_last },
	{ .name = NULL },
};

struct perf_size perf_size_of(const struct perf_options *options, uint64_t bytes)
{
	const uint64_t parts = options->operation->divided ? options->ranks : 1;
	const uint64_t sticks = (bytes + parts * PERF_STICK - 1) / (parts * PERF_STICK);
	const uint64_t part = (sticks ? sticks : 1) * PERF_STICK;

	return (struct perf_size){ .bytes = part * parts, .part_bytes = part };
}

double perf_bus_factor(const struct perf_options *options)
{
	const double n = options->ranks;

	return options->operation->scale ? options->operation->scale * (n - 1) / n : 1;
}
