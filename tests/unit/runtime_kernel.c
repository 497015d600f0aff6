/* SPDX-License-Identifier: MIT */
/* Kernels: loading, the checks of a launch, results, lifetimes. */
#include <stdio.h>
#include <unistd.h>

#include "runtime_check.h"

#define ROWS 64
#define COLUMNS 256
#define ELEMENTS (ROWS * COLUMNS)

static const int64_t shape[] = { ROWS, COLUMNS };
static char folder[64];
static spyre_context *context;
static spyre_kernel *kernel;
static spyre_layout layout;
static float host[3][ELEMENTS];

static void setup(void)
{
	spyre_sdsc_operand operands[3];

	strcpy(folder, "/tmp/spyre-kernel-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_ok(spyre_layout_init(&layout, 2, shape, SPYRE_FORMAT_IEEE_FP16));
	for (int i = 0; i < 3; i++) {
		operands[i].rank = 2;
		memcpy(operands[i].size, shape, sizeof(shape));
		operands[i].layout = layout;
	}
	ck_ok(spyre_sdsc_build("add", operands, 3, 0, folder));
	context = open_card();
	ck_ok(spyre_kernel_load(context, folder, &kernel));
}

static void teardown(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/bundle.mlir", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/sdsc_0.json", folder);
	unlink(path);
	rmdir(folder);
	ck_ok(spyre_context_destroy(context));
}

static spyre_host_tensor tensor(int i)
{
	spyre_host_tensor result;

	ck_ok(spyre_host_tensor_dense(&result, host[i], SPYRE_FORMAT_IEEE_FP32, 2, shape));
	return result;
}

static void alloc_args(spyre_arg *args)
{
	for (int i = 0; i < 3; i++) {
		ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&layout), &args[i].address));
		args[i].layout = &layout;
	}
	for (int i = 0; i < ELEMENTS; i++) {
		host[0][i] = i % 101 - 50;
		host[1][i] = i % 37 * 0.5f;
		host[2][i] = -1;
	}
	for (int i = 0; i < 2; i++) {
		spyre_host_tensor source = tensor(i);

		ck_ok(spyre_copy_h2d(context, args[i].address, &layout, &source));
	}
}

static bool is_sum(void)
{
	for (int i = 0; i < ELEMENTS; i++)
		if (host[2][i] != host[0][i] + host[1][i])
			return false;
	return true;
}

static void check_sum(spyre_devptr address)
{
	spyre_host_tensor target = tensor(2);

	ck_ok(spyre_copy_d2h(context, &target, address, &layout));
	ck_assert(is_sum());
}

START_TEST(launches)
{
	spyre_stream *stream = get_stream(context, 0);
	spyre_stream_stats stats = { .struct_size = sizeof(stats) };
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_arg_info arg;
	spyre_arg args[3];

	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.num_args, 3);
	ck_assert_uint_eq(info.num_sdscs, 1);
	ck_assert_uint_gt(info.program_bytes, 0);
	ck_assert_ptr_nonnull(strstr(info.name, "add"));
	for (int i = 0; i < 3; i++) {
		ck_ok(spyre_kernel_get_arg(kernel, i, &arg));
		ck_assert_int_eq(arg.index, i);
		ck_assert_int_eq(arg.role, i < 2 ? SPYRE_ARG_INPUT : SPYRE_ARG_OUTPUT);
		ck_assert_int_eq(arg.format, SPYRE_FORMAT_SEN169_FP16);
		ck_assert_uint_eq(arg.bytes, spyre_layout_bytes(&layout));
	}
	ck_status(spyre_kernel_get_arg(kernel, 3, &arg), SPYRE_ERROR_INVALID_ARGUMENT);
	alloc_args(args);
	for (int i = 0; i < 10; i++)
		ck_ok(spyre_launch(stream, kernel, args, 3));
	check_sum(args[2].address);
	ck_ok(spyre_stream_get_stats(stream, &stats));
	ck_assert_uint_eq(stats.launches, 10);
	ck_assert_uint_ge(stats.cycles, 10 * info.cycles);
	ck_ok(spyre_kernel_unload(kernel));
}
END_TEST

