// SPDX-License-Identifier: MIT
/* Element conversion, random inputs, loading and saving. */
#include <math.h>
#include <stdio.h>

#include "tools/spyre/random.h"
#include "tools/spyre/tensor.h"
#include "tools/spyre/value.h"

#include "tools_check.h"
#include "tests/order.h"

static char path[128];

static void setup(void)
{
	make_folder();
	snprintf(path, sizeof(path), "%s/x.npy", folder);
}

static void teardown(void)
{
	unlink(path);
	remove_folder();
}

/* Every 16-bit pattern survives the conversion to double and back. */
START_TEST(all_halves)
{
	const spyre_format formats[] = {SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_BFLOAT16};

	for (int f = 0; f < 2; f++) {
		for (uint32_t bits = 0; bits < 65536; bits++) {
			uint16_t in = (uint16_t)bits, out;
			double value = value_get(formats[f], &in);

			ck_assert_int_eq(value_put(formats[f], &out, value), 0);
			if (isnan(value))
				ck_assert(isnan(value_get(formats[f], &out)));
			else
				ck_assert_uint_eq(in, out);
		}
	}
}
END_TEST

/* All codes of the 8-bit floats, and the midpoints between them. */
START_TEST(eighths)
{
	static const struct {
		spyre_format format;
		uint8_t nan, most;
		double largest;
	} formats[] = { { SPYRE_FORMAT_SEN143_FP8, 0x7f, 0x7e, 448 },
			{ SPYRE_FORMAT_SEN152_FP8, 0x80, 0x7f, 57344 } };

	for (int f = 0; f < 2; f++) {
		uint8_t in, out, other;

		for (int code = 0; code < 256; code++) {
			double value;

			in = (uint8_t)code;
			value = value_get(formats[f].format, &in);
			ck_assert_int_eq(value_put(formats[f].format, &out, value), 0);
			ck_assert_int_eq(out, isnan(value) ? formats[f].nan : code);
		}
		for (in = 0; in < formats[f].most; in++) {
			other = in + 1;
			value_put(formats[f].format, &out,
				  (value_get(formats[f].format, &in) +
				   value_get(formats[f].format, &other)) / 2);
			ck_assert_int_eq(out, in % 2 ? other : in);
		}
		ck_assert(value_get(formats[f].format, &formats[f].most) == formats[f].largest);
		value_put(formats[f].format, &out, 1e30);
		ck_assert_int_eq(out, formats[f].most);
		value_put(formats[f].format, &out, -INFINITY);
		ck_assert_int_eq(out, formats[f].most | 0x80);
	}
}
END_TEST

#ifdef __FLT16_MAX__
/* The reference is the compiler's conversion, for values between codes as well. */
START_TEST(halves_round_to_even)
{
	for (uint32_t bits = 0; bits < 0x7c00; bits++) {
		uint16_t a = (uint16_t)bits, b = (uint16_t)(bits + 1), out, want;
		double low = value_get(SPYRE_FORMAT_IEEE_FP16, &a);
		double high = b == 0x7c00 ? 65536 : value_get(SPYRE_FORMAT_IEEE_FP16, &b);

		for (int step = 1; step < 4; step++) {
			double value = low + (high - low) * step / 4;
			_Float16 half = (_Float16)value;

			memcpy(&want, &half, 2);
			ck_assert_int_eq(value_put(SPYRE_FORMAT_IEEE_FP16, &out, -value), 0);
			ck_assert_uint_eq(out, want | 0x8000);
		}
	}
}
END_TEST
#endif

START_TEST(integers)
{
	int8_t small;
	int64_t large;
	uint8_t byte;

	ck_assert_int_eq(value_put(SPYRE_FORMAT_SENINT8, &small, -128), 0);
	ck_assert_int_eq(small, -128);
	ck_assert_int_eq(value_put(SPYRE_FORMAT_SENINT8, &small, 128), -1);
	ck_assert_int_eq(value_put(SPYRE_FORMAT_SENINT8, &small, NAN), -1);
	ck_assert_int_eq(value_put(SPYRE_FORMAT_SENINT8, &small, 2.5), 0);
	ck_assert_int_eq(small, 2);
	ck_assert_int_eq(value_put(SPYRE_FORMAT_IEEE_INT64, &large, -0x1p63), 0);
	ck_assert_int_eq(large, INT64_MIN);
	ck_assert_int_eq(value_put(SPYRE_FORMAT_IEEE_INT64, &large, 0x1p63), -1);
	ck_assert_int_eq(value_put(SPYRE_FORMAT_UINT8, &byte, -1), -1);
	ck_assert_int_eq(value_put(SPYRE_FORMAT_BOOL, &byte, 0.25), 0);
	ck_assert_uint_eq(byte, 1);
}
END_TEST

