/* SPDX-License-Identifier: MIT */
/* Collectives of int32, whose sums wrap around, so that every bit of a result is known. */
#include "comm_calls.h"
#include "tests/order.h"

#define SUM ((spyre_reduction){ .op = SPYRE_REDUCE_SUM })
#define STICK 32

struct call_members call_members(uint32_t size, uint32_t dead)
{
	struct call_members members = { 0 };

	for (uint32_t i = 0; i < size; i++)
		if (i != dead)
			members.number[members.size++] = i;
	return members;
}

/* Number @i of the rank with number @rank. */
static uint32_t value(uint32_t rank, uint64_t i)
{
	uint32_t x = (uint32_t)i * CALL_MAX_RANKS + rank + 1;

	x ^= x >> 16;
	x *= 0x7feb352du;
	return x ^ x >> 15;
}

static spyre_layout layout_of(uint32_t count)
{
	const int64_t size[2] = { count / STICK, STICK };
	spyre_layout layout;

	rank_ok(spyre_layout_init(&layout, 2, size, SPYRE_FORMAT_IEEE_INT32));
	return layout;
}

/* True if the parts of @kind differ: that of member r has 2 (r + 1) / (size + 1) of the average. */
static bool is_uneven(enum call_kind kind)
{
	return kind >= CALL_ALL_GATHER_V && kind <= CALL_SCATTER_V;
}

/* The place of slice @slice among those of all members, in numbers. */
static uint32_t begin_of(enum call_kind kind, uint32_t size, uint32_t slice)
{
	if (!is_uneven(kind))
		return slice * CALL_COUNT;
	return CALL_COUNT / STICK * slice * (slice + 1) / (size + 1) * STICK;
}

static uint32_t count_of(enum call_kind kind, uint32_t size, uint32_t slice)
{
	return begin_of(kind, size, slice + 1) - begin_of(kind, size, slice);
}

/*
 * Member @member of an exchange of all with all sends and receives slices in another order, so
 * that two members agree on a slice, and each has as many bytes as the others.
 */
static uint32_t begin_of_exchange(enum call_kind kind, uint32_t size, uint32_t member,
				  uint32_t slice)
{
	uint32_t begin = 0;

	for (uint32_t i = 0; i < slice; i++)
		begin += count_of(kind, size, (member + i) % size);
	return begin;
}

static spyre_comm_part part_of(spyre_devptr address, uint32_t begin, uint32_t count)
{
	return (spyre_comm_part){
		.address = address + begin * 4ull, .format = SPYRE_FORMAT_IEEE_INT32, .rows = 1,
		.row_bytes = count * 4ull, .pitch = count * 4ull,
	};
}

static void write_memory(const struct calls *calls, spyre_devptr to)
{
	const uint64_t bytes = (uint64_t)calls->parts * CALL_BYTES;

	order_le(calls->host, bytes / 4, 4);
	rank_ok(spyre_memcpy_h2d_async(calls->rank->stream, to, calls->host, bytes));
	rank_ok(spyre_stream_synchronize(calls->rank->stream));
	order_le(calls->host, bytes / 4, 4);
}

static void read_memory(const struct calls *calls, spyre_devptr from)
{
	const uint64_t bytes = (uint64_t)calls->parts * CALL_BYTES;

	rank_ok(spyre_memcpy_d2h_async(calls->rank->stream, calls->host, from, bytes));
	rank_ok(spyre_stream_synchronize(calls->rank->stream));
	order_le(calls->host, bytes / 4, 4);
}

void calls_open(struct calls *calls, struct rank *rank, uint32_t size)
{
	const uint64_t bytes = (uint64_t)size * CALL_BYTES;

	*calls = (struct calls){ .rank = rank, .parts = size, .host = malloc(bytes) };
	rank_check(calls->host, "no memory");
	rank_ok(spyre_mem_alloc(rank->context, bytes, &calls->send));
	rank_ok(spyre_mem_alloc(rank->context, bytes, &calls->recv));
	for (uint64_t i = 0; i < bytes / 4; i++)
		calls->host[i] = value(rank->rank, i);
	write_memory(calls, calls->send);
	calls_clear(calls);
}

