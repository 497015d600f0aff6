// SPDX-License-Identifier: MIT
/* Kernels from images in memory: equal to those of the directory, and safe for any bytes. */
#include <stddef.h>
#include <stdio.h>

#include "bundle_files.h"
#include "libspyre/sdsc/cache/code_image.h"
#include "runtime_check.h"
#include "tests/order.h"

#define ROWS 64
#define COLUMNS 128
#define MAX_ARGS 3

static char folder[64];
static spyre_context *context;
static spyre_stream *stream;

static void setup(void)
{
	files_make(folder);
	context = open_card();
	stream = get_stream(context, 0);
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
	files_remove(folder);
}

/* Compiles the bundle and reads its image; the caller frees it. */
static uint8_t *read_image(size_t *bytes)
{
	uint8_t *image = malloc(FILES_MAX_TEXT);
	char path[128];
	FILE *f;

	ck_ok(spyre_kernel_compile(folder, NULL, 0, NULL));
	snprintf(path, sizeof(path), "%s/spyreCodeDir/init_binary.bin", folder);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	*bytes = fread(image, 1, FILES_MAX_TEXT, f);
	ck_assert_uint_lt(*bytes, FILES_MAX_TEXT);
	fclose(f);
	return image;
}

/* Builds and compiles a bundle of @count tensors; the caller frees the image. */
static uint8_t *make_image(const char *op, uint32_t count, size_t *bytes)
{
	int64_t size[MAX_ARGS][2] = { { ROWS, COLUMNS }, { ROWS, COLUMNS }, { ROWS, COLUMNS } };

	files_build(folder, op, size, count, (const int64_t[]){ 4, 1 });
	return read_image(bytes);
}

static spyre_status load(const void *image, size_t bytes, spyre_kernel **kernel)
{
	*kernel = (spyre_kernel *)folder;	/* a failed call must replace it */
	return spyre_kernel_load_image(context, image, bytes, kernel);
}

static void refused(const void *image, size_t bytes, spyre_status want)
{
	spyre_kernel *kernel;

	ck_status(load(image, bytes, &kernel), want);
	ck_assert_ptr_null(kernel);
	ck_mentions("cannot load a kernel from an image of ");
}

static void same_kernel(spyre_kernel *a, spyre_kernel *b, uint32_t count)
{
	spyre_kernel_info info[2];
	spyre_arg_info arg[2];

	memset(info, 0, sizeof(info));
	memset(arg, 0, sizeof(arg));
	info[0].struct_size = info[1].struct_size = sizeof(info[0]);
	ck_ok(spyre_kernel_get_info(a, &info[0]));
	ck_ok(spyre_kernel_get_info(b, &info[1]));
	ck_assert_uint_eq(info[0].num_args, count);
	ck_assert_mem_eq(&info[0], &info[1], sizeof(info[0]));
	for (uint32_t i = 0; i < count; i++) {
		ck_ok(spyre_kernel_get_arg(a, (int)i, &arg[0]));
		ck_ok(spyre_kernel_get_arg(b, (int)i, &arg[1]));
		ck_assert_uint_gt(arg[0].bytes, 0);
		ck_assert_mem_eq(&arg[0], &arg[1], sizeof(arg[0]));
	}
}

/* Launches @kernel on random inputs and returns the bytes of the output, which the caller frees. */
static void *launch(spyre_kernel *kernel, uint32_t count)
{
	const uint64_t bytes = ROWS * COLUMNS * 2;
	uint8_t *data = malloc(bytes);
	spyre_arg args[MAX_ARGS] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		ck_ok(spyre_mem_alloc(context, bytes, &args[i].address));
		random_bytes(data, bytes, i);
		/* Exponents of small numbers; an output of NaN would hide differences. */
		for (uint64_t at = 1; at < bytes; at += 2)
			data[at] = (uint8_t)((data[at] & 0x83) | 0x3c);
		ck_ok(spyre_memcpy_h2d(context, args[i].address, data, bytes));
	}
	ck_ok(spyre_launch(stream, kernel, args, count));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_memcpy_d2h(context, data, args[count - 1].address, bytes));
	for (uint32_t i = 0; i < count; i++)
		ck_ok(spyre_mem_free(context, args[i].address));
	return data;
}

