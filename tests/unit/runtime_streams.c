/* SPDX-License-Identifier: MIT */
/* Streams and events: order within, order between, host functions, times. */
#include <pthread.h>
#include <stdatomic.h>

#include "runtime_check.h"

#define MIB (1ull << 20)
#define SLOW (64 * MIB)

static spyre_context *context;

static void setup(void)
{
	context = open_card();
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

static spyre_devptr alloc(uint64_t bytes)
{
	spyre_devptr address;

	ck_ok(spyre_mem_alloc(context, bytes, &address));
	return address;
}

static void set32(spyre_stream *stream, spyre_devptr address, uint32_t value, uint64_t bytes)
{
	ck_ok(spyre_memset_async(stream, address, &value, 4, bytes));
}

static uint32_t get32(spyre_devptr address)
{
	uint32_t value;

	ck_ok(spyre_memcpy_d2h(context, &value, address, 4));
	return value;
}

START_TEST(pool)
{
	int least, greatest;
	spyre_stream *stream, *again;

	ck_ok(spyre_stream_priority_range(&least, &greatest));
	ck_assert_int_eq(least, 0);
	ck_assert_int_eq(greatest, -1);
	for (int i = 0; i < 70; i++) {
		ck_ok(spyre_stream_from_pool(context, 0, &stream));
		ck_assert_int_eq(spyre_stream_id(stream), 1 + i % 32);
		ck_assert_int_eq(spyre_stream_priority(stream), 0);
		ck_ok(spyre_stream_from_pool(context, -1, &stream));
		ck_assert_int_eq(spyre_stream_id(stream), 33 + i % 32);
		ck_assert_int_eq(spyre_stream_priority(stream), -1);
		ck_assert_ptr_eq(spyre_stream_context(stream), context);
	}
	ck_ok(spyre_stream_get(context, 33, &stream));
	ck_ok(spyre_stream_get(context, 33, &again));
	ck_assert_ptr_eq(stream, again);
	ck_status(spyre_stream_destroy(stream), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_stream_get(context, 65, &stream), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_stream_get(context, -1, &stream), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_stream_from_pool(context, 1, &stream), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_stream_create(context, -1, &stream));
	ck_ok(spyre_stream_create(context, 0, &again));
	ck_assert_int_ge(spyre_stream_id(stream), 65);
	ck_assert_int_gt(spyre_stream_id(again), spyre_stream_id(stream));
	ck_ok(spyre_stream_destroy(stream));
	ck_ok(spyre_stream_destroy(NULL));
	ck_status(spyre_stream_synchronize(NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	/* The context frees @again. */
}
END_TEST

START_TEST(in_order)
{
	spyre_stream *stream = get_stream(context, 5);
	spyre_devptr a = alloc(4096), b = alloc(4096);
	uint32_t *log = malloc(4000 * 4);

	/* More operations than the ring has results. */
	for (uint32_t i = 0; i < 2000; i++) {
		set32(stream, a, i, 4096);
		ck_ok(spyre_memcpy_d2d_async(stream, b, a, 4096));
		ck_ok(spyre_memcpy_d2h_async(stream, &log[2 * i], b + 4092, 4));
		ck_ok(spyre_memcpy_d2h_async(stream, &log[2 * i + 1], a, 4));
	}
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_stream_query(stream));
	for (uint32_t i = 0; i < 4000; i++)
		if (log[i] != i / 2)
			ck_abort_msg("operation %u saw %u", i / 2, log[i]);
	free(log);
}
END_TEST

START_TEST(statistics)
{
	spyre_stream_stats stats = { .struct_size = sizeof(stats) };
	spyre_stream *stream = get_stream(context, 0);
	spyre_devptr a = alloc(8192);

	set32(stream, a, 1, 8192);
	ck_ok(spyre_memcpy_d2d_async(stream, a, a + 4096, 4096));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_stream_get_stats(stream, &stats));
	ck_assert_uint_eq(stats.copies, 2);
	ck_assert_uint_eq(stats.launches, 0);
	ck_assert_uint_eq(stats.bytes_written, 8192 + 4096);
	ck_assert_uint_eq(stats.bytes_read, 4096);
	ck_assert_uint_gt(stats.cycles, 0);
}
END_TEST

/* b waits for a's slow work; c does not and may run first. */
START_TEST(wait_event)
{
	spyre_stream *a = get_stream(context, 1), *b = get_stream(context, 2);
	spyre_devptr from = alloc(SLOW), to = alloc(SLOW);
	spyre_event *event;

	for (uint32_t flags = 0; flags < 2; flags++) {
		ck_ok(spyre_event_create(context, flags, &event));
		for (uint32_t i = 1; i < 6; i++) {
			set32(a, from, i, SLOW);
			ck_ok(spyre_event_record(event, a));
			ck_ok(spyre_stream_wait_event(b, event));
			ck_ok(spyre_memcpy_d2d_async(b, to, from, SLOW));
			/* The reverse: a must not overwrite data that b still reads. */
			ck_ok(spyre_event_record(event, b));
			ck_ok(spyre_stream_wait_event(a, event));
		}
		set32(a, from, 99, SLOW);
		ck_ok(spyre_stream_synchronize(b));
		ck_assert_uint_eq(get32(to), 5);
		ck_assert_uint_eq(get32(to + SLOW - 4), 5);
		ck_ok(spyre_stream_synchronize(a));
		ck_assert_uint_eq(get32(from + SLOW - 4), 99);
		ck_ok(spyre_event_destroy(event));
	}
}
END_TEST

/* A wait without later work is still part of the stream. */
START_TEST(bare_wait)
{
	spyre_stream *a = get_stream(context, 1), *b = get_stream(context, 40);
	spyre_devptr address = alloc(SLOW);
	spyre_event *first, *second;

	ck_ok(spyre_event_create(context, 0, &first));
	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &second));
	set32(a, address, 7, SLOW);
	ck_ok(spyre_event_record(first, a));
	ck_ok(spyre_stream_wait_event(b, first));
	ck_ok(spyre_event_record(second, b));
	ck_ok(spyre_event_synchronize(second));
	ck_ok(spyre_event_query(first));
	set32(a, address, 8, SLOW);
	ck_ok(spyre_event_record(first, a));
	ck_ok(spyre_stream_wait_event(b, first));
	ck_ok(spyre_stream_synchronize(b));
	ck_ok(spyre_event_query(first));
}
END_TEST

