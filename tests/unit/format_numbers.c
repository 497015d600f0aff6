// SPDX-License-Identifier: MIT
/*
 * Compares spyre_format_encode() and spyre_format_decode() with the conversions of the
 * DMA engine: all codes of up to 16 bits, and the midpoint of each two neighbours.
 */
#include <float.h>
#include <math.h>

#include "runtime_check.h"
#include "tests/order.h"

#define MAX_NUMBERS (1u << 19)

static spyre_context *context;
static spyre_devptr memory;
static double numbers[MAX_NUMBERS], want[MAX_NUMBERS];
static uint64_t codes[MAX_NUMBERS], got[MAX_NUMBERS];
static int64_t integers[MAX_NUMBERS];

static const spyre_format floats[] = {
	SPYRE_FORMAT_SEN169_FP16, SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_BFLOAT16,
	SPYRE_FORMAT_SEN143_FP8, SPYRE_FORMAT_SEN152_FP8, SPYRE_FORMAT_IEEE_FP32,
};
#define NUM_FLOATS (sizeof(floats) / sizeof(floats[0]))

static const struct integer {
	spyre_format format;
	double min, max;
} kinds[] = {
	{ SPYRE_FORMAT_SENINT8, -128, 127 },
	{ SPYRE_FORMAT_SENINT16, -32768, 32767 },
	{ SPYRE_FORMAT_IEEE_INT32, -0x1p31, 0x1p31 - 1 },
	{ SPYRE_FORMAT_SENUINT32, 0, 0x1p32 - 1 },
	{ SPYRE_FORMAT_IEEE_INT64, -0x1p63, 0x1p63 },
	{ SPYRE_FORMAT_UINT8, 0, 255 },
};
#define NUM_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void setup(void)
{
	context = open_card();
	ck_ok(spyre_mem_alloc(context, sizeof(codes), &memory));
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

/* A tensor of @count elements, whole sticks, in device order. */
static void describe(spyre_format device, spyre_format host, void *data, size_t count,
		     spyre_layout *layout, spyre_host_tensor *tensor)
{
	const int64_t lanes = SPYRE_STICK / (int64_t)spyre_format_bytes(device);
	const int64_t size = (int64_t)count;

	ck_assert_int_eq(size % lanes, 0);
	ck_ok(spyre_layout_init_explicit(layout, 2, (const int64_t[]){ size / lanes, lanes },
					 (const int64_t[]){ lanes, 1 }, device,
					 SPYRE_EA_STANDARD));
	ck_ok(spyre_host_tensor_dense(tensor, data, host, 1, &size));
}

/*
 * Elements of @device at @from, which device memory holds little endian, converted to @host by
 * the DMA engine.
 */
static void engine_decode(spyre_format device, void *from, spyre_format host, void *to,
			  size_t count)
{
	const size_t bytes = spyre_format_bytes(device);
	spyre_host_tensor tensor;
	spyre_layout layout;

	describe(device, host, to, count, &layout, &tensor);
	order_le(from, count, bytes);
	ck_ok(spyre_memcpy_h2d(context, memory, from, count * bytes));
	order_le(from, count, bytes);
	ck_ok(spyre_copy_d2h(context, &tensor, memory, &layout));
}

static void engine_encode(spyre_format device, void *to, double *from, size_t count)
{
	spyre_host_tensor tensor;
	spyre_layout layout;

	describe(device, SPYRE_FORMAT_FP64, from, count, &layout, &tensor);
	ck_ok(spyre_copy_h2d(context, memory, &layout, &tensor));
	ck_ok(spyre_memcpy_d2h(context, to, memory, count * spyre_format_bytes(device)));
	order_le(to, count, spyre_format_bytes(device));
}

/* Fills codes[] with every code of @format, or random ones of wide formats; returns the number. */
static size_t fill_codes(spyre_format format)
{
	const size_t bytes = spyre_format_bytes(format);
	const size_t count = bytes == 1 ? 256 : 65536;

	if (bytes > 2)
		random_bytes(codes, count * bytes, bytes);
	for (size_t i = 0; i < count && bytes <= 2; i++)
		put_le((uint8_t *)codes + i * bytes, i, bytes);
	order_le(codes, count, bytes);
	return count;
}

static void same_bits(spyre_format format, const double *a, const double *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (memcmp(&a[i], &b[i], sizeof(a[i])))
			ck_abort_msg("%s, element %zu: %a instead of %a", spyre_format_name(format),
				     i, a[i], b[i]);
}

START_TEST(decodes_floats)
{
	const spyre_format format = floats[_i];
	const size_t count = fill_codes(format);

	ck_ok(spyre_format_decode(format, codes, count, numbers));
	engine_decode(format, codes, SPYRE_FORMAT_FP64, want, count);
	same_bits(format, numbers, want, count);
}
END_TEST

/* Each number of a format, the middle between it and the next, and both neighbours of that. */
static size_t fill_numbers(spyre_format format)
{
	const size_t count = fill_codes(format);
	size_t n = 0;

	ck_ok(spyre_format_decode(format, codes, count, want));
	for (size_t i = 0; i + 1 < count; i++) {
		double middle = want[i] / 2 + want[i + 1] / 2;

		numbers[n++] = want[i];
		numbers[n++] = middle;
		numbers[n++] = nextafter(middle, INFINITY);
		numbers[n++] = nextafter(middle, -INFINITY);
		/* The next numbers of fp32, in which the first of two roundings ends. */
		numbers[n++] = nextafterf((float)middle, INFINITY);
		numbers[n++] = nextafterf((float)middle, -INFINITY);
	}
	random_bytes(&numbers[n], 65536 * sizeof(numbers[0]), 3);
	n += 65536;
	numbers[n++] = DBL_MAX;
	numbers[n++] = -DBL_MIN;
	numbers[n++] = -0.0;
	numbers[n++] = -INFINITY;
	numbers[n++] = -NAN;
	while (n % SPYRE_STICK)
		numbers[n++] = INFINITY;
	ck_assert_uint_le(n, MAX_NUMBERS);
	return n;
}

START_TEST(encodes_floats)
{
	const spyre_format format = floats[_i];
	const size_t count = fill_numbers(format), bytes = spyre_format_bytes(format);

	ck_ok(spyre_format_encode(format, numbers, count, got));
	engine_encode(format, codes, numbers, count);
	for (size_t i = 0; i < count; i++)
		if (memcmp((uint8_t *)got + i * bytes, (uint8_t *)codes + i * bytes, bytes))
			ck_abort_msg("%s of %a, element %zu", spyre_format_name(format),
				     numbers[i], i);
}
END_TEST

START_TEST(decodes_integers)
{
	static const spyre_format formats[] = {
		SPYRE_FORMAT_SENINT8, SPYRE_FORMAT_SENINT16, SPYRE_FORMAT_IEEE_INT32,
		SPYRE_FORMAT_SENUINT32, SPYRE_FORMAT_IEEE_INT64, SPYRE_FORMAT_BOOL,
	};

	for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++) {
		const size_t count = fill_codes(formats[k]);

		ck_ok(spyre_format_decode(formats[k], codes, count, numbers));
		engine_decode(formats[k], codes, SPYRE_FORMAT_IEEE_INT64, integers, count);
		for (size_t i = 0; i < count; i++)
			want[i] = (double)integers[i];
		/* The engine copies equal formats; a bool of any other byte than 0 is true. */
		for (size_t i = 0; i < count && formats[k] == SPYRE_FORMAT_BOOL; i++)
			want[i] = i != 0;
		same_bits(formats[k], numbers, want, count);
	}
	for (size_t i = 0; i < 256; i++)
		((uint8_t *)codes)[i] = (uint8_t)i;
	ck_ok(spyre_format_decode(SPYRE_FORMAT_UINT8, codes, 256, numbers));
	for (size_t i = 0; i < 256; i++)
		ck_assert(numbers[i] == (double)i);
}
END_TEST

