// SPDX-License-Identifier: MIT
/* Symbolic dimensions on the card, and the checks of a launch. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "bundle_files.h"
#include "runtime_check.h"

#define UNTOUCHED_VALUE 19264.f	/* 0x5a5a in DL16 */

struct tensor {
	int64_t size[2];
	spyre_layout layout;
	spyre_devptr address;
	float *host;
};

static char folder[64];
static spyre_context *context;
static spyre_stream *stream;
static spyre_kernel *kernel;
static struct tensor tensor[3];
static uint32_t count;

static void setup(void)
{
	files_make(folder);
	context = open_card();
	stream = get_stream(context, 0);
}

static void teardown(void)
{
	for (uint32_t i = 0; i < count; i++)
		free(tensor[i].host);
	ck_ok(spyre_context_destroy(context));
	files_remove(folder);
}

static void copy(uint32_t i, bool to_card)
{
	struct tensor *t = &tensor[i];
	spyre_host_tensor host;

	ck_ok(spyre_host_tensor_dense(&host, t->host, SPYRE_FORMAT_IEEE_FP32, 2, t->size));
	if (to_card)
		ck_ok(spyre_copy_h2d(context, t->address, &t->layout, &host));
	else
		ck_ok(spyre_copy_d2h(context, &host, t->address, &t->layout));
}

/* Small integers, which DL16 holds exactly. */
static void make_tensor(uint32_t i, const int64_t *size, bool output)
{
	struct tensor *t = &tensor[i];
	int64_t n = size[0] * size[1];
	uint64_t bytes;

	memcpy(t->size, size, sizeof(t->size));
	ck_ok(spyre_layout_init(&t->layout, 2, size, SPYRE_FORMAT_IEEE_FP16));
	bytes = spyre_layout_bytes(&t->layout);
	ck_ok(spyre_mem_alloc(context, bytes, &t->address));
	t->host = calloc((size_t)n, sizeof(float));
	for (int64_t k = 0; k < n; k++)
		t->host[k] = (float)((k * 7 + i * 3) % 11 - 5);
	if (!output) {
		copy(i, true);
		return;
	}
	ck_ok(spyre_memset_async(stream, t->address, "\x5a", 1, bytes));
	ck_ok(spyre_stream_synchronize(stream));
}

/* Builds @op with its dims @symbols symbolic and loads it. */
static void load(const char *op, int64_t (*size)[2], uint32_t num, const int64_t *slices,
		 const char *symbols)
{
	char text[256];

	count = num;
	files_build(folder, op, size, num, slices);
	snprintf(text, sizeof(text), "\"el_\": {\"symbolicDimInfo_\": {%s},", symbols);
	files_edit(folder, "sdsc_0.json", "\"el_\": {", text);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	for (uint32_t i = 0; i < num; i++)
		make_tensor(i, size[i], i == num - 1);
}

static spyre_status launch(const spyre_binding *bindings, uint32_t num)
{
	spyre_launch_arg args[3] = { 0 };
	spyre_launch_params params = { .struct_size = sizeof(params), .args = args,
				       .num_args = count, .num_bindings = num,
				       .bindings = bindings };

	for (uint32_t i = 0; i < count; i++)
		args[i] = (spyre_launch_arg){ tensor[i].address, &tensor[i].layout, NULL };
	return spyre_launch_ex(stream, kernel, &params);
}

static void run(int64_t value)
{
	const spyre_binding s0 = { "s0", value };

	ck_ok(spyre_memset_async(stream, tensor[count - 1].address, "\x5a", 1,
				 spyre_layout_bytes(&tensor[count - 1].layout)));
	ck_ok(launch(&s0, 1));
	ck_ok(spyre_stream_synchronize(stream));
	copy(count - 1, false);
}

static float at(uint32_t i, int64_t row, int64_t column)
{
	return tensor[i].host[row * tensor[i].size[1] + column];
}

/* Assertions for each element would take Check minutes. */
#define require(condition, value, row, column) \
	do { \
		if (!(condition)) \
			ck_abort_msg("%s: s0 = %d, row %d, column %d", #condition, (int)(value), \
				     (int)(row), (int)(column)); \
	} while (0)

