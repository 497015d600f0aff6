// SPDX-License-Identifier: MIT
/*
 * Refusals of shuffle, which changes the division of a tensor in LX over the cores. The
 * family "shuffle" of the conformance tests checks its results.
 */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/sdsc_make.h"
#include "suite.h"

#define ROWS "{\"0\":{\"mb\":0,\"out\":0},\"1\":{\"mb\":1,\"out\":0}}"
#define COLUMNS "{\"0\":{\"mb\":0,\"out\":0},\"1\":{\"mb\":0,\"out\":1}}"
#define DIAGONAL "{\"0\":{\"mb\":0,\"out\":0},\"1\":{\"mb\":1,\"out\":1}}"
#define THIRDS "{\"0\":{\"mb\":0,\"out\":0},\"1\":{\"mb\":2,\"out\":0}}"
#define BEYOND "{\"0\":{\"mb\":0,\"out\":0},\"1\":{\"mb\":32,\"out\":0}}"
#define ONE_CORE "{\"0\":{\"mb\":0,\"out\":0}}"

#define FOUR_ROWS \
	"{\"mb\":{\"folds\":{\"dim_prop_attr\":[{\"label_\":\"core_fold\",\"factor_\":4}]}}}"

#define FP16 "SEN169_FP16 out* mb"
#define SHUFFLE(from, to) .op = "shuffle", .dims = "mb:4/2 out:128", .tensor = { from, to }
#define HELD(in, out) .lx = { { true, 0, in }, { true, 4096, out } }

static const struct make_case unsupported[] = {
	{ SHUFFLE(FP16, FP16) },
	{ SHUFFLE(FP16, FP16), .lx = { { true, 0, ROWS } } },
	{ SHUFFLE(FP16, "IEEE_FP32 out* mb"), HELD(ROWS, COLUMNS) },
	{ SHUFFLE(FP16, "SEN169_FP16 mb* out"), HELD(ROWS, COLUMNS) },
	{ .op = "shuffle", .dims = "mb:4/2 out:192", .tensor = { FP16, FP16 },
	  HELD(ROWS, COLUMNS) },
	/* An earlier kernel's tensor: no other SDSC of the bundle writes it. */
	{ SHUFFLE(FP16, FP16), HELD(ROWS, COLUMNS) },
};

static const char *const unsupported_texts[] = {
	"a tensor in HBM", "a tensor in HBM", "SEN169_FP16 to IEEE_FP32",
	"sticks along out that become sticks along mb", "slices of out that begin within a stick",
	"Tensor0 is in LX from byte 0 on, which no earlier SDSC of the bundle writes",
};

static const struct make_case wrong[] = {
	{ SHUFFLE(FP16, FP16), HELD(DIAGONAL, ROWS) },
	{ SHUFFLE(FP16, FP16), HELD(THIRDS, ROWS) },
	{ SHUFFLE(FP16, FP16), HELD(BEYOND, ROWS) },
	{ SHUFFLE(FP16, FP16), HELD(ROWS, ONE_CORE) },
	{ SHUFFLE(FP16, FP16), HELD(ROWS, "7") },
	{ SHUFFLE(FP16, FP16), .lx = { { true, 0, ROWS, FOUR_ROWS }, { true, 4096, COLUMNS } } },
};

static const char *const wrong_texts[] = {
	"no core holds 128 of the elements that core 0 receives",
	"slices of mb that divide N_ 4, the highest is 2", "0 to 31", "coreIdToWkSlice_.1",
	"an object", "mb.folds.dim_prop_attr[0].factor_",
};

START_TEST(refusals)
{
	for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
		make_refused(&unsupported[i], SPYRE_ERROR_UNSUPPORTED, unsupported_texts[i]);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		make_refused(&wrong[i], SPYRE_ERROR_PARSE, wrong_texts[i]);
}
END_TEST

/* Input and output overlap, and no LX is left for a copy. */
START_TEST(no_lx_left)
{
	static const struct make_case full = {
		.op = "shuffle", .dims = "mb:8/2 out:163840", .tensor = { FP16, FP16 },
		.lx = { { true, 0, ROWS }, { true, 0, COLUMNS } },
	};

	make_refused(&full, SPYRE_ERROR_LX_OVERFLOW, "input and output overlap in LX");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sdsc_shuffle");
	TCase *tcase = tcase_create("refusals");

	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, no_lx_left);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
