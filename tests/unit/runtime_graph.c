/* SPDX-License-Identifier: MIT */
/* Graphs: recorded work has the same effect as the work itself, each time. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runtime_check.h"

#define ROWS 64
#define COLUMNS 192
#define ELEMENTS (ROWS * COLUMNS)
#define BYTES (ELEMENTS * 2)
#define MIB (1ull << 20)
#define BIG (512 * MIB)

static spyre_context *context;
static spyre_stream *stream;
static spyre_sdsc_operand operand = { .rank = 2, .size = { ROWS, COLUMNS } };
static spyre_kernel *add, *softmax;
static spyre_devptr one, x, y, z;
static float *pinned, *result;

static spyre_kernel *load(const char *op, int inputs)
{
	uint32_t in[2], out;
	spyre_sdsc_graph *graph;
	spyre_kernel *loaded;

	ck_ok(spyre_sdsc_graph_create(&graph));
	for (int i = 0; i < inputs; i++)
		ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &in[i]));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &out));
	ck_ok(spyre_sdsc_graph_add_op(graph, op, NULL, 0, in, inputs, &out));
	ck_ok(spyre_sdsc_graph_load(context, graph, 0, &loaded));
	spyre_sdsc_graph_destroy(graph);
	return loaded;
}

static spyre_host_tensor tensor_of(float *data)
{
	spyre_host_tensor tensor;

	ck_ok(spyre_host_tensor_dense(&tensor, data, SPYRE_FORMAT_IEEE_FP32, 2, operand.size));
	return tensor;
}

static void fill(float *data, int seed)
{
	for (int i = 0; i < ELEMENTS; i++)
		data[i] = (float)((i * 31 + seed * 17) % 97) / 16;
}

static void launch_add(spyre_stream *on, spyre_devptr a, spyre_devptr b, spyre_devptr out)
{
	spyre_arg args[3] = { { a, NULL }, { b, NULL }, { out, NULL } };

	ck_ok(spyre_launch(on, add, args, 3));
}

static void launch_softmax(spyre_stream *on, spyre_devptr in, spyre_devptr out)
{
	spyre_arg args[2] = { { in, NULL }, { out, NULL } };

	ck_ok(spyre_launch(on, softmax, args, 2));
}

static void setup(void)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_host_tensor tensor;

	/* With LX_PLANNING=0 all data between the steps of softmax goes to memory. */
	setenv("LX_PLANNING", "0", 1);
	context = open_card();
	stream = get_stream(context, 1);
	ck_ok(spyre_layout_init(&operand.layout, 2, operand.size, SPYRE_FORMAT_IEEE_FP16));
	add = load("add", 2);
	softmax = load("softmax", 1);
	ck_ok(spyre_kernel_get_info(softmax, &info));
	ck_assert_uint_gt(info.pool_bytes, 0);
	ck_ok(spyre_mem_alloc(context, BYTES, &one));
	ck_ok(spyre_mem_alloc(context, BYTES, &x));
	ck_ok(spyre_mem_alloc(context, BYTES, &y));
	ck_ok(spyre_mem_alloc(context, BYTES, &z));
	ck_ok(spyre_host_alloc(context, ELEMENTS * sizeof(float), (void **)&pinned));
	ck_ok(spyre_host_alloc(context, ELEMENTS * sizeof(float), (void **)&result));
	for (int i = 0; i < ELEMENTS; i++)
		pinned[i] = 1;
	tensor = tensor_of(pinned);
	ck_ok(spyre_copy_h2d(context, one, &operand.layout, &tensor));
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

static spyre_graph_info info_of(spyre_graph *graph)
{
	spyre_graph_info info = { .struct_size = sizeof(info) };

	ck_ok(spyre_graph_get_info(graph, &info));
	return info;
}

