// SPDX-License-Identifier: MIT
/* Codecs against formulas in double, the units' converters against the codecs. */
#include "model_util.h"
#include "suite.h"
#include "tests/order.h"
#include "model/simd/unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static float from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return x;
}

static uint32_t to_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

/* The number of a 16-bit code from its definition, except for the last two codes. */
static double dl16_number(uint32_t code)
{
	uint32_t e = code >> 9 & 63, f = code & 511;
	double v = ldexp(1 + f / 512.0, (int)e - 31);

	if (!e && !f)
		v = 0;
	return code & 0x8000 ? -v : v;
}

static double dl16_value(uint32_t code)
{
	if ((code & 0x7fff) == 0x7fff)
		return code & 0x8000 ? -INFINITY : INFINITY;
	return (code & 0x7fff) == 0x7ffe ? NAN : dl16_number(code);
}

static double ieee_value(uint32_t code, int ebits, int fbits)
{
	int bias = (1 << (ebits - 1)) - 1, top = (1 << ebits) - 1;
	int e = code >> fbits & top, f = code & ((1 << fbits) - 1);
	double v = e ? ldexp(1 + ldexp(f, -fbits), e - bias) : ldexp(f, 1 - bias - fbits);

	if (e == top)
		v = f ? NAN : INFINITY;
	return code & 0x8000 ? -v : v;
}

static bool same(double a, float b)
{
	if (isnan(a))
		return to_bits(b) == 0x7fc00000;
	return a == b && !!signbit(a) == !!signbit(b);
}

START_TEST(test_decode_all)
{
	uint32_t code;

	for (code = 0; code < 65536; code++) {
		expect(same(dl16_value(code), from_bits(spyre_dl16_to_fp32(code))),
			      "dl16 %04x", code);
		expect(same(ieee_value(code, 5, 10), from_bits(spyre_fp16_to_fp32(code))),
			      "fp16 %04x", code);
		expect(same(ieee_value(code, 8, 7), from_bits(spyre_bf16_to_fp32(code))),
			      "bf16 %04x", code);
	}
}
END_TEST

/* Nearest representable by the definition: half away from zero. */
static uint32_t dl16_nearest(float x)
{
	uint32_t sign = signbit(x) ? 0x8000 : 0;
	double mag = fabs(x), scaled;
	int e;

	if (isnan(x))
		return 0x7ffe;
	if (isinf(x))
		return sign | 0x7fff;
	if (mag == 0)
		return sign;
	frexp(mag, &e);
	e--;
	scaled = floor(ldexp(mag, 9 - e) + 0.5);	/* 512 .. 1024 */
	if (scaled == 1024) {
		scaled = 512;
		e++;
	}
	if (e < -31 || (e == -31 && scaled == 512))
		return sign;
	/* The code of 1022 is NaN, so Inf begins there. */
	if (e > 32 || (e == 32 && scaled >= 1022))
		return sign | 0x7fff;
	return sign | (e + 31) << 9 | ((uint32_t)scaled - 512);
}

/* Nearest, ties to even, with subnormals; rint() is to nearest even. */
static uint32_t ieee_nearest(double x, int ebits, int fbits, uint32_t nan)
{
	uint32_t sign = signbit(x) ? 0x8000 : 0;
	int bias = (1 << (ebits - 1)) - 1, top = (1 << ebits) - 1, e;
	double mag = fabs(x);

	if (isnan(x))
		return nan;
	if (isinf(x))
		return sign | top << fbits;
	frexp(mag, &e);
	e = mag == 0 || e - 1 < 1 - bias ? 1 - bias : e - 1;
	/* Adding to the code of the exponent handles carries. */
	mag = rint(ldexp(mag, fbits - e)) + ldexp(e + bias - 1, fbits);
	if (mag >= ldexp(top, fbits))
		return sign | top << fbits;
	return sign | (uint32_t)mag;
}