START_TEST(checks)
{
	const int64_t other_shape[] = { ROWS + 1, COLUMNS };
	const int64_t wide_size[] = { COLUMNS / 64, 1, ROWS, 1, 64 };
	const int64_t wide_map[] = { 64, -1, COLUMNS, -1, 1 };
	spyre_stream *stream = get_stream(context, 0);
	spyre_layout fp32, other, wide;
	spyre_context *foreign;
	spyre_arg args[3], bad[4];

	alloc_args(args);
	ck_ok(spyre_layout_init(&fp32, 2, shape, SPYRE_FORMAT_IEEE_FP32));
	ck_ok(spyre_layout_init(&other, 2, other_shape, SPYRE_FORMAT_IEEE_FP16));
	ck_ok(spyre_layout_init_explicit(&wide, 5, wide_size, wide_map,
					 SPYRE_FORMAT_SEN169_FP16, SPYRE_EA_STANDARD));
	ck_status(spyre_launch(stream, kernel, args, 2), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("takes 3 arguments, the launch gives 2");
	ck_status(spyre_launch(stream, kernel, NULL, 3), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_launch(NULL, kernel, args, 3), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_launch(stream, NULL, args, 3), SPYRE_ERROR_INVALID_ARGUMENT);

	memcpy(bad, args, sizeof(args));
	bad[1].layout = &fp32;
	ck_status(spyre_launch(stream, kernel, bad, 3), SPYRE_ERROR_FORMAT);
	ck_mentions("argument 1");
	ck_mentions("IEEE_FP32");
	bad[1].layout = &other;
	ck_status(spyre_launch(stream, kernel, bad, 3), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("65");
	bad[1].layout = NULL;
	bad[2].address += 64;
	ck_status(spyre_launch(stream, kernel, bad, 3), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("aligned");
	bad[2].address += 64;
	ck_status(spyre_launch(stream, kernel, bad, 3), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("argument 2");
	bad[2].address = 0;
	ck_status(spyre_launch(stream, kernel, bad, 3), SPYRE_ERROR_INVALID_ADDRESS);
	bad[2] = args[2];
	/* Dimensions of size 1 are ignored; an argument without layout is not checked. */
	bad[0].layout = &wide;
	ck_ok(spyre_launch(stream, kernel, bad, 3));
	check_sum(args[2].address);
	ck_ok(spyre_mem_free(context, args[0].address));
	ck_status(spyre_launch(stream, kernel, args, 3), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("argument 0");

	foreign = open_card();
	ck_status(spyre_launch(get_stream(foreign, 0), kernel, args, 3),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_context_destroy(foreign));
	ck_ok(spyre_stream_synchronize(stream));
}
END_TEST

static void hold(void *data)
{
	usleep(20000);
}

/* Kernels may be unloaded and freed at once, even with launches that have not reached the card. */
START_TEST(unload_in_flight)
{
	spyre_stream *stream = get_stream(context, 4);
	spyre_host_tensor target = tensor(2);
	spyre_arg args[3];

	alloc_args(args);
	for (int i = 0; i < 20; i++)
		ck_ok(spyre_launch(stream, kernel, args, 3));
	ck_ok(spyre_stream_host_fn(stream, hold, NULL));
	ck_ok(spyre_memset_async(stream, args[2].address, "z", 1, spyre_layout_bytes(&layout)));
	for (int i = 0; i < 20; i++)
		ck_ok(spyre_launch(stream, kernel, args, 3));
	ck_ok(spyre_copy_d2h_async(stream, &target, args[2].address, &layout));
	ck_ok(spyre_kernel_unload(kernel));
	for (int i = 0; i < 3; i++)
		ck_ok(spyre_mem_free(context, args[i].address));
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert(is_sum());
	ck_ok(spyre_kernel_unload(NULL));
}
END_TEST

START_TEST(missing)
{
	spyre_kernel *none = kernel;

	ck_status(spyre_kernel_load(context, "/nonexistent/bundle", &none), SPYRE_ERROR_FILE);
	ck_mentions("/nonexistent/bundle");
	ck_assert_ptr_null(none);
	ck_status(spyre_kernel_load(context, NULL, &none), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_kernel_load(NULL, folder, &none), SPYRE_ERROR_INVALID_ARGUMENT);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("kernel");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, launches);
	tcase_add_test(tests, checks);
	tcase_add_test(tests, unload_in_flight);
	tcase_add_test(tests, missing);
	return run_suite("runtime_kernel", tests);
}
