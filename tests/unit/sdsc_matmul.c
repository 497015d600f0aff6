// SPDX-License-Identifier: MIT
/*
 * Products in all formats, bit by bit against a naive product: shapes, work
 * divisions, K in parts, and unsupported combinations.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sdsc_bundle.h"
#include "suite.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct product {
	const char *op, *dims, *a, *b, *c;
};

static const struct product products[] = {
	{ "batchmatmul", "mb 6/2, out 128/2, in 192", "SEN169_FP16 [in 64] mb in",
	  "SEN169_FP16 [out 64] in out", "SEN169_FP16 [out 64] mb out" },
	{ "batchmatmul", "in 256/4, mb 5, out 192/3", "SEN169_FP16 [in 64] mb in",
	  "SEN169_FP16 [out 64] in out", "SEN169_FP16 [out 64] mb out" },
	{ "batchmatmul", "out 128, in 128", "SEN169_FP16 [in 64] in",
	  "SEN169_FP16 [out 64] in out", "SEN169_FP16 [out 64] out" },
	{ "batchmatmul", "x 3/3, y 2, mb 4, out 64, in 64", "BFLOAT16 [in 64] mb in y x",
	  "IEEE_FP16 [out 64] in out x", "BFLOAT16 [out 64] y mb out x" },
	/* fp32 for all operands */
	{ "batchmatmul", "mb 7, out 96/3, in 64/2", "IEEE_FP32 [in 32] mb in",
	  "IEEE_FP32 [out 32] in out", "IEEE_FP32 [out 32] mb out" },
	{ "batchmatmul", "x 2, mb 3, out 192, in 128", "SEN169_FP16 [in 64] mb in x",
	  "SEN169_FP16 [out 64] in out x", "IEEE_FP32 [out 32] mb out x" },
	{ "batchmatmul", "x 2/2, mb 3, out 128, in 96", "IEEE_FP32 [in 32] mb in x",
	  "IEEE_FP32 [out 32] in out x", "SEN169_FP16 [out 64] mb out x" },
	{ "batchmatmul", "mb 3, out 64, in 64", "SEN169_FP16 [in 64] mb in",
	  "IEEE_FP32 [out 32] in out", "SEN169_FP16 [out 64] out mb" },
	{ "batchmatmul", "mb 4, out 32, in 64", "SEN169_FP16 [in 64] mb in",
	  "IEEE_FP32 [out 32] in out", "IEEE_FP32 [out 32] mb out" },
	/* K longer than an instruction supports, sums in LX or in the result */
	{ "batchmatmul", "mb 3, out 64, in 131136", "SEN169_FP16 [in 64] mb in",
	  "SEN169_FP16 [out 64] in out", "SEN169_FP16 [out 64] mb out" },
	{ "batchmatmul", "mb 2, out 32, in 65536", "IEEE_FP32 [in 32] mb in",
	  "IEEE_FP32 [out 32] in out", "IEEE_FP32 [out 32] mb out" },
	/* fp8 */
	{ "batchmatmulfp8", "mb 5, out 128/2, in 256", "SEN143_FP8 [in 128] mb in",
	  "SEN143_FP8 [in 2, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	{ "batchmatmulfp8", "in 512/4, mb 8/2, out 64", "SEN143_FP8 [in 128] mb in",
	  "SEN152_FP8 [in 2, out 64] in out", "IEEE_FP32 [out 32] mb out" },
	{ "batchmatmulfp8", "x 3/3, mb 2, out 64, in 128", "SEN152_FP8 [in 128] mb in x",
	  "SEN143_FP8 [in 2, out 64] in out", "BFLOAT16 [out 64] mb out x" },
	{ "batchmatmulfp8", "mb 2, out 64, in 65536", "SEN143_FP8 [in 128] mb in",
	  "SEN143_FP8 [in 2, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	/* int8 */
	{ "batchmatmulint8", "mb 5, out 128/2, in 256", "SENINT8 [in 128] mb in",
	  "SENINT8 [in 2, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	{ "batchmatmulint8", "in 512/4, mb 8/2, out 64", "SENINT8 [in 128] mb in",
	  "SENINT8 [in 2, out 64] in out", "IEEE_INT32 [out 32] mb out" },
	{ "batchmatmulint8", "in 4096/8, mb 3, out 192", "SENINT8 [in 128] mb in",
	  "SENINT8 [in 2, out 64] in out", "IEEE_FP32 [out 32] mb out" },
	{ "batchmatmulint8", "in 256/2, out 64/1", "SENINT8 [in 128] in",
	  "SENINT8 [in 2, out 64] in out", "SEN169_FP16 [out 64] out" },
	{ "batchmatmulint8", "mb 2, out 64, in 65536", "SENINT8 [in 128] mb in",
	  "SENINT8 [in 2, out 64] in out", "IEEE_INT32 [out 32] mb out" },
	/* int4: pairs of rows, also where one is missing */
	{ "batchmatmulint4", "mb 6, out 128/2, in 256", "SENINT4 [in 16, mb 2, in 8] mb in",
	  "SENINT4 [in 4, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	{ "batchmatmulint4", "mb 1, out 64, in 128", "SENINT4 [in 16, mb 2, in 8] mb in",
	  "SENINT4 [in 4, out 64] in out", "IEEE_INT32 [out 32] mb out" },
	{ "batchmatmulint4", "in 512/4, mb 5, out 192", "SENINT4 [in 16, mb 2, in 8] mb in",
	  "SENINT4 [in 4, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	{ "batchmatmulint4", "x 3/3, mb 4/2, out 64, in 128",
	  "SENINT4 [in 16, mb 2, in 8] mb in x", "SENINT4 [in 4, out 64] in out x",
	  "IEEE_FP32 [out 32] mb out x" },
};

