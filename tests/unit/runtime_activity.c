/* SPDX-License-Identifier: MIT */
/* Activity records: one per operation, with the data that a profiler needs. */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include "runtime_check.h"

static spyre_context *context;

static void setup(void)
{
	context = open_card();
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static uint32_t read_all(spyre_activity_log *log, spyre_activity *records, uint32_t capacity)
{
	uint32_t count;

	ck_ok(spyre_activity_read(log, records, sizeof(*records), capacity, &count, NULL));
	return count;
}

/* Four kinds of operations: copies in, fills, copies on the card and out. */
static void work(spyre_stream *stream, spyre_devptr device, void *host)
{
	uint32_t pattern = 7;
	int64_t size[2] = { 4, 32 };
	spyre_host_tensor tensor;
	spyre_layout layout;

	ck_ok(spyre_host_tensor_dense(&tensor, host, SPYRE_FORMAT_IEEE_FP32, 2, size));
	ck_ok(spyre_layout_init(&layout, 2, size, SPYRE_FORMAT_IEEE_FP32));
	ck_ok(spyre_copy_h2d_async(stream, device, &layout, &tensor));
	ck_ok(spyre_memset_async(stream, device + 4096, &pattern, 4, 512));
	ck_ok(spyre_memcpy_d2d_async(stream, device + 4096, device, 512));
	ck_ok(spyre_copy_d2h_async(stream, &tensor, device, &layout));
}

/* The call was one of this thread after @before; it began before the work did. */
static void check_call(const spyre_activity *record, uint64_t before)
{
	ck_assert_int_eq(record->thread, gettid());
	ck_assert_uint_ge(record->queue_start_ns, before);
	ck_assert_uint_ge(record->queue_end_ns, record->queue_start_ns);
	ck_assert_uint_le(record->queue_end_ns, now_ns());
	ck_assert_uint_ge(record->start_ns, record->queue_start_ns);
}

START_TEST(kinds)
{
	static const spyre_activity_kind expected[] = {
		SPYRE_ACTIVITY_COPY_H2D, SPYRE_ACTIVITY_FILL, SPYRE_ACTIVITY_COPY_D2D,
		SPYRE_ACTIVITY_COPY_D2H,
	};
	spyre_stream *stream = get_stream(context, 3);
	uint64_t before = now_ns();
	spyre_activity records[8];
	spyre_activity_log *log;
	spyre_devptr device;
	float host[128];

	random_bytes(host, sizeof(host), 1);
	ck_ok(spyre_mem_alloc(context, 8192, &device));
	ck_ok(spyre_activity_open(0, &log));
	ck_assert_uint_eq(spyre_activity_correlate(41), 0);
	work(stream, device, host);
	ck_assert_uint_eq(spyre_activity_correlate(0), 41);
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_uint_eq(read_all(log, records, 8), 4);
	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(records[i].struct_size, sizeof(records[i]));
		ck_assert_int_eq(records[i].kind, expected[i]);
		ck_assert_int_eq(records[i].device, 0);
		ck_assert_int_eq(records[i].stream, 3);
		ck_assert_uint_eq(records[i].correlation, 41);
		ck_assert_uint_gt(records[i].operation, i ? records[i - 1].operation : 0);
		ck_assert_uint_ge(records[i].start_ns, before);
		ck_assert_uint_ge(records[i].end_ns, records[i].start_ns);
		ck_assert_uint_le(records[i].end_ns, now_ns());
		ck_assert_uint_gt(records[i].cycles, 0);
		ck_assert(records[i].name[0]);
		check_call(&records[i], before);
		ck_assert_uint_ge(records[i].queue_start_ns, i ? records[i - 1].queue_end_ns : 0);
		ck_assert_uint_eq(records[i].in_graph, 0);
	}
	ck_assert_uint_eq(records[1].bytes_written, 512);
	ck_assert_uint_eq(read_all(log, records, 8), 0);
	ck_ok(spyre_activity_close(log));
}
END_TEST

/* Events, waits and work without a log leave no record. */
START_TEST(no_record_of_other_work)
{
	spyre_stream *stream = get_stream(context, 0);
	spyre_activity records[8];
	spyre_activity_log *log;
	spyre_devptr device;
	spyre_event *event;
	float host[128] = { 0 };

	ck_ok(spyre_mem_alloc(context, 8192, &device));
	work(stream, device, host);
	ck_ok(spyre_activity_open(0, &log));
	ck_ok(spyre_event_create(context, 0, &event));
	ck_ok(spyre_event_record(event, stream));
	ck_ok(spyre_stream_wait_event(get_stream(context, 1), event));
	ck_ok(spyre_context_synchronize(context));
	ck_assert_uint_eq(read_all(log, records, 8), 0);
	ck_ok(spyre_activity_close(log));
}
END_TEST

