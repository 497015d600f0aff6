// SPDX-License-Identifier: MIT
/* topkvalue, topkindex and maskbyindex against sorted copies and comparisons. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sdsc_make.h"
#include "suite.h"

#define K(n) { "k", "IEEE_INT32", n }
#define SMALLEST { "largest", "IEEE_INT32", 0 }
#define TOPK(what, sizes, from, to, ...) { .op = "topk" what, .dims = sizes, \
	.tensor = { from, to }, .constant = { __VA_ARGS__ } }

/* The searched dim is called s, the dim of ranks r. */
static const struct make_case searches[] = {
	/* ranks in the lanes of one stick */
	TOPK("value", "mb:5 s:64", "SEN169_FP16 mb s*", "SEN169_FP16 mb s=", K(3)),
	TOPK("value", "mb:6/3 s:256", "SEN169_FP16 s* mb", "SEN169_FP16 mb s=", K(64)),
	TOPK("value", "mb:6/2 y:3 s:256", "SEN169_FP16 s* y mb", "SEN169_FP16 s= mb y", K(5),
	     SMALLEST),
	TOPK("value", "mb:6/3 s:96", "IEEE_FP32 s* mb", "IEEE_FP32 mb s=", K(1)),
	TOPK("value", "mb:4 s:128", "IEEE_FP32 s* mb", "IEEE_FP32 mb s="),
	TOPK("value", "mb:4/4 s:256", "SEN169_FP16 mb s*", "IEEE_FP32 mb s=", K(7), SMALLEST),
	/* a dim of ranks, in several sticks, some beyond k, also divided */
	TOPK("value", "mb:4 s:256 r:192", "SEN169_FP16 mb s*", "SEN169_FP16 mb r*", K(100)),
	TOPK("value", "mb:4/2 s:192 r:128/2", "SEN169_FP16 mb s*", "SEN169_FP16 r* mb", K(70)),
	TOPK("value", "mb:3 s:64 r:128", "IEEE_FP32 s* mb", "IEEE_FP32 mb r*"),
	TOPK("value", "mb:3 s:128 r:96/3", "SEN169_FP16 mb s*", "IEEE_FP32 mb r*", K(60)),
	/* the end is masked */
	{ .op = "topkvalue", .dims = "mb:5 s:192", .masks = "{\"s\":[[150,42]]}",
	  .tensor = { "SEN169_FP16 mb s*", "SEN169_FP16 mb s=" }, .constant = { K(64) } },
	/* along dims without sticks, ranks in sticks or not */
	TOPK("value", "s:20 x:128/2 r:3", "SEN169_FP16 s x*", "SEN169_FP16 r x*"),
	TOPK("value", "s:20 x:64 y:3/3 r:4/2", "SEN169_FP16 y s x*", "SEN169_FP16 x* y r", K(3)),
	TOPK("value", "s:33 x:64", "IEEE_FP32 s x*", "IEEE_FP32 s- x*", SMALLEST),
	TOPK("value", "s:9 x:64 r:64", "SEN169_FP16 s x*", "SEN169_FP16 x r*", K(5)),
	TOPK("value", "x:64 s:128 r:2", "SEN169_FP16 x s*", "SEN169_FP16 r x*"),
	/* places */
	TOPK("index", "mb:5 s:64", "SEN169_FP16 mb s*", "SEN169_FP16 mb s=", K(3)),
	TOPK("index", "mb:6/3 s:1024", "SEN169_FP16 s* mb", "SEN169_FP16 mb s=", K(64)),
	TOPK("index", "mb:4/2 s:192 r:128/2", "SEN169_FP16 mb s*", "SEN169_FP16 r* mb", K(70),
	     SMALLEST),
	TOPK("index", "mb:4 s:4096", "SEN169_FP16 mb s*", "IEEE_FP32 mb s=", K(9)),
	TOPK("index", "mb:4/2 s:96 r:64", "IEEE_FP32 mb s*", "IEEE_FP32 mb r*"),
	TOPK("index", "mb:4/4 s:2048 r:64/2", "SEN169_FP16 mb s*", "SENUINT32 mb r*", K(50)),
	TOPK("index", "mb:4 s:2048", "IEEE_FP32 mb s*", "IEEE_INT32 mb s=", K(32), SMALLEST),
	TOPK("index", "s:1500 x:64/2 r:2", "IEEE_FP32 s x*", "SENUINT32 r x*"),
	TOPK("index", "s:20 x:128/2", "SEN169_FP16 x* s", "SEN169_FP16 x*"),
	{ .op = "topkindex", .dims = "mb:5/5 s:192 r:192", .masks = "{\"s\":[[150,42]]}",
	  .tensor = { "SEN169_FP16 mb s*", "SEN169_FP16 r* mb" }, .constant = { K(170) } },
};