static void check_equal(const char *op, uint32_t count)
{
	spyre_kernel *from_file, *from_image;
	uint8_t *image, *buffer;
	void *want, *got;
	size_t bytes;

	image = make_image(op, count, &bytes);
	ck_ok(spyre_kernel_load(context, folder, &from_file));
	/* An odd address. Neither the bytes nor the directory are needed after the load. */
	buffer = malloc(bytes + 1);
	memcpy(buffer + 1, image, bytes);
	files_remove(folder);
	ck_ok(load(buffer + 1, bytes, &from_image));
	memset(buffer, 0xa5, bytes + 1);
	free(buffer);
	free(image);
	same_kernel(from_file, from_image, count);
	want = launch(from_file, count);
	got = launch(from_image, count);
	ck_assert_mem_eq(got, want, ROWS * COLUMNS * 2);
	free(want);
	free(got);
	ck_ok(spyre_kernel_unload(from_file));
	ck_ok(spyre_kernel_unload(from_image));
}

START_TEST(equals_file)
{
	check_equal("add", 3);
}
END_TEST

/* The file is little endian, whatever host wrote it. */
START_TEST(byte_order)
{
	static const uint8_t magic[] = "SYPB", program_magic[] = "SYPG";
	uint8_t *image, *program;
	uint64_t at, size;
	size_t bytes;

	image = make_image("add", 3, &bytes);
	ck_assert_mem_eq(image, magic, 4);
	ck_assert_uint_eq(get_le(image + 8, 8), bytes);
	ck_assert_uint_eq(get_le(image + 68, 4), 3);		/* arguments */
	ck_assert_uint_eq(get_le(image + 256 + 4, 4), SPYRE_FORMAT_SEN169_FP16);
	at = get_le(image + 88, 8);
	size = get_le(image + 96, 8);
	ck_assert_uint_lt(at, bytes);
	ck_assert_uint_le(size, bytes - at);
	program = image + at;
	ck_assert_mem_eq(program, program_magic, 4);
	ck_assert_uint_eq(get_le(program + 8, 8), size);
	ck_assert_uint_eq(get_le(program + 16, 4), 3);		/* operands, and one's extent */
	ck_assert_uint_eq(get_le(program + 64, 8), ROWS * COLUMNS * 2);
	free(image);
}
END_TEST

/* Several SDSCs with intermediates in memory that the kernel owns. */
START_TEST(with_pool)
{
	check_equal("gelu_tanh", 2);
}
END_TEST

START_TEST(many)
{
	spyre_kernel *kernels[8];
	uint64_t used = memory_info(context).context_used;
	uint8_t *image;
	size_t bytes;

	image = make_image("gelu_tanh", 2, &bytes);
	for (int i = 0; i < 8; i++)
		ck_ok(load(image, bytes, &kernels[i]));
	free(image);
	free(launch(kernels[7], 2));
	for (int i = 0; i < 8; i++)
		ck_ok(spyre_kernel_unload(kernels[i]));
	ck_ok(spyre_context_synchronize(context));
	ck_assert_uint_eq(memory_info(context).context_used, used);
}
END_TEST

