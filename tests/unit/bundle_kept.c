// SPDX-License-Identifier: MIT
/*
 * Tensors that live in LX from one kernel to the next: "fma" of the conformance tests,
 * divided into a kernel that leaves a * b in LX and one that adds c to it.
 */
#include <stdio.h>

#include "bundle_files.h"
#include "libspyre/sdsc/load.h"
#include "runtime_check.h"

#define ARGS 4u
#define BYTES (512u * 1024 * 2)
#define SHARE (BYTES / 32)		/* of a core */
#define KEPT 1625344u			/* what the public front-end plans by default */

enum { A, B, C, OUT };

static char folder[3][64];		/* whole, producer, consumer */
static spyre_context *context;
static spyre_stream *stream;

/* Removes the statement of bundle.mlir that executes @file. */
static void drop_statement(const char *bundle, const char *file)
{
	char *text = files_read(bundle, "bundle.mlir"), *at, *start, *end;

	at = strstr(text, file);
	ck_assert_ptr_nonnull(at);
	for (start = at; start[-1] != '\n'; start--)
		;
	end = strchr(at, '\n') + 1;
	memmove(start, end, strlen(end) + 1);
	files_write(bundle, "bundle.mlir", text);
	free(text);
}

static void setup(void)
{
	for (int i = 0; i < 3; i++) {
		files_make(folder[i]);
		files_copy(folder[i], "fma");
	}
	drop_statement(folder[1], "sdsc_1.json");
	drop_statement(folder[2], "sdsc_0.json");
	context = open_card();
	stream = get_stream(context, 0);
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
	for (int i = 0; i < 3; i++)
		files_remove(folder[i]);
}

static spyre_status load(spyre_context *on, int which, uint32_t lx_kept, spyre_kernel **kernel)
{
	spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = lx_kept };

	return spyre_kernel_load_ex(on, folder[which], &options, kernel);
}

struct tensors {
	spyre_arg arg[ARGS];
};

/* Small numbers, different for each @seed; the output gets other bytes. */
static struct tensors make_tensors(spyre_context *on, uint64_t seed)
{
	uint8_t *data = malloc(BYTES);
	struct tensors t = { 0 };

	for (uint32_t i = 0; i < ARGS; i++) {
		random_bytes(data, BYTES, seed * ARGS + i);
		for (uint32_t at = 1; at < BYTES; at += 2)
			data[at] = (uint8_t)((data[at] & 0x83) | 0x3c);
		ck_ok(spyre_mem_alloc(on, BYTES, &t.arg[i].address));
		ck_ok(spyre_memcpy_h2d(on, t.arg[i].address, data, BYTES));
	}
	free(data);
	return t;
}

static void free_tensors(spyre_context *on, const struct tensors *t)
{
	for (uint32_t i = 0; i < ARGS; i++)
		ck_ok(spyre_mem_free(on, t->arg[i].address));
}

static void launch(spyre_context *on, spyre_kernel *kernel, const struct tensors *t)
{
	ck_ok(spyre_launch(get_stream(on, 0), kernel, t->arg, ARGS));
	ck_ok(spyre_stream_synchronize(get_stream(on, 0)));
}

/* Returns the bytes of the output, which the caller frees. */
static uint8_t *output(spyre_context *on, const struct tensors *t)
{
	uint8_t *data = malloc(BYTES);

	ck_ok(spyre_memcpy_d2h(on, data, t->arg[OUT].address, BYTES));
	return data;
}

static uint8_t *whole(spyre_context *on, const struct tensors *t)
{
	spyre_kernel *kernel;

	ck_ok(load(on, 0, 0, &kernel));
	launch(on, kernel, t);
	ck_ok(spyre_kernel_unload(kernel));
	return output(on, t);
}

static void clear_output(spyre_context *on, const struct tensors *t)
{
	uint8_t *zero = calloc(1, BYTES);

	ck_ok(spyre_memcpy_h2d(on, t->arg[OUT].address, zero, BYTES));
	free(zero);
}

static void check_output(spyre_context *on, const struct tensors *t, const uint8_t *want)
{
	uint8_t *got = output(on, t);

	ck_assert_mem_eq(got, want, BYTES);
	free(got);
}

