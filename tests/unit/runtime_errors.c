/* SPDX-License-Identifier: MIT */
/* Failures stay within their stream or context: timeouts, forks, early ends. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime_check.h"

#define MIB (1ull << 20)

/* An overlapping copy runs on one thread, in order: slow on purpose. */
static void queue_slow(spyre_stream *stream, spyre_devptr address, uint64_t bytes)
{
	for (int i = 0; i < 8; i++)
		ck_ok(spyre_memcpy_d2d_async(stream, address + 128, address, bytes - 128));
}

static void make_checked_work(spyre_context *context, spyre_stream *stream, spyre_devptr *address)
{
	ck_ok(spyre_mem_alloc(context, MIB, address));
	for (uint32_t i = 0; i < 50; i++)
		ck_ok(spyre_memset_async(stream, *address, &i, 4, MIB));
}

/* A timeout on one stream fails its context; another context is not affected. */
START_TEST(timeout_takes_the_context)
{
	const uint64_t bytes = 512 * MIB;
	spyre_context *context, *apart;
	spyre_stream *slow, *good, *other;
	spyre_devptr big, fine;
	uint32_t *host = malloc(MIB);
	spyre_event *event;
	spyre_status status;

	context = open_card();
	if (!is_embedded(context)) {
		/* The kernel's limits are tested by tests/abi. */
		puts("# timeout_takes_the_context: skipped, the kernel sets the limit here");
		ck_ok(spyre_context_destroy(context));
		return;
	}
	setenv("SPYRE_TIMEOUT_MS", "1", 1);
	ck_ok(spyre_stream_create(context, 0, &slow));
	unsetenv("SPYRE_TIMEOUT_MS");
	other = get_stream(context, 2);
	apart = open_card();
	good = get_stream(apart, 2);
	ck_ok(spyre_event_create(context, 0, &event));
	ck_ok(spyre_mem_alloc(context, bytes, &big));
	/* Each copy is a separate submission: the limit counts from its start. */
	ck_ok(spyre_memcpy_d2d_async(slow, big + 128, big, bytes - 128));
	/* The copy may be over its limit before the next call. */
	status = spyre_memset_async(slow, big, "x", 1, 4096);
	ck_assert(!status || status == SPYRE_ERROR_TIMEOUT);
	make_checked_work(apart, good, &fine);

	ck_status(spyre_stream_synchronize(slow), SPYRE_ERROR_TIMEOUT);
	ck_mentions("plain copy on the device");
	ck_mentions("operation 1");
	ck_mentions("SPYRE_TIMEOUT_MS");
	/* The error is sticky for every call on the stream. */
	ck_status(spyre_stream_query(slow), SPYRE_ERROR_TIMEOUT);
	ck_status(spyre_memset_async(slow, big, "x", 1, 128), SPYRE_ERROR_TIMEOUT);
	ck_status(spyre_event_record(event, slow), SPYRE_ERROR_TIMEOUT);
	ck_status(spyre_stream_host_fn(slow, (spyre_host_fn)free, NULL), SPYRE_ERROR_TIMEOUT);
	ck_mentions("plain copy on the device");
	/* Other streams of the context refuse work as well, and their error names the cause. */
	ck_status(spyre_memset_async(other, big, "x", 1, 128), SPYRE_ERROR_CANCELLED);
	ck_mentions("spyre_context_reset()");
	ck_status(spyre_stream_create(context, 0, &other), SPYRE_ERROR_CANCELLED);
	ck_status(spyre_context_synchronize(context), SPYRE_ERROR_TIMEOUT);

	ck_ok(spyre_stream_synchronize(good));
	ck_ok(spyre_memcpy_d2h(apart, host, fine, MIB));
	ck_assert(all_words(host, MIB / 4, 49));
	ck_ok(spyre_context_destroy(apart));
	ck_ok(spyre_context_reset(context));
	/* The fill after the killed copy did not run. */
	ck_ok(spyre_memcpy_d2h(context, host, big, 4096));
	ck_assert_uint_eq(host[0], 0);
	ck_ok(spyre_stream_destroy(slow));
	ck_ok(spyre_stream_create(context, 0, &other));
	ck_ok(spyre_memset_async(other, big, "y", 1, 4096));
	ck_ok(spyre_stream_synchronize(other));
	ck_ok(spyre_context_synchronize(context));
	ck_ok(spyre_context_destroy(context));
	free(host);
}
END_TEST