START_TEST(test_encode_stride)
{
	uint64_t i;

	/* An odd stride visits all exponents and many roundings. */
	for (i = 0; i < 1ull << 32; i += 10007) {
		uint32_t bits = i;
		float x = from_bits(bits);

		expect(spyre_fp32_to_dl16(bits) == dl16_nearest(x), "dl16 %08x", bits);
		expect(spyre_fp32_to_fp16(bits) == ieee_nearest(x, 5, 10, 0x7e00),
			      "fp16 %08x", bits);
		expect(spyre_fp32_to_bf16(bits) == ieee_nearest(x, 8, 7, 0x7fc0),
			      "bf16 %08x", bits);
	}
}
END_TEST

/* Exactly at, just below and just above the midpoint of two codes. */
START_TEST(test_encode_ties)
{
	uint32_t code;
	int d;

	for (code = 0; code < 0x7fff; code++) {
		uint32_t mid[3] = {
			to_bits((dl16_number(code) + dl16_number(code + 1)) / 2),
			to_bits((ieee_value(code, 5, 10) + ieee_value(code + 1, 5, 10)) / 2),
			(code << 16) + 0x8000,
		};

		for (d = -1; d <= 1; d++) {
			float x = from_bits(mid[0] + d);

			expect(spyre_fp32_to_dl16(mid[0] + d) ==
			       dl16_nearest(x), "%08x", code);
			x = from_bits(mid[1] + d);
			expect(spyre_fp32_to_fp16(mid[1] + d) ==
			       ieee_nearest(x, 5, 10, 0x7e00), "%08x", code);
			x = from_bits(mid[2] + d);
			expect(spyre_fp32_to_bf16(mid[2] + d) ==
			       ieee_nearest(x, 8, 7, 0x7fc0), "%08x", code);
		}
	}
}
END_TEST

START_TEST(test_known_values)
{
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(0x1p-10f)), 0x2a00);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(18.09375f)), 35 << 9 | 67);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(8564768768.0f)), 0x7ffd);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(8568962560.0f)), 0x7ffd);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(8568963072.0f)), 0x7fff);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(-8568963072.0f)), 0xffff);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(8573157376.0f)), 0x7fff);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(-0x1p-31f)), 0x8000);
	ck_assert_uint_eq(spyre_fp32_to_dl16(0xff800000), 0xffff);
	ck_assert_uint_eq(spyre_fp32_to_dl16(0x7f800000), 0x7fff);
	ck_assert_uint_eq(spyre_fp32_to_dl16(0xffc00001), 0x7ffe);
	ck_assert_uint_eq(spyre_fp32_to_dl16(to_bits(FLT_MAX)), 0x7fff);
	ck_assert_uint_eq(spyre_dl16_to_fp32(0x7fff), 0x7f800000);
	ck_assert_uint_eq(spyre_dl16_to_fp32(0xffff), 0xff800000);
	ck_assert_uint_eq(spyre_dl16_to_fp32(0x7ffe), 0x7fc00000);
	ck_assert_uint_eq(spyre_dl16_to_fp32(0xfffe), 0x7fc00000);
	ck_assert_uint_eq(spyre_dl16_to_fp32(0x7ffd), to_bits(8564768768.0f));
}
END_TEST

START_TEST(test_fp64)
{
	uint64_t seed = 7;
	int i;

	for (i = 0; i < 2000000; i++) {
		uint64_t bits = rng_next(&seed), back;
		uint32_t want;
		double d;

		/* Half of them lie near the range of fp32, a quarter near its ties. */
		if (i & 1)
			bits = (bits & ~(0x7ffull << 52)) |
			       (uint64_t)(865 + rng_below(&seed, 300)) << 52;
		if ((i & 3) == 3)
			bits = (bits & ~0x1fffffffull) | 0x10000000 | (i >> 2 & 1);
		memcpy(&d, &bits, 8);
		want = isnan(d) ? 0x7fc00000 : to_bits((float)d);
		expect(spyre_fp64_to_fp32(bits) == want, "%a", d);
		d = from_bits((uint32_t)bits);
		memcpy(&back, &d, 8);
		if (isnan(d))
			back = 0x7ff8ull << 48;
		expect(spyre_fp32_to_fp64((uint32_t)bits) == back, "%a", d);
	}
}
END_TEST

