// SPDX-License-Identifier: MIT
/*
 * The SFU's functions: identical bits on every unit, and the error relative to the
 * exact value. Prints the measurements for docs/numerics.md.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/simd/unit.h"
#include "model_util.h"
#include "suite.h"
#include "tests/order.h"

#define CODES 65536u		/* all inputs of a 16-bit format */
/* Number of fp32 patterns; with SPYRE_NUMERICS=full in the environment 10^7. */
#define RANDOM (1u << 18)
#define RANDOM_FULL 10000000u

typedef long double (*reference_fn)(long double x, const float *k);

static long double ref_exp(long double x, const float *k)
{
	(void)k;
	return expl(x);
}

static long double ref_log(long double x, const float *k)
{
	(void)k;
	return logl(x);
}

static long double ref_sqrt(long double x, const float *k)
{
	(void)k;
	return sqrtl(x);
}

static long double ref_rsqrt(long double x, const float *k)
{
	(void)k;
	return 1 / sqrtl(x);
}

static long double ref_reciprocal(long double x, const float *k)
{
	(void)k;
	return 1 / x;
}

static long double ref_tanh(long double x, const float *k)
{
	(void)k;
	return tanhl(x);
}

static long double ref_sigmoid(long double x, const float *k)
{
	(void)k;
	return 1 / (1 + expl(-x));
}

/* The card returns the limit of silu, gelu and mish at -Inf. */
static long double ref_silu(long double x, const float *k)
{
	(void)k;
	return x == -INFINITY ? -0.0L : x / (1 + expl(-x));
}

static long double ref_gelu(long double x, const float *k)
{
	(void)k;
	return x == -INFINITY ? -0.0L : x * erfcl(-x * sqrtl(0.5L)) / 2;
}

static long double ref_mish(long double x, const float *k)
{
	(void)k;
	if (x > 100)
		return x;
	return x == -INFINITY ? -0.0L : x * tanhl(log1pl(expl(x)));
}

static long double ref_sin(long double x, const float *k)
{
	(void)k;
	return sinl(x);
}

static long double ref_cos(long double x, const float *k)
{
	(void)k;
	return cosl(x);
}

static long double ref_erf(long double x, const float *k)
{
	(void)k;
	return erfl(x);
}

static long double ref_softplus(long double x, const float *k)
{
	return x * k[0] > k[1] ? x : log1pl(expl(x * k[0])) / k[0];
}

static long double ref_identity(long double x, const float *k)
{
	(void)k;
	return x;
}

static long double ref_relu(long double x, const float *k)
{
	(void)k;
	return x > 0 || isnan(x) ? x : 0;
}

static long double ref_leakyrelu(long double x, const float *k)
{
	return x > 0 ? x : x * k[0];
}

static long double ref_neg(long double x, const float *k)
{
	(void)k;
	return -x;
}

static long double ref_abs(long double x, const float *k)
{
	(void)k;
	return fabsl(x);
}

static long double ref_round(long double x, const float *k)
{
	(void)k;
	return rintl(x);
}

static long double ref_trunc(long double x, const float *k)
{
	(void)k;
	return truncl(x);
}

static long double ref_floor(long double x, const float *k)
{
	(void)k;
	return floorl(x);
}

static long double ref_clip(long double x, const float *k)
{
	x = x < k[0] ? k[0] : x;
	return x > k[1] ? k[1] : x;
}

