// SPDX-License-Identifier: MIT
/*
 * Pointwise companions of convolutions, exx2_zeromean, fp32 layer norm, and fields
 * that are refused by name.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sdsc_make.h"
#include "suite.h"

#define DL16 "SEN169_FP16 out* i mb"
#define FP32 "IEEE_FP32 out* i mb"

struct rule {
	struct make_case c;
	make_expect *expect;
};

static const struct make_case *current;

static double constant(int index)
{
	float f;

	memcpy(&f, &current->constant[index].bits, 4);
	return f;
}

static double added(const struct make *m, const int64_t *at)
{
	if (at[make_dim(m, "out")] >= make_size(m, "out"))
		return NAN;	/* lanes after the valid one */
	return make_get(m, 0, at) + make_get(m, 1, at);
}

static double scaled(const struct make *m, const int64_t *at)
{
	return make_get(m, 0, at) * make_get(m, 1, at) + make_get(m, 2, at);
}

static double taken(const struct make *m, const int64_t *at)
{
	return make_get(m, 2, at) - make_get(m, 0, at) * make_get(m, 1, at);
}

static double leaked(const struct make *m, const int64_t *at)
{
	double x = make_get(m, 0, at);

	return x > 0 ? x : x * constant(0);
}

static double bounded(const struct make *m, const int64_t *at)
{
	return fmin(fmax(make_get(m, 0, at), -0.5), 1);
}

/* Lanes 0 and 1 hold 0 and the mean of the squares; the others are not read. */
static double squares(const struct make *m, const int64_t *at)
{
	int lane = make_dim(m, "out");
	int64_t x[MAKE_DIMS];
	double sum = 0;

	memcpy(x, at, sizeof(x));
	for (x[lane] = 0; x[lane] < make_size(m, "out"); x[lane]++)
		sum += make_get(m, 0, x) * make_get(m, 0, x);
	return at[lane] > 1 ? NAN : at[lane] ? sum * constant(0) : 0;
}

static double normalised(const struct make *m, const int64_t *at)
{
	return (make_get(m, 0, at) - make_get(m, 1, at)) * make_get(m, 2, at) *
	       make_get(m, 3, at) + make_get(m, 4, at);
}

#define F(name, b) { name, "IEEE_FP32", b }
#define CASE(name, rule_, sizes, most, constants, ...) { { .op = name, .dims = sizes, \
	.tensor = { __VA_ARGS__ }, .constant = constants, .tolerance = most }, rule_ }
#define NONE { { 0 } }
#define SLOPE(name) { F(name, 0x3dcccccd) }		/* 0.1 */
#define ONE_OF(name, bits) { F(name, bits) }
#define BOUNDS { { "clipMin", "BFLOAT16", 0xbf00 }, { "clipMax", "IEEE_FP16", 0x3c00 } }
#define ZERO_MEAN(format, bits) { F("exx2scale", 0x3c800000), { "useZeroMean", format, bits } }