/* Converts numbers of the host, like device memory. */
static void run_convert(const struct spyre_unit *unit, uint32_t to, void *dst, uint32_t from,
			void *src, uint32_t lanes)
{
	struct spyre_convert_run run = {
		.dst = dst, .src = src, .rows = 1, .lanes = lanes,
		.dst_format = to, .src_format = from,
	};

	order_le(src, lanes, spyre_fmt_bytes(from));
	unit->convert(&run);
	order_le(src, lanes, spyre_fmt_bytes(from));
	order_le(dst, lanes, spyre_fmt_bytes(to));
}

/* The units' vector converters produce the bits of the reference codecs. */
START_TEST(test_units_decode)
{
	const struct spyre_unit *unit = test_units()[_i];
	uint16_t *codes = malloc(65536 * 2), *half = malloc(65536 * 2);
	uint32_t *got = malloc(65536 * 4);
	uint32_t i;

	for (i = 0; i < 65536; i++)
		codes[i] = i;
	run_convert(unit, SPYRE_FMT_IEEE_FP32, got, SPYRE_FMT_SEN169_FP16, codes, 65536);
	for (i = 0; i < 65536; i++)
		expect(got[i] ==
			       spyre_dl16_to_fp32(i), "%08x", (unsigned int)i);
	run_convert(unit, SPYRE_FMT_IEEE_FP32, got, SPYRE_FMT_IEEE_FP16, codes, 65536);
	for (i = 0; i < 65536; i++)
		expect(got[i] ==
			       spyre_fp16_to_fp32(i), "%08x", (unsigned int)i);
	run_convert(unit, SPYRE_FMT_IEEE_FP32, got, SPYRE_FMT_BFLOAT16, codes, 65536);
	for (i = 0; i < 65536; i++)
		expect(got[i] ==
			       spyre_bf16_to_fp32(i), "%08x", (unsigned int)i);
	run_convert(unit, SPYRE_FMT_SEN169_FP16, half, SPYRE_FMT_IEEE_FP16, codes, 65535);
	for (i = 0; i < 65535; i++)
		expect(half[i] ==
			       spyre_fp32_to_dl16(spyre_fp16_to_fp32(i)), "%08x", (unsigned int)i);
	run_convert(unit, SPYRE_FMT_IEEE_FP16, half, SPYRE_FMT_SEN169_FP16, codes, 65535);
	for (i = 0; i < 65535; i++)
		expect(half[i] ==
			       spyre_fp32_to_fp16(spyre_dl16_to_fp32(i)), "%08x", (unsigned int)i);
	free(codes);
	free(half);
	free(got);
}
END_TEST

/* fp16 through DL16 preserves infinities, NaN, zeros and numbers with nine fraction bits. */
START_TEST(test_units_round_trip)
{
	const struct spyre_unit *unit = test_units()[_i];
	static uint16_t codes[65536], dl16[65536], back[65536];
	uint32_t i;

	for (i = 0; i < 65536; i++)
		codes[i] = i;
	run_convert(unit, SPYRE_FMT_SEN169_FP16, dl16, SPYRE_FMT_IEEE_FP16, codes, 65536);
	run_convert(unit, SPYRE_FMT_IEEE_FP16, back, SPYRE_FMT_SEN169_FP16, dl16, 65536);
	for (i = 0; i < 65536; i++) {
		double x = ieee_value(i, 5, 10);

		if (isnan(x))
			expect(back[i] == 0x7e00, "NaN %04x: %04x", i, back[i]);
		else if (isinf(x) || x == 0 || dl16_number(dl16[i]) == x)
			expect(back[i] == i, "%04x: %04x", i, back[i]);
		expect(isinf(x) || (dl16[i] & 0x7fff) != 0x7fff, "%04x is not infinite", i);
		if (!(i & 1) && (i & 0x7fff) >= 0x400 && isfinite(x))
			expect(dl16_number(dl16[i]) == x, "%04x is representable", i);
	}
}
END_TEST