START_TEST(handed_over)
{
	struct tensors t = make_tensors(context, 1);
	uint8_t *want = whole(context, &t);
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_kernel *producer, *consumer;

	ck_ok(load(context, 1, KEPT, &producer));
	ck_ok(load(context, 2, KEPT, &consumer));
	ck_ok(spyre_kernel_get_info(consumer, &info));
	ck_assert_uint_eq(info.lx_bytes, SHARE);
	ck_assert_uint_eq(info.lx_kept, SHARE);
	launch(context, producer, &t);
	/* The producer need not exist any more. */
	ck_ok(spyre_kernel_unload(producer));
	launch(context, consumer, &t);
	check_output(context, &t, want);
	/* The tensor stays, and so the consumer may run again. */
	clear_output(context, &t);
	launch(context, consumer, &t);
	check_output(context, &t, want);
	ck_ok(spyre_kernel_unload(consumer));
	free(want);
	free_tensors(context, &t);
}
END_TEST

/* Kernels between the two: one without LX, and one that only has scratch in it. */
START_TEST(others_between)
{
	static const char *const between[] = { "add", "sum_first" };
	struct tensors t = make_tensors(context, 2), own = make_tensors(context, 3);
	spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = KEPT };
	uint8_t *want = whole(context, &t);
	spyre_kernel *producer, *consumer, *other;

	ck_ok(load(context, 1, KEPT, &producer));
	ck_ok(load(context, 2, KEPT, &consumer));
	launch(context, producer, &t);
	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		spyre_kernel_info info = { .struct_size = sizeof(info) };

		files_copy(folder[0], between[i]);
		ck_ok(spyre_kernel_load_ex(context, folder[0], &options, &other));
		ck_ok(spyre_kernel_get_info(other, &info));
		ck_ok(spyre_launch(stream, other, own.arg, info.num_args));
		launch(context, consumer, &t);
		check_output(context, &t, want);
		clear_output(context, &t);
		ck_ok(spyre_kernel_unload(other));
	}
	ck_ok(spyre_kernel_unload(producer));
	ck_ok(spyre_kernel_unload(consumer));
	free(want);
	free_tensors(context, &own);
	free_tensors(context, &t);
}
END_TEST

/* Scratch is above the kept part, wherever the bundle has tensors. */
START_TEST(scratch)
{
	spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = KEPT };
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	char other[64], path[80];
	uint32_t before;

	files_make(other);
	files_copy(other, "sum_first");
	ck_ok(spyre_kernel_compile(other, NULL, 0, &info));
	ck_assert_uint_eq(info.lx_kept, 0);
	before = info.lx_bytes;
	ck_assert_uint_gt(before, 0);
	snprintf(path, sizeof(path), "%s/kept", other);
	ck_ok(spyre_kernel_compile_ex(other, path, &options, &info));
	ck_assert_uint_eq(info.lx_kept, KEPT);
	ck_assert_uint_eq(info.lx_bytes, KEPT + before);
	options.lx_kept = 2 << 20;
	ck_status(spyre_kernel_compile_ex(other, path, &options, &info), SPYRE_ERROR_LX_OVERFLOW);
	ck_mentions("2097152");
	ck_mentions("DXP_LX_FRAC_AVAIL");
	files_remove(other);
}
END_TEST