static const struct rule rules[] = {
	CASE("biasadd", added, "mb:2 i:5/5 out:128", 4e-3, NONE, DL16, "SEN169_FP16 out*", DL16),
	CASE("biasadd", added, "mb:2/2 i:5 out:64", 4e-3, NONE, DL16, "SEN169_FP16 mb- i- out*", DL16),
	CASE("biasadd", added, "mb:2 i:6 out:96/3", 1e-6, NONE, FP32, "IEEE_FP32 out*", FP32),
	CASE("batchnormfwd", scaled, "mb:2 i:5/5 out:128", 8e-3, NONE, DL16, "SEN169_FP16 out*",
	     "SEN169_FP16 out*", DL16),
	CASE("batchnormfwd", scaled, "mb:2 i:5 out:192/3", 8e-3, NONE, DL16, DL16, "SEN169_FP16 out*",
	     DL16),
	CASE("batchnormfwd", scaled, "mb:4/2 i:5 out:96/3", 1e-6, NONE, FP32, "IEEE_FP32 out*",
	     "IEEE_FP32 out*", FP32),
	CASE("fnms", taken, "mb:2 i:5/5 out:128", 8e-3, NONE, DL16, DL16, DL16, DL16),
	CASE("fnms", taken, "mb:2/2 i:3 out:64", 8e-3, NONE, DL16, "SEN169_FP16 out= mb", DL16, DL16),
	CASE("fnms", taken, "mb:2 i:6/3 out:64/2", 1e-6, NONE, FP32, FP32, "IEEE_FP32 out*", FP32),
	CASE("leakyrelufwd", leaked, "mb:2 i:5/5 out:128", 4e-3, SLOPE("negativeSlope"), DL16, DL16),
	CASE("leakyrelufwd", leaked, "mb:2 i:1 out:64", 4e-3, SLOPE("alpha"), DL16, DL16),
	CASE("leakyrelufwd", leaked, "mb:2 i:5 out:96/3", 1e-6, SLOPE("x"), FP32, FP32),
	/* constants in formats other than the tensors' */
	CASE("clip", bounded, "mb:2 i:5/5 out:128", 2e-3, BOUNDS, DL16, DL16),
	CASE("clip", bounded, "mb:3/3 i:5 out:32", 1e-6, BOUNDS, FP32, FP32),
	CASE("exx2_zeromean", squares, "mb:2 i:5/5 out:64", 4e-3, ONE_OF("exx2scale", 0x3c800000),
	     DL16, "SEN169_FP16 out= i mb"),
	CASE("exx2_zeromean", squares, "mb:2/2 i:3 out:256", 4e-3, ONE_OF("exx2scale", 0x3b800000),
	     DL16, "SEN169_FP16 i out= mb"),
	CASE("exx2_zeromean", squares, "mb:2 i:3 out:96", 1e-5, ONE_OF("exx2scale", 0x3c2aaaab),
	     FP32, "IEEE_FP32 out= i mb"),
	/* the summed dimension over several cores */
	CASE("exx2_zeromean", squares, "mb:2/2 i:3 out:256/4", 4e-3, ONE_OF("exx2scale", 0x3b800000),
	     DL16, "SEN169_FP16 i out= mb"),
	CASE("exx2", squares, "mb:2 i:5/5 out:64", 4e-3, ZERO_MEAN("SEN169_FP16", 31 << 9), DL16,
	     "SEN169_FP16 out= i mb"),
	CASE("exx2", squares, "mb:2 i:4/4 out:96", 1e-5, ZERO_MEAN("IEEE_INT32", 1), FP32,
	     "IEEE_FP32 out= i mb"),
	CASE("layernormnorm", normalised, "mb:2 i:4/4 out:96", 1e-5, NONE, FP32, "IEEE_FP32 out= i mb",
	     "IEEE_FP32 out= i mb", "IEEE_FP32 out*", "IEEE_FP32 out*", FP32),
};

static void run(const struct make_case *c, make_expect *rule)
{
	struct make *m = make_new(c);

	current = c;
	make_run(m, rule, c->op);
	make_free(m);
}

START_TEST(places)
{
	run(&rules[_i].c, rules[_i].expect);
}
END_TEST

/* layernormscale reads lanes 0 and 1 of one stick, in fp32 and DL16. */
static void set_moments(struct make *m, const int64_t *at)
{
	make_set_lane(m, 0, at, 0, 0.25);	/* the mean */
	make_set_lane(m, 0, at, 1, 1);		/* the mean of the squares */
}

static double deviation(const struct make *m, const int64_t *at)
{
	(void)m;
	(void)at;
	return 1 / sqrt(1 - 0.0625 + constant(0));
}

START_TEST(scale)
{
	static const struct make_case cases[] = {
		{ .op = "layernormscale", .dims = "mb:7 i:4/4 x:32", .tolerance = 1e-6,
		  .tensor = { "IEEE_FP32 x= i mb", "IEEE_FP32 x* i mb" },
		  .constant = { F("eps", 0x3727c5ac) } },
		{ .op = "layernormscale", .dims = "mb:6/3 i:4 x:64", .tolerance = 2e-3,
		  .tensor = { "SEN169_FP16 x= i mb", "SEN169_FP16 i mb x*" },
		  .constant = { F("eps", 0x3727c5ac) } },
		{ .op = "layernormscale", .dims = "mb:6/3 i:4 x:64", .tolerance = 1e-6,
		  .tensor = { "SEN169_FP16 x= i mb", "IEEE_FP32 i mb x*" },
		  .constant = { F("eps", 0x3c23d70a) } },
	};
	struct make *m = make_new(&cases[_i]);

	current = &cases[_i];
	make_each(m, 0, set_moments);
	make_run(m, deviation, current->tensor[0]);
	make_free(m);
}
END_TEST