static const struct make_case *current;

struct element {
	double value;
	int64_t place;
};

static bool smallest;

static int by_rank(const void *x, const void *y)
{
	const struct element *a = x, *b = y;

	if (a->value != b->value)
		return (a->value < b->value) == smallest ? -1 : 1;
	return a->place < b->place ? -1 : 1;
}

static double ranked(const struct make *m, const int64_t *out)
{
	static struct element row[4096];
	int64_t at[MAKE_DIMS], count = current->masks ? 150 : make_size(m, "s"), k = 1 << 30, rank;

	smallest = false;
	memcpy(at, out, sizeof(at));
	rank = strstr(current->dims, " r:") ? out[make_dim(m, "r")] : out[make_dim(m, "s")];
	for (int i = 0; i < MAKE_CONSTANTS && current->constant[i].name; i++) {
		if (!strcmp(current->constant[i].name, "k"))
			k = current->constant[i].bits;
		else
			smallest = true;
	}
	if (rank >= k || rank >= count)
		return 0;
	for (int64_t i = 0; i < count; i++) {
		at[make_dim(m, "s")] = i;
		row[i] = (struct element){ make_get(m, 0, at), i };
	}
	qsort(row, (size_t)count, sizeof(row[0]), by_rank);
	return !strcmp(current->op, "topkindex") ? (double)row[rank].place : row[rank].value;
}

static void run(const struct make_case *c, make_expect *rule)
{
	struct make *m = make_new(c);

	current = c;
	make_run(m, rule, c->dims);
	make_free(m);
}

START_TEST(ranks)
{
	run(&searches[_i], ranked);
}
END_TEST

/* Half of the elements are equal, some are NaN, which is the largest. */
static void few_values(struct make *m, const int64_t *at)
{
	double x = make_get(m, 0, at);

	make_set(m, 0, at, x > 1.9 ? NAN : x > 0 ? 1 : x);
}

static double equal_order(const struct make *m, const int64_t *out)
{
	int search = make_dim(m, "s");
	int64_t at[MAKE_DIMS], rank = out[search];

	memcpy(at, out, sizeof(at));
	if (rank >= 40)
		return 0;
	for (int pass = 0; pass < 2; pass++)
		for (int64_t a = 0; a < make_size(m, "s"); a++) {
			double x;

			at[search] = a;
			x = make_get(m, 0, at);
			if ((pass ? x == 1 : isnan(x)) && !rank--)
				return (double)a;
		}
	return NAN;	/* the smaller ones are not checked here */
}

START_TEST(equals)
{
	static const struct make_case c =
		TOPK("index", "mb:7 s:256", "SEN169_FP16 mb s*", "SEN169_FP16 mb s=", K(40));
	struct make *m = make_new(&c);

	make_each(m, 0, few_values);
	make_run(m, equal_order, c.dims);
	make_free(m);
}
END_TEST

#define VALUE(f, b) { { "samv-maskvalue", f, b } }
#define MASK(sizes, x, at, y, low_, high_, ...) { .op = "maskbyindex", .dims = sizes, \
	.tensor = { x, at, y }, .constant = __VA_ARGS__, .low = low_, .high = high_, \
	.tolerance = 2e-3 }