/* Checks that all elements at @at are @value. */
static void check_value(spyre_devptr at, float value)
{
	float *data = malloc(ELEMENTS * sizeof(*data));
	spyre_host_tensor tensor = tensor_of(data);
	uint32_t word;

	memcpy(&word, &value, sizeof(word));
	ck_ok(spyre_copy_d2h(context, &tensor, at, &operand.layout));
	ck_assert_msg(all_words((uint32_t *)(void *)data, ELEMENTS, word), "%g instead of %g",
		      data[0], value);
	free(data);
}

static void set_value(spyre_devptr at, float value)
{
	float *data = malloc(ELEMENTS * sizeof(*data));
	spyre_host_tensor tensor = tensor_of(data);

	for (int i = 0; i < ELEMENTS; i++)
		data[i] = value;
	ck_ok(spyre_copy_h2d(context, at, &operand.layout, &tensor));
	free(data);
}

/* Captures @n times y += 1. */
static spyre_graph *capture_adds(spyre_stream *on, int n)
{
	spyre_graph *graph;

	ck_ok(spyre_stream_begin_capture(on));
	for (int i = 0; i < n; i++)
		launch_add(on, y, one, y);
	ck_ok(spyre_stream_end_capture(on, &graph));
	return graph;
}

/*
 * Captures one operation of each kind; inputs are in @pinned and @ragged, outputs
 * in the other two.
 */
static void everything(spyre_stream *on, float *out, char *ragged, char *ragged_out)
{
	spyre_host_tensor from = tensor_of(pinned), to = tensor_of(out);
	spyre_layout other;

	ck_ok(spyre_layout_init(&other, 2, operand.size, SPYRE_FORMAT_IEEE_FP32));
	ck_ok(spyre_copy_h2d_async(on, x, &operand.layout, &from));
	launch_add(on, x, one, y);
	launch_softmax(on, y, x);
	ck_ok(spyre_memset_async(on, y, "\x5a", 1, BYTES));
	ck_ok(spyre_memcpy_d2d_async(on, y + 128, x + 128, BYTES - 256));
	ck_ok(spyre_memcpy_h2d_async(on, y + 1001, ragged, 777));
	ck_ok(spyre_memcpy_d2h_async(on, ragged_out, y + 990, 801));
	/* This copy goes through host memory of the library. */
	ck_ok(spyre_copy_d2d_async(on, z, &other, x, &operand.layout, 2, operand.size));
	ck_ok(spyre_copy_d2d_async(on, x, &operand.layout, z, &other, 2, operand.size));
	launch_add(on, x, x, x);
	ck_ok(spyre_copy_d2h_async(on, &to, x, &operand.layout));
}

START_TEST(all_kinds)
{
	float *want = malloc(ELEMENTS * sizeof(*want)), *got = malloc(ELEMENTS * sizeof(*got));
	char ragged[777], want_bytes[801], got_bytes[801];
	spyre_graph *graph;
	spyre_graph_info info;

	ck_ok(spyre_mem_free(context, z));
	ck_ok(spyre_mem_alloc(context, ELEMENTS * 4, &z));
	fill(pinned, 1000);
	random_bytes(ragged, sizeof(ragged), 1000);
	ck_ok(spyre_stream_begin_capture(stream));
	everything(stream, got, ragged, got_bytes);
	ck_ok(spyre_stream_end_capture(stream, &graph));
	info = info_of(graph);
	ck_assert_uint_eq(info.operations, 11);
	ck_assert_uint_eq(info.launches, 3);
	ck_assert_uint_eq(info.copies, 8);
	ck_assert_uint_eq(info.host_functions, 0);
	ck_assert_uint_gt(info.commands, info.operations);
	ck_assert_uint_gt(info.device_bytes, 0);
	/* Adjacent operations share one, except for three copies of memory that is not pinned. */
	ck_assert_uint_eq(info.submissions, 5);
	for (int round = 0; round < 20; round++) {
		spyre_stream *on = get_stream(context, round % 3);

		fill(pinned, round);
		random_bytes(ragged, sizeof(ragged), round);
		everything(stream, want, ragged, want_bytes);
		ck_ok(spyre_stream_synchronize(stream));
		memset(got, 0xee, ELEMENTS * sizeof(*got));
		memset(got_bytes, 0xee, sizeof(got_bytes));
		ck_ok(spyre_memset_async(on, x, "\x11", 1, BYTES));
		ck_ok(spyre_graph_launch(graph, on));
		ck_ok(spyre_stream_synchronize(on));
		ck_assert_msg(!memcmp(got, want, ELEMENTS * sizeof(*got)), "round %d", round);
		ck_assert_msg(!memcmp(got_bytes, want_bytes, sizeof(got_bytes)), "round %d", round);
	}
	ck_ok(spyre_graph_destroy(graph));
	free(want);
	free(got);
}
END_TEST

