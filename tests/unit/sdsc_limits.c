// SPDX-License-Identifier: MIT
/*
 * Malicious bundles: sizes whose products overflow, addresses that no operation
 * uses, and texts that take a naive compiler n^2 steps.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spyre/spyre.h>

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/parse/mlir.h"
#include "suite.h"

/* A growing text. */
struct text {
	char *data;
	size_t size, capacity;
};

__attribute__((format(printf, 2, 3)))
static void put(struct text *t, const char *format, ...)
{
	va_list args;

	if (t->capacity - t->size < 4096) {
		t->capacity = t->capacity ? t->capacity * 2 : 1 << 16;
		t->data = realloc(t->data, t->capacity);
		ck_assert_ptr_nonnull(t->data);
	}
	va_start(args, format);
	t->size += (size_t)vsnprintf(t->data + t->size, t->capacity - t->size, format, args);
	va_end(args);
}

/* One core; a sum over p and q, along which neither tensor varies. */
static void put_sdsc(struct text *t, const char *p, const char *q, unsigned int tensors,
		     unsigned int nodes, unsigned int gaps)
{
	put(t, "{\"0_sum\":{\"numCoresUsed_\":1,\"numWkSlicesPerDim_\":{\"o\":1,\"p\":1,\"q\":1},"
	    "\"coreIdToWkSlice_\":{\"0\":{\"o\":0,\"p\":0,\"q\":0}},\"dscs_\":[{\"sum\":{"
	    "\"coreIdsUsed_\":[0],\"N_\":{\"o_\":64,\"p_\":%s,\"q_\":%s},"
	    "\"coordinateMasking_\":{},\"constantInfo_\":{},"
	    "\"dataStageParam_\":{\"0\":{\"el_\":{\"o_\":64,\"p_\":%s,\"q_\":%s}}},"
	    "\"primaryDsInfo_\":{\"X\":{\"layoutDimOrder_\":[\"o\"],\"stickDimOrder_\":[\"o\"],"
	    "\"stickSize_\":[64]}},\"scheduleTree_\":[", p, q, p, q);
	for (unsigned int i = 0; i < nodes; i++)
		put(t, "{\"ldsIdx_\":7},");
	for (unsigned int i = 0; i < tensors; i++) {
		put(t, "%s{\"ldsIdx_\":%u,\"component_\":\"hbm\",\"layoutDimOrder_\":[\"o\"],"
		    "\"startAddressCoreCorelet_\":{\"data_\":{\"[0, 0, 0]\":\"%llu\"}},"
		    "\"backGapCore_\":{\"o\":{\"-1\":\"0\"", i ? "," : "", i,
		    (unsigned long long)i << 34);
		for (unsigned int k = 0; k < gaps; k++)
			put(t, ",\"%u\":\"0\"", k);
		put(t, "}}}");
	}
	put(t, "],\"labeledDs_\":[");
	for (unsigned int i = 0; i < tensors; i++)
		put(t, "%s{\"ldsIdx_\":%u,\"wordLength\":2,\"dataFormat_\":\"SEN169_FP16\","
		    "\"dsType_\":\"X\",\"scale_\":[1]}", i ? "," : "", i);
	put(t, "],\"computeOp_\":[{\"opFuncName\":\"sumnonstick\",\"inputLabeledDs\":[\"T-idx0\"],"
	    "\"outputLabeledDs\":[\"T-idx1\"]}]}}]}}");
}

static void write_text(const char *directory, const char *file, const struct text *t)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(t->data, 1, t->size, f), t->size);
	fclose(f);
}

static spyre_status compile(const struct text *sdsc, struct spyre_bundle *out)
{
	char directory[] = "/tmp/spyre-limits-XXXXXX", path[64];
	struct text mlir = { 0 };
	spyre_status status;

	put(&mlir, "module {\nfunc.func @sdsc_bundle() {\n"
	    "sdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\"}\nreturn\n}\n}\n");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	write_text(directory, "bundle.mlir", &mlir);
	write_text(directory, "sdsc_0.json", sdsc);
	status = spyre_bundle_load(directory, 32, CODE_CACHE_OFF, out, NULL);
	snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
	unlink(path);
	rmdir(directory);
	free(mlir.data);
	return status;
}

static void expect(const struct text *sdsc, spyre_status want, const char *text)
{
	struct spyre_bundle out;
	spyre_status status = compile(sdsc, &out);

	ck_assert_msg(status == want, "%s: %s", spyre_status_name(status), spyre_last_error());
	if (want == SPYRE_SUCCESS)
		spyre_bundle_fini(&out);
	else
		ck_assert_msg(strstr(spyre_last_error(), text), "%s", spyre_last_error());
}

/* 2^40 * 2^24 is 0 in 64 bits, but not a loop without iterations. */
START_TEST(products)
{
	struct text sdsc = { 0 };

	put_sdsc(&sdsc, "1099511627776", "16777216", 2, 0, 0);
	expect(&sdsc, SPYRE_ERROR_UNSUPPORTED, "reduction over");
	free(sdsc.data);
}
END_TEST