/* Two logs get the same records; a full one counts the lost ones. */
START_TEST(limits)
{
	spyre_stream *stream = get_stream(context, 0);
	spyre_activity_log *small, *large;
	spyre_activity records[512];
	uint64_t dropped;
	uint32_t count;
	spyre_devptr device;
	float host[128] = { 0 };

	ck_ok(spyre_mem_alloc(context, 8192, &device));
	ck_ok(spyre_activity_open(3, &small));
	ck_ok(spyre_activity_open(0, &large));
	for (int i = 0; i < 100; i++)
		work(stream, device, host);
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_activity_read(small, records, sizeof(records[0]), 512, &count, &dropped));
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(dropped, 397);
	ck_assert_uint_eq(read_all(large, records, 150), 150);
	ck_assert_uint_eq(read_all(large, records, 512), 250);
	work(stream, device, host);
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_uint_eq(read_all(small, records, 512), 3);
	ck_ok(spyre_activity_close(small));
	ck_assert_uint_eq(read_all(large, records, 512), 4);
	ck_ok(spyre_activity_close(large));
}
END_TEST

/* Work that a stream's thread submits keeps the id of the thread that queued it. */
static void pause_a_little(void *data)
{
	struct timespec delay = { .tv_nsec = 20000000 };

	(void)data;
	nanosleep(&delay, NULL);
}

START_TEST(deferred)
{
	uint64_t before, after;
	spyre_stream *stream = get_stream(context, 0);
	spyre_activity records[8];
	spyre_activity_log *log;
	spyre_devptr device;
	float host[128] = { 0 };

	ck_ok(spyre_mem_alloc(context, 8192, &device));
	ck_ok(spyre_activity_open(0, &log));
	ck_ok(spyre_stream_host_fn(stream, pause_a_little, NULL));
	before = now_ns();
	spyre_activity_correlate(5);
	work(stream, device, host);
	spyre_activity_correlate(6);
	after = now_ns();
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_uint_eq(read_all(log, records, 8), 4);
	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(records[i].correlation, 5);
		check_call(&records[i], before);
		ck_assert_uint_le(records[i].queue_end_ns, after);
	}
	ck_ok(spyre_activity_close(log));
	spyre_activity_correlate(0);
}
END_TEST

/* The operations of a graph were queued by the call that launched it. */
START_TEST(launch_of_a_graph)
{
	spyre_stream *stream = get_stream(context, 0);
	uint32_t pattern = 7;
	spyre_activity records[8];
	spyre_activity_log *log;
	spyre_graph *graph;
	spyre_devptr device;
	uint64_t before;

	ck_ok(spyre_mem_alloc(context, 8192, &device));
	ck_ok(spyre_stream_begin_capture(stream));
	for (int i = 0; i < 3; i++)
		ck_ok(spyre_memset_async(stream, device + 512 * i, &pattern, 4, 512));
	ck_ok(spyre_stream_end_capture(stream, &graph));
	ck_ok(spyre_activity_open(0, &log));
	before = now_ns();
	ck_ok(spyre_graph_launch(graph, stream));
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_uint_eq(read_all(log, records, 8), 3);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(records[i].in_graph, 1);
		ck_assert_uint_eq(records[i].operation, records[0].operation);
		ck_assert_uint_eq(records[i].queue_start_ns, records[0].queue_start_ns);
		check_call(&records[i], before);
	}
	ck_ok(spyre_activity_close(log));
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

START_TEST(refused)
{
	spyre_activity record;
	spyre_activity_log *log;
	uint32_t count;

	ck_status(spyre_activity_open(0, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_activity_open(0, &log));
	ck_status(spyre_activity_read(NULL, &record, sizeof(record), 1, &count, NULL),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_activity_read(log, NULL, sizeof(record), 1, &count, NULL),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_activity_read(log, &record, 4, 1, &count, NULL),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_activity_read(log, NULL, 0, 0, &count, NULL));
	ck_assert_uint_eq(count, 0);
	ck_ok(spyre_activity_close(log));
	ck_ok(spyre_activity_close(NULL));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("runtime_activity");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, kinds);
	tcase_add_test(tests, no_record_of_other_work);
	tcase_add_test(tests, limits);
	tcase_add_test(tests, deferred);
	tcase_add_test(tests, launch_of_a_graph);
	tcase_add_test(tests, refused);
	return run_suite("runtime_activity", tests);
}
