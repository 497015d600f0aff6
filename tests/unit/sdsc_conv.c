// SPDX-License-Identifier: MIT
/* conv2d and depthwiseconv2dnative against loops over every tap. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sdsc_make.h"
#include "suite.h"

#define X "SEN169_FP16 in* j i mb"
#define W "SEN169_FP16 out* in kj ki"
#define Y "SEN169_FP16 out* j i mb"

#define PLAIN { 1, 1, 0, 0 }
#define CONV(sizes, ...) { .op = "conv2d", .dims = sizes, .tensor = { X, W, Y }, \
	.window = true, .axis = { __VA_ARGS__ }, .low = -0.25, .high = 0.25, .tolerance = 2e-3 }

static const struct make_case convolutions[] = {
	/* 1 x 1 is one product, also with a stride */
	CONV("mb:2 out:64 i:5 j:7 ki:1 kj:1 in:64", PLAIN, PLAIN),
	CONV("mb:2/2 out:128/2 i:5 j:4 ki:1 kj:1 in:128", { 2, 1, 0, 0 }, { 3, 1, 0, 0 }),
	CONV("mb:1 out:64 i:6 j:5 ki:3 kj:3 in:64", PLAIN, PLAIN),
	CONV("mb:2 out:64 i:6 j:6 ki:3 kj:3 in:128", { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	CONV("mb:1 out:128 i:6/3 j:6/2 ki:3 kj:3 in:64", { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	/* a first layer: 7 x 7, stride 2, padding that is not read */
	CONV("mb:1 out:64 i:8/4 j:8 ki:7 kj:7 in:64", { 2, 1, 3, 2 }, { 2, 1, 3, 2 }),
	CONV("mb:1 out:64 i:7 j:4/4 ki:3 kj:2 in:64", { 1, 2, 2, 1 }, { 3, 3, 0, 2 }),
	/* nearly all of the input is padding */
	CONV("mb:1 out:64 i:5/5 j:5 ki:3 kj:5 in:64", { 1, 1, 2, 2 }, { 1, 1, 4, 3 }),
	/* outputs between the taps of a wide window: zeros */
	CONV("mb:1 out:64 i:6 j:3 ki:2 kj:1 in:64", { 1, 9, 6, 7 }, PLAIN),
	/* channels in and taps divided: partial sums */
	CONV("mb:1 out:64 i:4 j:4 ki:3 kj:3 in:256/4", { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	CONV("mb:1 out:64 i:4/2 j:4 ki:3/3 kj:2/2 in:64", { 1, 1, 1, 1 }, { 2, 1, 1, 0 }),
	/* more than one tile: over rows, and over batch */
	CONV("mb:1 out:320 i:20 j:21 ki:2 kj:1 in:64", { 1, 1, 1, 0 }, { 2, 1, 0, 0 }),
	CONV("mb:5 out:256 i:5 j:22 ki:1 kj:2 in:64", PLAIN, { 1, 1, 1, 0 }),
	/* along rows only */
	{ .op = "conv2d", .dims = "out:64 i:9 ki:4 in:64",
	  .tensor = { "SEN169_FP16 in* i", "SEN169_FP16 out* in ki", "SEN169_FP16 out* i" },
	  .window = true, .axis = { { 2, 1, 1, 2 }, { 1, 1, 0, 0 } }, .low = -0.25, .high = 0.25,
	  .tolerance = 2e-3 },
	/* other memory orders, gaps, a group dimension, rows after the last window */
	{ .op = "conv2d", .dims = "mb:2 out:64 i:4 j:5 ki:2 kj:3 in:128 x:2/2",
	  .tensor = { "SEN169_FP16 i+3 mb in* x j+1", "SEN169_FP16 kj x ki out* in",
		      "SEN169_FP16 mb x j+2 i out*" },
	  .window = true, .axis = { { 2, 1, 0, 1 }, { 1, 2, 1, 1 } }, .low = -0.25, .high = 0.25,
	  .tolerance = 2e-3 },
	/* fp32 in sticks of 32, and mixed with DL16 */
	{ .op = "conv2d", .dims = "mb:2 out:64 i:5/5 j:6 ki:3 kj:3 in:64",
	  .tensor = { "IEEE_FP32 in* j i mb", "IEEE_FP32 out* in kj ki", "IEEE_FP32 out* j i mb" },
	  .window = true, .axis = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } }, .tolerance = 1e-4 },
	{ .op = "conv2d", .dims = "mb:1 out:96 i:5 j:6 ki:1 kj:1 in:32",
	  .tensor = { "IEEE_FP32 in* j i mb", "IEEE_FP32 out* in kj ki", "IEEE_FP32 out* j i mb" },
	  .window = true, .axis = { { 1, 1, 0, 0 }, { 2, 1, 0, 0 } }, .tolerance = 1e-4 },
	{ .op = "conv2d", .dims = "mb:1 out:128/2 i:5 j:6 ki:3 kj:2 in:64/2",
	  .tensor = { "IEEE_FP32 in* j i mb", "IEEE_FP32 out* in kj ki", "IEEE_FP32 out* j i mb" },
	  .window = true, .axis = { { 1, 1, 2, 1 }, { 2, 1, 1, 0 } }, .tolerance = 1e-4 },
	{ .op = "conv2d", .dims = "mb:1 out:128 i:5 j:6 ki:3 kj:3 in:64",
	  .tensor = { "IEEE_FP32 in* j i mb", W, "IEEE_FP32 out* j i mb" },
	  .window = true, .axis = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } }, .low = -0.25, .high = 0.25,
	  .tolerance = 1e-4 },
	{ .op = "conv2d", .dims = "mb:2 out:64 i:5 j:6 ki:3 kj:3 in:64",
	  .tensor = { "IEEE_FP16 in* j i mb", "BFLOAT16 out* in kj ki", "BFLOAT16 out* j i mb" },
	  .window = true, .axis = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } }, .low = -0.25, .high = 0.25,
	  .tolerance = 8e-3 },
	/* eight bits: weights in pairs of rows of K */
