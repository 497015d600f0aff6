// SPDX-License-Identifier: MIT
/* avgpoolfwd, avgpoolnmapfwd and maxpoolfwd against loops over every window. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sdsc_make.h"
#include "suite.h"

#define PLAIN { 1, 1, 0, 0 }
#define DL16 "SEN169_FP16 out* j i mb"
#define FP32 "IEEE_FP32 out* j i mb"
#define POOL(name, format, sizes, ...) { .op = name, .dims = sizes, .tensor = { format, format }, \
	.window = true, .axis = { __VA_ARGS__ }, .tolerance = 4e-3 }
#define FINE(name, sizes, ...) { .op = name, .dims = sizes, .tensor = { FP32, FP32 }, \
	.window = true, .axis = { __VA_ARGS__ }, .tolerance = 1e-6 }

static const struct make_case largest[] = {
	POOL("maxpoolfwd", DL16, "mb:1 out:64 i:4 j:4 ki:2 kj:2", { 2, 1, 0, 0 }, { 2, 1, 0, 0 }),
	POOL("maxpoolfwd", DL16, "mb:2/2 out:128/2 i:9 j:8 ki:3 kj:3", { 2, 1, 1, 1 },
	     { 2, 1, 1, 0 }),
	POOL("maxpoolfwd", DL16, "mb:2 out:64 i:6/6 j:7 ki:3 kj:2", { 1, 2, 2, 1 }, { 1, 3, 0, 1 }),
	POOL("maxpoolfwd", DL16, "mb:1 out:64 i:1 j:1 ki:7 kj:7", PLAIN, PLAIN),
	POOL("maxpoolfwd", "SEN169_FP16 i mb out* j+2", "mb:3 out:192/3 i:4/2 j:6/3 ki:3 kj:4",
	     { 3, 1, 1, 1 }, { 1, 1, 3, 1 }),
	FINE("maxpoolfwd", "mb:1 out:32 i:4 j:4 ki:2 kj:2", { 2, 1, 0, 0 }, { 2, 1, 0, 0 }),
	FINE("maxpoolfwd", "mb:2/2 out:96/3 i:9 j:8 ki:3 kj:3", { 2, 1, 1, 1 }, { 2, 1, 1, 0 }),
	FINE("maxpoolfwd", "mb:2 out:64 i:6/6 j:7 ki:3 kj:2", { 1, 2, 2, 1 }, { 1, 3, 0, 1 }),
};

static const struct make_case averages[] = {
	POOL("avgpoolfwd", DL16, "mb:1 out:64 i:4 j:4 ki:2 kj:2", { 2, 1, 0, 0 }, { 2, 1, 0, 0 }),
	POOL("avgpoolfwd", DL16, "mb:2/2 out:128 i:9 j:8/2 ki:3 kj:3", { 2, 1, 1, 1 },
	     { 2, 1, 1, 0 }),
	/* the factor as a constant: 0.25 in DL16, 0.125 in fp32 */
	{ .op = "avgpoolfwd", .dims = "mb:2 out:64 i:5/5 j:4 ki:3 kj:2", .tensor = { DL16, DL16 },
	  .window = true, .axis = { { 1, 1, 1, 1 }, { 1, 1, 1, 0 } },
	  .constant = { { "nmap", "SEN169_FP16", 29 << 9 } }, .tolerance = 4e-3 },
	{ .op = "avgpoolfwd", .dims = "mb:2 out:128/2 i:5 j:4 ki:3 kj:2", .tensor = { DL16, FP32 },
	  .window = true, .axis = { { 1, 1, 1, 1 }, { 1, 1, 1, 0 } },
	  .constant = { { "scaling_factor", "IEEE_FP32", 0x3e000000 } }, .tolerance = 1e-6 },
	/* windows that contain only padding average to 0 */
	POOL("avgpoolfwd", DL16, "mb:1 out:64 i:6 j:2 ki:2 kj:2", { 1, 9, 6, 7 }, PLAIN),
	FINE("avgpoolfwd", "mb:1 out:32 i:4 j:4 ki:2 kj:2", { 2, 1, 0, 0 }, { 2, 1, 0, 0 }),
	FINE("avgpoolfwd", "mb:2/2 out:96/3 i:9 j:8 ki:3 kj:3", { 2, 1, 1, 1 }, { 2, 1, 1, 0 }),
	FINE("avgpoolfwd", "mb:2 out:64 i:6/6 j:7 ki:3 kj:2", { 1, 2, 2, 1 }, { 1, 3, 0, 1 }),
};

#define NMAP(x, map, y, sizes, most, ...) { .op = "avgpoolnmapfwd", .dims = sizes, \
	.tensor = { x, map, y }, .window = true, .axis = { __VA_ARGS__ }, .tolerance = most }

