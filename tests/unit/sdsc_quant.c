// SPDX-License-Identifier: MIT
/*
 * Quantisation, conversions and restickify in every format and pack, bit by bit
 * against one element at a time; and unsupported combinations.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sdsc_bundle.h"
#include "suite.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct conversion {
	const char *op, *dims, *x, *scale, *out;
	float size;			/* of the input's numbers */
	const char *constant;
	float factor;
};

#define X16 "SEN169_FP16 [in 64] mb in"
#define X32 "IEEE_FP32 [in 32] mb in"
#define TOKEN16 "SEN169_FP16 [in 64] mb in="
#define TOKEN32 "IEEE_FP32 [in 32] mb in="
#define CHANNEL16 "SEN169_FP16 [in 64] mb- in"

static const struct conversion conversions[] = {
	/* plain sticks of 128 */
	{ "qfp8ch", "mb 6/2, in 256", X16, NULL, "SEN143_FP8 [in 128] mb in", 600, NULL, 0 },
	{ "qfp8ch", "mb 6, in 384/3", X16, TOKEN16, "SEN143_FP8 [in 128] mb in", 3, NULL, 0 },
	{ "qfp8ch", "mb 3, in 256", X32, CHANNEL16, "SEN152_FP8 [in 128] mb in", 3, NULL, 0 },
	{ "qfp8ch", "mb 3, in 128", X16, NULL, "SEN143_FP8 [in 8, in 16] in mb", 3,
	  "mulConst", 0.3f },
	{ "csqint8ch", "mb 6/2, in 256", X16, NULL, "SENINT8 [in 128] mb in", 200, NULL, 0 },
	{ "csqint8ch", "mb 6, in 256/2", X16, TOKEN32, "SENINT8 [in 128] mb in", 100, NULL, 0 },
	{ "csqint8ch", "mb 5, in 128", X32, CHANNEL16, "SENINT8 [in 128] mb in", 100,
	  "scaling_factor", 1.7f },
	/* pairs of rows in groups of eight */
	{ "qfp8mb", "mb 6, in 128/2", X16, NULL, "SEN143_FP8 [in 8, mb 2, in 8] mb in", 3, NULL, 0 },
	{ "qfp8mb", "mb 8/2, in 64", X32, TOKEN32, "SEN143_FP8 [in 8, mb 2, in 8] mb in", 3,
	  NULL, 0 },
	{ "qfp8mb", "mb 5, in 128", X16, TOKEN16, "SEN152_FP8 [in 8, mb 2, in 8] in mb", 3,
	  "mulConst", 2 },
	{ "csqint8mb", "mb 6, in 128/2", X16, NULL, "SENINT8 [in 8, mb 2, in 8] mb in", 200,
	  NULL, 0 },
	{ "csqint8mb", "mb 3, in 192", X32, CHANNEL16, "SENINT8 [in 8, mb 2, in 8] mb in", 100,
	  NULL, 0 },
	{ "csqint8mb", "mb 1, in 64", X16, TOKEN16, "SENINT8 [in 8, mb 2, in 8] mb in", 100,
	  NULL, 0 },
	{ "csqint4", "mb 6, in 256/2", X16, NULL, "SENINT4 [in 16, mb 2, in 8] mb in", 10, NULL, 0 },
	{ "csqint4", "mb 8/4, in 128", X32, TOKEN16, "SENINT4 [in 16, mb 2, in 8] mb in", 10,
	  NULL, 0 },
	{ "csqint4", "mb 3, in 256", X16, CHANNEL16, "SENINT4 [in 16, mb 2, in 8] in mb", 10,
	  "mulConst", 0.5f },
	/* rows element by element */
	{ "qfp8wt", "mb 6, in 128/2", X16, NULL, "SEN143_FP8 [mb 2, in 64] mb in", 3, NULL, 0 },
	{ "qfp8wt", "mb 128/2, in 192", X32, TOKEN16, "SEN143_FP8 [mb 2, in 64] mb in", 3, NULL, 0 },
	{ "qfp8wt", "mb 64, in 64", X16, CHANNEL16, "SEN152_FP8 [mb 2, in 64] in mb", 3,
	  "mulConst", 0.7f },
	{ "csqint8wt", "mb 6, in 128/2", X16, NULL, "SENINT8 [mb 2, in 64] mb in", 200, NULL, 0 },
	{ "csqint8wt", "mb 16/4, in 192", X32, TOKEN32, "SENINT8 [mb 2, in 64] mb in", 100, NULL, 0 },
	{ "csqint8wt", "mb 1024, in 512", X16, CHANNEL16, "SENINT8 [mb 2, in 64] mb in", 100,
	  NULL, 0 },
	{ "csqint4wt", "mb 12, in 128/2", X16, NULL, "SENINT4 [mb 4, in 64] mb in", 10, NULL, 0 },
	{ "csqint4wt", "mb 16/2, in 192", X32, CHANNEL16, "SENINT4 [mb 4, in 64] mb in", 10, NULL, 0 },
	{ "csqint4wt", "x 2/2, mb 8, in 64", "SEN169_FP16 [in 64] mb in x",
	  "SEN169_FP16 [mb 64] mb in- x", "SENINT4 [mb 4, in 64] mb in x", 10, "mulConst", 2 },
	/* conversions */
	{ "fp8todl16", "mb 6/2, in 256", "SEN143_FP8 [in 128] mb in", NULL, X16, 300, NULL, 0 },
	{ "fp8todl16", "mb 4, in 128", "SEN152_FP8 [in 8, mb 2, in 8] mb in", NULL, X16, 9, NULL, 0 },
	{ "fp8todl16", "mb 4/2, in 64", "SEN143_FP8 [mb 2, in 64] mb in", NULL, X32, 9, NULL, 0 },
	{ "dl16tofp32", "mb 6/3, in 128", X16, NULL, X32, 9, NULL, 0 },
	{ "dl16tofp32", "mb 3, in 128/2", "BFLOAT16 [in 64] in mb", NULL, X32, 9, NULL, 0 },
	{ "dl16tofp32", "mb 3, in 96", X16, NULL, X32, 9, NULL, 0 },
	{ "fp32todl16", "mb 6/3, in 128", X32, NULL, X16, 9, NULL, 0 },
	{ "fp32todl16", "mb 6, in 128/2", X32, NULL, "BFLOAT16 [in 64] mb in", 9, NULL, 0 },
	{ "fp32todl16", "mb 5, in 32", X32, NULL, "IEEE_FP16 [in 64] mb in", 9, NULL, 0 },
	{ "int32tofp32", "mb 6/3, in 64", "IEEE_INT32 [in 32] mb in", NULL, X32, 2e9f, NULL, 0 },
	{ "int32tofp32", "mb 2, in 96/3", "IEEE_INT32 [in 32] in mb", NULL, X32, 2e9f, NULL, 0 },
	{ "int32tofp32", "mb 3, in 32", "IEEE_INT32 [in 32] mb in=", NULL, X32, 2e9f, NULL, 0 },
	{ "fp32toint32", "mb 6/3, in 64", X32, NULL, "IEEE_INT32 [in 32] mb in", 5, NULL, 0 },
	{ "fp32toint32", "mb 2, in 96/3", X32, NULL, "IEEE_INT32 [in 32] in mb", 4e9f, NULL, 0 },
	{ "fp32toint32", "mb 3, in 32", "IEEE_FP32 [in 32] mb- in", NULL,
	  "IEEE_INT32 [in 32] mb in", 2000, NULL, 0 },
	{ "identity", "mb 6/2, in 128", X16, NULL, "BFLOAT16 [in 64] mb in", 9, NULL, 0 },
	{ "identity", "mb 6, in 128/2", "IEEE_FP16 [in 64] mb in", NULL, X32, 9, NULL, 0 },
	{ "identity", "mb 6, in 64", "IEEE_INT32 [in 32] mb in", NULL,
	  "IEEE_INT32 [in 32] in mb", 2e9f, NULL, 0 },
	{ "identity", "mb 6, in 64", "IEEE_INT32 [in 32] mb in=", NULL,
	  "IEEE_INT32 [in 32] mb in", 2e9f, NULL, 0 },
	{ "identity", "mb 3, in 128", "SENINT8 [in 128] mb in", NULL,
	  "SENINT8 [in 8, mb 2, in 8] mb in", 100, NULL, 0 },
	{ "identity", "mb 4, in 256", "SENINT4 [in 256] mb in", NULL,
	  "SENINT4 [in 16, mb 2, in 8] mb in", 10, NULL, 0 },
	{ "identity", "mb 4, in 128", "SENINT8 [in 128] mb in", NULL,
	  "SENINT8 [mb 2, in 64] mb in", 100, NULL, 0 },
	{ "identity", "mb 66, in 64", X16, NULL, "SEN169_FP16 [mb 64] in mb", 9, NULL, 0 },
	{ "fp32toint32", "mb 64/2, in 96", X32, NULL, "IEEE_INT32 [mb 32] in mb", 9, NULL, 0 },
	{ "identity", "mb 40, in 64", "SEN169_FP16 [in 64] mb in=", NULL,
	  "SEN169_FP16 [mb 64] in mb", 9, NULL, 0 },
	/* other sticks: whole tiles, parts of tiles, widths, more loops than four */
	{ "ReStickifyOpHBM", "mb 128/2, in 128", X16, NULL, "SEN169_FP16 [mb 64] in mb", 9, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 256/2, in 128", "SENINT8 [in 128] mb in", NULL,
	  "SENINT8 [mb 128] in mb", 99, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 64, in 96/3", X32, NULL, "IEEE_FP32 [mb 32] in mb", 9, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 40, in 100", X16, NULL, "SEN169_FP16 [mb 64] in mb", 9, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 200, in 130", "SENINT8 [in 128] mb in", NULL,
	  "SENINT8 [mb 128] in mb", 99, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 33, in 65", "IEEE_INT32 [in 32] mb in", NULL,
	  "IEEE_INT32 [mb 32] in mb", 2e9f, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 64, in 64", "IEEE_INT32 [in 32] mb in", NULL,
	  "SENUINT32 [mb 32] in mb", 2e9f, NULL, 0 },
	{ "identity", "mb 33, in 65", "SENUINT32 [in 32] mb in", NULL,
	  "IEEE_INT32 [mb 32] in mb", 4e9f, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 128/2, in 64", X16, NULL, "IEEE_FP32 [mb 32] in mb", 9, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 70, in 64", X32, NULL, "SEN169_FP16 [mb 64] in mb", 9, NULL, 0 },
	{ "ReStickifyOpHBM", "mb 64, in 64", "SEN169_FP16 [in 64] mb- in", NULL,
	  "SEN169_FP16 [mb 64] in mb", 9, NULL, 0 },
	{ "ReStickifyOpHBM", "a 2, b 3, c 2, mb 128, d 2/2, in 128",
	  "SEN169_FP16 [in 64] a mb in b c d", NULL, "SEN169_FP16 [mb 64] in d c mb b a", 9,
	  NULL, 0 },
};