static double encoded(spyre_format format, double number)
{
	uint64_t code[2] = { 0 };
	double back;

	/* An odd address. */
	ck_ok(spyre_format_encode(format, &number, 1, (uint8_t *)code + 1));
	ck_ok(spyre_format_decode(format, (uint8_t *)code + 1, 1, &back));
	return back;
}

/* Towards zero and saturating, as in a copy to the host, but without fp32 in between. */
START_TEST(encodes_integers)
{
	for (size_t k = 0; k < NUM_KINDS; k++) {
		const spyre_format format = kinds[k].format;
		const double min = kinds[k].min, max = kinds[k].max;

		ck_assert(encoded(format, max) == max);
		ck_assert(encoded(format, max * 2) == max);
		ck_assert(encoded(format, INFINITY) == max);
		ck_assert(encoded(format, min) == min);
		ck_assert(encoded(format, min * 2 - 1) == min);
		ck_assert(encoded(format, -INFINITY) == min);
		ck_assert(encoded(format, NAN) == 0);
		ck_assert(encoded(format, 99.9999) == 99);
		ck_assert(encoded(format, -0.9999) == 0);
		ck_assert(encoded(format, -99.9999) == (min < 0 ? -99 : 0));
		ck_assert(max < 256 || encoded(format, max - 1.5) == trunc(max - 1.5));
	}
	ck_assert(encoded(SPYRE_FORMAT_IEEE_INT32, 16777217) == 16777217);
	ck_assert(encoded(SPYRE_FORMAT_SENUINT32, 4294967294.5) == 4294967294.0);
	ck_assert(encoded(SPYRE_FORMAT_IEEE_INT64, -9007199254740991) == -9007199254740991);
	ck_assert(encoded(SPYRE_FORMAT_BOOL, 0.25) == 1);
	ck_assert(encoded(SPYRE_FORMAT_BOOL, NAN) == 1);
	ck_assert(encoded(SPYRE_FORMAT_BOOL, -0.0) == 0);
	ck_assert(encoded(SPYRE_FORMAT_FP64, -1e300) == -1e300);
}
END_TEST