/* Rows are divided over four cores; the boundary lies within a core's rows or between two. */
START_TEST(rows)
{
	static const int64_t values[] = { 1, 15, 16, 17, 40, 63, 64 };
	static const int64_t slices[] = { 4, 2 };
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };

	load("add", size, 3, slices, "\"mb\": \"s0\"");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		run(values[i]);
		for (int64_t r = 0; r < 64; r++)
			for (int64_t c = 0; c < 128; c++)
				require(at(2, r, c) == (r < values[i] ? at(0, r, c) + at(1, r, c) :
							UNTOUCHED_VALUE), values[i], r, c);
	}
}
END_TEST

/* A graph keeps the program of its values, even if the kernel is bound to others later. */
START_TEST(captured)
{
	const spyre_binding s0 = { "s0", 17 };
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };
	spyre_graph *graph;

	load("add", size, 3, NULL, "\"mb\": \"s0\"");
	ck_ok(spyre_stream_begin_capture(stream));
	ck_ok(launch(&s0, 1));
	ck_ok(spyre_stream_end_capture(stream, &graph));
	/* More than the programs that are kept. */
	for (int64_t value = 18; value < 60; value++)
		run(value);
	ck_ok(spyre_kernel_unload(kernel));
	ck_ok(spyre_memset_async(stream, tensor[2].address, "\x5a", 1,
				 spyre_layout_bytes(&tensor[2].layout)));
	ck_ok(spyre_graph_launch(graph, stream));
	ck_ok(spyre_graph_destroy(graph));
	ck_ok(spyre_stream_synchronize(stream));
	copy(2, false);
	for (int64_t r = 0; r < 64; r++)
		for (int64_t c = 0; c < 128; c++)
			require(at(2, r, c) == (r < 17 ? at(0, r, c) + at(1, r, c) :
						UNTOUCHED_VALUE), 17, r, c);
}
END_TEST

/* Along the stick, whole sticks are written. */
START_TEST(sticks)
{
	static const int64_t values[] = { 1, 64, 65, 200, 256 };
	static const int64_t slices[] = { 1, 4 };
	int64_t size[3][2] = { { 3, 256 }, { 3, 256 }, { 3, 256 } };

	load("add", size, 3, slices, "\"out\": \"s0\"");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		int64_t end = (values[i] + 63) / 64 * 64;

		run(values[i]);
		for (int64_t r = 0; r < 3; r++)
			for (int64_t c = 0; c < 256; c++)
				require(at(2, r, c) == (c < end ? at(0, r, c) + at(1, r, c) :
							UNTOUCHED_VALUE), values[i], r, c);
	}
}
END_TEST

static double row_sum(int64_t row, int64_t columns)
{
	double sum = 0;

	for (int64_t c = 0; c < columns; c++)
		sum += at(0, row, c);
	return sum;
}

/* A sum ends exactly at the value, with and without division over cores. */
static void reduce(const char *op, const int64_t *slices)
{
	static const int64_t values[] = { 1, 63, 64, 65, 100, 250, 256 };
	int64_t size[2][2] = { { 8, 256 }, { 8, 1 } };

	load(op, size, 2, slices, "\"out\": \"s0\"");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		run(values[i]);
		for (int64_t r = 0; r < 8; r++) {
			double want = row_sum(r, values[i]);

			if (!strcmp(op, "mean"))
				want /= (double)values[i];
			require(fabs(at(1, r, 0) - want) <= 0.002 * fabs(want), values[i], r, 0);
		}
	}
}

START_TEST(sums)
{
	reduce("sum", (const int64_t[]){ 2, 1 });
}
END_TEST

/* A mask uses coordinates of the whole dimension, which the value truncates. */
START_TEST(masked_rows)
{
	static const int64_t values[] = { 20, 36, 40, 64 };
	int64_t size[2][2] = { { 64, 128 }, { 64, 1 } };

	count = 2;
	files_build(folder, "sum", size, 2, (const int64_t[]){ 2, 1 });
	files_edit(folder, "sdsc_0.json", "\"el_\": {",
		   "\"el_\": {\"symbolicDimInfo_\": {\"mb\": \"s0\"},");
	files_edit(folder, "sdsc_0.json", "\"coordinateMasking_\": {}",
		   "\"coordinateMasking_\": {\"mb\": [[3, 2], [34, 3]]}");
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	make_tensor(0, size[0], false);
	make_tensor(1, size[1], true);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		run(values[i]);
		for (int64_t r = 0; r < 64; r++) {
			bool hidden = (r >= 3 && r < 5) || (r >= 34 && r < 37);
			double want = r >= values[i] ? UNTOUCHED_VALUE : hidden ? 0 :
				      row_sum(r, 128);

			require(fabs(at(1, r, 0) - want) <= 0.002 * fabs(want), values[i], r, 0);
		}
	}
}
END_TEST

