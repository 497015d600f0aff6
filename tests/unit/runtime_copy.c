/* SPDX-License-Identifier: MIT */
/* Copies: plain ones at any address, tiled ones, between layouts. */
#include "runtime_check.h"

#define AREA 20000
#define GUARD 0xa5

static spyre_context *context;
static spyre_devptr device;

static void setup(void)
{
	context = open_card();
	ck_ok(spyre_mem_alloc(context, AREA, &device));
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

/* Copies in and out again, and checks the memory around both. */
static void check_linear(uint32_t offset, uint32_t host_offset, uint32_t bytes, uint64_t seed)
{
	static uint8_t before[AREA], expect[AREA], after[AREA], source[AREA], target[AREA];
	bool touched = false;

	random_bytes(before, AREA, seed);
	random_bytes(source, AREA, seed + 1);
	ck_ok(spyre_memcpy_h2d(context, device, before, AREA));
	memcpy(expect, before, AREA);
	memcpy(expect + offset, source + host_offset, bytes);
	ck_ok(spyre_memcpy_h2d(context, device + offset, source + host_offset, bytes));
	ck_ok(spyre_memcpy_d2h(context, after, device, AREA));
	ck_assert_mem_eq(after, expect, AREA);
	memset(target, GUARD, AREA);
	ck_ok(spyre_memcpy_d2h(context, target + host_offset, device + offset, bytes));
	ck_assert_mem_eq(target + host_offset, source + host_offset, bytes);
	/* The guard around it must not change. */
	memset(target + host_offset, GUARD, bytes);
	for (uint32_t i = 0; i < AREA; i++)
		touched |= target[i] != GUARD;
	ck_assert(!touched);
}

START_TEST(odd_offsets)
{
	static const uint32_t offsets[] = { 0, 1, 64, 127, 128, 129, 255, 256, 4095 };
	static const uint32_t sizes[] = { 1, 2, 63, 127, 128, 129, 255, 256, 257, 1000, 8191 };

	for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			check_linear(offsets[o], (o * 7 + s) % 61, sizes[s], o * 100 + s);
}
END_TEST

START_TEST(random_offsets)
{
	uint64_t state = 17;

	for (int round = 0; round < 300; round++) {
		uint32_t offset = random_next(&state) % 8000;
		uint32_t host_offset = random_next(&state) % 8000;
		uint32_t bytes = 1 + random_next(&state) % 8000;

		check_linear(offset, host_offset, bytes, round + 1000);
	}
}
END_TEST

START_TEST(copies_of_no_bytes)
{
	char byte = 1;

	ck_ok(spyre_memcpy_h2d(context, device, NULL, 0));
	ck_ok(spyre_memcpy_d2h(context, &byte, 0, 0));
	ck_ok(spyre_memset_async(get_stream(context, 0), 0, &byte, 1, 0));
	ck_ok(spyre_memcpy_d2d_async(get_stream(context, 0), 0, 0, 0));
	ck_assert_int_eq(byte, 1);
}
END_TEST

START_TEST(fills)
{
	static uint8_t expect[AREA], after[AREA];
	spyre_stream *stream = get_stream(context, 0);
	uint8_t pattern[16];
	uint64_t state = 5;

	memset(expect, 0, AREA);
	for (int round = 0; round < 200; round++) {
		uint32_t width = 1u << random_next(&state) % 5;
		uint32_t offset = random_next(&state) % 9000;
		uint32_t bytes = (1 + random_next(&state) % (9000 / width)) * width;

		random_bytes(pattern, 16, round);
		for (uint32_t i = 0; i < bytes; i++)
			expect[offset + i] = pattern[i % width];
		ck_ok(spyre_memset_async(stream, device + offset, pattern, width, bytes));
	}
	ck_ok(spyre_memcpy_d2h(context, after, device, AREA));
	ck_assert_mem_eq(after, expect, AREA);
}
END_TEST

/* Overlapping device copies in both directions. */
START_TEST(overlap)
{
	static uint8_t expect[AREA], after[AREA];
	spyre_stream *stream = get_stream(context, 0);
	uint64_t state = 9;

	random_bytes(expect, AREA, 3);
	ck_ok(spyre_memcpy_h2d(context, device, expect, AREA));
	for (int round = 0; round < 200; round++) {
		uint32_t from = random_next(&state) % 9000, to = random_next(&state) % 9000;
		uint32_t bytes = 1 + random_next(&state) % 9000;

		memmove(expect + to, expect + from, bytes);
		ck_ok(spyre_memcpy_d2d_async(stream, device + to, device + from, bytes));
	}
	ck_ok(spyre_memcpy_d2h(context, after, device, AREA));
	ck_assert_mem_eq(after, expect, AREA);
}
END_TEST

START_TEST(pinned_host)
{
	uint8_t *pinned, *back = malloc(AREA);

	ck_ok(spyre_host_alloc(context, 2 * AREA, (void **)&pinned));
	random_bytes(pinned, AREA, 21);
	ck_ok(spyre_memcpy_h2d_async(get_stream(context, 0), device, pinned, AREA));
	ck_ok(spyre_memcpy_d2h_async(get_stream(context, 0), pinned + AREA, device, AREA));
	ck_ok(spyre_stream_synchronize(get_stream(context, 0)));
	ck_assert_mem_eq(pinned, pinned + AREA, AREA);
	ck_ok(spyre_memcpy_d2h(context, back, device, AREA));
	ck_assert_mem_eq(pinned, back, AREA);
	ck_ok(spyre_host_free(context, pinned));
	free(back);
}
END_TEST

/* Values that every 16-bit and 32-bit float holds. */
static void small_values(float *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		values[i] = (float)((int)(i * 37 % 201) - 100) / 4;
}

START_TEST(tiled_round_trip)
{
	const int64_t size[] = { 3, 5, 70 };
	float in[3 * 5 * 70], out[3 * 5 * 70 + 2];
	spyre_host_tensor source, target;
	spyre_layout layout;
	spyre_devptr tensor;

	small_values(in, 3 * 5 * 70);
	ck_ok(spyre_layout_init(&layout, 3, size, SPYRE_FORMAT_IEEE_FP32));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&layout), &tensor));
	ck_ok(spyre_host_tensor_dense(&source, in, SPYRE_FORMAT_IEEE_FP32, 3, size));
	ck_ok(spyre_host_tensor_dense(&target, out + 1, SPYRE_FORMAT_IEEE_FP32, 3, size));
	out[0] = out[3 * 5 * 70 + 1] = 1e30f;
	ck_ok(spyre_copy_h2d(context, tensor, &layout, &source));
	ck_ok(spyre_copy_d2h(context, &target, tensor, &layout));
	ck_assert_mem_eq(in, out + 1, sizeof(in));
	ck_assert(out[0] == 1e30f && out[3 * 5 * 70 + 1] == 1e30f);

	/* The allocation is too small; then the address is not aligned to a stick. */
	ck_ok(spyre_mem_free(context, tensor));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&layout) - 128, &tensor));
	ck_status(spyre_copy_h2d(context, tensor, &layout, &source), SPYRE_ERROR_INVALID_ADDRESS);
	ck_status(spyre_copy_h2d(context, tensor + 64, &layout, &source),
		  SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("aligned");
	ck_status(spyre_copy_h2d(context, tensor, NULL, &source), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_copy_d2h(context, NULL, tensor, &layout), SPYRE_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(between_layouts)
{
	const int64_t size[] = { 130, 66 }, stride[] = { 66, 1 };
	const int32_t swapped[] = { 1, 0 };
	static float in[130 * 66], out[130 * 66];
	spyre_host_tensor source, target;
	spyre_layout rows, columns, half;
	spyre_devptr a, b, c, d;

	small_values(in, 130 * 66);
	ck_ok(spyre_layout_init(&rows, 2, size, SPYRE_FORMAT_IEEE_FP32));
	ck_ok(spyre_layout_init_strided(&columns, 2, size, stride, SPYRE_FORMAT_IEEE_FP32, swapped,
					2));
	ck_ok(spyre_layout_init(&half, 2, size, SPYRE_FORMAT_IEEE_FP16));
	ck_assert(!spyre_layout_equal(&rows, &columns));
	ck_ok(spyre_host_tensor_dense(&source, in, SPYRE_FORMAT_IEEE_FP32, 2, size));
	ck_ok(spyre_host_tensor_dense(&target, out, SPYRE_FORMAT_IEEE_FP32, 2, size));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&rows), &a));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&columns), &b));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&half), &c));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&rows), &d));
	ck_ok(spyre_copy_h2d(context, a, &rows, &source));
	ck_ok(spyre_copy_d2d(context, b, &columns, a, &rows, 2, size));
	ck_ok(spyre_copy_d2d_async(get_stream(context, 0), c, &half, b, &columns, 2, size));
	ck_ok(spyre_copy_d2d_async(get_stream(context, 0), d, &rows, c, &half, 2, size));
	ck_ok(spyre_copy_d2d(context, a, &rows, d, &rows, 2, size));
	ck_ok(spyre_copy_d2h(context, &target, a, &rows));
	ck_assert_mem_eq(in, out, sizeof(in));
	ck_ok(spyre_copy_d2h(context, &target, b, &columns));
	ck_assert_mem_eq(in, out, sizeof(in));
}
END_TEST