/* Limits: hundredths of an ulp in fp32, codes from the nearest in DL16. */
static const struct function {
	const char *name;
	reference_fn reference;
	uint32_t func;
	float k[2];
	int fp32_limit, dl16_limit;
} functions[] = {
	{ "exp", ref_exp, SPYRE_FUNC_EXP, { 0 }, 100, 1 },
	{ "log", ref_log, SPYRE_FUNC_LOG, { 0 }, 100, 1 },
	{ "sqrt", ref_sqrt, SPYRE_FUNC_SQRT, { 0 }, 50, 1 },
	{ "rsqrt", ref_rsqrt, SPYRE_FUNC_RSQRT, { 0 }, 150, 1 },
	{ "reciprocal", ref_reciprocal, SPYRE_FUNC_RECIPROCAL, { 0 }, 50, 1 },
	{ "tanh", ref_tanh, SPYRE_FUNC_TANH, { 0 }, 200, 1 },
	{ "sigmoid", ref_sigmoid, SPYRE_FUNC_SIGMOID, { 0 }, 100, 1 },
	{ "silu", ref_silu, SPYRE_FUNC_SILU, { 0 }, 100, 1 },
	{ "gelu", ref_gelu, SPYRE_FUNC_GELU, { 0 }, 110, 1 },
	{ "mish", ref_mish, SPYRE_FUNC_MISH, { 0 }, 100, 1 },
	{ "sin", ref_sin, SPYRE_FUNC_SIN, { 0 }, 51, 1 },
	{ "cos", ref_cos, SPYRE_FUNC_COS, { 0 }, 51, 1 },
	{ "erf", ref_erf, SPYRE_FUNC_ERF, { 0 }, 51, 0 },
	{ "softplus", ref_softplus, SPYRE_FUNC_SOFTPLUS, { 1, 20 }, 200, 1 },
	{ "softplus, beta 2", ref_softplus, SPYRE_FUNC_SOFTPLUS, { 2, 20 }, 200, 1 },
	{ "identity", ref_identity, SPYRE_FUNC_IDENTITY, { 0 }, 0, 0 },
	{ "relu", ref_relu, SPYRE_FUNC_RELU, { 0 }, 0, 0 },
	{ "leakyrelu", ref_leakyrelu, SPYRE_FUNC_LEAKYRELU, { 0.01f }, 50, 1 },
	{ "neg", ref_neg, SPYRE_FUNC_NEG, { 0 }, 0, 0 },
	{ "abs", ref_abs, SPYRE_FUNC_ABS, { 0 }, 0, 0 },
	{ "round", ref_round, SPYRE_FUNC_ROUND, { 0 }, 0, 0 },
	{ "trunc", ref_trunc, SPYRE_FUNC_TRUNC, { 0 }, 0, 0 },
	{ "floor", ref_floor, SPYRE_FUNC_FLOOR, { 0 }, 0, 0 },
	{ "clip", ref_clip, SPYRE_FUNC_CLIP, { -1.5f, 6 }, 0, 0 },
	{ "clip, no upper bound", ref_clip, SPYRE_FUNC_CLIP, { -1.5f, NAN }, 0, 0 },
	{ "clip, infinite bounds", ref_clip, SPYRE_FUNC_CLIP, { -INFINITY, INFINITY }, 0, 0 },
};

#define NUM_FUNCTIONS ((int)(sizeof(functions) / sizeof(functions[0])))

static uint32_t float_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

static bool is_full(void)
{
	const char *s = getenv("SPYRE_NUMERICS");

	return s && !strcmp(s, "full");
}

static void *buffer(size_t bytes)
{
	void *p = calloc(1, bytes);

	ck_assert_ptr_nonnull(p);
	return p;
}

/* Computes @n numbers of the host, which device memory holds in its own byte order. */
static void apply(const struct spyre_unit *unit, const struct function *f, void *out,
		  uint32_t out_format, const void *in, uint32_t in_format, uint32_t n)
{
	size_t bytes = spyre_fmt_bytes(in_format);
	uint8_t *device = buffer(n * bytes);
	struct spyre_sfu_run run = {
		.func = f->func,
		.lanes = n,
		.points = 1,
		.imm = { float_bits(f->k[0]), float_bits(f->k[1]) },
		.v[0] = { .p = out, .format = out_format },
		.v[1] = { .p = device, .format = in_format },
	};

	memcpy(device, in, n * bytes);
	order_le(device, n, bytes);
	unit->sfu(&run);
	order_le(out, n, spyre_fmt_bytes(out_format));
	free(device);
}

/* Distance in ulps of fp32 at @want, infinite for a wrong NaN, infinity or sign. */
static double ulps(float got, long double want)
{
	int exponent;

	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : INFINITY;
	if (got == 0 && !signbit(got) != !signbit(want))
		return INFINITY;
	if (isinf(want) || isinf(got)) {
		if (isinf(got) && fabsl(want) >= 0x1.ffffffp+127L && (got > 0) == (want > 0))
			return 0;
		return INFINITY;
	}
	if (want == 0)
		return got == 0 ? 0 : INFINITY;
	frexpl(want, &exponent);
	exponent = exponent < -125 ? -125 : exponent;
	return (double)(fabsl(got - want) / ldexpl(1, exponent - 24));
}