#define BYTES(name, x, w, y, sizes, most, ...) { .op = name, .dims = sizes, \
	.tensor = { x " in* j i mb", w " out* in% kj ki", y " out* j i mb" }, .window = true, \
	.axis = { __VA_ARGS__ }, .low = -2, .high = 2, .tolerance = most }
	BYTES("conv2dfp8", "SEN143_FP8", "SEN143_FP8", "SEN169_FP16",
	      "mb:2 out:64 i:4 j:5 ki:3 kj:3 in:128", 4e-3, { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	BYTES("conv2dfp8", "SEN152_FP8", "SEN143_FP8", "IEEE_FP32",
	      "mb:1 out:128/2 i:4/2 j:5 ki:2 kj:3 in:256", 1e-4, { 2, 1, 1, 0 }, { 1, 2, 1, 1 }),
	BYTES("conv2dfp8", "SEN143_FP8", "SEN152_FP8", "SEN169_FP16",
	      "mb:1 out:64 i:4 j:5 ki:1 kj:1 in:256/2", 4e-3, { 1, 1, 0, 0 }, { 1, 1, 0, 0 }),
#undef BYTES
#define BYTES(y, sizes, most, ...) { .op = "conv2dint8", .dims = sizes, \
	.tensor = { "SENINT8 in* j i mb", "SENINT8 out* in% kj ki", y " out* j i mb" }, \
	.window = true, .axis = { __VA_ARGS__ }, .low = -128, .high = 127, .tolerance = most }
	BYTES("IEEE_INT32", "mb:2 out:64 i:4 j:5 ki:3 kj:3 in:128", 0, { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	BYTES("IEEE_FP32", "mb:1 out:128/2 i:4/2 j:5 ki:2 kj:3 in:256", 1e-7, { 2, 1, 1, 0 },
	      { 1, 2, 1, 1 }),
	BYTES("SEN169_FP16", "mb:2/2 out:64 i:4 j:5 ki:1 kj:1 in:128", 4e-3, { 3, 1, 0, 0 },
	      { 1, 1, 0, 0 }),
};

#define DX "SEN169_FP16 mb out* i j"
#define DW "SEN169_FP16 out* ki kj"
#define DEPTHWISE(sizes, ...) { .op = "depthwiseconv2dnative", .dims = sizes, \
	.tensor = { DX, DW, DX }, .window = true, .axis = { __VA_ARGS__ }, .tolerance = 4e-3 }
#define FP32_DEPTHWISE(sizes, ...) { .op = "depthwiseconv2dnative", .dims = sizes, \
	.tensor = { "IEEE_FP32 out* j i mb", "IEEE_FP32 ki kj out*", "IEEE_FP32 out* j i mb" }, \
	.window = true, .axis = { __VA_ARGS__ }, .tolerance = 1e-5 }

#define ONE_TAP(tap, size) "{\"padFront_\":0,\"padBack_\":0,\"totalSize_\":" size "," \
	"\"stride_\":1,\"dilation_\":1,\"windowDim_\":\"" tap "\"}"