/* Two elements per byte, the first in the low half. */
START_TEST(halves)
{
	uint8_t all[256], back[257];

	for (int i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	ck_ok(spyre_format_decode(SPYRE_FORMAT_SENINT4, all, 512, numbers));
	for (int i = 0; i < 256; i++) {
		ck_assert(numbers[2 * i] == (i & 15) - ((i & 8) << 1));
		ck_assert(numbers[2 * i + 1] == (i >> 4) - ((i >> 4 & 8) << 1));
	}
	memset(back, 0x5a, sizeof(back));
	ck_ok(spyre_format_encode(SPYRE_FORMAT_SENINT4, numbers, 512, back));
	ck_assert_mem_eq(back, all, sizeof(all));
	ck_assert_uint_eq(back[256], 0x5a);
	/* The second half of an odd last byte is 0. */
	memset(back, 0x5a, sizeof(back));
	ck_ok(spyre_format_encode(SPYRE_FORMAT_SENINT4, (const double[]){ -1, 9, -9 }, 3, back));
	ck_assert_uint_eq(back[0], 0x7f);
	ck_assert_uint_eq(back[1], 0x08);
	ck_assert_uint_eq(back[2], 0x5a);
}
END_TEST

START_TEST(known)
{
	const double some[] = { 1, -0.0, INFINITY, NAN, 0.1, 8568963072.0 };
	const uint16_t dl16[] = { 0x3e00, 0x8000, 0x7fff, 0x7ffe, 0x3733, 0x7fff };
	uint16_t code[6];

	ck_ok(spyre_format_encode(SPYRE_FORMAT_SEN169_FP16, some, 6, code));
	for (int i = 0; i < 6; i++)
		ck_assert_msg(code[i] == dl16[i], "%a is 0x%04x", some[i], code[i]);
}
END_TEST

START_TEST(refused)
{
	static const spyre_format unknown[] = {
		SPYRE_FORMAT_SEN153_FP9, SPYRE_FORMAT_SEN18F_FP24, SPYRE_FORMAT_SENINT2,
		SPYRE_FORMAT_SENUINT2, SPYRE_FORMAT_SENINT24,
	};
	double number = 1;
	uint64_t code = 5;

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		ck_status(spyre_format_encode(unknown[i], &number, 1, &code), SPYRE_ERROR_FORMAT);
		ck_mentions(spyre_format_name(unknown[i]));
		ck_status(spyre_format_decode(unknown[i], &code, 1, &number), SPYRE_ERROR_FORMAT);
		ck_mentions(spyre_format_name(unknown[i]));
	}
	ck_status(spyre_format_encode((spyre_format)77, &number, 1, &code), SPYRE_ERROR_FORMAT);
	ck_mentions("77");
	ck_status(spyre_format_decode(SPYRE_FORMAT_INVALID, &code, 1, &number),
		  SPYRE_ERROR_FORMAT);
	ck_status(spyre_format_encode(SPYRE_FORMAT_FP64, NULL, 1, &code),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("numbers is NULL");
	ck_status(spyre_format_decode(SPYRE_FORMAT_FP64, NULL, 1, &number),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("elements is NULL");
	ck_ok(spyre_format_encode(SPYRE_FORMAT_FP64, NULL, 0, NULL));
	ck_ok(spyre_format_decode(SPYRE_FORMAT_FP64, NULL, 0, NULL));
	ck_assert(number == 1 && code == 5);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("numbers");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, decodes_floats, 0, NUM_FLOATS);
	tcase_add_loop_test(tests, encodes_floats, 0, NUM_FLOATS);
	tcase_add_test(tests, decodes_integers);
	tcase_add_test(tests, encodes_integers);
	tcase_add_test(tests, halves);
	tcase_add_test(tests, known);
	tcase_add_test(tests, refused);
	return run_suite("format_numbers", tests);
}