START_TEST(arguments)
{
	spyre_kernel *kernel;
	uint8_t *image;
	size_t bytes;

	image = make_image("add", 3, &bytes);
	ck_status(load(NULL, bytes, &kernel), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("image is NULL");
	ck_status(spyre_kernel_load_image(context, image, bytes, NULL),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_kernel_load_image(NULL, image, bytes, &kernel),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	free(image);
}
END_TEST

START_TEST(truncated)
{
	uint8_t *image, *cut;
	char text[64];
	size_t bytes;

	image = make_image("add", 3, &bytes);
	for (size_t length = 0; length < bytes; length += length < 700 ? 1 : 61) {
		/* Its own allocation, so that a sanitizer sees a read beyond the end. */
		cut = malloc(length ? length : 1);
		memcpy(cut, image, length);
		refused(cut, length, SPYRE_ERROR_PARSE);
		snprintf(text, sizeof(text), "it has %zu bytes", length);
		ck_mentions(text);
		free(cut);
	}
	snprintf(text, sizeof(text), "its header says %zu", bytes);
	refused(image, bytes - 128, SPYRE_ERROR_PARSE);
	ck_mentions(text);
	image = realloc(image, bytes + 128);
	memset(image + bytes, 0, 128);
	refused(image, bytes + 128, SPYRE_ERROR_PARSE);
	ck_mentions(text);
	free(image);
}
END_TEST

START_TEST(mutated)
{
	uint8_t *image;
	size_t bytes;

	image = make_image("add", 3, &bytes);
	for (size_t at = 0; at < bytes; at += at < 1024 ? 1 : 97) {
		spyre_kernel *kernel;
		spyre_status status;

		image[at] ^= 0x40;
		status = load(image, bytes, &kernel);
		image[at] ^= 0x40;
		ck_assert_msg(status == SPYRE_ERROR_PARSE || status == SPYRE_ERROR_UNSUPPORTED,
			      "byte %zu of %zu: %s", at, bytes, spyre_status_name(status));
		ck_assert_ptr_null(kernel);
		if (at > 256)
			ck_mentions("it is damaged");
	}
	free(image);
}
END_TEST

/* With a correct sum any byte may have any value: the image is refused, or its kernel is whole. */
START_TEST(forged)
{
	static const uint8_t masks[] = { 1, 0x40, 0x80, 0xff };
	unsigned int loaded = 0, verifier = 0;
	uint8_t *image, *copy;
	size_t bytes;

	image = make_image("add", 3, &bytes);
	copy = malloc(bytes);
	for (size_t i = 0; i < bytes * sizeof(masks); i += i < 4096 ? 1 : 13) {
		spyre_arg_info arg = { 0 };
		spyre_kernel *kernel;
		spyre_status status;

		memcpy(copy, image, bytes);
		copy[i / sizeof(masks)] ^= masks[i % sizeof(masks)];
		code_image_seal(copy, bytes);
		status = load(copy, bytes, &kernel);
		ck_assert_msg(!status == !!kernel, "byte %zu: %s", i / sizeof(masks),
			      spyre_status_name(status));
		verifier += status == SPYRE_ERROR_VERIFY;
		if (status)
			continue;
		loaded++;
		for (int k = 0; k < 3; k++)
			ck_ok(spyre_kernel_get_arg(kernel, k, &arg));
		ck_status(spyre_kernel_get_arg(kernel, 3, &arg), SPYRE_ERROR_INVALID_ARGUMENT);
		ck_ok(spyre_kernel_unload(kernel));
	}
	/* Both are reached: names may differ, programs may not leave their operands. */
	ck_assert_uint_gt(loaded, 0);
	ck_assert_uint_gt(verifier, 0);
	free(copy);
	free(image);
}
END_TEST

struct forgery {
	size_t at;
	uint32_t word;
	spyre_status status;
	const char *mentions;
};

/* The message has the value that was found and the one that is possible. */
START_TEST(numbers)
{
	const size_t args = sizeof(struct code_image_header) + 128;
	static const struct forgery header[] = {
		{ offsetof(struct code_image_header, magic), 0x12345678, SPYRE_ERROR_PARSE,
		  "0x12345678, not 0x42505953" },
		{ offsetof(struct code_image_header, program_version), 77, SPYRE_ERROR_UNSUPPORTED,
		  "programs of version 77" },
		{ offsetof(struct code_image_header, num_args), 65, SPYRE_ERROR_PARSE,
		  "65 arguments, at most 64" },
		{ offsetof(struct code_image_header, num_cores), 33, SPYRE_ERROR_PARSE,
		  "33 cores, at most 32" },
		{ offsetof(struct code_image_header, pool_bytes), 1, SPYRE_ERROR_PARSE,
		  "1 bytes of intermediates, which is not a multiple of 128" },
		{ offsetof(struct code_image_header, flags), 9, SPYRE_ERROR_PARSE, "flags 0x9" },
		{ offsetof(struct code_image_header, image_offset), 64, SPYRE_ERROR_PARSE,
		  " at 64, which does not fit " },
	};
	struct forgery argument = { args, 7, SPYRE_ERROR_PARSE, "argument 0 is invalid: role 7" };
	uint8_t *image, *copy;
	size_t bytes;

	image = make_image("add", 3, &bytes);
	copy = malloc(bytes);
	for (size_t i = 0; i <= sizeof(header) / sizeof(header[0]); i++) {
		const struct forgery *f = i < sizeof(header) / sizeof(header[0]) ? &header[i] :
										   &argument;

		memcpy(copy, image, bytes);
		put_le(copy + f->at, f->word, 4);
		code_image_seal(copy, bytes);
		refused(copy, bytes, f->status);
		ck_mentions(f->mentions);
	}
	free(copy);
	free(image);
}
END_TEST

/* Launches @kernel with s0 = @value, all arguments in one tensor, and checks the rows. */
static void run_rows(spyre_kernel *kernel, int64_t value)
{
	const uint64_t bytes = ROWS * COLUMNS * 2;
	const spyre_binding s0 = { "s0", value };
	uint16_t *host = malloc(bytes);
	spyre_launch_arg args[3] = { 0 };
	const spyre_launch_params params = { .struct_size = sizeof(params), .args = args,
					     .num_args = 3, .num_bindings = 1, .bindings = &s0 };
	spyre_devptr address;

	ck_ok(spyre_mem_alloc(context, bytes, &address));
	for (int i = 0; i < 3; i++)
		args[i].address = address;
	ck_ok(spyre_memset_async(stream, address, "\x00\x3e", 2, bytes));	/* 1 in DL16 */
	ck_ok(spyre_launch_ex(stream, kernel, &params));
	ck_ok(spyre_memcpy_d2h_async(stream, host, address, bytes));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_mem_free(context, address));
	order_le(host, bytes / 2, 2);
	/* Rows are innermost but for the stick. */
	for (int stick = 0; stick < COLUMNS / 64; stick++)
		for (int64_t r = 0; r < ROWS; r++)
			ck_assert_uint_eq(host[(stick * ROWS + r) * 64 + 5],
					  r < value ? 0x4000 : 0x3e00);
	free(host);
}

/* An image with symbols holds the files, from which it is compiled for each value. */
START_TEST(symbols)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_kernel *kernel;
	uint8_t *image;
	size_t bytes;

	image = make_image("add", 3, &bytes);
	free(image);
	files_size_param(folder, "mb", 8, ROWS, 4);
	image = read_image(&bytes);
	files_write(folder, "bundle.mlir", "gone");
	ck_ok(load(image, bytes, &kernel));
	free(image);
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.num_symbols, 1);
	run_rows(kernel, 8);
	run_rows(kernel, ROWS);
	run_rows(kernel, 24);
	ck_ok(spyre_kernel_unload(kernel));
}
END_TEST