/* A launch reads one address per operand: all of them are arguments. */
START_TEST(unused_tensor)
{
	struct spyre_bundle out;
	struct text sdsc = { 0 };

	put_sdsc(&sdsc, "2", "3", 3, 0, 0);
	ck_assert_msg(!compile(&sdsc, &out), "%s", spyre_last_error());
	ck_assert_uint_eq(out.num_operands, 3);
	for (uint32_t i = 0; i < out.num_operands; i++)
		ck_assert_uint_lt(out.operands[i].arg, out.num_args);
	spyre_bundle_fini(&out);
	free(sdsc.data);
}
END_TEST

/* Each takes minutes if every step scans all earlier ones. */
START_TEST(long_lists)
{
	struct text sdsc = { 0 };

	put_sdsc(&sdsc, "2", "3", 2, 0, 300000);
	expect(&sdsc, SPYRE_SUCCESS, NULL);
	sdsc.size = 0;
	put_sdsc(&sdsc, "2", "3", 2, 300000, 0);
	expect(&sdsc, SPYRE_ERROR_PARSE, "at most 1024 nodes");
	free(sdsc.data);
}
END_TEST

/* Outputs that overwrite inputs of later windows. */
START_TEST(window_in_place)
{
	struct text sdsc = { 0 };

	put(&sdsc, "{\"0_pool\":{\"numCoresUsed_\":1,\"numWkSlicesPerDim_\":{\"out\":1,\"i\":1,"
	    "\"ki\":1},\"coreIdToWkSlice_\":{\"0\":{\"out\":0,\"i\":0,\"ki\":0}},\"dscs_\":["
	    "{\"pool\":{\"coreIdsUsed_\":[0],\"N_\":{\"out_\":64,\"i_\":4,\"ki_\":3},"
	    "\"coordinateMasking_\":{},\"constantInfo_\":{},\"dataStageParam_\":{\"0\":{"
	    "\"el_\":{\"out_\":64,\"i_\":4,\"ki_\":3}}},\"primaryDsInfo_\":{\"X\":{"
	    "\"layoutDimOrder_\":[\"out\",\"i\"],\"stickDimOrder_\":[\"out\"],"
	    "\"stickSize_\":[64]}},\"scheduleTree_\":[{\"ldsIdx_\":0,\"component_\":\"hbm\","
	    "\"layoutDimOrder_\":[\"out\",\"i\"],\"startAddressCoreCorelet_\":{\"data_\":{"
	    "\"[0, 0, 0]\":\"0\"}}}],\"labeledDs_\":[{\"ldsIdx_\":0,\"wordLength\":2,"
	    "\"dataFormat_\":\"SEN169_FP16\",\"dsType_\":\"X\",\"scale_\":[1,1]}],"
	    "\"computeOp_\":[{\"opFuncName\":\"maxpoolfwd\",\"inputLabeledDs\":[\"T-idx0\"],"
	    "\"outputLabeledDs\":[\"T-idx0\"]}]}}]}}");
	expect(&sdsc, SPYRE_ERROR_UNSUPPORTED, "and another operand");
	free(sdsc.data);
}
END_TEST

static void expect_mlir(const struct text *t, const char *text)
{
	struct ir_bundle bundle;

	ck_assert_int_eq(ir_parse_mlir("bundle.mlir", t->data, t->size, &bundle),
			 SPYRE_ERROR_PARSE);
	ck_assert_msg(strstr(spyre_last_error(), text), "%s", spyre_last_error());
}

START_TEST(many_names)
{
	struct text t = { 0 };

	for (int i = 0; i < 200000; i++)
		put(&t, "#m%d = affine_map<()[s0] -> (s0)>\n", i);
	put(&t, "module {\nfunc.func @sdsc_bundle() {\n%%v0 = arith.constant 1 : index\n");
	for (int i = 1; i < 200000; i++)
		put(&t, "%%v%d = affine.apply #m%d()[%%v%d]\n", i, i, i - 1);
	put(&t, "return\n}\n}\n");
	expect_mlir(&t, "no sdsc_execute");
	t.size = 0;
	put(&t, "#m = affine_map<()[s0] -> (s0)>\n#m = affine_map<()[s0] -> (s0)>\n");
	expect_mlir(&t, "bundle.mlir:2: #m is defined twice");
	t.size = 0;
	put(&t, "module {\nfunc.func @sdsc_bundle() {\n%%a = arith.constant 1 : index\n"
	    "%%a = arith.constant 1 : index\n");
	expect_mlir(&t, "bundle.mlir:4: %a is defined twice");
	free(t.data);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("limits");
	TCase *t = tcase_create("limits");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, products);
	tcase_add_test(t, unused_tensor);
	tcase_add_test(t, long_lists);
	tcase_add_test(t, window_in_place);
	tcase_add_test(t, many_names);
	return suite_run(s);
}