void calls_clear(const struct calls *calls)
{
	memset(calls->host, 0xee, (size_t)calls->parts * CALL_BYTES);
	write_memory(calls, calls->recv);
}

void calls_close(struct calls *calls)
{
	rank_ok(spyre_mem_free(calls->rank->context, calls->send));
	rank_ok(spyre_mem_free(calls->rank->context, calls->recv));
	free(calls->host);
}

/* A ring in one group: each rank sends to the next one. */
static spyre_status ring(const struct calls *calls, spyre_comm *comm, uint32_t index, uint32_t size)
{
	const spyre_layout layout = layout_of(CALL_COUNT);
	spyre_comm_part out, in;
	spyre_status status;

	rank_ok(spyre_comm_part_init(&out, calls->send, &layout));
	rank_ok(spyre_comm_part_init(&in, calls->recv, &layout));
	rank_ok(spyre_group_begin());
	status = spyre_send(comm, &out, (index + 1) % size, calls->rank->stream);
	if (!status)
		status = spyre_recv(comm, &in, (index + size - 1) % size, calls->rank->stream);
	return spyre_group_end() ?: status;
}

/* A collective whose parts differ. */
static spyre_status queue_uneven(const struct calls *calls, enum call_kind kind, spyre_comm *comm,
				 uint32_t root, const spyre_comm_info *info)
{
	const uint32_t size = info->size, own = info->rank;
	spyre_comm_part send[CALL_MAX_RANKS], recv[CALL_MAX_RANKS], out, in;
	spyre_stream *stream = calls->rank->stream;

	for (uint32_t i = 0; i < size; i++) {
		const bool swaps = kind == CALL_ALL_TO_ALL_V;
		const uint32_t begin = swaps ? begin_of_exchange(kind, size, own, i) :
					       begin_of(kind, size, i);
		const uint32_t count = count_of(kind, size, swaps ? (own + i) % size : i);

		send[i] = part_of(calls->send, begin, count);
		recv[i] = part_of(calls->recv, begin, count);
	}
	out = part_of(calls->send, 0, count_of(kind, size, own));
	in = part_of(calls->recv, 0, count_of(kind, size, own));
	switch (kind) {
	case CALL_ALL_GATHER_V:
		return spyre_all_gather_v(comm, &out, recv, stream);
	case CALL_REDUCE_SCATTER_V:
		return spyre_reduce_scatter_v(comm, send, &in, SUM, stream);
	case CALL_ALL_TO_ALL_V:
		return spyre_all_to_all_v(comm, send, recv, stream);
	case CALL_GATHER_V:
		return spyre_gather_v(comm, &out, own == root ? recv : NULL, root, stream);
	default:
		return spyre_scatter_v(comm, own == root ? send : NULL, &in, root, stream);
	}
}

spyre_status calls_queue(const struct calls *calls, enum call_kind kind, spyre_comm *comm,
			 uint32_t root)
{
	const spyre_devptr send = calls->send, recv = calls->recv;
	spyre_stream *stream = calls->rank->stream;
	spyre_comm_info info = { .struct_size = sizeof(info) };
	spyre_layout part, all;

	rank_ok(spyre_comm_get_info(comm, &info));
	part = layout_of(CALL_COUNT);
	all = layout_of(CALL_COUNT * info.size);
	switch (kind) {
	case CALL_ALL_REDUCE:
		return spyre_all_reduce(comm, send, recv, &part, SUM, stream);
	case CALL_ALL_GATHER:
		return spyre_all_gather(comm, send, &part, recv, &all, stream);
	case CALL_REDUCE_SCATTER:
		return spyre_reduce_scatter(comm, send, &all, recv, &part, SUM, stream);
	case CALL_BROADCAST:
		return spyre_broadcast(comm, send, recv, &part, root, stream);
	case CALL_REDUCE:
		return spyre_reduce(comm, send, recv, &part, SUM, root, stream);
	case CALL_ALL_TO_ALL:
		return spyre_all_to_all(comm, send, recv, &all, 1, stream);
	case CALL_GATHER:
		return spyre_gather(comm, send, &part, recv, &all, root, stream);
	case CALL_SCATTER:
		return spyre_scatter(comm, send, &all, recv, &part, root, stream);
	case CALL_MESSAGES:
		return ring(calls, comm, info.rank, info.size);
	case CALL_BARRIER:
		return spyre_barrier(comm, stream);
	default:
		if (is_uneven(kind))
			return queue_uneven(calls, kind, comm, root, &info);
	}
	rank_check(false, "unknown call %d", (int)kind);
}

