// SPDX-License-Identifier: MIT
/*
 * Codecs of every format against their definition: a list of numbers and a rule for
 * the values between two of them. The reference codecs and each unit must follow
 * it, over fp32 inputs at a stride, or over all 2^32 of them with
 * SPYRE_NUMERICS=full in the environment (scripts/numerics).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/simd/unit.h"
#include "model_reference.h"
#include "model_util.h"
#include "suite.h"
#include "tests/order.h"

#define BLOCK 4096u
#define INF 0x7f800000u
#define STRIDE 251u		/* of a partial run */

/* Largest magnitude with a code, Inf included; bits of the exponent and fraction. */
static const struct format {
	const char *name;
	uint32_t format;
	int ebits, fbits, bias;
	uint32_t top, nan;
	bool away;		/* ties round away from zero; otherwise to even */
	bool minus_zero;
} floats[] = {
	{ "DL16", SPYRE_FMT_SEN169_FP16, 6, 9, 31, 0x7fff, 0x7ffe, true, true },
	{ "fp16", SPYRE_FMT_IEEE_FP16, 5, 10, 15, 0x7c00, 0x7e00, false, true },
	{ "bf16", SPYRE_FMT_BFLOAT16, 8, 7, 127, 0x7f80, 0x7fc0, false, true },
	{ "SEN143_FP8", SPYRE_FMT_SEN143_FP8, 4, 3, 7, 0x7e, 0x7f, false, true },
	{ "SEN152_FP8", SPYRE_FMT_SEN152_FP8, 5, 2, 16, 0x7f, 0x80, false, false },
};

static const struct integer {
	const char *name;
	uint32_t format;
	double min, max;
} integers[] = {
	{ "SENINT4", SPYRE_FMT_SENINT4, -8, 7 },
	{ "SENINT8", SPYRE_FMT_SENINT8, -128, 127 },
	{ "SENINT16", SPYRE_FMT_SENINT16, -32768, 32767 },
	{ "IEEE_INT32", SPYRE_FMT_IEEE_INT32, -0x1p31, 0x1p31 - 1 },
	{ "SENUINT32", SPYRE_FMT_SENUINT32, 0, 0x1p32 - 1 },
};

static bool is_full(void)
{
	const char *s = getenv("SPYRE_NUMERICS");

	return s && !strcmp(s, "full");
}

static float from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return x;
}

/*
 * The number of a code without its sign. DL16 has no subnormals: its code 0 has the
 * place of 2^-31, and its Inf 0x7fff the place of the next number.
 */
static double magnitude(const struct format *f, uint32_t code)
{
	int e = code >> f->fbits, fraction = code & ((1 << f->fbits) - 1);
	double one = ldexp(1, -f->fbits);

	if (e || f->format == SPYRE_FMT_SEN169_FP16)
		return ldexp(1 + fraction * one, e - f->bias);
	return ldexp(fraction * one, 1 - f->bias);
}

/* Returns the code of a magnitude that does not decrease between calls; advances *at. */
static uint32_t nearest(const struct format *f, double x, uint32_t *at, double *middle)
{
	while (*at < f->top) {
		if (*middle < 0)
			*middle = (magnitude(f, *at) + magnitude(f, *at + 1)) / 2;
		if (x < *middle || (x == *middle && !f->away && !(*at & 1)))
			break;
		*at += *at + 1 == f->nan ? 2 : 1;
		*middle = -1;
	}
	return *at;
}

static uint32_t reference_encode(uint32_t format, uint32_t bits)
{
	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		return spyre_fp32_to_dl16(bits);
	case SPYRE_FMT_IEEE_FP16:
		return spyre_fp32_to_fp16(bits);
	case SPYRE_FMT_BFLOAT16:
		return spyre_fp32_to_bf16(bits);
	case SPYRE_FMT_SEN143_FP8:
		return spyre_fp32_to_fp8_143(bits);
	case SPYRE_FMT_SEN152_FP8:
		return spyre_fp32_to_fp8_152(bits);
	default:
		return (uint32_t)spyre_fp32_to_int(format, bits);
	}
}