/* Values and indices are drawn from the same range; -65472 in DL16 is 0xddff. */
static const struct make_case masks[] = {
	MASK("mb:5 s:128", "SEN169_FP16 mb s*", "SENUINT32 mb s=", "SEN169_FP16 mb s*", 0, 140,
	     VALUE("SEN169_FP16", 0xddff)),
	MASK("mb:6/3 y:2 s:256/4", "SEN169_FP16 s* y mb", "SENUINT32 mb s=", "SEN169_FP16 mb s* y",
	     0, 256, VALUE("SEN169_FP16", 0)),
	MASK("mb:4/2 y:3 s:192", "SEN169_FP16 s* mb", "IEEE_INT32 s= y", "SEN169_FP16 mb s* y", 0,
	     200, VALUE("IEEE_FP32", 0xc61c4000)),
	MASK("mb:5 s:96/3", "IEEE_FP32 mb s*", "SENUINT32 mb s=", "IEEE_FP32 mb s*", 0, 100,
	     VALUE("IEEE_FP32", 0xff7fffff)),
	MASK("mb:5/5 s:128/2", "SEN169_FP16 mb s*", "SENUINT32 mb s=", "IEEE_FP32 mb s*", 0, 130,
	     VALUE("SEN169_FP16", 0xddff)),
	MASK("mb:4 s:64", "IEEE_FP32 s* mb", "IEEE_FP32 s=", "SEN169_FP16 s* mb", 0, 64,
	     VALUE("IEEE_FP16", 0xbc00)),
	/* along rows: an index per column, or per matrix */
	MASK("s:40/4 x:128/2", "SEN169_FP16 s x*", "SENUINT32 x*", "SEN169_FP16 x* s", 0, 45,
	     VALUE("BFLOAT16", 0xc000)),
	MASK("s:40/2 x:64 y:3", "IEEE_FP32 y s x*", "SENUINT32 y x*", "IEEE_FP32 s x* y", 0, 45,
	     VALUE("IEEE_INT32", 0xfffffffe)),
	MASK("s:40 x:128/2", "IEEE_FP32 s x*", "IEEE_INT32 s- x*", "SEN169_FP16 s x*", 0, 45,
	     VALUE("SENUINT32", 7)),
};

#define ROWS(n) { "samv-rowdim", "IEEE_INT32", n }
#define WIDTH(n) { "samv-width", "IEEE_INT32", n }

/* The coordinate falls along the rows mb, which have the place of samv-rowdim in memory order. */
static const struct make_case bands[] = {
	MASK("mb:40 s:128", "SEN169_FP16 mb s*", "SENUINT32 s=", "SEN169_FP16 mb s*", 20, 140,
	     { { "samv-maskvalue", "SEN169_FP16", 0 }, ROWS(0) }),
	MASK("mb:40/4 y:3 s:128/2", "SEN169_FP16 mb s* y", "SENUINT32 y s=", "SEN169_FP16 s* mb y",
	     20, 140, { { "samv-maskvalue", "SEN169_FP16", 0 }, ROWS(1), WIDTH(30) }),
	MASK("mb:40/2 y:3 s:96", "IEEE_FP32 mb y s*", "SENUINT32 mb s=", "IEEE_FP32 y mb s*", 20,
	     120, { { "samv-maskvalue", "SEN169_FP16", 0 }, ROWS(1), WIDTH(1) }),
	MASK("mb:6/3 x:64 s:40/2", "IEEE_FP32 mb s x*", "SENUINT32 x*", "IEEE_FP32 s mb x*", 0, 45,
	     { { "samv-maskvalue", "SEN169_FP16", 0 }, ROWS(1), WIDTH(12) }),
	MASK("mb:40/2 s:128", "SEN169_FP16 mb s*", "SENUINT32 mb s=", "SEN169_FP16 mb s*", 20, 140,
	     { { "samv-maskvalue", "SEN169_FP16", 0 }, WIDTH(30) }),
};

static double band(const struct make *m, const int64_t *at)
{
	const struct make_constant *c = current->constant;
	int64_t place = at[make_dim(m, "s")], width = 0;

	for (int i = 1; i < MAKE_CONSTANTS && c[i].name; i++) {
		if (!strcmp(c[i].name, "samv-rowdim"))
			place += make_size(m, "mb") - 1 - at[make_dim(m, "mb")];
		else
			width = (int64_t)c[i].bits;
	}
	return (double)place < make_get(m, 1, at) &&
	       (!width || (double)(place + width) >= make_get(m, 1, at)) ? make_get(m, 0, at) : 0;
}