static void begin(struct bundle_case *c, const struct product *p)
{
	bundle_begin(c, p->op, p->dims);
	bundle_tensor(c, p->a);
	bundle_tensor(c, p->b);
	bundle_tensor(c, p->c);
}

static bool is_integer(enum spyre_fmt format)
{
	return format == SPYRE_FMT_SENINT8 || format == SPYRE_FMT_SENINT4;
}

/* Computes one element: each core's part of K in ascending order, the parts in core order. */
static uint32_t naive(const struct bundle_case *c, int64_t *x)
{
	int64_t parts = 1, whole = 0;
	float sum = 0;
	int k = -1;

	for (int d = 0; d < c->num_dims; d++)
		if (!c->tensor[2].scale[d])
			k = d;
	parts = c->slices[k];
	for (int64_t p = 0; p < parts; p++) {
		float part = 0;

		for (int64_t i = 0; i < c->size[k] / parts; i++) {
			float a, b;

			x[k] = p * (c->size[k] / parts) + i;
			a = bundle_number(c->tensor[0].format, *bundle_at(c, 0, x));
			b = bundle_number(c->tensor[1].format, *bundle_at(c, 1, x));
			part = fmaf(a, b, part);
			whole += (int64_t)a * (int64_t)b;
		}
		sum = p ? sum + part : part;
	}
	x[k] = 0;
	if (is_integer(c->tensor[0].format)) {
		sum = (float)whole;
		if (c->tensor[2].format == SPYRE_FMT_IEEE_INT32)
			return (uint32_t)whole;
	}
	return bundle_code(c->tensor[2].format, sum);
}

START_TEST(product)
{
	const struct product *p = &products[_i];
	int64_t x[BUNDLE_DIMS] = { 0 };
	struct bundle_case c;

	begin(&c, p);
	for (int i = 0; i < 2; i++)
		bundle_draw(&c, i, c.tensor[i].format == SPYRE_FMT_SENINT8 ? 128 :
				   c.tensor[i].format == SPYRE_FMT_SENINT4 ? 8 : 1);
	bundle_run(&c);
	do {
		uint32_t got, want;
		bool first = true;

		for (int d = 0; d < c.num_dims; d++)
			first = first && (c.tensor[2].scale[d] || !x[d]);
		if (!first)
			continue;
		got = *bundle_at(&c, 2, x);
		want = naive(&c, x);
		ck_assert_msg(got == want, "%s %s: element %ld %ld %ld is %x, expected %x", p->op,
			      p->dims, (long)x[0], (long)x[1], (long)x[2], got, want);
	} while (bundle_next(&c, x));
	bundle_end(&c);
}
END_TEST

static const struct {
	struct product p;
	const char *words;
} bads[] = {
	{ { "batchmatmul", "mb 4, out 64, in 128", "SENINT8 [in 128] mb in",
	    "SENINT8 [in 2, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	  "batchmatmul: Tensor0 is SENINT8" },
	{ { "batchmatmulfp8", "mb 4, out 64, in 128", "SENINT8 [in 128] mb in",
	    "SENINT8 [in 2, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	  "batchmatmulfp8: Tensor0 is SENINT8" },
	{ { "batchmatmulfp8", "mb 4, out 128, in 128", "SEN143_FP8 [in 128] mb in",
	    "SEN143_FP8 [out 128] in out", "SEN169_FP16 [out 64] mb out" },
	  "batchmatmulfp8: Tensor1 is SEN143_FP8 in sticks of [out 128]" },
	{ { "batchmatmulint8", "mb 4, out 64, in 128", "SENINT8 [in 8, mb 2, in 8] mb in",
	    "SENINT8 [in 2, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	  "batchmatmulint8: Tensor0 is SENINT8 in sticks of [in 8, mb 2, in 8]" },
	{ { "batchmatmulint8", "mb 4, out 128, in 128", "SENINT8 [in 128] mb in",
	    "SENINT8 [in 2, out 64] in out", "SENINT8 [out 128] mb out" },
	  "batchmatmulint8: Tensor2 is SENINT8" },
	{ { "batchmatmulint4", "mb 4, out 64, in 128", "SENINT8 [in 128] mb in",
	    "SENINT4 [in 4, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	  "batchmatmulint4: Tensor0 is SENINT8" },
	{ { "batchmatmulfp8", "mb 4, out 64, in 128", "SEN143_FP8 [in 128] mb in",
	    "SEN143_FP8 [in 2, out 64] in out", "IEEE_INT32 [out 32] mb out" },
	  "batchmatmulfp8: Tensor2 is IEEE_INT32" },
	{ { "batchmatmulfp8", "mb 4, out 64, in 64", "SEN143_FP8 [in 128] mb in",
	    "SEN143_FP8 [in 2, out 64] in out", "SEN169_FP16 [out 64] mb out" },
	  "a core's share is in 64" },
	{ { "exp", "mb 4, out 64, in 1", "SEN143_FP8 [mb 2, out 64] mb out",
	    "SEN169_FP16 [out 64] mb out", "SEN169_FP16 [out 64] mb out" },
	  "exp: Tensor0 is SEN143_FP8 with elements of several dimensions" },
};

START_TEST(refused)
{
	struct bundle_case c;

	begin(&c, &bads[_i].p);
	bundle_refused(&c, SPYRE_ERROR_UNSUPPORTED, bads[_i].words);
	bundle_end(&c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sdsc_matmul");
	TCase *t = tcase_create("products");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, product, 0, COUNT(products));
	tcase_add_loop_test(t, refused, 0, COUNT(bads));
	suite_add_tcase(s, t);
	return suite_run_many(s);
}