static void begin(struct bundle_case *c, const struct conversion *v)
{
	bundle_begin(c, v->op, v->dims);
	bundle_tensor(c, v->x);
	if (v->scale)
		bundle_tensor(c, v->scale);
	bundle_tensor(c, v->out);
	if (v->constant)
		bundle_constant(c, v->constant, v->factor);
}

static uint32_t naive(const struct bundle_case *c, const struct conversion *v, const int64_t *x)
{
	enum spyre_fmt from = c->tensor[0].format, to = c->tensor[c->num_tensors - 1].format;
	uint32_t code = *bundle_at(c, 0, x);
	float number = bundle_number(from, code);

	if (from == to)
		return code;
	/* 32-bit words are moved unchanged, including those with a sign bit. */
	if (from != SPYRE_FMT_IEEE_FP32 && to != SPYRE_FMT_IEEE_FP32 && from + to ==
	    SPYRE_FMT_IEEE_INT32 + SPYRE_FMT_SENUINT32)
		return code;
	if (v->constant)
		number *= v->factor;
	if (v->scale)
		number /= bundle_number(c->tensor[1].format, *bundle_at(c, 1, x));
	if (!strcmp(v->op, "fp32toint32"))
		number = truncf(number);
	return bundle_code(to, number);
}

START_TEST(conversion)
{
	const struct conversion *v = &conversions[_i];
	int64_t x[BUNDLE_DIMS] = { 0 };
	struct bundle_case c;
	int out;

	begin(&c, v);
	out = c.num_tensors - 1;
	bundle_draw(&c, 0, v->size);
	if (v->scale)
		bundle_draw(&c, 1, 2);
	bundle_run(&c);
	do {
		uint32_t got = *bundle_at(&c, out, x), want = naive(&c, v, x);

		ck_assert_msg(got == want, "%s %s to %s: element %ld %ld is %x, expected %x",
			      v->op, v->dims, v->out, (long)x[0], (long)x[1], got, want);
	} while (bundle_next(&c, x));
	bundle_end(&c);
}
END_TEST

