// SPDX-License-Identifier: MIT
/*
 * Where memory ends that lacks padding for the sticks of another tensor, by what a bundle
 * shows. The family "padded" of the conformance tests checks the results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle_files.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "runtime_check.h"

/* A tensor in sticks along "out", its rows next to each other. */
struct operand {
	const char *format;
	int word;
};

struct step {
	const char *op;
	int columns;
	struct operand in, out;
	const char *operands;		/* in bundle.mlir */
};

#define DL16 { "SEN169_FP16", 2 }
#define FP8 { "SEN143_FP8", 1 }
#define STEPS 4

static char folder[64];

static void put_tensor(char *text, size_t size, int index, const struct operand *o)
{
	snprintf(text, size,
		 "{\"ldsIdx_\":%d,\"dsType_\":\"D%d\",\"scale_\":[1,1],\"wordLength\":%d,\"dataFormat_\":\"%s\"}",
		 index, index, o->word, o->format);
}

static void put_step(int number, int rows, const struct step *s)
{
	static char text[8192];
	char name[32], lds[2][256], share[64];

	put_tensor(lds[0], sizeof(lds[0]), 0, &s->in);
	put_tensor(lds[1], sizeof(lds[1]), 1, &s->out);
	snprintf(share, sizeof(share), "\"mb_\":%d,\"out_\":%d", rows, s->columns);
	snprintf(text, sizeof(text),
		 "{\"%d_%s\":{\"numCoresUsed_\":1,\"numWkSlicesPerDim_\":{\"mb\":1,\"out\":1},"
		 "\"coreIdToWkSlice_\":{\"0\":{\"mb\":0,\"out\":0}},\"dscs_\":[{\"%s\":{"
		 "\"coreIdsUsed_\":[0],\"N_\":{%s},\"coordinateMasking_\":{},"
		 "\"dataStageParam_\":{\"0\":{\"el_\":{%s}}},\"primaryDsInfo_\":{"
		 "\"D0\":{\"layoutDimOrder_\":[\"mb\",\"out\"],\"stickDimOrder_\":[\"out\"],\"stickSize_\":[%d]},"
		 "\"D1\":{\"layoutDimOrder_\":[\"mb\",\"out\"],\"stickDimOrder_\":[\"out\"],\"stickSize_\":[%d]}},"
		 "\"scheduleTree_\":["
		 "{\"ldsIdx_\":0,\"component_\":\"hbm\",\"layoutDimOrder_\":[\"mb\",\"out\"],"
		 "\"startAddressCoreCorelet_\":{\"data_\":{\"[0, 0, 0]\":\"-1\"}}},"
		 "{\"ldsIdx_\":1,\"component_\":\"hbm\",\"layoutDimOrder_\":[\"mb\",\"out\"],"
		 "\"startAddressCoreCorelet_\":{\"data_\":{\"[0, 0, 0]\":\"-2\"}}}],"
		 "\"labeledDs_\":[%s,%s],\"constantInfo_\":\"{}\",\"computeOp_\":[{\"opFuncName\":\"%s\","
		 "\"inputLabeledDs\":[\"T-idx0\"],\"outputLabeledDs\":[\"T-idx1\"]}]}}]}}",
		 number, s->op, s->op, share, share, 128 / s->in.word, 128 / s->out.word, lds[0],
		 lds[1], s->op);
	snprintf(name, sizeof(name), "sdsc_%d.json", number);
	files_write(folder, name, text);
}

struct sample {
	int rows;
	unsigned int bytes;		/* of the allocation */
	unsigned int second;		/* place of %b in it; %a is at its start */
	struct step step[STEPS];
	spyre_status status;
	const char *word;
	unsigned int argument;		/* bytes of argument 0 */
};