/* Damage with a right sum: files that are missing, too long, or not those of a bundle. */
START_TEST(damaged_files)
{
	const size_t at = offsetof(struct code_image_header, source_bytes);
	uint8_t *image, *copy, *files;
	size_t bytes;

	free(make_image("add", 3, &bytes));
	files_size_param(folder, "mb", 8, ROWS, 4);
	image = read_image(&bytes);
	copy = malloc(bytes);
	files = copy + ((get_le(image + offsetof(struct code_image_header, image_offset), 8) +
			 get_le(image + offsetof(struct code_image_header, image_bytes), 8) + 127) &
			~127ull);
	for (int i = 0; i < 5; i++) {
		static const char *const mentions[] = {
			"has 0 bytes of files", "18446744073709551615 bytes of files",
			"it lacks the file bundle.mlir", "has 18446744073709551615 bytes",
			"bundle.mlir:1",
		};

		memcpy(copy, image, bytes);
		if (i < 2)
			put_le(copy + at, i ? UINT64_MAX : 0, 8);
		else if (i == 2)
			files[0] = 'x';
		else
			put_le(files + (i == 3 ? 64 : 72), UINT64_MAX, 8);
		code_image_seal(copy, bytes);
		refused(copy, bytes, SPYRE_ERROR_PARSE);
		ck_mentions(mentions[i]);
	}
	free(copy);
	free(image);
}
END_TEST

/* A card of two cores cannot run a program for four. */
START_TEST(cores)
{
	uint8_t *image;
	size_t bytes;

	image = make_image("add", 3, &bytes);
	if (is_embedded(context)) {
		ck_ok(spyre_context_destroy(context));
		setenv("SPYRE_EMBEDDED_CORES", "2", 1);
		context = open_card();
		stream = get_stream(context, 0);
		refused(image, bytes, SPYRE_ERROR_UNSUPPORTED);
		ck_mentions("compiled for 4 cores, the card has 2");
	}
	free(image);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("image");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, equals_file);
	tcase_add_test(tests, byte_order);
	tcase_add_test(tests, with_pool);
	tcase_add_test(tests, many);
	tcase_add_test(tests, arguments);
	tcase_add_test(tests, truncated);
	tcase_add_test(tests, mutated);
	tcase_add_test(tests, forged);
	tcase_add_test(tests, numbers);
	tcase_add_test(tests, symbols);
	tcase_add_test(tests, damaged_files);
	tcase_add_test(tests, cores);
	return run_suite("bundle_image", tests);
}