/* The nearest DL16 code, half away from zero. */
static uint16_t dl16_nearest(long double x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	long double magnitude = fabsl(x);
	long fraction;
	int exponent;

	if (isnan(x))
		return 0x7ffe;
	if (magnitude > 0x1p40L)
		return sign | 0x7fff;
	if (magnitude < 0x1p-40L)
		return sign;
	frexpl(magnitude, &exponent);
	fraction = (long)floorl(ldexpl(magnitude, 10 - exponent) + 0.5L);
	/* In 512..1024 units; the higher bits carry into the exponent. */
	fraction += ((long)exponent - 1 + 31 - 1) * 512;
	if (fraction > 0x7ffd)
		fraction = 0x7fff;
	return sign | (fraction < 0 ? 0 : fraction);
}

static int dl16_order(uint16_t code)
{
	return code & 0x8000 ? -(code & 0x7fff) : code;
}

static void same_on_all_units(const struct function *f, const void *want, const void *in,
			      uint32_t format, uint32_t n)
{
	const struct spyre_unit *const *unit = test_units();
	size_t bytes = (size_t)n * (format == SPYRE_FMT_IEEE_FP32 ? 4 : 2);
	uint8_t *got = buffer(bytes);

	for (; *unit; unit++) {
		apply(*unit, f, got, format, in, format, n);
		if (memcmp(got, want, bytes)) {
			size_t i = 0;

			while (got[i] == ((const uint8_t *)want)[i])
				i++;
			ck_abort_msg("%s: %s differs from scalar at element %zu", f->name,
				     spyre_unit_name(*unit), i * n / bytes);
		}
	}
	free(got);
}

START_TEST(test_dl16)
{
	const struct function *f = &functions[_i];
	uint16_t *in = buffer(2 * CODES), *out = buffer(2 * CODES);
	int worst = 0, count = 0;

	for (uint32_t i = 0; i < CODES; i++)
		in[i] = (uint16_t)i;
	apply(&spyre_unit_scalar, f, out, SPYRE_FMT_SEN169_FP16, in, SPYRE_FMT_SEN169_FP16, CODES);
	for (uint32_t i = 0; i < CODES; i++) {
		uint32_t bits = spyre_dl16_to_fp32(in[i]);
		uint16_t want;
		float x;
		int off;

		memcpy(&x, &bits, 4);
		want = dl16_nearest(f->reference(x, f->k));
		off = abs(dl16_order(out[i]) - dl16_order(want));
		if ((out[i] ^ want) & 0x8000)
			off = CODES;
		expect(off <= f->dl16_limit, "%s of %a: code %#x, nearest is %#x", f->name, x,
		       out[i], want);
		worst = off > worst ? off : worst;
		count += off != 0;
	}
	printf("# %-22s DL16: %d of %u results not the nearest code, by %d\n", f->name, count,
	       CODES, worst);
	same_on_all_units(f, out, in, SPYRE_FMT_SEN169_FP16, CODES);
	free(in);
	free(out);
}
END_TEST

/*
 * The fp32 numbers nearest to multiples of pi/2, up to 2^-29.2: a reduction of angles has the
 * fewest correct bits here. Then those at the two limits between its methods.
 */
static const uint32_t near_quarters[] = {
	0x6f79be45, 0xef79be45, 0x50a3e87f, 0x6ff9be45, 0x5123e87f, 0x437ce5f1, 0x7079be45,
	0x6a1976f1, 0x53b146a6, 0x3fc90fdb, 0x40490fdb, 0x49ffffff, 0x4a000000, 0xca000000,
	0x4a000001, 0x7f7fffff, 0xff7fffff,
};