static const struct sample samples[] = {
	/* neg shows the end of fp8todl16's output, which shows that of qfp8ch's input. */
	{ 2, 512, 256, { { "qfp8ch", 128, DL16, FP8, "%arg_0, %a" },
			 { "fp8todl16", 128, FP8, DL16, "%a, %b" },
			 { "neg", 64, DL16, DL16, "%b, %arg_1" } }, SPYRE_SUCCESS, NULL, 256 },
	/* Both halves of the sticks of 128 are data. */
	{ 2, 768, 256, { { "qfp8ch", 128, DL16, FP8, "%arg_0, %a" },
			 { "fp8todl16", 128, FP8, DL16, "%a, %b" },
			 { "neg", 128, DL16, DL16, "%b, %arg_1" } }, SPYRE_SUCCESS, NULL, 512 },
	/* Another step uses all elements of the fp8 tensor, and so does the owner of argument 1. */
	{ 2, 512, 256, { { "qfp8ch", 128, DL16, FP8, "%arg_0, %a" },
			 { "fp8todl16", 128, FP8, DL16, "%a, %b" },
			 { "neg", 64, DL16, DL16, "%b, %arg_1" },
			 { "identity", 128, FP8, FP8, "%a, %arg_2" } }, SPYRE_SUCCESS, NULL, 512 },
	{ 2, 256, 0, { { "qfp8ch", 128, DL16, FP8, "%arg_0, %a" },
		       { "fp8todl16", 128, FP8, DL16, "%a, %arg_1" } }, SPYRE_SUCCESS, NULL, 512 },
	/* Without its padding, the output still does not fit. */
	{ 2, 384, 256, { { "qfp8ch", 128, DL16, FP8, "%arg_0, %a" },
			 { "fp8todl16", 128, FP8, DL16, "%a, %b" },
			 { "neg", 64, DL16, DL16, "%b, %arg_1" } },
	  SPYRE_ERROR_PARSE, "of 384 bytes, the SDSCs use 512", 0 },
	{ 2, 256, 128, { { "abs", 192, DL16, DL16, "%arg_0, %a" } },
	  SPYRE_ERROR_PARSE, "of 256 bytes, the SDSCs use 768", 0 },
	/* The output overlaps the input. */
	{ 2, 512, 128, { { "qfp8ch", 128, DL16, FP8, "%arg_0, %b" },
			 { "fp8todl16", 128, FP8, DL16, "%b, %a" },
			 { "neg", 64, DL16, DL16, "%a, %arg_1" } }, SPYRE_SUCCESS, NULL, 256 },
	{ 32768, 1 << 24, 128, { { "fp8todl16", 128, FP8, DL16, "%b, %a" } },
	  SPYRE_ERROR_LX_OVERFLOW, "the output overlaps inputs", 0 },
};

static void put_bundle(const struct sample *s)
{
	static char text[4096];
	size_t used = (size_t)snprintf(text, sizeof(text), "module {\n\tfunc.func @sdsc_bundle(");

	for (int i = 0; i < 3; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%%arg_%d_base_addr: !sdscbundle.input_arg<index>",
					 i ? ", " : "", i);
	used += (size_t)snprintf(text + used, sizeof(text) - used,
				 ") {\n\t\t%%a = sdscbundle.device_mem_allocate %u bytes : index\n"
				 "\t\t%%o = arith.constant %u : index\n"
				 "\t\t%%b = arith.addi %%a, %%o : index\n", s->bytes, s->second);
	for (int i = 0; i < 3; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "\t\t%%arg_%d = sdscbundle.input_arg_extract value from %%arg_%d_base_addr : !sdscbundle.input_arg<index> -> index\n",
					 i, i);
	for (int i = 0; i < STEPS && s->step[i].op; i++) {
		put_step(i, s->rows, &s->step[i]);
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "\t\tsdscbundle.sdsc_execute (%s) {sdsc_filename=\"sdsc_%d.json\", \"symbol_ids\"=[-1, -2]}\n",
					 s->step[i].operands, i);
	}
	snprintf(text + used, sizeof(text) - used, "\t\treturn\n\t}\n}\n");
	files_write(folder, "bundle.mlir", text);
}

START_TEST(reach)
{
	const struct sample *s = &samples[_i];
	struct spyre_bundle bundle;

	files_make(folder);
	put_bundle(s);
	ck_assert_int_eq(spyre_bundle_load(folder, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL),
			 s->status);
	if (s->status) {
		ck_assert_msg(strstr(spyre_last_error(), s->word), "%s", spyre_last_error());
	} else {
		ck_assert_uint_eq(bundle.args[0].bytes, s->argument);
		ck_assert_uint_le(bundle.pool_bytes, s->bytes);
		spyre_bundle_fini(&bundle);
	}
	files_remove(folder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bundle_reach");
	TCase *tcase = tcase_create("reach");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, reach, 0, sizeof(samples) / sizeof(samples[0]));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
