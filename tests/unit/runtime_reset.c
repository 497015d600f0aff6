/* SPDX-License-Identifier: MIT */
/* Failures, how they are reported, and how contexts and cards recover. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runtime_check.h"

#define MIB (1ull << 20)
/* A copy of half of this takes milliseconds anywhere. */
#define BIG (512 * MIB)

static spyre_context_state state_of(spyre_context *context)
{
	spyre_context_state state = { .struct_size = sizeof(state) };

	ck_ok(spyre_context_get_state(context, &state));
	return state;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Checks that the stream accepts work and that its writes arrive. */
static void check_works(spyre_context *context, spyre_stream *stream, spyre_devptr at,
			uint32_t value)
{
	uint32_t words[1024];

	ck_ok(spyre_memset_async(stream, at, &value, sizeof(value), sizeof(words)));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_memcpy_d2h(context, words, at, sizeof(words)));
	ck_assert(all_words(words, 1024, value));
}

static void queue_copies(spyre_stream *stream, spyre_devptr big, int n)
{
	while (n--)
		ck_ok(spyre_memcpy_d2d_async(stream, big + BIG / 2, big, BIG / 2));
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void hold(void *data)
{
	(void)data;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

/* Queues a host function, two copies, of which the first exceeds the limit of @slow, and @event. */
static void queue_timeout(spyre_stream *slow, spyre_devptr big, spyre_event *event)
{
	/* All work is queued before the first copy can fail, since later work would be refused. */
	pthread_mutex_lock(&gate);
	ck_ok(spyre_stream_host_fn(slow, hold, NULL));
	queue_copies(slow, big, 2);
	ck_ok(spyre_event_record(event, slow));
	pthread_mutex_unlock(&gate);
}

/*
 * Returns a stream with such a failure. The machine may be busier now than when the limit was
 * measured, or less busy: then with another measurement.
 */
static spyre_stream *time_out(spyre_context *context, spyre_devptr big, spyre_event *event)
{
	spyre_stream *slow;
	char limit[24];

	for (int attempt = 0; attempt < 20; attempt++) {
		limit_below_copy(get_stream(context, 2), big + BIG / 2, big, BIG / 2, limit,
				 sizeof(limit));
		setenv("SPYRE_TIMEOUT_MS", limit, 1);
		ck_ok(spyre_stream_create(context, 0, &slow));
		unsetenv("SPYRE_TIMEOUT_MS");
		queue_timeout(slow, big, event);
		if (spyre_stream_synchronize(slow) && state_of(context).operation == 2)
			return slow;
		ck_ok(spyre_context_reset(context));
		ck_ok(spyre_stream_destroy(slow));
	}
	ck_abort_msg("no copy exceeded its limit: %s", spyre_last_error());
	return NULL;
}

START_TEST(timeout_and_back)
{
	spyre_context *context = open_card();
	spyre_stream *slow, *other = get_stream(context, 2);
	spyre_context_state state = state_of(context);
	spyre_devptr big, kept;
	spyre_event *event;

	ck_assert_int_eq(state.health, SPYRE_CONTEXT_OK);
	ck_assert_int_eq(state.status, SPYRE_SUCCESS);
	ck_assert_int_eq(state.stream, -1);
	ck_ok(spyre_mem_alloc(context, BIG, &big));
	ck_ok(spyre_mem_alloc(context, 4096, &kept));
	check_works(context, other, kept, 7);
	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event));

	slow = time_out(context, big, event);
	ck_status(spyre_stream_synchronize(slow), SPYRE_ERROR_TIMEOUT);
	ck_mentions("spyre_context_reset");
	state = state_of(context);
	ck_assert_int_eq(state.health, SPYRE_CONTEXT_FAULTED);
	ck_assert_int_eq(state.status, SPYRE_ERROR_TIMEOUT);
	ck_assert_int_eq(state.fault, SPYRE_FAULT_TIMEOUT);
	ck_assert_int_eq(state.stream, spyre_stream_id(slow));
	ck_assert_uint_eq(state.operation, 2);
	ck_assert_uint_eq(state.control_block, 0);
	ck_assert_ptr_nonnull(strstr(state.text, "time limit"));

	ck_ok(spyre_context_reset(context));
	state = state_of(context);
	ck_assert_int_eq(state.health, SPYRE_CONTEXT_OK);
	ck_assert_str_eq(state.text, "");
	ck_ok(spyre_stream_query(slow));
	ck_status(spyre_event_query(event), SPYRE_ERROR_CANCELLED);
	ck_mentions("record the event again");
	/* The handles and the memory are unchanged. */
	check_works(context, other, big, 8);
	ck_ok(spyre_memset_async(slow, big, "a", 1, 128));
	ck_ok(spyre_event_record(event, slow));
	ck_ok(spyre_event_synchronize(event));
	check_works(context, other, kept + 0, 9);
	ck_ok(spyre_stream_destroy(slow));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* The first submission that is refused says why, although the context fails before the job does. */
START_TEST(refusal_says_why)
{
	spyre_context *context = open_card();
	spyre_stream *slow;
	spyre_status status;
	spyre_devptr big;
	char limit[24];
	int timeouts = 0;

	ck_ok(spyre_mem_alloc(context, BIG, &big));
	for (int attempt = 0; attempt < 20 && timeouts < 5; attempt++) {
		limit_below_copy(get_stream(context, 2), big + BIG / 2, big, BIG / 2, limit,
				 sizeof(limit));
		setenv("SPYRE_TIMEOUT_MS", limit, 1);
		ck_ok(spyre_stream_create(context, 0, &slow));
		unsetenv("SPYRE_TIMEOUT_MS");
		queue_copies(slow, big, 1);
		/* Pauses keep the queue from filling up: a submission would wait for results. */
		while (!(status = spyre_memset_async(slow, big, "a", 1, 128)) &&
		       spyre_stream_query(slow))
			usleep(200);
		if (status) {
			ck_status(status, SPYRE_ERROR_TIMEOUT);
			ck_mentions("time limit");
			timeouts++;
			ck_ok(spyre_context_reset(context));
		}
		ck_ok(spyre_stream_destroy(slow));
	}
	ck_assert_int_gt(timeouts, 0);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* A reset does not wait for work: it stops it. */
START_TEST(reset_stops_work)
{
	spyre_context *context = open_card();
	spyre_stream *a = get_stream(context, 1), *b = get_stream(context, 40);
	spyre_devptr big, kept;
	spyre_event *event;
	uint32_t words[1024];
	double start, one;

	ck_ok(spyre_mem_alloc(context, BIG, &big));
	ck_ok(spyre_mem_alloc(context, 4096, &kept));
	check_works(context, b, kept, 11);
	queue_copies(a, big, 1);
	ck_ok(spyre_stream_synchronize(a));
	start = seconds();
	queue_copies(a, big, 1);
	ck_ok(spyre_stream_synchronize(a));
	one = seconds() - start;

	ck_ok(spyre_event_create(context, 0, &event));
	queue_copies(a, big, 200);
	ck_ok(spyre_event_record(event, a));
	ck_ok(spyre_stream_wait_event(b, event));
	ck_ok(spyre_memset_async(b, kept, "z", 1, 4096));
	start = seconds();
	ck_ok(spyre_context_reset(context));
	ck_assert_msg(seconds() - start < 100 * one, "the reset took %g s, a copy takes %g s",
		      seconds() - start, one);
	ck_ok(spyre_context_synchronize(context));
	ck_status(spyre_event_synchronize(event), SPYRE_ERROR_CANCELLED);
	/* Work that waited for cancelled work was cancelled as well. */
	ck_ok(spyre_memcpy_d2h(context, words, kept, sizeof(words)));
	ck_assert(all_words(words, 1024, 11));
	check_works(context, a, kept, 12);
	check_works(context, b, kept, 13);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

static void reset_inside(void *data)
{
	spyre_context *context = ((void **)data)[0];

	*(spyre_status *)((void **)data)[1] = spyre_context_reset(context);
}

START_TEST(host_functions)
{
	spyre_context *context = open_card();
	spyre_stream *stream = get_stream(context, 3);
	spyre_status inside = SPYRE_SUCCESS;
	void *data[2] = { context, &inside };
	spyre_devptr at;

	ck_ok(spyre_mem_alloc(context, 4096, &at));
	ck_ok(spyre_stream_host_fn(stream, reset_inside, data));
	ck_ok(spyre_memset_async(stream, at, "q", 1, 128));
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_int_eq(inside, SPYRE_ERROR_BUSY);

	/* A host function that is still queued runs, and the reset waits for it. */
	inside = SPYRE_SUCCESS;
	ck_ok(spyre_stream_host_fn(stream, reset_inside, data));
	ck_ok(spyre_context_reset(context));
	ck_assert_int_eq(inside, SPYRE_ERROR_BUSY);
	check_works(context, stream, at, 21);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* Streams, freed memory and its zeroing survive many resets. */
START_TEST(reset_often)
{
	spyre_context *context = open_card();
	spyre_devptr small[256], at;
	uint32_t words[64];

	ck_ok(spyre_mem_alloc(context, 4096, &at));
	for (int round = 0; round < 20; round++) {
		spyre_stream *stream = get_stream(context, round % 5);

		for (int i = 0; i < 256; i++) {
			ck_ok(spyre_mem_alloc(context, 4096, &small[i]));
			ck_ok(spyre_memcpy_d2h(context, words, small[i], sizeof(words)));
			ck_assert(all_words(words, 64, 0));
			ck_ok(spyre_memset_async(stream, small[i], "\xff", 1, 4096));
		}
		for (int i = 0; i < 256; i++)
			ck_ok(spyre_mem_free(context, small[i]));
		ck_ok(spyre_context_reset(context));
		check_works(context, stream, at, 100 + round);
	}
	ck_assert_uint_eq(memory_info(context).allocations, 1);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

START_TEST(card_reset)
{
	spyre_context *context = open_card(), *fresh;
	spyre_stream *stream = get_stream(context, 0);
	spyre_context_state before = state_of(context), state;
	spyre_devptr at, more;
	spyre_status status;

	ck_ok(spyre_mem_alloc(context, 2 * MIB, &at));
	check_works(context, stream, at, 1);
	ck_status(spyre_device_reset(0, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_device_reset(99, 0), SPYRE_ERROR_NO_DEVICE);
	if (!is_embedded(context) && geteuid()) {
		ck_status(spyre_device_reset(0, 0), SPYRE_ERROR_NO_PERMISSION);
		ck_mentions("CAP_SYS_ADMIN");
		check_works(context, stream, at, 2);
		ck_ok(spyre_context_destroy(context));
		return;
	}
	ck_ok(spyre_device_reset(0, 0));
	state = state_of(context);
	ck_assert_int_eq(state.health, SPYRE_CONTEXT_STALE);
	ck_assert_uint_eq(state.generation, before.generation);
	ck_assert_uint_gt(state.card_generation, before.card_generation);
	ck_status(spyre_mem_alloc(context, 4 * MIB, &more), SPYRE_ERROR_DEVICE_RESET);
	status = spyre_memset_async(stream, at, "x", 1, 4096);
	if (!status)
		status = spyre_stream_synchronize(stream);
	ck_assert_int_eq(status, SPYRE_ERROR_DEVICE_RESET);
	ck_status(spyre_stream_synchronize(stream), SPYRE_ERROR_DEVICE_RESET);
	ck_status(spyre_context_reset(context), SPYRE_ERROR_DEVICE_RESET);
	ck_status(spyre_stream_create(context, 0, &stream), SPYRE_ERROR_DEVICE_RESET);

	fresh = open_card();
	ck_ok(spyre_mem_alloc(fresh, 4096, &more));
	check_works(fresh, get_stream(fresh, 0), more, 3);
	ck_assert_uint_eq(state_of(fresh).generation, state.card_generation);
	ck_ok(spyre_context_destroy(context));
	check_works(fresh, get_stream(fresh, 0), more, 4);
	ck_ok(spyre_context_destroy(fresh));
}
END_TEST

/* A card that is reset under load releases everything. */
START_TEST(card_reset_under_load)
{
	spyre_context *context = open_card(), *fresh;
	spyre_stream *a = get_stream(context, 1), *b = get_stream(context, 2);
	spyre_devptr big, at;
	spyre_event *event;
	spyre_status status;

	if (!is_embedded(context) && geteuid()) {
		ck_ok(spyre_context_destroy(context));
		return;
	}
	ck_ok(spyre_mem_alloc(context, BIG, &big));
	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event));
	queue_copies(a, big, 50);
	ck_ok(spyre_event_record(event, a));
	ck_ok(spyre_stream_wait_event(b, event));
	ck_ok(spyre_memset_async(b, big, "x", 1, 128));
	ck_ok(spyre_device_reset(0, 0));
	status = spyre_stream_synchronize(a);
	ck_assert_int_eq(status, SPYRE_ERROR_DEVICE_RESET);
	ck_status(spyre_stream_synchronize(b), SPYRE_ERROR_DEVICE_RESET);
	ck_ok(spyre_context_destroy(context));
	fresh = open_card();
	ck_ok(spyre_mem_alloc(fresh, 4096, &at));
	check_works(fresh, get_stream(fresh, 1), at, 5);
	ck_ok(spyre_context_destroy(fresh));
}
END_TEST

START_TEST(wrong_way)
{
	spyre_submit_path path;
	spyre_context *context;
	const char *reason;

	setenv("SPYRE_SUBMIT", "pigeon", 1);
	ck_status(spyre_context_create(0, 0, &context), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("pigeon");
	ck_mentions("sqpoll");
	setenv("SPYRE_SUBMIT", "ioctl", 1);
	context = open_card();
	ck_ok(spyre_context_get_submit_path(context, &path, &reason));
	if (is_embedded(context)) {
		ck_assert_int_eq(path, SPYRE_SUBMIT_DIRECT);
	} else {
		ck_assert_int_eq(path, SPYRE_SUBMIT_IOCTL);
		ck_assert_str_eq(reason, "SPYRE_SUBMIT=ioctl");
	}
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("reset");

	tcase_add_test(tests, timeout_and_back);
	tcase_add_test(tests, refusal_says_why);
	tcase_add_test(tests, reset_stops_work);
	tcase_add_test(tests, host_functions);
	tcase_add_test(tests, reset_often);
	tcase_add_test(tests, card_reset);
	tcase_add_test(tests, card_reset_under_load);
	tcase_add_test(tests, wrong_way);
	return run_suite("runtime_reset", tests);
}