START_TEST(refused)
{
	spyre_kernel *kernel;

	ck_status(spyre_kernel_load(context, folder[2], &kernel), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("sdsc_1.json: Tensor0 is in LX from byte 0 on");
	ck_mentions("LX is cleared between kernels");
	ck_status(load(context, 2, SHARE - 128, &kernel), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("only the first 32640 bytes are kept");
	ck_ok(load(context, 2, SHARE, &kernel));
	ck_ok(spyre_kernel_unload(kernel));
}
END_TEST

START_TEST(wrong_options)
{
	spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = 100 };
	spyre_kernel *kernel = (spyre_kernel *)folder;

	ck_status(spyre_kernel_load_ex(context, folder[1], &options, &kernel),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("lx_kept is 100");
	ck_assert_ptr_null(kernel);
	options.lx_kept = (2 << 20) + 128;
	ck_status(spyre_kernel_compile_ex(folder[1], NULL, &options, NULL),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("lx_kept is 2097280");
	options = (spyre_kernel_options){ .struct_size = sizeof(options), .cores = 4 };
	ck_status(spyre_kernel_load_ex(context, folder[1], &options, &kernel),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("cores is 4");
	options.cores = 33;
	ck_status(spyre_kernel_compile_ex(folder[1], NULL, &options, NULL),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	options.struct_size = 0;
	ck_status(spyre_kernel_load_ex(context, folder[1], &options, &kernel),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("struct_size is 0");
	/* A caller that knows only struct_size gets the defaults, as one without options. */
	options = (spyre_kernel_options){ .struct_size = sizeof(size_t), .lx_kept = 100 };
	ck_ok(spyre_kernel_load_ex(context, folder[1], &options, &kernel));
	ck_ok(spyre_kernel_unload(kernel));
	ck_ok(spyre_kernel_load_ex(context, folder[1], NULL, &kernel));
	ck_ok(spyre_kernel_unload(kernel));
}
END_TEST

/* LX of another context is never seen, and not disturbed either. */
START_TEST(contexts)
{
	spyre_context *other = open_card();
	struct tensors t = make_tensors(context, 4), u = make_tensors(other, 5);
	uint8_t *want_t = whole(context, &t), *want_u = whole(other, &u), *c = malloc(BYTES);
	spyre_kernel *producer[2], *consumer[2];

	ck_ok(load(context, 1, KEPT, &producer[0]));
	ck_ok(load(context, 2, KEPT, &consumer[0]));
	ck_ok(load(other, 1, KEPT, &producer[1]));
	ck_ok(load(other, 2, KEPT, &consumer[1]));
	launch(context, producer[0], &t);
	/* In a new context LX is zero; the one that computed "whole" is not new. */
	{
		spyre_context *fresh = open_card();
		struct tensors f = make_tensors(fresh, 6);
		spyre_kernel *kernel;

		ck_ok(load(fresh, 2, KEPT, &kernel));
		launch(fresh, kernel, &f);
		ck_ok(spyre_memcpy_d2h(fresh, c, f.arg[C].address, BYTES));
		check_output(fresh, &f, c);
		ck_ok(spyre_context_destroy(fresh));
	}
	launch(other, producer[1], &u);
	launch(context, consumer[0], &t);
	launch(other, consumer[1], &u);
	check_output(context, &t, want_t);
	check_output(other, &u, want_u);
	free(c);
	free(want_t);
	free(want_u);
	free_tensors(context, &t);
	ck_ok(spyre_context_destroy(other));
}
END_TEST

/* Returns the compiled form of a bundle, which the caller frees. */
static uint8_t *stored(int which, size_t *bytes)
{
	uint8_t *image = malloc(FILES_MAX_TEXT);
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/spyreCodeDir/init_binary.bin", folder[which]);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	*bytes = fread(image, 1, FILES_MAX_TEXT, f);
	fclose(f);
	return image;
}

/* A load without the option neither uses nor replaces a program compiled with it. */
START_TEST(compiled)
{
	spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = KEPT };
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	uint8_t *before, *after;
	size_t bytes, now;
	spyre_kernel *kernel;

	ck_ok(spyre_kernel_compile_ex(folder[1], NULL, &options, &info));
	ck_assert_uint_eq(info.lx_kept, SHARE);
	before = stored(1, &bytes);
	ck_ok(spyre_kernel_load(context, folder[1], &kernel));
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.lx_kept, 0);
	ck_ok(spyre_kernel_unload(kernel));
	after = stored(1, &now);
	ck_assert_uint_eq(now, bytes);
	ck_assert_mem_eq(after, before, bytes);
	ck_ok(load(context, 1, KEPT, &kernel));
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.lx_kept, SHARE);
	ck_ok(spyre_kernel_unload(kernel));
	free(before);
	free(after);
}
END_TEST

/* The bytes of a compiled kernel have all that the option says. */
START_TEST(from_image)
{
	spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = KEPT };
	struct tensors t = make_tensors(context, 7);
	uint8_t *want = whole(context, &t), *image;

	for (int i = 1; i < 3; i++) {
		spyre_kernel *kernel;
		size_t bytes;

		ck_ok(spyre_kernel_compile_ex(folder[i], NULL, &options, NULL));
		image = stored(i, &bytes);
		ck_ok(spyre_kernel_load_image(context, image, bytes, &kernel));
		free(image);
		launch(context, kernel, &t);
		ck_ok(spyre_kernel_unload(kernel));
	}
	check_output(context, &t, want);
	free(want);
	free_tensors(context, &t);
}
END_TEST

/* Launches a kernel with the rows of its tensors as symbol s0. */
static void launch_rows(spyre_kernel *kernel, const struct tensors *t, int64_t rows)
{
	const spyre_binding binding = { "s0", rows };
	spyre_launch_arg args[ARGS] = { 0 };
	spyre_launch_params params = { .struct_size = sizeof(params), .args = args,
				       .num_args = ARGS, .bindings = &binding,
				       .num_bindings = 1 };

	for (uint32_t i = 0; i < ARGS; i++)
		args[i].address = t->arg[i].address;
	ck_ok(spyre_launch_ex(stream, kernel, &params));
	ck_ok(spyre_stream_synchronize(stream));
}

/* Compiles a bundle and loads its image; what it keeps at most is that of its maxima. */
static spyre_kernel *through_image(int which, uint32_t lx_kept, uint32_t want)
{
	spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = lx_kept };
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_kernel *kernel;
	uint8_t *image;
	size_t bytes;

	ck_ok(spyre_kernel_compile_ex(folder[which], NULL, &options, &info));
	ck_assert_uint_eq(info.lx_kept, want);
	image = stored(which, &bytes);
	ck_ok(spyre_kernel_load_image(context, image, bytes, &kernel));
	free(image);
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.lx_kept, want);
	return kernel;
}