START_TEST(many_waits)
{
	spyre_stream *last = get_stream(context, 64);
	spyre_devptr address = alloc(64 * 4096), sum = alloc(64 * 4096);
	spyre_event *event[32];
	uint32_t host[64 * 1024];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 32; i++) {
			spyre_stream *stream = get_stream(context, 1 + i);

			ck_ok(spyre_event_create(context, i & 1, &event[i]));
			set32(stream, address + i * 4096, i + 100 * round, 4096);
			ck_ok(spyre_event_record(event[i], stream));
			ck_ok(spyre_stream_wait_event(last, event[i]));
		}
		ck_ok(spyre_memcpy_d2d_async(last, sum, address, 32 * 4096));
		ck_ok(spyre_memcpy_d2h_async(last, host, sum, 32 * 4096));
		for (int i = 0; i < 32; i++)
			ck_ok(spyre_event_destroy(event[i]));
		ck_ok(spyre_stream_synchronize(last));
		for (int i = 0; i < 32; i++)
			ck_assert(all_words(host + i * 1024, 1024, i + 100 * round));
		ck_ok(spyre_context_synchronize(context));
	}
}
END_TEST

START_TEST(events)
{
	spyre_stream *stream = get_stream(context, 3), *other = get_stream(context, 4);
	spyre_devptr address = alloc(SLOW);
	spyre_event *a, *b, *quiet, *never;
	uint64_t cycles;
	double ms;

	ck_ok(spyre_event_create(context, 0, &a));
	ck_ok(spyre_event_create(context, 0, &b));
	ck_ok(spyre_event_create(context, 0, &never));
	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &quiet));
	ck_status(spyre_event_create(context, 2, &a), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_event_query(never));
	ck_ok(spyre_event_synchronize(never));
	ck_ok(spyre_event_synchronize_for(never, 0));
	ck_ok(spyre_stream_wait_event(stream, never));

	ck_ok(spyre_event_record(a, stream));
	set32(stream, address, 1, SLOW);
	ck_ok(spyre_event_record(b, stream));
	ck_ok(spyre_event_record(quiet, stream));
	while (spyre_event_synchronize_for(b, 1000) == SPYRE_NOT_READY)
		;
	ck_ok(spyre_event_synchronize_for(b, 0));
	ck_ok(spyre_event_query(a));
	ck_ok(spyre_event_synchronize(quiet));
	ck_ok(spyre_event_elapsed(a, b, &ms));
	ck_assert(ms > 0 && ms < 60000);
	ck_ok(spyre_event_elapsed(b, a, &ms));
	ck_assert(ms < 0);
	ck_ok(spyre_event_elapsed_cycles(a, b, &cycles));
	/* 64 MiB at 150 GB/s are 671,089 cycles of 1.5 GHz, plus a little. */
	ck_assert_uint_ge(cycles, 400000);
	ck_assert_uint_le(cycles, 1000000);
	ck_status(spyre_event_elapsed_cycles(b, a, &cycles), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_event_elapsed(a, quiet, &ms), SPYRE_ERROR_NO_TIMING);
	ck_mentions("end");
	ck_status(spyre_event_elapsed(never, b, &ms), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("start");

	ck_ok(spyre_event_record(b, other));
	ck_ok(spyre_event_synchronize(b));
	ck_ok(spyre_event_elapsed(a, b, &ms));
	ck_status(spyre_event_elapsed_cycles(a, b, &cycles), SPYRE_ERROR_INVALID_ARGUMENT);
	/* Recorded and pending while it is destroyed. */
	set32(stream, address, 2, SLOW);
	ck_ok(spyre_event_record(a, stream));
	ck_ok(spyre_event_destroy(a));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_event_destroy(quiet));
	ck_ok(spyre_event_destroy(NULL));
}
END_TEST