static uint32_t read_log(spyre_activity_log *log, spyre_activity *records, uint32_t capacity)
{
	uint32_t count;

	ck_ok(spyre_activity_read(log, records, sizeof(*records), capacity, &count, NULL));
	return count;
}

/* Although there are few submissions, each launch is counted, timed and named. */
START_TEST(accounts)
{
	spyre_graph *graph = capture_adds(stream, 1000);
	spyre_stream_stats before = { .struct_size = sizeof(before) }, after = before;
	spyre_kernel_info kernel = { .struct_size = sizeof(kernel) };
	spyre_graph_operation operation = { .struct_size = sizeof(operation) };
	spyre_activity *records = calloc(1100, sizeof(*records));
	spyre_activity_log *log;
	uint32_t n;

	set_value(y, 0);
	ck_ok(spyre_kernel_get_info(add, &kernel));
	ck_assert_uint_eq(info_of(graph).launches, 1000);
	ck_assert_uint_lt(info_of(graph).submissions, 20);
	ck_assert_uint_eq(info_of(graph).device_bytes, 0);
	ck_ok(spyre_graph_get_operation(graph, 999, &operation));
	ck_assert_str_eq(operation.name, kernel.name);
	ck_assert_int_eq(operation.kind, SPYRE_ACTIVITY_LAUNCH);
	ck_assert_uint_eq(operation.submission, info_of(graph).submissions - 1);
	ck_status(spyre_graph_get_operation(graph, 1000, &operation), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_stream_get_stats(stream, &before));
	ck_ok(spyre_activity_open(0, &log));
	spyre_activity_correlate(77);
	ck_ok(spyre_graph_launch(graph, stream));
	spyre_activity_correlate(0);
	ck_ok(spyre_stream_synchronize(stream));
	n = read_log(log, records, 1100);
	ck_assert_uint_eq(n, 1000);
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(records[i].name, kernel.name) || records[i].correlation != 77 ||
		    records[i].kind != SPYRE_ACTIVITY_LAUNCH ||
		    records[i].cycles != kernel.cycles ||
		    (i && records[i].start_ns < records[i - 1].end_ns))
			ck_abort_msg("record %u: %s", i, records[i].name);
	ck_ok(spyre_activity_close(log));
	ck_ok(spyre_stream_get_stats(stream, &after));
	ck_assert_uint_eq(after.launches - before.launches, 1000);
	ck_assert_uint_eq(after.cycles - before.cycles, 1000 * kernel.cycles);
	check_value(y, 1000);
	ck_ok(spyre_graph_destroy(graph));
	free(records);
}
END_TEST

static void *replay(void *arg)
{
	spyre_graph *graph = ((void **)arg)[0];

	for (int i = 0; i < 20; i++)
		ck_ok(spyre_graph_launch(graph, ((void **)arg)[1]));
	return NULL;
}