static const struct conversion scales[] = {
	{ "quantscalepertoken", "mb 6/2, in 256", X16, NULL, TOKEN16, 9, NULL, 0 },
	{ "quantscalepertoken", "mb 6, in 256/4", X16, NULL, TOKEN16, 9, NULL, 0 },
	{ "quantscalepertoken", "mb 3, in 96/3", X32, NULL, TOKEN32, 9, "mulConst", 0.25f },
	{ "quantscalepertokenfp8", "mb 6/2, in 256", X16, NULL, TOKEN16, 9, NULL, 0 },
	{ "quantscalepertokenfp8", "mb 6, in 256/4", X16, NULL, TOKEN16, 9, "mulConst", 0.25f },
	{ "quantscalepertokenfp8", "mb 5, in 64", X32, NULL, TOKEN32, 9, NULL, 0 },
};

START_TEST(scale)
{
	const struct conversion *v = &scales[_i];
	float factor = v->constant ? v->factor : strstr(v->op, "fp8") ? 1.0f / 448 : 1.0f / 127;
	struct bundle_case c;

	begin(&c, v);
	bundle_draw(&c, 0, v->size);
	bundle_run(&c);
	for (int64_t row = 0; row < c.size[0]; row++) {
		int64_t x[BUNDLE_DIMS] = { row };
		uint32_t want, got = *bundle_at(&c, 1, x);
		float most = 0;

		for (; x[1] < c.size[1]; x[1]++)
			most = fmaxf(most, fabsf(bundle_number(c.tensor[0].format,
							       *bundle_at(&c, 0, x))));
		want = bundle_code(c.tensor[1].format, most * factor);
		ck_assert_msg(got == want, "%s %s: row %ld is %x, expected %x", v->op, v->dims,
			      (long)row, got, want);
	}
	bundle_end(&c);
}
END_TEST