/*
 * Without a change of format all bits are preserved: NaNs with their payloads,
 * strides of all kinds.
 */
START_TEST(raw_bits)
{
	static const spyre_format hosts[] = {
		SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_BFLOAT16, SPYRE_FORMAT_IEEE_FP32,
		SPYRE_FORMAT_IEEE_INT32, SPYRE_FORMAT_SENINT8, SPYRE_FORMAT_SENINT16,
		SPYRE_FORMAT_SEN143_FP8, SPYRE_FORMAT_SEN152_FP8,
	};
	enum { X = 7, Y = 5, Z = 150, N = X * Y * Z };
	const int64_t size[] = { X, Y, Z }, dense[] = { Y * Z, Z, 1 };
	const int32_t reversed[] = { 2, 1, 0 };
	static uint8_t in[N * 4], out[N * 8], expect[N * 4];
	spyre_format from = hosts[_i], bits = spyre_layout_device_format(from);
	size_t bytes = spyre_format_bytes(bits);
	spyre_host_tensor source, target;
	spyre_layout rows, columns;
	spyre_devptr a, b;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 167 >> (i % 3));
	ck_ok(spyre_layout_init(&rows, 3, size, from));
	ck_ok(spyre_layout_init_strided(&columns, 3, size, dense, from, reversed, 3));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&rows), &a));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&columns), &b));
	ck_ok(spyre_host_tensor_dense(&source, in, bits, 3, size));
	ck_ok(spyre_copy_h2d(context, a, &rows, &source));
	ck_ok(spyre_copy_d2d(context, b, &columns, a, &rows, 3, size));
	ck_ok(spyre_host_tensor_dense(&target, out, bits, 3, size));
	target.storage_offset = 11;
	target.stride[0] = 1;
	target.stride[1] = X;
	target.stride[2] = X * Y;
	ck_ok(spyre_copy_d2h(context, &target, b, &columns));
	for (int n = 0; n < N; n++)
		ck_assert_mem_eq(in + n * bytes, out + bytes * (size_t)(11 + n / (Y * Z) +
				 n / Z % Y * X + n % Z * X * Y), bytes);
	/* All rows are the same one. */
	source.stride[0] = source.stride[1] = 0;
	source.storage_offset = Z;
	ck_ok(spyre_copy_h2d(context, a, &rows, &source));
	ck_ok(spyre_host_tensor_dense(&target, expect, bits, 3, size));
	ck_ok(spyre_copy_d2h(context, &target, a, &rows));
	for (int n = 0; n < X * Y; n++)
		ck_assert_mem_eq(expect + n * Z * bytes, in + Z * bytes, Z * bytes);
}
END_TEST