START_TEST(refusals)
{
	static const struct make_case cases[] = {
		{ .op = "batchnormfwd", .dims = "mb:2 i:5 out:64",
		  .tensor = { DL16, DL16, DL16, DL16, DL16, DL16 } },
		{ .op = "leakyrelufwd", .dims = "mb:2 i:5 out:64", .tensor = { DL16, DL16 } },
		{ .op = "leakyrelufwd", .dims = "mb:2 i:5 out:64", .tensor = { DL16, DL16 },
		  .constant = { F("a", 1), F("b", 2) } },
		{ .op = "clip", .dims = "mb:2 i:5 out:64", .tensor = { DL16, DL16 },
		  .constant = { { "clipMin", "BOOL", 1 }, F("clipMax", 2) } },
	};
	static const char *const texts[] = {
		"5 inputs; it takes x, scale and bias", "lacks negativeSlope", "lacks negativeSlope",
		"clipMin is BOOL",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		make_refused(&cases[i], SPYRE_ERROR_UNSUPPORTED, texts[i]);
}
END_TEST

/* Fields with the value "none", and masks of operations without reductions, have no effect. */
/* Cores with parts of a result cannot find each other if the result is in their own LX. */
START_TEST(split_into_lx)
{
	static const struct make_case cases[] = {
		{ .op = "sumnonstick", .dims = "mb:4/2 i:3 out:64",
		  .tensor = { DL16, "SEN169_FP16 out* i mb-" }, .lx = { [1] = { true } } },
		{ .op = "prodnonstick", .dims = "mb:4/2 i:3 out:64",
		  .tensor = { DL16, "SEN169_FP16 out* i mb-" }, .lx = { [1] = { true } } },
		{ .op = "sum", .dims = "mb:4 i:3 out:128/2",
		  .tensor = { DL16, "SEN169_FP16 out*= i mb" }, .lx = { [1] = { true } } },
	};
	static const char *const dims[] = { "mb", "mb", "out" };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[80];

		snprintf(text, sizeof(text), "%s is split over 2 cores and the output is in LX",
			 dims[i]);
		make_refused(&cases[i], SPYRE_ERROR_UNSUPPORTED, text);
	}
}
END_TEST

START_TEST(accepted)
{
	static const struct make_case cases[] = {
		{ .op = "biasadd", .dims = "mb:2 i:5 out:64", .tensor = { DL16, DL16, DL16 },
		  .tolerance = 4e-3, .masks = "{\"out\":[[10,54]]}" },
		/* an output of one element per stick */
		{ .op = "biasadd", .dims = "mb:2 i:5 out:1", .tolerance = 4e-3,
		  .tensor = { "SEN169_FP16 out= mb i", "SEN169_FP16 out= i", "SEN169_FP16 i out= mb" } },
		{ .op = "biasadd", .dims = "mb:2 i:5 out:64", .tensor = { DL16, DL16, DL16 },
		  .tolerance = 4e-3, .compute = ",\"indirectAccessIndexLabeledDs\":[]",
		  .node = ",\"indirectAllocType_\":\"no_indirection\","
			  "\"relatedIndirectAccessAlloc_\":\"\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run(&cases[i], added);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sdsc_places");
	TCase *t = tcase_create("places");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, places, 0, sizeof(rules) / sizeof(rules[0]));
	tcase_add_loop_test(t, scale, 0, 3);
	tcase_add_test(t, refusals);
	tcase_add_test(t, split_into_lx);
	tcase_add_test(t, accepted);
	suite_add_tcase(suite, t);
	return suite_run(suite);
}
