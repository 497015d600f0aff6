/* SPDX-License-Identifier: MIT */
/* One kernel with intermediates, launched by many streams and threads concurrently. */
#include <pthread.h>

#include "runtime_check.h"
#include "suite.h"

#define STREAMS 12	/* more than the buffers for intermediates */
#define ROWS 256
#define COLUMNS 192
#define ELEMENTS (ROWS * COLUMNS)
#define ROUNDS 6

static spyre_context *context;
static spyre_sdsc_operand operand = { .rank = 2, .size = { ROWS, COLUMNS } };
static spyre_kernel *kernel;
static spyre_arg args[STREAMS][2];
static uint16_t *want[STREAMS];
/* Output of the stream that all threads share. */
static spyre_arg shared;

static uint16_t *read_result(int i)
{
	uint16_t *bytes = malloc(ELEMENTS * 2);

	ck_ok(spyre_memcpy_d2h(context, bytes, args[i][1].address, ELEMENTS * 2));
	return bytes;
}

static spyre_kernel *load(void)
{
	uint32_t in, out;
	spyre_sdsc_graph *graph;
	spyre_kernel *loaded;

	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &in));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &out));
	ck_ok(spyre_sdsc_graph_add_op(graph, "softmax", NULL, 0, &in, 1, &out));
	ck_ok(spyre_sdsc_graph_load(context, graph, 0, &loaded));
	spyre_sdsc_graph_destroy(graph);
	return loaded;
}

static void setup(void)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	float *data = malloc(ELEMENTS * sizeof(*data));
	spyre_host_tensor host;

	/* With LX_PLANNING=0 all data between the steps goes to the pool. */
	setenv("LX_PLANNING", "0", 1);
	context = open_card();
	ck_ok(spyre_layout_init(&operand.layout, 2, operand.size, SPYRE_FORMAT_IEEE_FP16));
	kernel = load();
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_gt(info.pool_bytes, 0);
	for (int i = 0; i < STREAMS; i++) {
		for (int k = 0; k < 2; k++)
			ck_ok(spyre_mem_alloc(context, ELEMENTS * 2, &args[i][k].address));
		for (int n = 0; n < ELEMENTS; n++)
			data[n] = (float)((n * 31 + i * 17) % 97) / 16;
		ck_ok(spyre_host_tensor_dense(&host, data, SPYRE_FORMAT_IEEE_FP32, 2,
					      operand.size));
		ck_ok(spyre_copy_h2d(context, args[i][0].address, &operand.layout, &host));
		ck_ok(spyre_launch(get_stream(context, 0), kernel, args[i], 2));
		ck_ok(spyre_stream_synchronize(get_stream(context, 0)));
		want[i] = read_result(i);
		ck_ok(spyre_memset_async(get_stream(context, 0), args[i][1].address, "", 1,
					 ELEMENTS * 2));
		ck_ok(spyre_stream_synchronize(get_stream(context, 0)));
	}
	free(data);
	ck_ok(spyre_mem_alloc(context, ELEMENTS * 2, &shared.address));
}

static void teardown(void)
{
	for (int i = 0; i < STREAMS; i++)
		free(want[i]);
	ck_ok(spyre_context_destroy(context));
}

static void check_all(void)
{
	ck_ok(spyre_context_synchronize(context));
	for (int i = 0; i < STREAMS; i++) {
		uint16_t *got = read_result(i);

		ck_assert_msg(!memcmp(got, want[i], ELEMENTS * 2), "stream %d has other results", i);
		free(got);
	}
}

START_TEST(streams)
{
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < STREAMS; i++)
			ck_ok(spyre_launch(get_stream(context, i + 1), kernel, args[i], 2));
	check_all();
}
END_TEST

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void hold(void *data)
{
	(void)data;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

/* Launches behind host functions are ordered before the card is known. */
START_TEST(deferred)
{
	pthread_mutex_lock(&gate);
	for (int i = 0; i < STREAMS; i++) {
		ck_ok(spyre_stream_host_fn(get_stream(context, i + 1), hold, NULL));
		ck_ok(spyre_launch(get_stream(context, i + 1), kernel, args[i], 2));
	}
	pthread_mutex_unlock(&gate);
	check_all();
}
END_TEST

/* Each thread launches the shared kernel and one that it loads. */
static void *work(void *arg)
{
	int i = (int)(intptr_t)arg;
	spyre_stream *stream = get_stream(context, i + 1);
	spyre_arg others[2] = { args[i][0], shared };

	for (int round = 0; round < ROUNDS; round++) {
		spyre_kernel *own = load();

		ck_ok(spyre_launch(stream, kernel, args[i], 2));
		ck_ok(spyre_launch(stream, own, args[i], 2));
		ck_ok(spyre_launch(get_stream(context, 40), kernel, others, 2));
		ck_ok(spyre_kernel_unload(own));
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t thread[STREAMS];

	for (int i = 0; i < STREAMS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i), 0);
	for (int i = 0; i < STREAMS; i++)
		pthread_join(thread[i], NULL);
	check_all();
}
END_TEST

/* Memory is freed with the kernel, even that of destroyed streams. */
START_TEST(unloaded)
{
	uint64_t before = memory_info(context).allocations;
	spyre_kernel *own = load();

	for (int i = 0; i < STREAMS; i++) {
		spyre_stream *stream;

		ck_ok(spyre_stream_create(context, 0, &stream));
		ck_ok(spyre_launch(stream, own, args[i], 2));
		if (i % 2)
			ck_ok(spyre_stream_destroy(stream));
	}
	ck_ok(spyre_kernel_unload(own));
	check_all();
	ck_assert_uint_eq(memory_info(context).allocations, before);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pools");
	TCase *t = tcase_create("pools");

	setenv("SPYRE_BACKEND", "embedded", 0);
	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, streams);
	tcase_add_test(t, deferred);
	tcase_add_test(t, threads);
	tcase_add_test(t, unloaded);
	suite_add_tcase(s, t);
	return suite_run(s);
}
