// SPDX-License-Identifier: MIT
/*
 * POW against the exact value and the cases that IEEE 754 defines, FMOD and REMAINDER against C,
 * on every unit. Prints the measurements for docs/numerics.md.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/simd/unit.h"
#include "model_reference.h"
#include "model_util.h"
#include "suite.h"

#define PAIRS (1u << 18)
#define PAIRS_FULL 10000000u	/* with SPYRE_NUMERICS=full in the environment */
#define POW_LIMIT 0.51		/* ulp */

static bool is_full(void)
{
	const char *s = getenv("SPYRE_NUMERICS");

	return s && !strcmp(s, "full");
}

static uint32_t pairs(void)
{
	return is_full() ? PAIRS_FULL : PAIRS;
}

static uint32_t float_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return isnan(x) ? 0x7fc00000 : bits;
}

static float from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return x;
}

static float *buffer(uint32_t n)
{
	float *p = calloc(n, sizeof(*p));

	ck_assert_ptr_nonnull(p);
	return p;
}

static void apply(const struct spyre_unit *unit, uint32_t func, float *out, const float *x,
		  const float *y, uint32_t n)
{
	struct spyre_sfu_run run = {
		.func = func,
		.lanes = n,
		.points = 1,
		.v[0] = { .p = (uint8_t *)out, .format = SPYRE_FMT_SCRATCH_FP32 },
		.v[1] = { .p = (uint8_t *)x, .format = SPYRE_FMT_SCRATCH_FP32 },
		.v[2] = { .p = (uint8_t *)y, .format = SPYRE_FMT_SCRATCH_FP32 },
	};

	unit->sfu(&run);
}

static const float special[] = {
	0, 1, 2, 3, 0.5f, 1.5f, 2.5f, 1e-10f, 1e10f, 7, 64, 16777215, 16777216, 16777218, 33554431,
	0x1.fffffep-1f, 0x1.000002p+0f, 1e-30f, 1e30f, FLT_MIN, 0x1p-149f, 0x1.fffffcp-127f,
	FLT_MAX, INFINITY, NAN, 100.25f, 0x1p-10f, 0x1p104f,
};

#define SPECIAL ((uint32_t)(sizeof(special) / sizeof(special[0])))

/* All pairs of special numbers of both signs. */
static uint32_t special_pairs(float *x, float *y)
{
	uint32_t n = 0, i, j;

	for (i = 0; i < 2 * SPECIAL; i++) {
		for (j = 0; j < 2 * SPECIAL; j++, n++) {
			x[n] = i % 2 ? -special[i / 2] : special[i / 2];
			y[n] = j % 2 ? -special[j / 2] : special[j / 2];
		}
	}
	return n;
}

/* Distance in ulps of fp32 at @want, infinite for a wrong NaN, infinity or sign. */
static double ulps(float got, long double want)
{
	int exponent;

	if (float_bits(got) == float_bits((float)want) && (got == 0 || !isfinite(got)))
		return 0;
	if (!isfinite(got) || isnan(want) || !signbit(got) != !signbit(want))
		return INFINITY;
	frexpl(want, &exponent);
	exponent = exponent < -125 ? -125 : exponent;
	return (double)(fabsl(got - want) / ldexpl(1, exponent - 24));
}

START_TEST(test_pow_special)
{
	const struct spyre_unit *unit = test_units()[_i];
	float x[4 * SPECIAL * SPECIAL], y[4 * SPECIAL * SPECIAL], out[4 * SPECIAL * SPECIAL];
	uint32_t n = special_pairs(x, y), i;

	apply(unit, SPYRE_FUNC_POW, out, x, y, n);
	for (i = 0; i < n; i++) {
		long double want = powl(x[i], y[i]);

		expect(ulps(out[i], want) <= POW_LIMIT, "%s: pow(%a, %a) is %a, expected %La",
		       spyre_unit_name(unit), x[i], y[i], out[i], want);
	}
}
END_TEST