/* Half of the patterns are arbitrary, half lie where functions are not trivial. */
static void random_patterns(uint32_t *in, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t r = rng_next(&seed);
		float x = ldexpf((float)(int32_t)r, -31 + (int)(r >> 40 & 7));

		in[i] = i & 1 ? float_bits(x) : (uint32_t)r;
	}
	in[0] = 0;
	in[1] = 0x80000000;
	in[2] = 0x7f800000;
	in[3] = 0xff800000;
	in[4] = 0x7fc00000;
	in[5] = 1;
	in[6] = 0x80000001;
	in[7] = 0x3f800000;
	memcpy(in + 8, near_quarters, sizeof(near_quarters));
}

START_TEST(test_fp32)
{
	const struct function *f = &functions[_i];
	const uint32_t n = is_full() ? RANDOM_FULL : RANDOM;
	uint32_t *in = buffer(4ul * n);
	float *out = buffer(4ul * n);
	double worst = 0;
	float at = 0;

	random_patterns(in, n, 0x5eed0001 + _i);
	apply(&spyre_unit_scalar, f, out, SPYRE_FMT_IEEE_FP32, in, SPYRE_FMT_IEEE_FP32, n);
	same_on_all_units(f, out, in, SPYRE_FMT_IEEE_FP32, n);
	for (uint32_t i = 0; i < n; i++) {
		double off;
		float x;

		memcpy(&x, &in[i], 4);
		off = ulps(out[i], f->reference(x, f->k));
		expect(isfinite(off), "%s of %a is %a, expected %La", f->name, x, out[i],
		       f->reference(x, f->k));
		if (off > worst) {
			worst = off;
			at = x;
		}
	}
	printf("# %-22s fp32: at most %.2f ulp (at %a) of %u inputs\n", f->name, worst, at, n);
	expect(worst * 100 <= f->fp32_limit, "%s of %a is %.3f ulp off, limit %d / 100", f->name,
	       at, worst, f->fp32_limit);
	free(in);
	free(out);
}
END_TEST

/* Mixed formats, odd numbers of lanes and splats use other paths of the unit. */
START_TEST(test_paths)
{
	const struct function *f = &functions[_i];
	const struct spyre_unit *const *unit = test_units();
	uint16_t in[131], dl16[131];
	float wide[131], want[131], got[131];
	uint64_t seed = 77 + _i;
	uint8_t splat[2];

	rng_fill(&seed, in, sizeof(in), SPYRE_FMT_SEN169_FP16);
	for (uint32_t i = 0; i < 131; i++) {
		uint32_t bits = spyre_dl16_to_fp32(in[i]);

		memcpy(&wide[i], &bits, 4);
	}
	put_le(splat, in[5], 2);
	for (; *unit; unit++) {
		struct spyre_sfu_run run = {
			.func = f->func,
			.lanes = 131,
			.points = 1,
			.imm = { float_bits(f->k[0]), float_bits(f->k[1]) },
			.v[0] = { .p = (uint8_t *)got, .format = SPYRE_FMT_IEEE_FP32 },
			.v[1] = { .p = splat, .format = SPYRE_FMT_SEN169_FP16, .splat = true },
		};

		apply(*unit, f, want, SPYRE_FMT_IEEE_FP32, wide, SPYRE_FMT_IEEE_FP32, 131);
		apply(*unit, f, got, SPYRE_FMT_IEEE_FP32, in, SPYRE_FMT_SEN169_FP16, 131);
		ck_assert_mem_eq(got, want, sizeof(got));
		apply(*unit, f, dl16, SPYRE_FMT_SEN169_FP16, wide, SPYRE_FMT_IEEE_FP32, 131);
		for (uint32_t i = 0; i < 131; i++)
			ck_assert_uint_eq(dl16[i], spyre_fp32_to_dl16(float_bits(want[i])));
		(*unit)->sfu(&run);
		order_le(got, 131, 4);
		for (uint32_t i = 0; i < 131; i++)
			ck_assert_uint_eq(float_bits(got[i]), float_bits(want[5]));
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("model functions");
	TCase *tc = tcase_create("functions");

	tcase_set_timeout(tc, is_full() ? 3600 : 120);
	tcase_add_loop_test(tc, test_dl16, 0, NUM_FUNCTIONS);
	tcase_add_loop_test(tc, test_fp32, 0, NUM_FUNCTIONS);
	tcase_add_loop_test(tc, test_paths, 0, NUM_FUNCTIONS);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{

	test_units_report();
	return suite_run(suite());
}