/* Packs codes like an operand. */
static void pack(uint32_t format, uint8_t *p, const uint32_t *code, uint32_t n)
{
	uint32_t i;

	switch (spyre_fmt_bits(format)) {
	case 4:
		for (i = 0; i < n; i += 2)
			p[i / 2] = (code[i] & 15) | (code[i + 1] & 15) << 4;
		break;
	case 8:
		for (i = 0; i < n; i++)
			p[i] = code[i];
		break;
	case 16:
		for (i = 0; i < n; i++)
			put_le(p + 2 * i, code[i], 2);
		break;
	default:
		for (i = 0; i < n; i++)
			put_le(p + 4 * i, code[i], 4);
	}
}

/* Converts a block of inputs with all units, which must store @want. */
static void check_units(uint32_t format, const uint32_t *in, const uint8_t *want)
{
	static uint8_t got[BLOCK * 4];
	const struct spyre_unit *const *unit;

	for (unit = test_units(); *unit; unit++) {
		struct spyre_convert_run run = {
			.dst = got, .src = (const uint8_t *)in, .rows = 1, .lanes = BLOCK,
			.dst_format = format, .src_format = SPYRE_FMT_SCRATCH_FP32,
		};

		(*unit)->convert(&run);
		expect(!memcmp(got, want, BLOCK * spyre_fmt_bits(format) / 8),
		       "%s: format %u: a code of the block at %08x is wrong",
		       spyre_unit_name(*unit), format, in[0]);
	}
}

/* All inputs of one sign, in ascending magnitude, then the NaNs. */
static uint64_t sweep_float(const struct format *f, uint32_t sign, uint32_t stride)
{
	static uint32_t in[BLOCK], codes[BLOCK];
	static _Alignas(4) uint8_t want[BLOCK * 4];
	uint32_t at = 0, i;
	double middle = -1;
	uint64_t mag = 0, count = 0;

	while (mag < 0x80000000) {
		for (i = 0; i < BLOCK; i++, mag += stride) {
			uint32_t m = mag < 0x80000000 ? mag : 0x7fffffff, code = f->nan;

			if (m <= INF) {
				code = nearest(f, from_bits(m), &at, &middle);
				if (sign && (code || f->minus_zero))
					code |= 1u << (f->ebits + f->fbits);
			}
			in[i] = m | sign;
			expect(reference_encode(f->format, in[i]) == code,
			       "%s of %08x is %x, expected %x", f->name, in[i],
			       reference_encode(f->format, in[i]), code);
			codes[i] = code;
		}
		pack(f->format, want, codes, BLOCK);
		check_units(f->format, in, want);
		count += BLOCK;
	}
	return count;
}

START_TEST(test_encode_floats)
{
	const struct format *f = &floats[_i];
	uint32_t stride = is_full() ? 1 : STRIDE;
	uint64_t count = sweep_float(f, 0, stride) + sweep_float(f, 0x80000000, stride);

	printf("# %-10s encode: %llu fp32 inputs, all as defined\n", f->name,
	       (unsigned long long)count);
}
END_TEST

/* The definition uses rint(), which rounds to nearest, ties to even. */
START_TEST(test_encode_integers)
{
	const struct integer *f = &integers[_i];
	static uint32_t in[BLOCK], codes[BLOCK];
	static _Alignas(4) uint8_t want[BLOCK * 4];
	uint32_t stride = is_full() ? 1 : STRIDE, i;
	uint64_t bits = 0, count = 0;

	for (; bits < 1ull << 32; count += BLOCK) {
		for (i = 0; i < BLOCK; i++, bits += stride) {
			double x, r;

			in[i] = bits;
			x = from_bits(in[i]);
			r = isnan(x) ? 0 : rint(x);
			r = r < f->min ? f->min : r > f->max ? f->max : r;
			expect(reference_encode(f->format, in[i]) == (uint32_t)(int64_t)r,
			       "%s of %08x is %x", f->name, in[i],
			       reference_encode(f->format, in[i]));
			codes[i] = (uint32_t)(int64_t)r;
		}
		pack(f->format, want, codes, BLOCK);
		check_units(f->format, in, want);
	}
	printf("# %-10s encode: %llu fp32 inputs, all as defined\n", f->name,
	       (unsigned long long)count);
}
END_TEST