START_TEST(divided_sums)
{
	reduce("sum", (const int64_t[]){ 2, 4 });
}
END_TEST

START_TEST(means)
{
	reduce("mean", (const int64_t[]){ 1, 4 });
}
END_TEST

static void check_product(int64_t done, int64_t inner, int64_t value)
{
	for (int64_t r = 0; r < tensor[2].size[0]; r++)
		for (int64_t c = 0; c < tensor[2].size[1]; c++) {
			double want = r < done ? 0 : UNTOUCHED_VALUE;

			for (int64_t k = 0; k < inner && r < done; k++)
				want += (double)at(0, r, k) * at(1, k, c);
			require(fabs(at(2, r, c) - want) <= 0.002 * fabs(want), value, r, c);
		}
}

START_TEST(matmul_rows)
{
	int64_t size[3][2] = { { 24, 128 }, { 128, 64 }, { 24, 64 } };

	load("matmul", size, 3, (const int64_t[]){ 3, 1, 2 }, "\"mb\": \"s0\"");
	for (int64_t value = 1; value <= 24; value += 5) {
		run(value);
		check_product(value, 128, value);
	}
}
END_TEST

/* The contracted dim has no mask. */
START_TEST(matmul_inner)
{
	const spyre_binding odd = { "s0", 100 }, part = { "s0", 64 };
	int64_t size[3][2] = { { 8, 256 }, { 256, 64 }, { 8, 64 } };

	load("matmul", size, 3, (const int64_t[]){ 1, 1, 2 }, "\"in\": \"s0\"");
	run(128);
	check_product(8, 128, 128);
	run(256);
	check_product(8, 256, 256);
	ck_status(launch(&odd, 1), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("s0 = 100 (1 to 256)");
	ck_mentions("multiple of 128");
	ck_status(launch(&part, 1), SPYRE_ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(bindings)
{
	const spyre_binding good[] = { { "s0", 9 }, { "s1", 70 } };
	const spyre_binding twice[] = { { "s0", 9 }, { "s0", 9 } };
	const spyre_binding other[] = { { "s0", 9 }, { "t", 9 } };
	const spyre_binding low[] = { { "s0", 0 }, { "s1", 1 } };
	const spyre_binding high[] = { { "s0", 1 }, { "s1", 129 } };
	const spyre_binding none[] = { { NULL, 1 } };
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_symbol_info symbol;
	spyre_arg plain[3] = { { 0 } };

	load("add", size, 3, NULL, "\"mb\": \"s0\", \"out\": \"s1\"");
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.num_symbols, 2);
	ck_ok(spyre_kernel_get_symbol(kernel, 1, &symbol));
	ck_assert_str_eq(symbol.name, "s1");
	ck_assert_int_eq(symbol.min, 1);
	ck_assert_int_eq(symbol.max, 128);
	ck_status(spyre_kernel_get_symbol(kernel, 2, &symbol), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_kernel_get_symbol(kernel, 0, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(launch(good, 2));
	ck_ok(spyre_stream_synchronize(stream));
	copy(2, false);
	ck_assert_float_eq(at(2, 8, 127), at(0, 8, 127) + at(1, 8, 127));
	ck_assert_float_eq(at(2, 9, 0), UNTOUCHED_VALUE);
	ck_status(launch(good, 1), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("symbol s1 (1 to 128) is not bound");
	for (int i = 0; i < 3; i++)
		plain[i].address = tensor[i].address;
	ck_status(spyre_launch(stream, kernel, plain, 3), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("is not bound");
	ck_status(launch(twice, 2), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("bound twice");
	ck_status(launch(other, 2), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("no symbol \"t\"");
	ck_status(launch(low, 2), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("s0 = 0, it takes 1 to 64");
	ck_status(launch(high, 2), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("s1 = 129, it takes 1 to 128");
	ck_status(launch(none, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(launch(NULL, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_launch_ex(stream, kernel, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
}
END_TEST

static void hold(void *data)
{
	usleep(200000);
}

/* More values in flight than programs are kept, with none on the card yet. */
START_TEST(many_values)
{
	int64_t size[3][2] = { { 64, 64 }, { 64, 64 }, { 64, 64 } };

	load("add", size, 3, NULL, "\"mb\": \"s0\"");
	ck_ok(spyre_stream_host_fn(stream, hold, NULL));
	for (int round = 0; round < 2; round++)
		for (int64_t value = 1; value <= 64; value++) {
			const spyre_binding s0 = { "s0", value };

			ck_ok(launch(&s0, 1));
		}
	ck_ok(spyre_kernel_unload(kernel));
	ck_ok(spyre_stream_synchronize(stream));
	copy(2, false);
	for (int64_t r = 0; r < 64; r++)
		require(at(2, r, 5) == at(0, r, 5) + at(1, r, 5), 64, r, 5);
}
END_TEST

/* Builds @op with the size of @dim, the rows of the first tensor, as a parameter and loads it. */
static void load_param(const char *op, int64_t (*size)[2], uint32_t num, const int64_t *slices,
		       const char *dim, int64_t granularity, int64_t max, int64_t parts)
{
	count = num;
	files_build(folder, op, size, num, slices);
	files_size_param(folder, dim, granularity, max, parts);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	for (uint32_t i = 0; i < num; i++)
		make_tensor(i, size[i], i == num - 1);
}

static const int64_t four_rows[] = { 4, 1 };

static void check_sum_of_rows(int64_t value)
{
	for (int64_t r = 0; r < 64; r++)
		for (int64_t c = 0; c < 128; c++)
			require(at(2, r, c) == (r < value ? at(0, r, c) + at(1, r, c) :
						UNTOUCHED_VALUE), value, r, c);
}

/* The cores share the value, so that each of the four has rows even of the smallest one. */
START_TEST(param_rows)
{
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };
	spyre_symbol_info symbol;

	load_param("add", size, 3, four_rows, "mb", 8, 64, 4);
	ck_ok(spyre_kernel_get_symbol(kernel, 0, &symbol));
	ck_assert_str_eq(symbol.name, "s0");
	ck_assert_int_eq(symbol.min, 8);
	ck_assert_int_eq(symbol.max, 64);
	ck_assert_int_eq(symbol.granularity, 8);
	for (int64_t value = 8; value <= 64; value += 8) {
		run(value);
		check_sum_of_rows(value);
	}
}
END_TEST

/* Later cores have numbers: that of the argument plus the offset for the maximum. */
START_TEST(param_numbers)
{
	static const char address[] =
		"%arg_1_core_2048 = arith.addi %arg_1, %arg_1_core_offset_2048 : index";
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };

	load_param("add", size, 3, four_rows, "mb", 8, 64, 4);
	ck_ok(spyre_kernel_unload(kernel));
	files_edit(folder, "bundle.mlir", address,
		   "%arg_1_core_2048 = arith.constant 2049 : index");
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	run(24);
	check_sum_of_rows(24);
	ck_ok(spyre_kernel_unload(kernel));
	files_edit(folder, "bundle.mlir", "arith.constant 2049", "arith.constant 1025");
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_PARSE);
	ck_mentions("Tensor1 of core 1 in sdsc_0.json starts at 1025, expected 2049");
}
END_TEST

START_TEST(param_values)
{
	static const int64_t wrong[] = { 0, 4, 12, 68, 72, -8, INT64_MIN, INT64_MAX };
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };

	load_param("add", size, 3, four_rows, "mb", 8, 64, 4);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const spyre_binding s0 = { "s0", wrong[i] };

		ck_status(launch(&s0, 1), SPYRE_ERROR_ARGUMENT_MISMATCH);
		ck_mentions(wrong[i] == 12 ? "s0 = 12, it takes multiples of 8 up to 64" :
					     "it takes 8 to 64");
	}
	ck_status(launch(NULL, 0), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("symbol s0 (8 to 64) is not bound");
}
END_TEST

/* A product over the size needs whole sticks in each core. */
START_TEST(param_inner)
{
	const spyre_binding odd = { "s0", 96 };
	int64_t size[3][2] = { { 8, 256 }, { 256, 64 }, { 8, 64 } };

	load_param("matmul", size, 3, (const int64_t[]){ 1, 1, 2 }, "in", 32, 256, 2);
	for (int64_t value = 128; value <= 256; value += 128) {
		run(value);
		check_product(8, value, value);
	}
	ck_status(launch(&odd, 1), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("s0 = 96 (32 to 256): dimension in is divided over cores in whole sticks; bind a multiple of 128");
}
END_TEST

/* The range of a launch spec narrows that of the parameter. */
START_TEST(param_spec)
{
	const spyre_binding high = { "s0", 56 }, good = { "s0", 40 };
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };

	files_write(folder, "launch_spec.json", "{\"symbols\": {\"s0\": {\"min\": 9, \"max\": 48}}}");
	load_param("add", size, 3, four_rows, "mb", 8, 64, 4);
	ck_ok(launch(&good, 1));
	ck_status(launch(&high, 1), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("it takes 9 to 48");
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_kernel_unload(kernel));
	files_write(folder, "launch_spec.json", "{\"symbols\": {\"s0\": {\"min\": 9, \"max\": 65}}}");
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_PARSE);
	ck_mentions("symbol s0 is at most 65");
	ck_mentions("multiple of 8 up to 64");
}
END_TEST

struct sized_thread {
	spyre_stream *stream;
	spyre_devptr address;
	int64_t value;
	spyre_status status;
};

static void *launch_sized(void *data)
{
	struct sized_thread *t = data;
	const spyre_binding s0 = { "s0", t->value };
	spyre_launch_arg args[3] = { 0 };
	const spyre_launch_params params = { .struct_size = sizeof(params), .args = args,
					     .num_args = 3, .num_bindings = 1, .bindings = &s0 };

	for (int i = 0; i < 3; i++)
		args[i].address = i == 2 ? t->address : tensor[i].address;
	for (int i = 0; i < 20 && !t->status; i++)
		t->status = spyre_launch_ex(t->stream, kernel, &params);
	if (!t->status)
		t->status = spyre_stream_synchronize(t->stream);
	return NULL;
}

/* Threads launch one kernel with different values at the same time. */
START_TEST(param_threads)
{
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };
	struct sized_thread threads[4] = { { 0 } };
	const uint64_t bytes = 64 * 128 * 2;
	pthread_t id[4];

	load_param("add", size, 3, four_rows, "mb", 8, 64, 4);
	for (int i = 0; i < 4; i++) {
		struct sized_thread *t = &threads[i];

		t->value = 16 * i + 8;
		t->stream = get_stream(context, 0);
		if (i)
			ck_ok(spyre_stream_create(context, 0, &t->stream));
		ck_ok(spyre_mem_alloc(context, bytes, &t->address));
		ck_ok(spyre_memset_async(t->stream, t->address, "\x5a", 1, bytes));
		ck_ok(spyre_stream_synchronize(t->stream));
	}
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&id[i], NULL, launch_sized, &threads[i]), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(id[i], NULL), 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(threads[i].status, SPYRE_SUCCESS);
		tensor[2].address = threads[i].address;
		copy(2, false);
		check_sum_of_rows(threads[i].value);
	}
}
END_TEST

/* Faulty descriptions of the parameter, each with its error. */
static const struct wrong_param {
	const char *file, *from, *to;
	spyre_status status;
	const char *mentions;
} wrong_params[] = {
	{ "bundle.mlir", "granularity=8, max_value=64>)", "granularity=8, max_value=60>)",
	  SPYRE_ERROR_PARSE, "granularity 8 and max_value 60" },
	{ "bundle.mlir", "granularity=8, max_value=64>)", "granularity=0, max_value=64>)",
	  SPYRE_ERROR_PARSE, "granularity 0" },
	{ "bundle.mlir", "granularity=8, max_value=64>)", "max_value=64>)",
	  SPYRE_ERROR_PARSE, "expected 'granularity'" },
	{ "bundle.mlir", "granularity=8, max_value=64>)", "granularity=16, max_value=64>)",
	  SPYRE_ERROR_PARSE, "granularity 8 and max_value 64, in line 2 they are 16 and 64" },
	{ "bundle.mlir", "granularity=8, max_value=64> ->", "granularity=8, max_value=32> ->",
	  SPYRE_ERROR_PARSE, "granularity 8 and max_value 32" },
	{ "bundle.mlir", "<index, granularity=8, max_value=64> ->", "<index> ->",
	  SPYRE_ERROR_PARSE, "the type differs from that of the parameter" },
	{ "bundle.mlir", "%sym_0_1_base: ", "%x0123456789012345678901234567890123: ",
	  SPYRE_ERROR_PARSE, "name of more than 31 bytes" },
	{ "bundle.mlir", "@sdsc_bundle(",
	  "@sdsc_bundle(%y: !sdscbundle.input_arg<index, granularity=8, max_value=64>, ",
	  SPYRE_ERROR_PARSE, "must follow all addresses" },
	{ "bundle.mlir", "(%sym_0_1, %arg_0,", "(%arg_0, %arg_0,",
	  SPYRE_ERROR_PARSE, "needs the size of mb as symbol -1000, which is another value" },
	{ "bundle.mlir", "[-1000, -1,", "[-1001, -1,",
	  SPYRE_ERROR_PARSE, "symbol -1000, which is not among its symbol_ids" },
	{ "bundle.mlir", "(%sym_0_1, %arg_0,", "(%sym_0_1, %sym_0_1,",
	  SPYRE_ERROR_PARSE, "is not in the memory of that of core 0" },
	{ "bundle.mlir", "arith.addi %arg_1, %arg_1_core_offset_4096",
	  "arith.addi %arg_2, %arg_1_core_offset_4096",
	  SPYRE_ERROR_PARSE, "Tensor1 of core 2 in sdsc_0.json is not in the memory" },
	{ "bundle.mlir", "arith.constant 4096", "arith.constant 3072",
	  SPYRE_ERROR_PARSE, "Tensor0 of core 2 in sdsc_0.json starts at 3072, expected 4096" },
	{ "sdsc_0.json", "{\"mb\": [-1000]}", "{\"mb\": []}", SPYRE_ERROR_PARSE, "one symbol id" },
	{ "sdsc_0.json", "{\"mb\": [-1000]}", "{\"mb\": [1]}", SPYRE_ERROR_PARSE, "found 1" },
	{ "sdsc_0.json", "{\"mb\": [-1000]}", "{\"x\": [-1000]}", SPYRE_ERROR_PARSE,
	  "a dimension of N_" },
	{ "sdsc_0.json", "{\"mb\": [-1000]}", "{}", SPYRE_ERROR_PARSE,
	  "a dimension of dimToSymbolMapping_" },
	{ "sdsc_0.json", "{\"mb\": [-1000]}", "{\"mb\": [-1000], \"out\": [-1000]}",
	  SPYRE_ERROR_PARSE, "has dimension out, symbolicDimInfo_ of el_ does not" },
	{ "sdsc_0.json", "\"maxSize_\": 16", "\"maxSize_\": 64", SPYRE_ERROR_PARSE, "maxSize_" },
	{ "sdsc_0.json", "\"granularity_\": 2", "\"granularity_\": 8", SPYRE_ERROR_PARSE,
	  "granularity_ of mb is 8, expected 2" },
	{ "sdsc_0.json", "\"symbolDefinitions_\": {}", "\"symbolDefinitions_\": {\"-5\": {}}",
	  SPYRE_ERROR_UNSUPPORTED, "symbolDefinitions_ has 1 symbols" },
	{ "sdsc_0.json", "\"s0\"", "\"s 0\"", SPYRE_ERROR_PARSE, "a symbol's name" },
	{ "sdsc_0.json", "\"[0, 0, 0]\": \"-1\"", "\"[0, 0, 0]\": \"-1000\"", SPYRE_ERROR_PARSE,
	  "is not in the memory" },
};

START_TEST(wrong_param)
{
	const struct wrong_param *w = &wrong_params[_i];
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };

	files_build(folder, "add", size, 3, four_rows);
	files_size_param(folder, "mb", 8, 64, 4);
	files_edit(folder, w->file, w->from, w->to);
	ck_status(spyre_kernel_load(context, folder, &kernel), w->status);
	ck_mentions(w->mentions);
}
END_TEST

/* A granule of six rows cannot be divided by four. */
START_TEST(uneven_param)
{
	int64_t size[3][2] = { { 48, 128 }, { 48, 128 }, { 48, 128 } };

	files_build(folder, "add", size, 3, four_rows);
	files_size_param(folder, "mb", 6, 48, 4);
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_PARSE);
	ck_mentions("mb is divided by 4, its granularity in bundle.mlir:2 is 6; choose a multiple");
}
END_TEST

static const char spec[] =
	"{\"version\": 1, \"kernel_name\": \"sum_of_two\", \"args\": ["
	"{\"arg_index\": 0, \"role\": \"input\", \"shape\": [\"s0\", 128], \"dtype\": \"float16\","
	" \"layout\": \"SpyreTensorLayout(device_size=[2, 64, 64], stride_map =[64, 128, 1], "
	"device_dtype=DataFormats.SEN169_FP16)\"},"
	"{\"arg_index\": 1, \"role\": \"input\", \"shape\": [\"s0\", 128], \"dtype\": \"fp16\"},"
	"{\"arg_index\": 2, \"role\": \"output\", \"shape\": [\"s0\", 128]}],"
	"\"symbols\": {\"s0\": {\"min\": 4, \"max\": 60}}}";

START_TEST(launch_spec)
{
	static const int64_t size[2] = { 10, 128 }, other[2] = { 11, 128 };
	int64_t sizes[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };
	spyre_launch_arg args[3] = { 0 };
	spyre_binding s0 = { "s0", 10 };
	spyre_launch_params params = { .struct_size = sizeof(params), .args = args, .num_args = 3,
				       .num_bindings = 1, .bindings = &s0 };
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_host_tensor right, wrong, wide;
	spyre_layout exx2;

	files_write(folder, "launch_spec.json", spec);
	load("add", sizes, 3, NULL, "\"mb\": \"s0\"");
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_str_eq(info.name, "sum_of_two");
	ck_ok(spyre_host_tensor_dense(&right, NULL, SPYRE_FORMAT_IEEE_FP16, 2, size));
	ck_ok(spyre_host_tensor_dense(&wrong, NULL, SPYRE_FORMAT_IEEE_FP16, 2, other));
	ck_ok(spyre_host_tensor_dense(&wide, NULL, SPYRE_FORMAT_IEEE_FP32, 2, size));
	for (int i = 0; i < 3; i++)
		args[i] = (spyre_launch_arg){ tensor[i].address, &tensor[i].layout, &right };
	ck_ok(spyre_launch_ex(stream, kernel, &params));
	args[2].host = &wide;	/* no dtype, so any is accepted */
	ck_ok(spyre_launch_ex(stream, kernel, &params));
	args[1].host = &wide;
	ck_status(spyre_launch_ex(stream, kernel, &params), SPYRE_ERROR_FORMAT);
	ck_mentions("argument 1");
	ck_mentions("IEEE_FP32");
	args[1].host = &wrong;
	ck_status(spyre_launch_ex(stream, kernel, &params), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("[10, 128]");
	ck_mentions("[11, 128]");
	s0.value = 11;
	ck_status(spyre_launch_ex(stream, kernel, &params), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("argument 0");
	s0.value = 61;
	ck_status(spyre_launch_ex(stream, kernel, &params), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("4 to 60");
	s0.value = 10;
	args[1].host = &right;
	exx2 = tensor[0].layout;
	exx2.arrangement = SPYRE_EA_EXX2;
	args[0].layout = &exx2;
	ck_status(spyre_launch_ex(stream, kernel, &params), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("element arrangement");
	params.num_args = 2;
	ck_status(spyre_launch_ex(stream, kernel, &params), SPYRE_ERROR_ARGUMENT_MISMATCH);
	params.struct_size = 0;
	ck_status(spyre_launch_ex(stream, kernel, &params), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_stream_synchronize(stream));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("symbols");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, rows);
	tcase_add_test(tests, captured);
	tcase_add_test(tests, sticks);
	tcase_add_test(tests, sums);
	tcase_add_test(tests, divided_sums);
	tcase_add_test(tests, masked_rows);
	tcase_add_test(tests, means);
	tcase_add_test(tests, matmul_rows);
	tcase_add_test(tests, matmul_inner);
	tcase_add_test(tests, bindings);
	tcase_add_test(tests, many_values);
	tcase_add_test(tests, launch_spec);
	tcase_add_test(tests, param_rows);
	tcase_add_test(tests, param_numbers);
	tcase_add_test(tests, param_values);
	tcase_add_test(tests, param_inner);
	tcase_add_test(tests, param_spec);
	tcase_add_test(tests, param_threads);
	tcase_add_loop_test(tests, wrong_param, 0, sizeof(wrong_params) / sizeof(wrong_params[0]));
	tcase_add_test(tests, uneven_param);
	return run_suite("bundle_symbols", tests);
}