START_TEST(bad_timeout)
{
	spyre_context *context = open_card();
	spyre_stream *stream;

	if (!is_embedded(context)) {
		puts("# bad_timeout: skipped, the kernel sets the limit here");
		ck_ok(spyre_context_destroy(context));
		return;
	}
	setenv("SPYRE_TIMEOUT_MS", "soon", 1);
	ck_status(spyre_stream_create(context, 0, &stream), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("SPYRE_TIMEOUT_MS");
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* Addresses are checked before anything is queued. */
START_TEST(bad_addresses)
{
	spyre_context *context = open_card();
	spyre_stream *stream = get_stream(context, 0);
	spyre_devptr a, b, freed;
	char host[512];

	ck_ok(spyre_mem_alloc(context, 256, &a));
	ck_ok(spyre_mem_alloc(context, 4 * MIB, &b));
	ck_ok(spyre_mem_alloc(context, 2 * MIB, &freed));
	ck_ok(spyre_mem_free(context, freed));
	ck_status(spyre_memcpy_h2d(context, a, host, 257), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("257 bytes");
	ck_mentions("256 from there on");
	ck_status(spyre_memcpy_d2h(context, host, a + 200, 57), SPYRE_ERROR_INVALID_ADDRESS);
	ck_status(spyre_memcpy_d2h(context, host, 64, 1), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("not in a live allocation");
	ck_status(spyre_memcpy_d2d_async(stream, a, b, 512), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("target");
	ck_status(spyre_memcpy_d2d_async(stream, b, freed, 512), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("source");
	ck_status(spyre_memset_async(stream, b, "abc", 3, 6), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_memset_async(stream, b, "abcd", 4, 6), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_memset_async(stream, b + 1, "a", 1, 4 * MIB),
		  SPYRE_ERROR_INVALID_ADDRESS);
	ck_status(spyre_memcpy_h2d(context, a, NULL, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	/* None of these errors is sticky. */
	ck_ok(spyre_memcpy_h2d(context, a, host, 256));
	ck_ok(spyre_context_synchronize(context));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

static int child(spyre_context *context, spyre_stream *stream, spyre_event *event,
		 spyre_devptr address)
{
	spyre_context *own;
	uint32_t value = 3;
	int count = 0;

	alarm(60);
	/* Every call on the parent's objects reports this; none crashes or hangs. */
	if (spyre_mem_alloc(context, 128, &address) != SPYRE_ERROR_FORKED ||
	    !strstr(spyre_last_error(), "fork"))
		return 1;
	if (spyre_mem_free(context, address) != SPYRE_ERROR_FORKED ||
	    spyre_stream_synchronize(stream) != SPYRE_ERROR_FORKED ||
	    spyre_stream_query(stream) != SPYRE_ERROR_FORKED ||
	    spyre_memset_async(stream, address, "x", 1, 1) != SPYRE_ERROR_FORKED ||
	    spyre_event_record(event, stream) != SPYRE_ERROR_FORKED ||
	    spyre_event_synchronize(event) != SPYRE_ERROR_FORKED ||
	    spyre_context_synchronize(context) != SPYRE_ERROR_FORKED ||
	    spyre_context_destroy(context) != SPYRE_ERROR_FORKED)
		return 2;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	/* The thread sanitizer allows no new threads after such a fork. */
	return 0;
#endif
	/* A context that the child creates works. */
	if (spyre_device_count(&count) || count < 1 || spyre_context_create(0, 0, &own))
		return 3;
	if (spyre_mem_alloc(own, 4096, &address) || spyre_memcpy_h2d(own, address, &value, 4))
		return 4;
	value = 0;
	if (spyre_memcpy_d2h(own, &value, address, 4) || value != 3 || spyre_context_destroy(own))
		return 5;
	return 0;
}

START_TEST(forked)
{
	spyre_context *context = open_card();
	spyre_stream *stream = get_stream(context, 1);
	spyre_devptr address, fine;
	spyre_event *event;
	uint32_t value;
	pid_t pid;
	int status;

	ck_ok(spyre_mem_alloc(context, 64 * MIB, &address));
	ck_ok(spyre_event_create(context, 0, &event));
	queue_slow(stream, address, 64 * MIB);
	make_checked_work(context, stream, &fine);
	ck_ok(spyre_event_record(event, stream));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(child(context, stream, event, address));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status 0x%x", status);
	/* The parent is not affected. */
	ck_ok(spyre_event_synchronize(event));
	ck_ok(spyre_memcpy_d2h(context, &value, fine, 4));
	ck_assert_uint_eq(value, 49);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* Enumeration before a fork has no side effects. */
START_TEST(count_then_fork)
{
	int count = 0, status;
	pid_t pid;

	ck_ok(spyre_device_count(&count));
	pid = fork();
	if (!pid) {
		spyre_context *context;

		alarm(60);
		_exit(spyre_context_create(0, 0, &context) || spyre_context_destroy(context));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void count_call(void *data)
{
	++*(int *)data;
}

/* Work in flight, deferred work and live objects: destruction waits and frees. */
START_TEST(destroy_in_flight)
{
	int calls = 0;

	for (int round = 0; round < 5; round++) {
		spyre_context *context = open_card();
		spyre_stream *stream = get_stream(context, 1), *own;
		spyre_devptr address, fine;
		spyre_event *event;
		void *pinned;

		ck_ok(spyre_stream_create(context, -1, &own));
		ck_ok(spyre_event_create(context, round & 1, &event));
		ck_ok(spyre_host_alloc(context, 12345, &pinned));
		ck_ok(spyre_mem_alloc(context, 32 * MIB, &address));
		queue_slow(stream, address, 32 * MIB);
		ck_ok(spyre_event_record(event, stream));
		ck_ok(spyre_stream_wait_event(own, event));
		ck_ok(spyre_stream_host_fn(own, count_call, &calls));
		make_checked_work(context, own, &fine);
		ck_ok(spyre_mem_free(context, address));
		ck_ok(spyre_mem_free(context, fine));
		ck_ok(spyre_context_destroy(context));
		ck_assert_int_eq(calls, round + 1);
	}
}
END_TEST

START_TEST(stream_destroy_in_flight)
{
	spyre_context *context = open_card();
	spyre_devptr address, fine[8];
	uint32_t value;

	ck_ok(spyre_mem_alloc(context, 16 * MIB, &address));
	for (int i = 0; i < 8; i++) {
		spyre_stream *stream;

		ck_ok(spyre_stream_create(context, -(i & 1), &stream));
		queue_slow(stream, address, 16 * MIB);
		make_checked_work(context, stream, &fine[i]);
		ck_ok(spyre_stream_destroy(stream));
		ck_ok(spyre_memcpy_d2h(context, &value, fine[i], 4));
		ck_assert_uint_eq(value, 49);
	}
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("errors");

	tcase_add_test(tests, timeout_takes_the_context);
	tcase_add_test(tests, bad_timeout);
	tcase_add_test(tests, bad_addresses);
	tcase_add_test(tests, forked);
	tcase_add_test(tests, count_then_fork);
	tcase_add_test(tests, destroy_in_flight);
	tcase_add_test(tests, stream_destroy_in_flight);
	return run_suite("runtime_errors", tests);
}