static void make_symbolic(void)
{
	for (int i = 1; i < 3; i++)
		files_edit(folder[i], i == 1 ? "sdsc_0.json" : "sdsc_1.json", "\"el_\": {",
			   "\"el_\": {\"symbolicDimInfo_\": {\"mb\": \"s0\"},");
}

/* Images of bundles with symbols are compiled again, for each value, and keep as much. */
START_TEST(symbols_from_image)
{
	struct tensors t = make_tensors(context, 8);
	uint8_t *want = whole(context, &t), *got;
	spyre_kernel *producer, *consumer;

	make_symbolic();
	producer = through_image(1, KEPT, SHARE);
	consumer = through_image(2, KEPT, SHARE);
	for (int64_t rows = 512; rows > 0; rows -= 171) {
		clear_output(context, &t);
		launch_rows(producer, &t, rows);
		launch_rows(consumer, &t, rows);
		got = output(context, &t);
		for (uint32_t column = 0; column < 1024 / 64; column++)
			ck_assert_mem_eq(got + column * 512 * 128, want + column * 512 * 128,
					 (size_t)rows * 128);
		free(got);
	}
	ck_ok(spyre_kernel_unload(producer));
	ck_ok(spyre_kernel_unload(consumer));
	free(want);
	free_tensors(context, &t);
}
END_TEST

/*
 * An image has what was asked for, not only what the program for the maxima uses of it: a program
 * for other values may need LX for intermediate results, behind all that is kept.
 */
START_TEST(asked_in_image)
{
	const spyre_kernel_options options = { .struct_size = sizeof(options), .lx_kept = KEPT };
	struct bundle_source *source;
	struct spyre_bundle bundle;
	uint8_t *image;
	size_t bytes;

	make_symbolic();
	ck_ok(spyre_kernel_compile_ex(folder[1], NULL, &options, NULL));
	image = stored(1, &bytes);
	ck_ok(spyre_bundle_load_image(image, bytes, SPYRE_MAX_CORES, &bundle, &source));
	ck_assert_ptr_nonnull(source);
	ck_assert_uint_eq(source->lx_kept, KEPT);
	ck_assert_uint_eq(bundle.lx_kept, SHARE);
	spyre_bundle_fini(&bundle);
	bundle_source_close(source);
	free(source);
	free(image);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("kept");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, handed_over);
	tcase_add_test(tests, others_between);
	tcase_add_test(tests, scratch);
	tcase_add_test(tests, refused);
	tcase_add_test(tests, wrong_options);
	tcase_add_test(tests, contexts);
	tcase_add_test(tests, compiled);
	tcase_add_test(tests, from_image);
	tcase_add_test(tests, symbols_from_image);
	tcase_add_test(tests, asked_in_image);
	return run_suite("bundle_kept", tests);
}