static uint32_t sum(const struct call_members *members, uint64_t i)
{
	uint32_t total = 0;

	for (uint32_t m = 0; m < members->size; m++)
		total += value(members->number[m], i);
	return total;
}

/* Number @i of slice @slice of the result on the member with index @index. */
static uint32_t result(enum call_kind kind, const struct call_members *members, uint32_t index,
		       uint32_t root, uint32_t slice, uint32_t i)
{
	const uint32_t *number = members->number, size = members->size;

	switch (kind) {
	case CALL_ALL_GATHER:
	case CALL_ALL_GATHER_V:
	case CALL_GATHER:
	case CALL_GATHER_V:
		return value(number[slice], i);
	case CALL_REDUCE_SCATTER:
	case CALL_REDUCE_SCATTER_V:
		return sum(members, begin_of(kind, size, index) + i);
	case CALL_BROADCAST:
		return value(number[root], i);
	case CALL_ALL_TO_ALL:
	case CALL_ALL_TO_ALL_V:
		return value(number[slice], begin_of_exchange(kind, size, slice, index) + i);
	case CALL_SCATTER:
	case CALL_SCATTER_V:
		return value(number[root], begin_of(kind, size, index) + i);
	case CALL_MESSAGES:
		return value(number[(index + size - 1) % size], i);
	default:
		return sum(members, i);
	}
}

/* Slices that the call has written on the member with index @index, which may be the root. */
static uint32_t result_slices(enum call_kind kind, uint32_t size, bool is_root)
{
	switch (kind) {
	case CALL_ALL_GATHER:
	case CALL_ALL_GATHER_V:
	case CALL_ALL_TO_ALL:
	case CALL_ALL_TO_ALL_V:
		return size;
	case CALL_GATHER:
	case CALL_GATHER_V:
		return is_root ? size : 0;
	case CALL_REDUCE:
		return is_root;
	case CALL_BARRIER:
		return 0;
	default:
		return 1;
	}
}

/* Numbers of slice @slice of the result on the member with index @index. */
static uint32_t result_count(enum call_kind kind, uint32_t size, uint32_t index, uint32_t slice)
{
	if (kind == CALL_ALL_TO_ALL_V)
		return count_of(kind, size, (index + slice) % size);
	if (kind == CALL_REDUCE_SCATTER_V || kind == CALL_SCATTER_V)
		return count_of(kind, size, index);
	return count_of(kind, size, slice);
}

void calls_check(const struct calls *calls, enum call_kind kind,
		 const struct call_members *members, uint32_t root)
{
	const uint32_t own = calls->rank->rank, size = members->size;
	uint32_t index = 0, slices;
	const uint32_t *got = calls->host;

	while (members->number[index] != own)
		index++;
	slices = result_slices(kind, size, index == root);
	read_memory(calls, calls->recv);
	for (uint32_t slice = 0; slice < slices; slice++) {
		const uint32_t count = result_count(kind, size, index, slice);

		for (uint32_t i = 0; i < count; i++) {
			const uint32_t want = result(kind, members, index, root, slice, i);

			rank_check(got[i] == want, "call %d, root %u, rank %u of %u: number %u of "
				   "slice %u is 0x%08x instead of 0x%08x", (int)kind, root, index,
				   size, i, slice, got[i], want);
		}
		got += count;
	}
	read_memory(calls, calls->send);
	for (uint32_t i = 0; i < calls->parts * CALL_COUNT; i++)
		rank_check(calls->host[i] == value(own, i), "call %d has changed number %u of what "
			   "rank %u sent", (int)kind, i, own);
}