/* Launches of one graph do not overlap, from any stream or thread. */
START_TEST(threads)
{
	spyre_graph *graph = capture_adds(stream, 10);
	pthread_t thread[4];
	void *arg[4][2];

	set_value(y, 0);
	for (int i = 0; i < 4; i++) {
		arg[i][0] = graph;
		arg[i][1] = get_stream(context, 1 + i / 2);
		ck_assert_int_eq(pthread_create(&thread[i], NULL, replay, arg[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_ok(spyre_context_synchronize(context));
	check_value(y, 800);
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

/* The captured stream continues with the same kernel; intermediates are never shared. */
START_TEST(intermediates)
{
	float *want = malloc(ELEMENTS * sizeof(*want)), *own = malloc(ELEMENTS * sizeof(*own));
	spyre_host_tensor from = tensor_of(pinned), to = tensor_of(want);
	spyre_stream *other = get_stream(context, 2);
	spyre_graph *graph;

	fill(pinned, 3);
	ck_ok(spyre_copy_h2d(context, x, &operand.layout, &from));
	launch_softmax(stream, x, y);
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_copy_d2h(context, &to, y, &operand.layout));
	ck_ok(spyre_stream_begin_capture(stream));
	launch_softmax(stream, x, y);
	ck_ok(spyre_stream_end_capture(stream, &graph));
	for (int i = 0; i < 30; i++) {
		ck_ok(spyre_graph_launch(graph, other));
		launch_softmax(stream, one, z);
	}
	ck_ok(spyre_context_synchronize(context));
	to = tensor_of(own);
	ck_ok(spyre_copy_d2h(context, &to, y, &operand.layout));
	ck_assert(!memcmp(want, own, ELEMENTS * sizeof(*own)));
	ck_ok(spyre_graph_destroy(graph));
	free(want);
	free(own);
}
END_TEST

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void hold(void *data)
{
	(void)data;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

/* A graph and its kernel may be destroyed while launches are pending, without leaks. */
START_TEST(destroy_pending)
{
	uint64_t allocations = memory_info(context).allocations;
	spyre_graph *graph;

	set_value(y, 0);
	for (int deferred = 0; deferred < 2; deferred++) {
		spyre_arg args[2] = { { y, NULL }, { z, NULL } };
		spyre_kernel *own = load("softmax", 1);

		ck_ok(spyre_stream_begin_capture(stream));
		launch_add(stream, y, one, y);
		ck_ok(spyre_launch(stream, own, args, 2));
		ck_ok(spyre_stream_end_capture(stream, &graph));
		ck_ok(spyre_kernel_unload(own));
		pthread_mutex_lock(&gate);
		if (deferred)
			ck_ok(spyre_stream_host_fn(stream, hold, NULL));
		for (int i = 0; i < 5; i++)
			ck_ok(spyre_graph_launch(graph, stream));
		ck_ok(spyre_graph_destroy(graph));
		pthread_mutex_unlock(&gate);
		ck_ok(spyre_stream_synchronize(stream));
	}
	check_value(y, 10);
	ck_ok(spyre_context_synchronize(context));
	ck_assert_uint_eq(memory_info(context).allocations, allocations);
	ck_ok(spyre_graph_destroy(NULL));
}
END_TEST

static void count(void *data)
{
	/* Between two launches: one has run, the other has not. */
	uint16_t now, *seen = data;

	ck_ok(spyre_memcpy_d2h(context, &now, y, sizeof(now)));
	seen[++seen[0]] = now;
}

START_TEST(host_functions)
{
	uint16_t seen[9] = { 0 }, now;
	spyre_graph *graph;

	set_value(y, 0);
	ck_ok(spyre_stream_begin_capture(stream));
	launch_add(stream, y, one, y);
	ck_ok(spyre_stream_host_fn(stream, count, seen));
	launch_add(stream, y, one, y);
	ck_ok(spyre_stream_end_capture(stream, &graph));
	ck_assert_uint_eq(info_of(graph).host_functions, 1);
	ck_assert_uint_eq(info_of(graph).submissions, 2);
	ck_assert_uint_eq(seen[0], 0);
	for (int i = 0; i < 8; i++)
		ck_ok(spyre_graph_launch(graph, get_stream(context, 1 + i % 2)));
	ck_ok(spyre_context_synchronize(context));
	check_value(y, 16);
	ck_assert_uint_eq(seen[0], 8);
	for (int i = 0; i < 8; i++) {
		set_value(y, 2 * i + 1);
		ck_ok(spyre_memcpy_d2h(context, &now, y, sizeof(now)));
		ck_assert_uint_eq(seen[1 + i], now);
	}
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

static _Atomic bool captures_end;

/* Captures begin and end at any moment, with no work on the stream in between. */
static void *capture_nothing(void *data)
{
	_Atomic uint32_t *rounds = data;

	while (!captures_end) {
		spyre_graph *graph;

		ck_ok(spyre_stream_begin_capture(stream));
		usleep(200);
		ck_ok(spyre_stream_end_capture(stream, &graph));
		ck_assert_uint_eq(info_of(graph).operations, 0);
		ck_ok(spyre_graph_destroy(graph));
		usleep(200);
		++*rounds;
	}
	return NULL;
}

static void increase(void *data)
{
	++*(uint32_t *)data;
}

#define PARTS 120

/* A launch either precedes a capture of its stream or is refused; no part of it is recorded. */
START_TEST(capture_amidst_launch)
{
	spyre_stream_stats before = { .struct_size = sizeof(before) }, after = before;
	uint32_t called = 0, launched = 0;
	_Atomic uint32_t rounds = 0;
	spyre_graph *graph;
	pthread_t thread;

	ck_ok(spyre_stream_begin_capture(stream));
	for (int i = 0; i < PARTS; i++) {
		launch_add(stream, y, one, y);
		ck_ok(spyre_stream_host_fn(stream, increase, &called));
	}
	ck_ok(spyre_stream_end_capture(stream, &graph));
	ck_ok(spyre_stream_get_stats(stream, &before));
	captures_end = false;
	ck_assert_int_eq(pthread_create(&thread, NULL, capture_nothing, &rounds), 0);
	while (launched < 4 || rounds < 16) {
		spyre_status status = spyre_graph_launch(graph, stream);

		ck_assert_msg(!status || status == SPYRE_ERROR_CAPTURE, "%s: %s",
			      spyre_status_name(status), spyre_last_error());
		launched += !status;
	}
	captures_end = true;
	pthread_join(thread, NULL);
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_uint_eq(called, launched * PARTS);
	ck_ok(spyre_stream_get_stats(stream, &after));
	ck_assert_uint_eq(after.launches - before.launches, launched * PARTS);
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

/* Each is refused with a text and leaves the capture unchanged. */
START_TEST(refusals)
{
	spyre_host_tensor tensor = tensor_of(pinned);
	spyre_stream *zero = get_stream(context, 0), *other = get_stream(context, 5), *own;
	spyre_event *inside, *outside;
	spyre_graph *graph, *inner;
	double ms;
	uint64_t on;

	ck_ok(spyre_event_create(context, 0, &inside));
	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &outside));
	ck_ok(spyre_event_record(outside, other));
	ck_ok(spyre_context_synchronize(context));
	ck_status(spyre_stream_end_capture(zero, &graph), SPYRE_ERROR_CAPTURE);
	ck_mentions("not captured");
	set_value(y, 0);
	inner = capture_adds(other, 1);
	ck_ok(spyre_stream_begin_capture(zero));
	ck_status(spyre_stream_begin_capture(zero), SPYRE_ERROR_CAPTURE);
	ck_mentions("captured already");
	ck_ok(spyre_stream_get_capture(zero, &on));
	ck_assert_uint_ne(on, 0);
	ck_ok(spyre_stream_get_capture(other, &on));
	ck_assert_uint_eq(on, 0);
	launch_add(zero, y, one, y);
	ck_ok(spyre_event_record(inside, zero));
	ck_status(spyre_stream_synchronize(zero), SPYRE_ERROR_CAPTURE);
	ck_mentions("spyre_stream_synchronize: stream 0 is captured");
	ck_status(spyre_stream_query(zero), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_context_synchronize(context), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_copy_h2d(context, y, &operand.layout, &tensor), SPYRE_ERROR_CAPTURE);
	ck_mentions("spyre_copy_h2d");
	ck_status(spyre_copy_d2h(context, &tensor, y, &operand.layout), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_copy_d2d(context, x, &operand.layout, y, &operand.layout, 2, operand.size),
		  SPYRE_ERROR_CAPTURE);
	ck_status(spyre_memcpy_h2d(context, y, pinned, 128), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_memcpy_d2h(context, pinned, y, 128), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_event_query(inside), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_event_synchronize(inside), SPYRE_ERROR_CAPTURE);
	ck_mentions("after spyre_graph_launch");
	ck_status(spyre_event_elapsed(inside, inside, &ms), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_stream_wait_event(zero, outside), SPYRE_ERROR_CAPTURE);
	ck_mentions("stream 5");
	ck_status(spyre_graph_launch(inner, zero), SPYRE_ERROR_CAPTURE);
	ck_mentions("graphs hold no graphs");
	/* Other streams continue meanwhile. */
	ck_ok(spyre_graph_launch(inner, other));
	ck_ok(spyre_stream_synchronize(other));
	ck_ok(spyre_stream_end_capture(zero, &graph));
	ck_assert_uint_eq(info_of(graph).operations, 1);
	check_value(y, 1);
	ck_ok(spyre_graph_launch(graph, zero));
	check_value(y, 2);
	/* The event is a point in a graph permanently. */
	ck_status(spyre_event_synchronize(inside), SPYRE_ERROR_CAPTURE);
	ck_status(spyre_stream_wait_event(other, inside), SPYRE_ERROR_CAPTURE);
	ck_mentions("has ended");
	ck_ok(spyre_event_record(inside, zero));
	ck_ok(spyre_event_synchronize(inside));

	ck_ok(spyre_stream_create(context, 0, &own));
	ck_ok(spyre_stream_begin_capture(own));
	ck_status(spyre_stream_destroy(own), SPYRE_ERROR_CAPTURE);
	ck_ok(spyre_graph_destroy(graph));
	ck_ok(spyre_stream_end_capture(own, &graph));
	ck_assert_uint_eq(info_of(graph).operations, 0);
	ck_ok(spyre_graph_launch(graph, own));
	ck_ok(spyre_stream_destroy(own));
	ck_ok(spyre_graph_destroy(graph));
	ck_status(spyre_graph_launch(NULL, zero), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_graph_launch(inner, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_stream_begin_capture(NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	/* The context frees inner and both events. */
}
END_TEST

/* An event makes another stream join the capture and the stream join it again. */
START_TEST(fork_and_join)
{
	spyre_stream *side = get_stream(context, 6), *third = get_stream(context, 7);
	spyre_event *fork, *join;
	spyre_graph *graph, *none;
	uint64_t on;

	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &fork));
	ck_ok(spyre_event_create(context, 0, &join));
	set_value(y, 0);
	set_value(z, 0);
	ck_ok(spyre_stream_begin_capture(stream));
	launch_add(stream, one, one, x);
	ck_ok(spyre_event_record(fork, stream));
	ck_ok(spyre_stream_wait_event(stream, fork));
	ck_ok(spyre_stream_wait_event(side, fork));
	ck_ok(spyre_stream_get_capture(side, &on));
	ck_assert_uint_ne(on, 0);
	launch_add(side, x, one, z);
	launch_add(stream, x, x, x);
	ck_ok(spyre_event_record(join, side));
	ck_ok(spyre_stream_wait_event(stream, join));
	launch_add(stream, x, z, y);
	ck_status(spyre_stream_end_capture(side, &none), SPYRE_ERROR_CAPTURE);
	ck_mentions("began on another stream");
	ck_ok(spyre_stream_begin_capture(third));
	ck_status(spyre_stream_wait_event(third, fork), SPYRE_ERROR_CAPTURE);
	ck_mentions("another capture");
	ck_ok(spyre_stream_end_capture(third, &none));
	ck_ok(spyre_stream_end_capture(stream, &graph));
	ck_ok(spyre_stream_get_capture(side, &on));
	ck_assert_uint_eq(on, 0);
	ck_assert_uint_eq(info_of(graph).launches, 4);
	check_value(y, 0);
	ck_ok(spyre_graph_launch(graph, third));
	ck_ok(spyre_context_synchronize(context));
	check_value(y, 7);
	ck_ok(spyre_stream_synchronize(side));
	ck_ok(spyre_graph_destroy(none));
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

/* A reset ends captures; graphs survive, like kernels and memory. */
START_TEST(context_reset)
{
	spyre_graph *graph = capture_adds(stream, 3), *none;
	uint64_t on;

	set_value(y, 0);
	ck_ok(spyre_stream_begin_capture(stream));
	launch_add(stream, y, one, y);
	ck_ok(spyre_context_reset(context));
	ck_ok(spyre_stream_get_capture(stream, &on));
	ck_assert_uint_eq(on, 0);
	ck_status(spyre_stream_end_capture(stream, &none), SPYRE_ERROR_CANCELLED);
	ck_mentions("reset");
	ck_status(spyre_stream_end_capture(stream, &none), SPYRE_ERROR_CAPTURE);
	ck_ok(spyre_graph_launch(graph, stream));
	ck_ok(spyre_stream_synchronize(stream));
	check_value(y, 3);
	/* Destroying the context frees a capture and a graph. */
	ck_ok(spyre_stream_begin_capture(stream));
	launch_add(stream, y, one, y);
}
END_TEST

START_TEST(card_reset)
{
	spyre_graph *graph = capture_adds(stream, 3);
	spyre_status status;

	if (!is_embedded(context) && geteuid())
		return;
	ck_ok(spyre_device_reset(0, 0));
	status = spyre_graph_launch(graph, stream);
	if (!status)
		status = spyre_stream_synchronize(stream);
	ck_assert_int_eq(status, SPYRE_ERROR_DEVICE_RESET);
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

static void copy_half(spyre_stream *on, spyre_devptr big)
{
	ck_ok(spyre_memcpy_d2d_async(on, big + BIG / 2, big, BIG / 2));
}

/*
 * Launches @graph on a new stream whose limit its third operation exceeds. The machine may be
 * busier now than when the limit was measured, or less busy: then with another measurement.
 */
static spyre_stream *time_out(spyre_graph *graph, spyre_devptr big)
{
	spyre_stream *slow = NULL;

	for (int attempt = 0; attempt < 20; attempt++) {
		char limit[24];
		spyre_status status;

		limit_below_copy(stream, big + BIG / 2, big, BIG / 2, limit, sizeof(limit));
		setenv("SPYRE_TIMEOUT_MS", limit, 1);
		ck_ok(spyre_stream_create(context, 0, &slow));
		unsetenv("SPYRE_TIMEOUT_MS");
		set_value(y, 0);
		ck_ok(spyre_graph_launch(graph, slow));
		status = spyre_stream_synchronize(slow);
		if (status == SPYRE_ERROR_TIMEOUT &&
		    strstr(spyre_last_error(), "plain copy on the device as operation 3 of 4 of graph"))
			return slow;
		if (status) {
			ck_status(status, SPYRE_ERROR_TIMEOUT);
			ck_ok(spyre_context_reset(context));
		}
		ck_ok(spyre_stream_destroy(slow));
	}
	ck_abort_msg("the copy did not exceed its limit: %s", spyre_last_error());
	return NULL;
}

/* A failure inside a graph names the operation. */
START_TEST(timeout_inside)
{
	spyre_context_state state = { .struct_size = sizeof(state) };
	spyre_stream *slow, *patient;
	spyre_devptr big;
	spyre_graph *graph;

	ck_ok(spyre_mem_alloc(context, BIG, &big));
	setenv("SPYRE_TIMEOUT_MS", "60000", 1);
	ck_ok(spyre_stream_create(context, 0, &patient));
	unsetenv("SPYRE_TIMEOUT_MS");
	ck_ok(spyre_stream_begin_capture(stream));
	launch_add(stream, y, one, y);
	launch_add(stream, y, one, y);
	copy_half(stream, big);
	launch_add(stream, y, one, y);
	ck_ok(spyre_stream_end_capture(stream, &graph));
	slow = time_out(graph, big);
	ck_ok(spyre_context_get_state(context, &state));
	ck_assert_int_eq(state.stream, spyre_stream_id(slow));
	ck_assert_int_eq(state.status, SPYRE_ERROR_TIMEOUT);
	ck_status(spyre_graph_launch(graph, slow), SPYRE_ERROR_TIMEOUT);
	ck_status(spyre_stream_begin_capture(slow), SPYRE_ERROR_TIMEOUT);
	ck_ok(spyre_context_reset(context));
	check_value(y, 2);
	/* The graph runs where there is more time. */
	ck_ok(spyre_graph_launch(graph, patient));
	ck_ok(spyre_stream_synchronize(patient));
	check_value(y, 5);
	ck_ok(spyre_graph_destroy(graph));
	ck_ok(spyre_stream_destroy(slow));
}
END_TEST

START_TEST(memory_gone)
{
	spyre_devptr big;
	spyre_graph *graph;

	ck_ok(spyre_mem_alloc(context, 4 * MIB, &big));
	ck_ok(spyre_stream_begin_capture(stream));
	ck_ok(spyre_memset_async(stream, big, "x", 1, 4 * MIB));
	ck_ok(spyre_stream_end_capture(stream, &graph));
	ck_ok(spyre_graph_launch(graph, stream));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_mem_free(context, big));
	ck_status(spyre_graph_launch(graph, stream), SPYRE_ERROR_INVALID_ADDRESS);
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_graph_destroy(graph));

	/* The failure is in the middle: earlier work has run, so the stream cannot continue. */
	ck_ok(spyre_mem_alloc(context, 16 * MIB, &big));
	set_value(y, 0);
	ck_ok(spyre_stream_begin_capture(stream));
	launch_add(stream, y, one, y);
	ck_ok(spyre_memset_async(stream, big, "x", 1, 16 * MIB));
	ck_ok(spyre_stream_end_capture(stream, &graph));
	ck_ok(spyre_mem_free(context, big));
	ck_status(spyre_graph_launch(graph, stream), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("the rest of a graph");
	ck_status(spyre_stream_synchronize(stream), SPYRE_ERROR_INVALID_ADDRESS);
	ck_ok(spyre_context_reset(context));
	check_value(y, 1);
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("graph");

	setenv("SPYRE_BACKEND", "embedded", 0);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, all_kinds);
	tcase_add_test(tests, accounts);
	tcase_add_test(tests, threads);
	tcase_add_test(tests, intermediates);
	tcase_add_test(tests, destroy_pending);
	tcase_add_test(tests, host_functions);
	tcase_add_test(tests, capture_amidst_launch);
	tcase_add_test(tests, refusals);
	tcase_add_test(tests, fork_and_join);
	tcase_add_test(tests, context_reset);
	tcase_add_test(tests, card_reset);
	tcase_add_test(tests, timeout_inside);
	tcase_add_test(tests, memory_gone);
	return run_suite("runtime_graph", tests);
}