START_TEST(splitmix64)
{
	/* The published sequence from state 0 begins with these values. */
	const uint64_t want[] = {0xe220a8397b1dcdafull, 0x6e789e6aa1b965f4ull,
				 0x06c45d188009454full};
	struct random_stream stream = {.state = 0};

	for (int i = 0; i < 3; i++)
		ck_assert(random_uniform(&stream) == (want[i] >> 11) * 0x1p-53);
}
END_TEST

START_TEST(normals)
{
	double sum = 0, squares = 0, cubes = 0;
	const int n = 200000;

	for (uint64_t seed = 0; seed < 4; seed++) {
		struct random_stream stream;

		random_init(&stream, seed, seed);
		for (int i = 0; i < n / 4; i++) {
			double x = random_normal(&stream);

			ck_assert(isfinite(x));
			sum += x;
			squares += x * x;
			cubes += x * x * x;
		}
	}
	ck_assert(fabs(sum / n) < 0.01);
	ck_assert(fabs(squares / n - 1) < 0.02);
	ck_assert(fabs(cubes / n) < 0.04);
}
END_TEST

static double first_of(enum tensor_init init, uint64_t seed, uint32_t position)
{
	const int64_t size[1] = {64};
	struct tensor tensor = {.init = init, .position = position};
	int64_t index[1] = {0};
	struct text why;
	double value;

	ck_assert_int_eq(tensor_alloc(&tensor, 1, size, SPYRE_FORMAT_IEEE_FP16, &why), 0);
	tensor_fill(&tensor, seed);
	value = tensor_value(&tensor, index);
	for (int64_t i = 0; i < 64; i++) {
		uint16_t bits = ((uint16_t *)tensor.data)[i];

		/* DL16 has nine fraction bits. */
		ck_assert_uint_eq(bits & 1, 0);
		index[0] = i;
		if (init == TENSOR_POSITIVE)
			ck_assert(tensor_value(&tensor, index) >= 0.5);
		if (init == TENSOR_INTS)
			ck_assert(tensor_value(&tensor, index) >= 0 &&
				  tensor_value(&tensor, index) <= 3 &&
				  fmod(tensor_value(&tensor, index), 1) == 0);
	}
	free(tensor.data);
	return value;
}

START_TEST(fills)
{
	ck_assert(first_of(TENSOR_ONES, 7, 0) == 1);
	ck_assert(first_of(TENSOR_ZERO, 7, 0) == 0);
	ck_assert(first_of(TENSOR_RANDN, 7, 0) == first_of(TENSOR_RANDN, 7, 0));
	ck_assert(first_of(TENSOR_RANDN, 7, 0) != first_of(TENSOR_RANDN, 8, 0));
	ck_assert(first_of(TENSOR_RANDN, 7, 0) != first_of(TENSOR_RANDN, 7, 1));
	first_of(TENSOR_POSITIVE, 1, 0);
	first_of(TENSOR_INTS, 1, 0);
}
END_TEST

START_TEST(conversions)
{
	const float values[4] = {1.0f, -2.5f, 65504.0f, 3.14159274f};
	const int64_t size[2] = {2, 2};
	const int64_t last[2] = {1, 1};
	struct tensor tensor = {0};
	struct text why;

	ck_assert_int_eq(npy_write(path, 'f', 4, 2, size, values, &why), 0);
	ck_assert_int_eq(tensor_load(&tensor, path, SPYRE_FORMAT_INVALID, &why), 0);
	ck_assert_int_eq(tensor.host.format, SPYRE_FORMAT_IEEE_FP32);
	ck_assert_mem_eq(tensor.data, values, sizeof(values));
	ck_assert_int_eq(tensor_load(&tensor, path, SPYRE_FORMAT_IEEE_FP16, &why), 0);
	ck_assert(tensor_value(&tensor, last) == 3.140625);
	ck_assert_int_eq(tensor_load(&tensor, path, SPYRE_FORMAT_SENINT8, &why), -1);
	ck_mentions(why, "element 2 is 65504, which int8 cannot hold");
	free(tensor.data);
	free(tensor.path);
}
END_TEST

START_TEST(bf16_files)
{
	const uint16_t bits[3] = {0x3f80, 0xc000, 0x7f80};
	const int64_t size[1] = {3}, first[1] = {1};
	struct tensor tensor = {0};
	struct text why;
	struct npy npy;

	ck_assert_int_eq(npy_write(path, 'u', 2, 1, size, bits, &why), 0);
	ck_assert_int_eq(tensor_load(&tensor, path, SPYRE_FORMAT_INVALID, &why), -1);
	ck_mentions(why, "@bf16");
	ck_assert_int_eq(tensor_load(&tensor, path, SPYRE_FORMAT_BFLOAT16, &why), 0);
	ck_assert(tensor_value(&tensor, first) == -2);
	ck_assert_int_eq(tensor_save(&tensor, path, &why), 0);
	ck_assert_int_eq(npy_read(path, &npy, &why), 0);
	ck_assert(npy.kind == 'u' && npy.item == 2);
	ck_assert_mem_eq(npy.data, bits, sizeof(bits));
	npy_fini(&npy);
	free(tensor.data);
	free(tensor.path);
}
END_TEST