/* An event outlives the stream that it was recorded on. */
START_TEST(event_outlives_stream)
{
	spyre_devptr address = alloc(MIB);
	spyre_stream *stream;
	spyre_event *a, *b;
	double ms;

	ck_ok(spyre_event_create(context, 0, &a));
	ck_ok(spyre_event_create(context, 0, &b));
	ck_ok(spyre_stream_create(context, 0, &stream));
	ck_ok(spyre_event_record(a, stream));
	set32(stream, address, 1, MIB);
	ck_ok(spyre_event_record(b, stream));
	ck_ok(spyre_stream_destroy(stream));
	ck_ok(spyre_event_query(b));
	ck_ok(spyre_stream_wait_event(get_stream(context, 1), b));
	ck_ok(spyre_event_elapsed(a, b, &ms));
	ck_ok(spyre_mem_free(context, address));
}
END_TEST

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool open;
	bool entered;
};

static void gate_wait(void *data)
{
	struct gate *gate = data;

	pthread_mutex_lock(&gate->lock);
	gate->entered = true;
	pthread_cond_broadcast(&gate->cond);
	while (!gate->open)
		pthread_cond_wait(&gate->cond, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void gate_open(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_broadcast(&gate->cond);
	pthread_mutex_unlock(&gate->lock);
}

static void gate_entered(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	while (!gate->entered)
		pthread_cond_wait(&gate->cond, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

#define GATE { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false }

/* Work behind a host function waits for it, on its stream and on others. */
START_TEST(host_fn_order)
{
	spyre_stream *a = get_stream(context, 1), *b = get_stream(context, 2);
	spyre_stream *free_one = get_stream(context, 3);
	spyre_devptr x = alloc(4096), y = alloc(4096), z = alloc(4096);
	struct gate gate = GATE;
	spyre_event *event, *timed;

	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event));
	ck_ok(spyre_event_create(context, 0, &timed));
	set32(a, x, 1, 4096);
	ck_ok(spyre_stream_host_fn(a, gate_wait, &gate));
	set32(a, x, 2, 4096);
	ck_ok(spyre_event_record(event, a));
	ck_ok(spyre_event_record(timed, a));
	/* Waits for work that has not reached the card. */
	ck_ok(spyre_stream_wait_event(b, event));
	ck_ok(spyre_memcpy_d2d_async(b, y, x, 4096));
	gate_entered(&gate);
	ck_status(spyre_stream_query(a), SPYRE_NOT_READY);
	ck_status(spyre_stream_query(b), SPYRE_NOT_READY);
	ck_status(spyre_event_query(event), SPYRE_NOT_READY);
	ck_status(spyre_event_query(timed), SPYRE_NOT_READY);
	ck_status(spyre_event_synchronize_for(event, 0), SPYRE_NOT_READY);
	ck_status(spyre_event_synchronize_for(timed, 1000000), SPYRE_NOT_READY);
	/* Other streams continue. */
	set32(free_one, z, 3, 4096);
	ck_ok(spyre_stream_synchronize(free_one));
	ck_assert_uint_eq(get32(x), 1);
	ck_assert_uint_eq(get32(y), 0);
	gate_open(&gate);
	ck_ok(spyre_event_synchronize_for(event, UINT64_MAX));
	ck_ok(spyre_event_synchronize(timed));
	ck_ok(spyre_stream_synchronize(b));
	ck_assert_uint_eq(get32(y), 2);
	ck_ok(spyre_stream_synchronize(a));
	ck_ok(spyre_stream_query(a));
	/* The stream returns to the direct path. */
	set32(a, x, 4, 4096);
	ck_ok(spyre_stream_synchronize(a));
	ck_assert_uint_eq(get32(x), 4);
}
END_TEST

struct chain {
	spyre_stream *stream;
	spyre_devptr address;
	uint32_t expect;
	uint32_t seen;
	_Atomic int calls;
};

static void read_back(void *data)
{
	struct chain *chain = data;

	/* Waits for another stream, the default one. */
	chain->seen = get32(chain->address);
	atomic_fetch_add(&chain->calls, 1);
}

static void free_and_queue(void *data)
{
	struct chain *chain = data;

	ck_ok(spyre_mem_free(context, chain->address));
	chain->address = alloc(4096);
	set32(chain->stream, chain->address, 77, 4096);
	ck_status(spyre_stream_synchronize(chain->stream), SPYRE_ERROR_BUSY);
	ck_status(spyre_context_destroy(context), SPYRE_ERROR_BUSY);
	ck_status(spyre_stream_query(chain->stream), SPYRE_NOT_READY);
	atomic_fetch_add(&chain->calls, 1);
}

/* Host functions may free, allocate, queue and wait for others. */
START_TEST(host_fn_calls)
{
	struct chain chain = { .stream = get_stream(context, 9), .address = alloc(4096) };

	for (uint32_t i = 1; i <= 20; i++) {
		set32(chain.stream, chain.address, i, 4096);
		ck_ok(spyre_stream_host_fn(chain.stream, read_back, &chain));
		ck_ok(spyre_stream_synchronize(chain.stream));
		ck_assert_uint_eq(chain.seen, i);
	}
	ck_ok(spyre_stream_host_fn(chain.stream, free_and_queue, &chain));
	ck_ok(spyre_stream_synchronize(chain.stream));
	ck_ok(spyre_stream_synchronize(chain.stream));
	ck_assert_uint_eq(get32(chain.address), 77);
	ck_assert_int_eq(atomic_load(&chain.calls), 21);
	ck_status(spyre_stream_host_fn(chain.stream, NULL, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
}
END_TEST

static void sync_other(void *data)
{
	ck_ok(spyre_stream_synchronize(data));
}

/* A host function waits for a stream whose own host function comes later. */
START_TEST(host_fn_cross)
{
	spyre_stream *a = get_stream(context, 1), *b = get_stream(context, 2);
	struct chain chain = { .stream = b, .address = alloc(4096) };
	struct gate gate = GATE;

	ck_ok(spyre_stream_host_fn(a, gate_wait, &gate));
	ck_ok(spyre_stream_host_fn(a, sync_other, b));
	set32(b, chain.address, 5, 4096);
	ck_ok(spyre_stream_host_fn(b, read_back, &chain));
	gate_open(&gate);
	ck_ok(spyre_stream_synchronize(a));
	ck_assert_uint_eq(chain.seen, 5);
}
END_TEST

/* Copies and launches behind a host function keep their own arguments. */
START_TEST(deferred_arguments)
{
	spyre_stream *stream = get_stream(context, 7);
	spyre_devptr address = alloc(64 * 1024);
	uint8_t source[3001], target[3001];
	struct gate gate = GATE;

	random_bytes(source, sizeof(source), 5);
	memset(target, 0, sizeof(target));
	ck_ok(spyre_stream_host_fn(stream, gate_wait, &gate));
	ck_ok(spyre_memcpy_h2d_async(stream, address + 77, source, sizeof(source)));
	ck_ok(spyre_memcpy_d2d_async(stream, address + 5001, address + 77, sizeof(source)));
	ck_ok(spyre_memcpy_d2h_async(stream, target, address + 5001, sizeof(target)));
	/* Memory freed while work waits for it stays until the work is done. */
	ck_ok(spyre_mem_free(context, address));
	gate_open(&gate);
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_mem_eq(source, target, sizeof(source));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("streams");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, pool);
	tcase_add_test(tests, in_order);
	tcase_add_test(tests, statistics);
	tcase_add_test(tests, wait_event);
	tcase_add_test(tests, bare_wait);
	tcase_add_test(tests, many_waits);
	tcase_add_test(tests, events);
	tcase_add_test(tests, event_outlives_stream);
	tcase_add_test(tests, host_fn_order);
	tcase_add_test(tests, host_fn_calls);
	tcase_add_test(tests, host_fn_cross);
	tcase_add_test(tests, deferred_arguments);
	return run_suite("runtime_streams", tests);
}