/* Bases of all exponents; exponents for which most powers are finite, a quarter of them whole. */
static void random_powers(float *x, float *y, uint32_t n)
{
	uint64_t seed = 0x5eed0100;
	uint32_t i;

	for (i = 0; i < n; i++) {
		float far;

		x[i] = from_bits((uint32_t)rng_next(&seed) & 0x7fffffff);
		if (i % 4 == 1)
			x[i] = 1 + ldexpf((float)(int32_t)rng_next(&seed), -31 - (int)(i % 20));
		far = 151 / fabsf(log2f(x[i]));
		y[i] = ldexpf((float)(int32_t)rng_next(&seed), -31) * (far < 1e30f ? far : 1e30f);
		if (i % 4 == 2)
			y[i] = rintf(y[i]);
		if (i % 8 == 2)
			x[i] = -x[i];
	}
}

START_TEST(test_pow)
{
	const struct spyre_unit *const *unit = test_units();
	const uint32_t n = pairs();
	float *x = buffer(n), *y = buffer(n), *want = buffer(n), *got = buffer(n);
	double worst = 0;
	uint32_t i, at = 0;

	random_powers(x, y, n);
	apply(&spyre_unit_scalar, SPYRE_FUNC_POW, want, x, y, n);
	for (; *unit; unit++) {
		apply(*unit, SPYRE_FUNC_POW, got, x, y, n);
		for (i = 0; i < n; i++)
			expect(!memcmp(&got[i], &want[i], 4), "pow(%a, %a): %s has %a, scalar %a",
			       x[i], y[i], spyre_unit_name(*unit), got[i], want[i]);
	}
	for (i = 0; i < n; i++) {
		double off = ulps(want[i], powl(x[i], y[i]));

		if (off > worst) {
			worst = off;
			at = i;
		}
	}
	printf("# %-22s fp32: at most %.2f ulp (at %a, %a) of %u inputs\n", "pow", worst, x[at],
	       y[at], n);
	expect(worst <= POW_LIMIT, "pow(%a, %a) is %a, %.3f ulp off, limit %.2f", x[at], y[at],
	       want[at], worst, POW_LIMIT);
	free(x);
	free(y);
	free(want);
	free(got);
}
END_TEST

static void check_remainders(const struct spyre_unit *unit, const float *x, const float *y,
			     uint32_t n)
{
	static const uint32_t functions[] = { SPYRE_FUNC_FMOD, SPYRE_FUNC_REMAINDER };
	float *out = buffer(n);
	uint32_t i, f;

	for (f = 0; f < 2; f++) {
		apply(unit, functions[f], out, x, y, n);
		for (i = 0; i < n; i++) {
			float in[2] = { x[i], y[i] };
			float want = reference_apply(functions[f], (uint32_t[4]){ 0 }, 0, in);

			expect(float_bits(out[i]) == float_bits(want),
			       "%s: function %u of %a, %a is %a, expected %a",
			       spyre_unit_name(unit), functions[f], x[i], y[i], out[i], want);
		}
	}
	free(out);
}

START_TEST(test_remainder_special)
{
	float x[4 * SPECIAL * SPECIAL], y[4 * SPECIAL * SPECIAL];
	uint32_t n = special_pairs(x, y);

	check_remainders(test_units()[_i], x, y, n);
}
END_TEST

/* Quotients of all sizes: any two patterns, of similar size, and whole multiples. */
START_TEST(test_remainder)
{
	const uint32_t n = pairs();
	float *x = buffer(n), *y = buffer(n);
	uint64_t seed = 0x5eed0200;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint64_t r = rng_next(&seed);

		x[i] = from_bits((uint32_t)r);
		y[i] = from_bits((uint32_t)(r >> 32));
		if (i % 4 == 1)
			x[i] = y[i] * (float)(1 + (i >> 2) % 1000);
		if (i % 4 == 2)
			y[i] = ldexpf(x[i], -(int)(rng_next(&seed) % 60)) * 0.7f;
		if (i % 16 == 3) {
			x[i] = from_bits(0x7f000000 | (r & 0x7fffff));
			y[i] = from_bits((uint32_t)(r >> 32) & 0x1ff);
		}
	}
	check_remainders(test_units()[_i], x, y, n);
	free(x);
	free(y);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("model powers and remainders");
	TCase *tc = tcase_create("power");
	int units = 0;

	while (test_units()[units])
		units++;
	tcase_set_timeout(tc, is_full() ? 3600 : 120);
	tcase_add_loop_test(tc, test_pow_special, 0, units);
	tcase_add_test(tc, test_pow);
	tcase_add_loop_test(tc, test_remainder_special, 0, units);
	tcase_add_loop_test(tc, test_remainder, 0, units);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	test_units_report();
	return suite_run(suite());
}