START_TEST(impossible_layouts)
{
	const int64_t size[] = { 4, 64 }, other[] = { 5, 64 };
	spyre_layout floats, ints;
	spyre_devptr a, b;

	ck_ok(spyre_layout_init(&floats, 2, size, SPYRE_FORMAT_IEEE_FP32));
	ck_ok(spyre_layout_init(&ints, 2, size, SPYRE_FORMAT_IEEE_INT64));
	ck_ok(spyre_mem_alloc(context, 1 << 20, &a));
	ck_ok(spyre_mem_alloc(context, 1 << 20, &b));
	ck_status(spyre_copy_d2d(context, a, &floats, b, &ints, 2, size), SPYRE_ERROR_FORMAT);
	ck_mentions("IEEE_FP32");
	ck_status(spyre_copy_d2d(context, a, &floats, b, &floats, 2, other), SPYRE_ERROR_LAYOUT);
	ck_status(spyre_copy_d2d(context, a, NULL, b, &floats, 2, size),
		  SPYRE_ERROR_INVALID_ARGUMENT);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("copy");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, odd_offsets);
	tcase_add_test(tests, random_offsets);
	tcase_add_test(tests, copies_of_no_bytes);
	tcase_add_test(tests, fills);
	tcase_add_test(tests, overlap);
	tcase_add_test(tests, pinned_host);
	tcase_add_test(tests, tiled_round_trip);
	tcase_add_test(tests, between_layouts);
	tcase_add_loop_test(tests, raw_bits, 0, 8);
	tcase_add_test(tests, impossible_layouts);
	return run_suite("runtime_copy", tests);
}