/* Without conversion the file's order is kept, with conversion it is not. */
START_TEST(fortran_files)
{
	const char header[] = "\x93NUMPY\x01\x00\x38\x00{'descr': '<i2', 'fortran_order': True, "
			      "'shape': (2, 3)}";
	int16_t data[6] = {11, 21, 12, 22, 13, 23};
	const spyre_format formats[] = {SPYRE_FORMAT_SENINT16, SPYRE_FORMAT_IEEE_FP32};
	struct text why;
	FILE *file = fopen(path, "wb");

	ck_assert_uint_eq(sizeof(header) - 1, 10 + 0x38);
	fwrite(header, 1, sizeof(header) - 1, file);
	order_le(data, 6, sizeof(data[0]));
	fwrite(data, 1, sizeof(data), file);
	fclose(file);
	for (int f = 0; f < 2; f++) {
		struct tensor tensor = {0};

		ck_assert_msg(!tensor_load(&tensor, path, formats[f], &why), "%s", why.s);
		ck_assert_int_eq(tensor.host.stride[0], f ? 3 : 1);
		ck_assert_int_eq(tensor.host.stride[1], f ? 1 : 2);
		for (int64_t i = 0; i < 6; i++) {
			const int64_t index[2] = {i / 3, i % 3};

			ck_assert(tensor_value(&tensor, index) == 10 * (i / 3 + 1) + i % 3 + 1);
		}
		free(tensor.data);
		free(tensor.path);
	}
}
END_TEST

/* By FNV-1a over the little-endian bytes, for elements of each width. */
START_TEST(checksums)
{
	static const int8_t bytes[3] = {1, 2, -2};
	static const int16_t words[3] = {1, -2, 0x1234};
	static const float floats[3] = {1.0f, -2.5f, 3.14159274f};
	static const int64_t longs[3] = {1, -2, 0x123456789abcdef0};
	static const struct {
		spyre_format format;
		const void *data;
		uint64_t sum;
	} cases[] = {
		{SPYRE_FORMAT_SENINT8, bytes, 0xd0ab0d18672e183c},
		{SPYRE_FORMAT_SENINT16, words, 0xc3ab974835023805},
		{SPYRE_FORMAT_IEEE_FP32, floats, 0xcc5deb7a269988c3},
		{SPYRE_FORMAT_IEEE_INT64, longs, 0xe3531a3345de83ed},
	};
	const int64_t size[1] = {3};
	struct text why;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tensor tensor = {0};

		ck_assert_int_eq(tensor_alloc(&tensor, 1, size, cases[i].format, &why), 0);
		memcpy(tensor.data, cases[i].data, 3 * spyre_format_bytes(cases[i].format));
		ck_assert_uint_eq(tensor_checksum(&tensor), cases[i].sum);
		free(tensor.data);
	}
}
END_TEST

START_TEST(inputs_first)
{
	struct tensor_list list = {0};
	struct text why;

	ck_assert_ptr_nonnull(tensor_add(&list, true, &why));
	ck_assert_ptr_nonnull(tensor_add(&list, false, &why));
	ck_assert_ptr_nonnull(tensor_add(&list, true, &why));
	ck_assert_ptr_nonnull(tensor_add(&list, false, &why));
	ck_assert_uint_eq(list.count, 4);
	ck_assert_uint_eq(list.inputs, 2);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert(list.at[i].output == (i >= 2));
		ck_assert_uint_eq(list.at[i].position, i % 2);
	}
	while (list.count < TENSOR_MAX)
		ck_assert_ptr_nonnull(tensor_add(&list, false, &why));
	ck_assert_ptr_null(tensor_add(&list, false, &why));
	ck_mentions(why, "256");
	tensor_list_fini(&list);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("tensor");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, all_halves);
	tcase_add_test(tests, eighths);
#ifdef __FLT16_MAX__
	tcase_add_test(tests, halves_round_to_even);
#endif
	tcase_add_test(tests, integers);
	tcase_add_test(tests, splitmix64);
	tcase_add_test(tests, normals);
	tcase_add_test(tests, fills);
	tcase_add_test(tests, conversions);
	tcase_add_test(tests, bf16_files);
	tcase_add_test(tests, fortran_files);
	tcase_add_test(tests, checksums);
	tcase_add_test(tests, inputs_first);
	return run_case("tensor", tests);
}