START_TEST(test_units_encode)
{
	const struct spyre_unit *unit = test_units()[_i];
	uint32_t words[1000];
	uint16_t got[1000];
	uint64_t i;
	int j;

	for (i = 0; i < 1ull << 32; i += 3001 * 1000) {
		for (j = 0; j < 1000; j++)
			words[j] = i + 3001 * j;
		run_convert(unit, SPYRE_FMT_SEN169_FP16, got, SPYRE_FMT_IEEE_FP32, words, 1000);
		for (j = 0; j < 1000; j++)
			expect(got[j] ==
			       spyre_fp32_to_dl16(words[j]), "%08x", (unsigned int)i);
		run_convert(unit, SPYRE_FMT_IEEE_FP16, got, SPYRE_FMT_IEEE_FP32, words, 1000);
		for (j = 0; j < 1000; j++)
			expect(got[j] ==
			       spyre_fp32_to_fp16(words[j]), "%08x", (unsigned int)i);
		run_convert(unit, SPYRE_FMT_BFLOAT16, got, SPYRE_FMT_IEEE_FP32, words, 1000);
		for (j = 0; j < 1000; j++)
			expect(got[j] ==
			       spyre_fp32_to_bf16(words[j]), "%08x", (unsigned int)i);
	}
}
END_TEST

START_TEST(test_sizes_and_pairs)
{
	ck_assert_uint_eq(spyre_fmt_bytes(SPYRE_FMT_INVALID), 0);
	ck_assert_uint_eq(spyre_fmt_bytes(SPYRE_FMT_SENINT4), 0);
	ck_assert_uint_eq(spyre_fmt_bytes(SPYRE_FMT_SEN169_FP16), 2);
	ck_assert_uint_eq(spyre_fmt_bytes(SPYRE_FMT_SENUINT32), 4);
	ck_assert_uint_eq(spyre_fmt_bytes(SPYRE_FMT_FP64), 8);
	ck_assert_uint_eq(spyre_fmt_bytes((enum spyre_fmt)255), 0);
	ck_assert(spyre_fmt_convertible(SPYRE_FMT_IEEE_FP16, SPYRE_FMT_SEN169_FP16));
	ck_assert(spyre_fmt_convertible(SPYRE_FMT_BOOL, SPYRE_FMT_SEN169_FP16));
	ck_assert(spyre_fmt_convertible(SPYRE_FMT_IEEE_INT64, SPYRE_FMT_IEEE_INT32));
	ck_assert(spyre_fmt_convertible(SPYRE_FMT_SEN143_FP8, SPYRE_FMT_SEN143_FP8));
	ck_assert(spyre_fmt_convertible(SPYRE_FMT_IEEE_FP16, SPYRE_FMT_SEN143_FP8));
	ck_assert(spyre_fmt_convertible(SPYRE_FMT_FP64, SPYRE_FMT_SEN152_FP8));
	ck_assert_uint_eq(spyre_fmt_bits(SPYRE_FMT_SENINT4), 4);
	ck_assert_uint_eq(spyre_fmt_bits(SPYRE_FMT_SEN143_FP8), 8);
	ck_assert_uint_eq(spyre_fmt_bits(SPYRE_FMT_SEN153_FP9), 0);
	ck_assert(!spyre_fmt_convertible(SPYRE_FMT_FP64, SPYRE_FMT_FP64));
	ck_assert(!spyre_fmt_convertible(SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_INT32));
	ck_assert(!spyre_fmt_convertible(SPYRE_FMT_SENINT4, SPYRE_FMT_SENINT4));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_format");
	TCase *tc = tcase_create("codecs");
	int units = test_units_report();

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_decode_all);
	tcase_add_test(tc, test_encode_stride);
	tcase_add_test(tc, test_encode_ties);
	tcase_add_test(tc, test_known_values);
	tcase_add_test(tc, test_fp64);
	tcase_add_test(tc, test_sizes_and_pairs);
	tcase_add_loop_test(tc, test_units_decode, 0, units);
	tcase_add_loop_test(tc, test_units_round_trip, 0, units);
	tcase_add_loop_test(tc, test_units_encode, 0, units);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