static const struct {
	struct conversion v;
	const char *words;
} bads[] = {
	{ { "qfp8ch", "mb 4, in 128", X16, NULL, "SENINT8 [in 128] mb in", 1, NULL, 0 },
	  "qfp8ch: no rule to SENINT8" },
	{ { "csqint8wt", "mb 4, in 128", X16, NULL, "SENINT8 [in 8, mb 2, in 8] mb in", 1, NULL, 0 },
	  "csqint8wt: no rule to SENINT8 in sticks of [in 8, mb 2, in 8]" },
	{ { "csqint4", "mb 4, in 128", "SENINT8 [in 128] mb in", NULL,
	    "SENINT4 [in 16, mb 2, in 8] mb in", 1, NULL, 0 }, "csqint4: the input is SENINT8" },
	{ { "csqint8ch", "mb 4, in 128", X16, "SENINT8 [in 128] mb in", "SENINT8 [in 128] mb in", 1,
	    NULL, 0 }, "csqint8ch: the scale is SENINT8" },
	{ { "csqint8ch", "mb 4, in 128", X16, NULL, "SENINT8 [in 128] mb in", 1, "zeropoint", 3 },
	  "constant zeropoint" },
	{ { "qfp8wt", "mb 5, in 64", X16, NULL, "SEN143_FP8 [mb 2, in 64] mb in", 1, NULL, 0 },
	  "share of mb is 5" },
	{ { "fp8todl16", "mb 4, in 128", X16, NULL, X32, 1, NULL, 0 },
	  "fp8todl16: no rule from SEN169_FP16 to IEEE_FP32" },
	{ { "int32tofp32", "mb 4, in 32", X32, NULL, X32, 1, NULL, 0 },
	  "int32tofp32: no rule from IEEE_FP32" },
	{ { "fp32toint32", "mb 4, in 128", X32, NULL, "SENINT8 [in 128] mb in", 1, NULL, 0 },
	  "fp32toint32: no rule from IEEE_FP32 to SENINT8" },
	{ { "identity", "mb 4, in 64", X16, NULL, "IEEE_INT32 [in 32] mb in", 1, NULL, 0 },
	  "identity: no rule from SEN169_FP16 to IEEE_INT32" },
	{ { "ReStickifyOpHBM", "mb 64, in 64", "SENINT16 [in 64] mb in", NULL,
	    "IEEE_INT32 [mb 32] in mb", 1, NULL, 0 }, "ReStickifyOpHBM: no rule from SENINT16" },
	{ { "ReStickifyOpHBM", "mb 64, in 128", "SENINT8 [mb 2, in 64] mb in", NULL,
	    "SENINT8 [in 128] mb in", 1, NULL, 0 }, "ReStickifyOpHBM: Tensor0 is SENINT8 with" },
};

START_TEST(refused)
{
	struct bundle_case c;

	begin(&c, &bads[_i].v);
	bundle_refused(&c, SPYRE_ERROR_UNSUPPORTED, bads[_i].words);
	bundle_end(&c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sdsc_quant");
	TCase *t = tcase_create("conversions");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, conversion, 0, COUNT(conversions));
	tcase_add_loop_test(t, scale, 0, COUNT(scales));
	tcase_add_loop_test(t, refused, 0, COUNT(bads));
	suite_add_tcase(s, t);
	return suite_run(s);
}