START_TEST(mask_of_a_band)
{
	run(&bands[_i], band);
}
END_TEST

static double masked(const struct make *m, const int64_t *at)
{
	static const double value[] = {
		-65472, 0, -10000, -3.4028234663852886e38, -65472, -1, -2, -2, 7,
	};

	return (double)at[make_dim(m, "s")] < make_get(m, 1, at) ? make_get(m, 0, at) :
	       value[current - masks];
}

START_TEST(mask)
{
	run(&masks[_i], masked);
}
END_TEST

START_TEST(refusals)
{
	static const struct make_case cases[] = {
		TOPK("index", "mb:4 s:1088", "SEN169_FP16 mb s*", "SEN169_FP16 mb s=", K(1)),
		TOPK("index", "mb:4 s:2112", "SEN169_FP16 mb s*", "IEEE_FP16 mb s=", K(1)),
		TOPK("value", "mb:4 s:128/2", "SEN169_FP16 mb s*", "SEN169_FP16 mb s=", K(1)),
		TOPK("value", "mb:4 s:128", "SEN169_FP16 mb s*", "SEN169_FP16 mb s=", K(65)),
		TOPK("value", "mb:4 s:128", "SEN169_FP16 mb s*", "SEN169_FP16 mb s=", K(0)),
		TOPK("value", "mb:4 s:128", "SEN169_FP16 mb s*", "SEN169_FP16 mb s*", K(1)),
		TOPK("value", "mb:4 y:3 s:128", "SEN169_FP16 mb y s*", "SEN169_FP16 mb s=", K(1)),
		TOPK("value", "s:8 x:64 r:5000", "SEN169_FP16 s x*", "SEN169_FP16 x* r", K(1)),
		{ .op = "topkvalue", .dims = "mb:5 s:192", .masks = "{\"s\":[[0,42]]}",
		  .tensor = { "SEN169_FP16 mb s*", "SEN169_FP16 mb s=" }, .constant = { K(64) } },
		MASK("mb:5 y:3 s:128", "SEN169_FP16 mb y s*", "SENUINT32 s*",
		     "SEN169_FP16 mb y s*", 0, 140, VALUE("SEN169_FP16", 0)),
		MASK("mb:5 s:128", "SEN169_FP16 mb s*", "SENUINT32 mb s=", "SEN169_FP16 mb s*", 0,
		     140, { { "clipMin", "SEN169_FP16", 0 } }),
		MASK("mb:64 s:128", "SEN169_FP16 mb* s", "SENUINT32 mb s=", "SEN169_FP16 mb s*", 0,
		     140, VALUE("SEN169_FP16", 0)),
		MASK("mb:4 s:128", "SEN169_FP16 mb s*", "SENUINT32 s=", "SEN169_FP16 s* mb", 0, 140,
		     { { "samv-maskvalue", "SEN169_FP16", 0 }, ROWS(0) }),
		MASK("mb:4 s:128", "SEN169_FP16 mb s*", "SENUINT32 s=", "SEN169_FP16 s* mb", 0, 140,
		     { { "samv-maskvalue", "SEN169_FP16", 0 }, WIDTH(0xffffffff) }),
	};
	static const char *const texts[] = {
		"exactly up to 1024", "exactly up to 2048", "divided over 2 cores",
		"no dimension for so many ranks", "k is not 1 or more", "one to search",
		"one to search", "5000 ranks per core", "only the end of s", "2 dimensions",
		"lacks samv-maskvalue", "restickify it first",
		"samv-rowdim 0, expected", "samv-width -1",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		make_refused(&cases[i], SPYRE_ERROR_UNSUPPORTED, texts[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sdsc_topk");
	TCase *t = tcase_create("topk");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, ranks, 0, sizeof(searches) / sizeof(searches[0]));
	tcase_add_test(t, equals);
	tcase_add_loop_test(t, mask, 0, sizeof(masks) / sizeof(masks[0]));
	tcase_add_loop_test(t, mask_of_a_band, 0, sizeof(bands) / sizeof(bands[0]));
	tcase_add_test(t, refusals);
	suite_add_tcase(suite, t);
	return suite_run(suite);
}