static const struct make_case depthwise[] = {
	DEPTHWISE("mb:1 out:64 i:6 j:6 ki:3 kj:3", PLAIN, PLAIN),
	DEPTHWISE("mb:1 out:64 i:32 j:32 ki:3 kj:3", { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	DEPTHWISE("mb:2/2 out:192/3 i:6/2 j:5 ki:3 kj:5", { 2, 1, 1, 1 }, { 1, 1, 2, 2 }),
	DEPTHWISE("mb:2 out:128 i:6/3 j:5/5 ki:3 kj:2", { 1, 3, 4, 2 }, { 3, 2, 1, 0 }),
	DEPTHWISE("mb:1 out:64 i:6 j:3 ki:2 kj:1", { 1, 9, 6, 7 }, PLAIN),
	DEPTHWISE("mb:1 out:64 i:3 j:9 ki:1 kj:1", { 2, 1, 0, 0 }, PLAIN),
	FP32_DEPTHWISE("mb:1 out:32 i:6 j:6 ki:3 kj:3", PLAIN, PLAIN),
	FP32_DEPTHWISE("mb:2 out:96/3 i:6/2 j:6 ki:3 kj:3", { 1, 1, 1, 1 }, { 1, 1, 1, 1 }),
	FP32_DEPTHWISE("mb:2/2 out:64 i:4 j:4/4 ki:2 kj:4", { 3, 2, 1, 2 }, { 1, 1, 3, 3 }),
	/* One column, which the public form drops: kj has no j. */
	{ .op = "depthwiseconv2dnative", .dims = "out:64 i:64/32 ki:1 kj:1",
	  .tensor = { "SEN169_FP16 out* i", "SEN169_FP16 out* ki kj", "SEN169_FP16 out* i" },
	  .window = true, .axis = { PLAIN, PLAIN }, .tolerance = 4e-3,
	  .sizes = "\"paddingSizes_\":{\"i\":" ONE_TAP("ki", "64") ",\"j\":" ONE_TAP("kj", "1") "}" },
	{ .op = "depthwiseconv2dnative", .dims = "mb:2 out:64 i:5 j:6 ki:3 kj:3",
	  .tensor = { "IEEE_FP16 out* j i mb", "BFLOAT16 out* kj ki", "IEEE_FP32 out* j i mb" },
	  .window = true, .axis = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } }, .tolerance = 1e-5 },
};

/*
 * Computes the sum over the taps of one input channel; changes the coordinates
 * along taps and rows.
 */
static double over_window(const struct make *m, const struct make_case *c, int64_t *at,
			  const int64_t *out)
{
	double sum = 0;

	for (int64_t ki = 0; ki < make_size(m, "ki"); ki++)
		for (int64_t kj = 0; kj < make_size(m, "kj"); kj++) {
			const int64_t tap[2] = { ki, kj };
			bool inside = true;

			for (int k = 0; k < 2; k++) {
				const struct make_axis *a = &c->axis[k];
				int64_t place;

				if (make_size(m, k ? "kj" : "ki") == 1 &&
				    make_size(m, k ? "j" : "i") == 1)
					continue;
				place = out[make_dim(m, k ? "j" : "i")] * a->stride +
					tap[k] * a->dilation - a->before;
				inside = inside && place >= 0 && place < make_input_size(m, k);
				at[make_dim(m, k ? "j" : "i")] = place;
				if (make_size(m, k ? "kj" : "ki") > 1)
					at[make_dim(m, k ? "kj" : "ki")] = tap[k];
			}
			if (inside)
				sum += make_get(m, 0, at) * make_get(m, 1, at);
		}
	return sum;
}

static const struct make_case *current;

/* Long sums are computed for every eighth output only, a different one in each row. */
static bool left_out(const struct make *m, const int64_t *out)
{
	int64_t terms = make_size(m, "ki") * make_size(m, "kj") * make_size(m, "in"), sum = 0;

	for (int d = 0; d < 4; d++) {
		terms *= make_size(m, d == 0 ? "out" : d == 1 ? "i" : d == 2 ? "j" : "mb");
		sum = sum * 3 + out[d];
	}
	return terms > 2000000 && sum % 8;
}

static double convolved(const struct make *m, const int64_t *out)
{
	int64_t at[MAKE_DIMS];
	double sum = 0;

	if (left_out(m, out))
		return NAN;
	memcpy(at, out, sizeof(at));
	for (int64_t in = 0; in < make_size(m, "in"); in++) {
		at[make_dim(m, "in")] = in;
		sum += over_window(m, current, at, out);
	}
	return sum;
}

static double depthwise_convolved(const struct make *m, const int64_t *out)
{
	int64_t at[MAKE_DIMS];

	memcpy(at, out, sizeof(at));
	return over_window(m, current, at, out);
}

static void run(const struct make_case *c, make_expect *expect)
{
	struct make *m = make_new(c);

	current = c;
	make_run(m, expect, c->dims);
	make_free(m);
}

START_TEST(convolution)
{
	run(&convolutions[_i], convolved);
}
END_TEST

START_TEST(depthwise_convolution)
{
	run(&depthwise[_i], depthwise_convolved);
}
END_TEST