/* The number of a code by the definition; NaN for codes without one. */
static double value(const struct format *f, uint32_t code)
{
	uint32_t sign = 1u << (f->ebits + f->fbits), mag = code & (sign - 1);
	double x = magnitude(f, mag);

	if (f->format == SPYRE_FMT_SEN169_FP16)
		x = mag == f->nan ? (double)NAN : mag == f->top ? (double)INFINITY : mag ? x : 0;
	else if (f->format == SPYRE_FMT_SEN152_FP8)
		x = code == f->nan ? (double)NAN : x;
	else if (f->format == SPYRE_FMT_SEN143_FP8)
		x = mag > f->top ? (double)NAN : x;
	else
		x = mag > f->top ? (double)NAN : mag == f->top ? (double)INFINITY : x;
	return code & sign ? -x : x;
}

static bool same(double want, float got)
{
	uint32_t bits;

	memcpy(&bits, &got, 4);
	if (isnan(want))
		return bits == 0x7fc00000;
	return want == got && !signbit(want) == !signbit(got);
}

static void check_decode(const char *name, uint32_t format, const void *codes, uint32_t n,
			 const double *want)
{
	const struct spyre_unit *const *unit;
	static float got[65536];
	uint32_t i;

	for (i = 0; i < n; i++)
		expect(same(want[i], reference_load(format, codes, i)), "%s %x is %a, not %a",
		       name, i, reference_load(format, codes, i), want[i]);
	for (unit = test_units(); *unit; unit++) {
		struct spyre_convert_run run = {
			.dst = (uint8_t *)got, .src = codes, .rows = 1, .lanes = n,
			.dst_format = SPYRE_FMT_SCRATCH_FP32, .src_format = format,
		};

		(*unit)->convert(&run);
		for (i = 0; i < n; i++)
			expect(same(want[i], got[i]), "%s: %s %x is %a, not %a",
			       spyre_unit_name(*unit), name, i, got[i], want[i]);
	}
	printf("# %-10s decode: %u codes, all as defined\n", name, n);
}

START_TEST(test_decode_floats)
{
	const struct format *f = &floats[_i];
	uint32_t n = 2u << (f->ebits + f->fbits), code;
	static _Alignas(4) uint8_t codes[65536 * 2];
	static uint32_t all[65536];
	static double want[65536];

	for (code = 0; code < n; code++) {
		all[code] = code;
		want[code] = value(f, code);
	}
	pack(f->format, codes, all, n);
	check_decode(f->name, f->format, codes, n, want);
}
END_TEST

/* 32-bit integers: each power of two, its neighbours, ties at 24 bits, and random ones. */
static uint32_t some_integer(uint32_t i, uint64_t *seed)
{
	if (i < 32 * 64)
		return (1u << i / 64) - 32 + i % 64;
	if (i < 32 * 64 * 2)
		return (uint32_t)(rng_next(seed) >> 40) << (i & 7) |
		       1u << ((i & 7) ? (i & 7) - 1 : 0);
	return (uint32_t)(rng_next(seed) >> 32) >> (i & 15);
}

START_TEST(test_decode_integers)
{
	const struct integer *f = &integers[_i];
	uint32_t bits = spyre_fmt_bits(f->format);
	uint32_t n = bits < 16 ? 1u << bits : 65536, i;
	static _Alignas(4) uint8_t codes[65536 * 4];
	static uint32_t all[65536];
	static double want[65536];
	uint64_t seed = 11;

	for (i = 0; i < n; i++) {
		uint32_t code = bits == 32 ? some_integer(i, &seed) : i;
		int64_t x = f->min < 0 ? (int64_t)((uint64_t)code << (64 - bits)) >> (64 - bits) :
				       (int64_t)code;

		all[i] = code;
		want[i] = (double)(float)x;
	}
	pack(f->format, codes, all, n);
	check_decode(f->name, f->format, codes, n, want);
}
END_TEST

/* Each half is a separate case: scripts/numerics runs them in parallel. */
static void add_case(Suite *suite, const char *name, const TTest *decode, const TTest *encode)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, is_full() ? 7200 : 120);
	tcase_add_loop_test(tc, decode, 0, 5);
	tcase_add_loop_test(tc, encode, 0, 5);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	Suite *suite = suite_create("model_codecs");

	test_units_report();
	add_case(suite, "floats", test_decode_floats, test_encode_floats);
	add_case(suite, "integers", test_decode_integers, test_encode_integers);
	return suite_run(suite);
}
