/* SPDX-License-Identifier: MIT */
/* Many threads on one context, and many contexts in one process. */
#include <pthread.h>
#include <stdatomic.h>

#include "runtime_check.h"

#define THREADS 6
#define MIB (1ull << 20)

static spyre_context *context;
static _Atomic int host_calls;

static void count_call(void *data)
{
	atomic_fetch_add(&host_calls, 1);
}

/* All operations at once: allocate, fill, copy, event, host function, free. */
static void *mixed_traffic(void *arg)
{
	uint64_t state = (uintptr_t)arg + 1;
	uint32_t *host = malloc(MIB);

	for (int round = 0; round < 60; round++) {
		uint64_t bytes = 4 * (1 + random_next(&state) % (MIB / 4));
		uint32_t value = random_next(&state);
		spyre_stream *stream, *other;
		spyre_devptr a, b;
		spyre_event *event;

		ck_ok(spyre_stream_from_pool(context, -(round & 1), &stream));
		ck_ok(spyre_stream_from_pool(context, 0, &other));
		ck_ok(spyre_mem_alloc(context, bytes, &a));
		ck_ok(spyre_mem_alloc(context, bytes, &b));
		ck_ok(spyre_event_create(context, round & 1, &event));
		ck_ok(spyre_memset_async(stream, a, &value, 4, bytes));
		if (round % 5 == 0)
			ck_ok(spyre_stream_host_fn(stream, count_call, NULL));
		ck_ok(spyre_event_record(event, stream));
		ck_ok(spyre_stream_wait_event(other, event));
		ck_ok(spyre_memcpy_d2d_async(other, b, a, bytes));
		ck_ok(spyre_memcpy_d2h_async(other, host, b, bytes));
		ck_ok(spyre_mem_free(context, a));
		ck_ok(spyre_mem_free(context, b));
		ck_ok(spyre_event_record(event, other));
		ck_ok(spyre_event_synchronize(event));
		ck_assert(all_words(host, bytes / 4, value));
		ck_ok(spyre_event_destroy(event));
	}
	free(host);
	return NULL;
}

START_TEST(one_context)
{
	pthread_t threads[THREADS];

	context = open_card();
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, mixed_traffic, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(atomic_load(&host_calls), THREADS * 12);
	ck_ok(spyre_context_synchronize(context));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* All threads use one stream: nothing is lost, results are complete. */
static void *same_stream(void *arg)
{
	uint32_t id = (uintptr_t)arg, *host = malloc(65536);
	spyre_stream *stream = get_stream(context, 0);
	spyre_devptr address;

	ck_ok(spyre_mem_alloc(context, 65536, &address));
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t value = id << 16 | round;

		ck_ok(spyre_memset_async(stream, address, &value, 4, 65536));
		ck_ok(spyre_memcpy_d2h_async(stream, host, address, 65536));
		ck_ok(spyre_stream_synchronize(stream));
		ck_assert(all_words(host, 16384, value));
	}
	ck_ok(spyre_mem_free(context, address));
	free(host);
	return NULL;
}

START_TEST(one_stream)
{
	spyre_stream_stats stats = { .struct_size = sizeof(stats) };
	pthread_t threads[THREADS];

	context = open_card();
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, same_stream, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_ok(spyre_stream_get_stats(get_stream(context, 0), &stats));
	ck_assert_uint_eq(stats.copies, THREADS * 200 * 2);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

static void *own_context(void *arg)
{
	for (int round = 0; round < 8; round++) {
		spyre_context *own = open_card();
		uint32_t value = (uintptr_t)arg * 100 + round, back = 0;
		spyre_devptr address;
		spyre_stream *stream;

		ck_ok(spyre_mem_alloc(own, 3 * MIB, &address));
		ck_ok(spyre_stream_create(own, -1, &stream));
		ck_ok(spyre_memset_async(stream, address, &value, 4, 3 * MIB));
		ck_ok(spyre_stream_destroy(stream));
		ck_ok(spyre_memcpy_d2h(own, &back, address + 3 * MIB - 4, 4));
		ck_assert_uint_eq(back, value);
		ck_ok(spyre_context_destroy(own));
	}
	return NULL;
}

START_TEST(many_contexts)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, own_context, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

/* The card's results do not depend on the number of threads. */
static void checksum(const char *threads, uint8_t *out)
{
	spyre_devptr a;

	setenv("SPYRE_EMBEDDED_THREADS", threads, 1);
	context = open_card();
	ck_ok(spyre_mem_alloc(context, 8 * MIB, &a));
	for (int i = 0; i < 16; i++) {
		spyre_stream *stream = get_stream(context, 1 + i);
		uint64_t pattern = 0x0123456789abcdefull * (i + 1);

		ck_ok(spyre_memset_async(stream, a + i * MIB / 2, &pattern, 8, MIB / 2));
	}
	ck_ok(spyre_context_synchronize(context));
	ck_ok(spyre_memcpy_d2d_async(get_stream(context, 0), a + 77, a, 7 * MIB));
	ck_ok(spyre_memcpy_d2h(context, out, a, 8 * MIB));
	ck_ok(spyre_context_destroy(context));
}

START_TEST(thread_counts)
{
	static const char *const counts[] = { "1", "2", "7", "64" };
	uint8_t *first = malloc(8 * MIB), *next = malloc(8 * MIB);

	checksum(counts[0], first);
	for (int i = 1; i < 4; i++) {
		checksum(counts[i], next);
		ck_assert(!memcmp(first, next, 8 * MIB));
	}
	free(first);
	free(next);
}
END_TEST


START_TEST(one_worker)
{
	setenv("SPYRE_EMBEDDED_THREADS", "1", 1);
	context = open_card();
	mixed_traffic((void *)5);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("threads");

	tcase_add_test(tests, one_context);
	tcase_add_test(tests, one_stream);
	tcase_add_test(tests, many_contexts);
	tcase_add_test(tests, thread_counts);
	tcase_add_test(tests, one_worker);
	return run_suite("runtime_threads", tests);
}