static const struct make_case maps[] = {
	/* one value per position, in lane 0 of a stick; per channel as well; per row */
	NMAP(DL16, "SEN169_FP16 out= j i", DL16, "mb:2 out:64 i:4 j:4 ki:3 kj:3", 8e-3,
	     { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	NMAP(DL16, DL16, DL16, "mb:2/2 out:128/2 i:4/2 j:5 ki:2 kj:3", 8e-3, { 2, 1, 1, 0 },
	     { 1, 1, 0, 2 }),
	NMAP(DL16, "SEN169_FP16 i out=", DL16, "mb:1 out:64 i:4/4 j:5 ki:2 kj:3", 8e-3,
	     { 2, 1, 0, 0 }, { 1, 2, 0, 2 }),
	NMAP(FP32, "IEEE_FP32 out= j i", FP32, "mb:2 out:64 i:4 j:4 ki:3 kj:3", 2e-6,
	     { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	NMAP(FP32, FP32, FP32, "mb:2/2 out:96/3 i:4/2 j:5 ki:2 kj:3", 2e-6, { 2, 1, 1, 0 },
	     { 1, 1, 0, 2 }),
	NMAP(DL16, "IEEE_FP32 out= i", FP32, "mb:1 out:64 i:4/4 j:5 ki:2 kj:3", 2e-6, { 2, 1, 0, 0 },
	     { 1, 2, 0, 2 }),
};

static const struct make_case *current;

/* The largest element of a window, or the sum. */
static double window(const struct make *m, const int64_t *out, bool sum)
{
	double result = sum ? 0 : -INFINITY;
	int64_t at[MAKE_DIMS];

	memcpy(at, out, sizeof(at));
	for (int64_t tap = 0; tap < make_size(m, "ki") * make_size(m, "kj"); tap++) {
		const struct make_axis *a = current->axis;
		int64_t i = out[make_dim(m, "i")] * a[0].stride - a[0].before;
		int64_t j = out[make_dim(m, "j")] * a[1].stride - a[1].before;
		double x;

		i += tap / make_size(m, "kj") * a[0].dilation;
		j += tap % make_size(m, "kj") * a[1].dilation;
		if (i < 0 || j < 0 || i >= make_input_size(m, 0) || j >= make_input_size(m, 1))
			continue;
		at[make_dim(m, "i")] = i;
		at[make_dim(m, "j")] = j;
		x = make_get(m, 0, at);
		result = sum ? result + x : fmax(result, x);
	}
	return result;
}

static double largest_of(const struct make *m, const int64_t *out)
{
	return window(m, out, false);
}

static double average_of(const struct make *m, const int64_t *out)
{
	double factor = 1.0 / (double)(make_size(m, "ki") * make_size(m, "kj"));

	if (current->constant[0].name)
		factor = !strcmp(current->constant[0].name, "nmap") ? 0.25 : 0.125;
	return window(m, out, true) * factor;
}

static double mapped_of(const struct make *m, const int64_t *out)
{
	return window(m, out, true) * make_get(m, 1, out);
}

static void run(const struct make_case *c, make_expect *rule)
{
	struct make *m = make_new(c);

	current = c;
	make_run(m, rule, c->dims);
	make_free(m);
}

START_TEST(max_pool)
{
	run(&largest[_i], largest_of);
}
END_TEST

START_TEST(average_pool)
{
	run(&averages[_i], average_of);
}
END_TEST

START_TEST(average_pool_with_map)
{
	run(&maps[_i], mapped_of);
}
END_TEST

/* Stick dims without a lane rule, divided taps, windows without input, excessive padding. */
START_TEST(refusals)
{
	static const struct make_case cases[] = {
		POOL("maxpoolfwd", DL16, "mb:1 out:64 i:6 j:2 ki:2 kj:2", { 1, 9, 6, 7 }, PLAIN),
		POOL("maxpoolfwd", DL16, "mb:1 out:64 i:6 j:2 ki:2/2 kj:2", PLAIN, PLAIN),
		POOL("avgpoolfwd", "SEN169_FP16 j* out i mb", "mb:1 out:2 i:6 j:64 ki:2 kj:2",
		     PLAIN, PLAIN),
		POOL("avgpoolfwd", "SEN169_FP16 out* i j mb ki", "mb:1 out:64 i:6 j:4 ki:2 kj:2",
		     PLAIN, PLAIN),
		POOL("avgpoolfwd", DL16, "mb:1 out:64 i:5000 j:1 ki:5000 kj:1", { 1, 1, 4999, 4999 },
		     PLAIN),
		{ .op = "avgpoolfwd", .dims = "mb:1 out:64 i:6 j:4 ki:2 kj:2 in:3",
		  .tensor = { "SEN169_FP16 out* i j mb in", "SEN169_FP16 out* i j mb" },
		  .window = true, .axis = { PLAIN, PLAIN } },
		{ .op = "avgpoolnmapfwd", .dims = "mb:64 out:64 i:6 j:4 ki:2 kj:2",
		  .tensor = { "SEN169_FP16 out* i j mb", "SEN169_FP16 out mb*",
			      "SEN169_FP16 out* i j mb" }, .window = true,
		  .axis = { PLAIN, PLAIN } },
		{ .op = "maxpoolfwd", .dims = "mb:1 out:64 i:6 j:4 ki:3 kj:2",
		  .tensor = { DL16, DL16 }, .window = true, .axis = { PLAIN, PLAIN },
		  .masks = "{\"ki\":[[2,1]]}" },
	};
	static const char *const texts[] = {
		"cover only padding", "ki is divided over 2 cores", "sticks along j",
		"not along ki", "more than 4096 instructions", "does not vary along in",
		"sticks along mb", "coordinateMasking_ of ki",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		make_refused(&cases[i], i == 3 ? SPYRE_ERROR_PARSE : SPYRE_ERROR_UNSUPPORTED,
			     texts[i]);
}
END_TEST

#define STARTING(step, sizes_i, padding) { .op = "avgpoolfwd", \
	.dims = "mb:1 out:64 " sizes_i " ki:2", \
	.tensor = { "SEN169_FP16 out* i mb", "SEN169_FP16 out* i mb" }, .window = true, \
	.axis = { { step, 1, 0, 0 }, PLAIN }, \
	.sizes = "\"paddingSizes_\":{\"i\":{" padding "}}" }
#define PUBLIC(sizes_i, padding) STARTING(2, sizes_i, padding)
#define STEP "\"stride_\":2,\"dilation_\":1,\"windowDim_\":\"ki\","

/* The public form of paddingSizes_, with numbers that no tensor can have. */
START_TEST(public_form)
{
	static const struct {
		struct make_case c;
		spyre_status status;
		const char *text;
	} cases[] = {
		{ PUBLIC("i:4", STEP "\"padFront_\":0,\"padBack_\":0,\"totalSize_\":7"),
		  SPYRE_ERROR_PARSE, "reach 8 elements of the input along i and 0 of padding behind; it has 7" },
		{ PUBLIC("i:4", STEP "\"padFront_\":0,\"padBack_\":1,\"totalSize_\":9"),
		  SPYRE_ERROR_PARSE, "reach 7 elements of the input along i and 1 of padding" },
		{ PUBLIC("i:4", STEP "\"padFront_\":1,\"padBack_\":1,\"totalSize_\":8,"
			 "\"unneededPadBack_\":6"),
		  SPYRE_ERROR_PARSE, "more than the padding" },
		{ PUBLIC("i:4", STEP "\"padFront_\":2,\"padBack_\":0,\"totalSize_\":8"),
		  SPYRE_ERROR_PARSE, "padFront_" },
		{ PUBLIC("i:4", STEP "\"padFront_\":0,\"padBack_\":0,\"totalSize_\":-8"),
		  SPYRE_ERROR_PARSE, "totalSize_" },
		{ PUBLIC("i:4", "\"stride_\":0,\"dilation_\":1,\"windowDim_\":\"ki\""),
		  SPYRE_ERROR_PARSE, "stride_" },
		{ PUBLIC("i:4", "\"stride_\":2,\"dilation_\":1,\"windowDim_\":\"mb\""),
		  SPYRE_ERROR_PARSE, "the taps along i" },
		{ PUBLIC("i:4/2", STEP "\"padFront_\":1,\"padBack_\":0,\"totalSize_\":8"),
		  SPYRE_ERROR_UNSUPPORTED, "divided over cores with padding of 1 in front" },
		/* Addresses that count the rows of the output. */
		{ STARTING(1, "i:4/2", STEP "\"padFront_\":0,\"padBack_\":0,\"totalSize_\":8"),
		  SPYRE_ERROR_UNSUPPORTED,
		  "of core 1 starts 256 bytes after that of core 0; the first element that it accesses along i is 512 bytes after, 4 rows" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		make_refused(&cases[i].c, cases[i].status, cases[i].text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sdsc_pool");
	TCase *t = tcase_create("pool");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, max_pool, 0, sizeof(largest) / sizeof(largest[0]));
	tcase_add_loop_test(t, average_pool, 0, sizeof(averages) / sizeof(averages[0]));
	tcase_add_loop_test(t, average_pool_with_map, 0, sizeof(maps) / sizeof(maps[0]));
	tcase_add_test(t, refusals);
	tcase_add_test(t, public_form);
	suite_add_tcase(suite, t);
	return suite_run(suite);
}