START_TEST(refusals)
{
	static const struct make_case unsupported[] = {
		{ .op = "conv2d", .dims = "out:64 i:4 ki:70000 in:64", .window = true,
		  .tensor = { "SEN169_FP16 in* i", "SEN169_FP16 out* in ki-",
			      "SEN169_FP16 out* i" }, .axis = { PLAIN, PLAIN } },
		{ .op = "conv2d", .dims = "mb:1 out:64 i:4 j:64 ki:3 kj:3 in:64", .window = true,
		  .tensor = { "SEN169_FP16 j* in i mb", W, Y }, .axis = { PLAIN, PLAIN } },
		{ .op = "conv2d", .dims = "mb:1 out:64 i:4 j:4 ki:3 kj:3 in:64", .window = true,
		  .tensor = { X, "SEN169_FP16 in* out kj ki", Y }, .axis = { PLAIN, PLAIN } },
		{ .op = "conv2d", .dims = "mb:1 out:64 i:4 j:4 ki:3 kj:3 in:64", .window = true,
		  .tensor = { X, W, "SEN169_FP16 out* j i mb ki" }, .axis = { PLAIN, PLAIN } },
		{ .op = "conv2d", .dims = "mb:1 out:64 i:4 j:4 ki:3 kj:3 in:64", .window = true,
		  .tensor = { "SEN169_FP16 in* j i", "IEEE_INT32 out* in kj ki", Y },
		  .axis = { PLAIN, PLAIN } },
		{ .op = "conv2dfp8", .dims = "mb:1 out:128 i:4 j:4 ki:3 kj:3 in:128", .window = true,
		  .tensor = { "SEN143_FP8 in* j i", "SEN143_FP8 out* in kj ki", Y },
		  .axis = { PLAIN, PLAIN } },
		{ .op = "conv2dint8", .dims = "out:64 i:4 j:4 in:256/2", .window = true,
		  .tensor = { "SENINT8 in* j i", "SENINT8 out* in%", "SEN169_FP16 out* j i" },
		  .axis = { PLAIN, PLAIN } },
		{ .op = "conv2d", .dims = "mb:1 out:64 i:4 j:4 ki:3 kj:3 in:128", .window = true,
		  .tensor = { X, W, Y }, .axis = { PLAIN, PLAIN },
		  .masks = "{\"in\":[[100,28]]}" },
		{ .op = "conv2d", .dims = "mb:32/32 out:64 i:1 in:64 ki:65000", .window = true,
		  .tensor = { "SEN169_FP16 in* i mb", "SEN169_FP16 out* in ki-",
			      "SEN169_FP16 out* i mb" }, .axis = { { 1, 1, 64999, 0 }, PLAIN } },
	};
	static const char *const texts[] = {
		"more than 65536 products", "sticks along j", "along the channels in",
		"varies along ki", "IEEE_INT32", "in sticks of", "share sums of integers",
		"coordinateMasking_ of in", "cover only padding",
	};
	static const struct make_case wrong[] = {
		CONV("mb:1 out:64 i:4 j:4 ki:3 kj:3 in:64", { 1, 1, 3, 0 }, PLAIN),
		CONV("mb:1 out:64 i:4 j:4 ki:3 kj:3 in:64", { 0, 1, 0, 0 }, PLAIN),
		CONV("mb:1 out:64 i:1 j:4 ki:3 kj:3 in:64", { 1, 1, 1, 1 }, { 1, 1, 0, 3 }),
		{ .op = "conv2d", .dims = "mb:1 out:64 j:4 ki:3 kj:3 in:64", .window = false,
		  .tensor = { "SEN169_FP16 in* j mb", W, "SEN169_FP16 out* j mb" } },
		{ .op = "conv2d", .dims = "mb:1 out:64 i:4 j:4 ki:3 kj:3 in:64",
		  .tensor = { "SEN169_FP16 in* j- i mb", W, Y } },
	};
	static const char *const wrong_texts[] = {
		"paddingSizes_.i", "strides_.i", "paddingSizes_.j", "a dimension i",
		"must vary along j",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		make_refused(&unsupported[i], SPYRE_ERROR_UNSUPPORTED, texts[i]);
	for (size_t i = 0; i < sizeof(wrong_texts) / sizeof(wrong_texts[0]); i++)
		make_refused(&wrong[i], SPYRE_ERROR_PARSE, wrong_texts[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sdsc_conv");
	TCase *t = tcase_create("conv");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, convolution, 0, sizeof(convolutions) / sizeof(convolutions[0]));
	tcase_add_loop_test(t, depthwise_convolution, 0, sizeof(depthwise) / sizeof(depthwise[0]));
	tcase_add_test(t, refusals);
	suite_add_tcase(suite, t);
	return suite_run_many(suite);
}
