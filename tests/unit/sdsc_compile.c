// SPDX-License-Identifier: MIT
/*
 * Runs every bundle of the corpus through compiler, verifier and card; tests
 * divisions that split the summed dimension, and the compiler's refusals.
 */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/write/write.h"
#include "sdsc_card.h"
#include "suite.h"

static char corpus[512];
static char *bundles[256];
static int num_bundles;

START_TEST(bundle)
{
	struct card_case c;
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", corpus, bundles[_i]);
	card_read_case(path, &c);
	card_run_case(path, &c, 32);
	card_free_case(&c);
}
END_TEST

struct split {
	const char *op;
	const char *reference;
	uint32_t rank;
	int64_t size[3][7];	/* operands */
	int64_t slices[8];	/* first 0: one core */
	const char *init;
	double rtol, atol;
};

static const struct split splits[] = {
	/* several cores hold partial results of one tile */
	{ "matmul", "in0@in1", 2, { { 40, 512 }, { 512, 128 }, { 40, 128 } }, { 2, 2, 8 },
	  "small", 0.01, 0.01 },
	{ "matmul", "in0@in1", 2, { { 8, 256 }, { 256, 64 }, { 8, 64 } }, { 8, 1, 4 },
	  "small", 0.01, 0.01 },
	{ "matmul", "in0@in1", 3, { { 3, 10, 128 }, { 3, 128, 192 }, { 3, 10, 192 } },
	  { 3, 1, 3, 2 }, "small", 0.01, 0.01 },
	{ "sum", "in0.sum(1)", 2, { { 20, 1000 }, { 20, 1 } }, { 4, 8 }, "randn", 0.01, 0.1 },
	{ "mean", "in0.mean(1)", 2, { { 20, 1000 }, { 20, 1 } }, { 4, 8 }, "randn", 0.01, 0.01 },
	{ "amax", "in0.max(1)", 2, { { 20, 1000 }, { 20, 1 } }, { 4, 8 }, "randn", 0, 0 },
	/* the last slice has a single unmasked element */
	{ "amax", "in0.max(1)", 2, { { 3, 257 }, { 3, 1 } }, { 3, 5 }, "randn", 0, 0 },
	/* counts that exceed the loop counters: with a suitable factor, and without */
	{ "relu", "np.maximum(in0,0)", 1, { { 64 * 131072 }, { 64 * 131072 } }, { 0 }, "randn", 0, 0 },
	{ "relu", "np.maximum(in0,0)", 1, { { 64 * 65537 }, { 64 * 65537 } }, { 0 }, "randn", 0, 0 },
	{ "matmul", "in0@in1", 2, { { 70001, 64 }, { 64, 64 }, { 70001, 64 } }, { 0 }, "small",
	  0.01, 0.01 },
	/* more loops than an instruction supports */
	{ "add", "in0+in1", 7, { { 2, 3, 2, 3, 2, 3, 128 }, { 2, 1, 2, 1, 2, 1, 128 },
				 { 2, 3, 2, 3, 2, 3, 128 } }, { 0 }, "randn", 0.01, 0.01 },
	{ "add", "in0+in1", 3, { { 3, 4, 130 }, { 1, 4, 1 }, { 3, 4, 130 } }, { 0 }, "randn",
	  0.01, 0.01 },
};

static spyre_status compile(const char *directory, uint32_t cores, struct spyre_bundle *out)
{
	return spyre_bundle_load(directory, cores, CODE_CACHE_OFF, out, NULL);
}

static void fill_operand(spyre_sdsc_operand *o, struct card_tensor *t, const struct split *s,
			 uint32_t index)
{
	memset(o, 0, sizeof(*o));
	o->rank = s->rank;
	memcpy(o->size, s->size[index], s->rank * sizeof(o->size[0]));
	ck_assert_int_eq(spyre_layout_init(&o->layout, o->rank, o->size, SPYRE_FORMAT_IEEE_FP16),
			 SPYRE_SUCCESS);
	t->rank = s->rank;
	memcpy(t->shape, o->size, s->rank * sizeof(t->shape[0]));
	t->device_rank = o->layout.device_rank;
	memcpy(t->device_size, o->layout.device_size, sizeof(t->device_size));
	memcpy(t->stride_map, o->layout.stride_map, sizeof(t->stride_map));
	t->format = SPYRE_FORMAT_SEN169_FP16;
	snprintf(t->init, sizeof(t->init), "%s", s->init);
}

START_TEST(built)
{
	const struct split *s = &splits[_i];
	uint32_t count = s->size[2][0] ? 3 : 2;
	char directory[] = "/tmp/spyre-split-XXXXXX", path[64];
	spyre_sdsc_operand operands[3];
	struct card_case c = { .count = count, .rtol = s->rtol, .atol = s->atol };

	for (uint32_t i = 0; i < count; i++)
		fill_operand(&operands[i], &c.tensor[i], s, i);
	c.tensor[count - 1].output = true;
	snprintf(c.reference, sizeof(c.reference), "%s", s->reference);
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_msg(build_bundle(s->op, operands, count, 1, s->slices[0] ? s->slices : NULL,
				   directory) == SPYRE_SUCCESS, "%s", spyre_last_error());
	card_run_case(directory, &c, 32);
	card_free_case(&c);
	snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
	unlink(path);
	rmdir(directory);
}
END_TEST

/* Bundles that differ from one of the corpus in one place. */
struct bad {
	const char *bundle;
	const char *file;
	const char *from, *to;	/* first occurrence; NULL @to: cut the file there */
	int status;
	const char *words[3];	/* that the text must contain */
};

static const struct bad bads[] = {
	/* bundle.mlir */
	{ "add", "bundle.mlir", "symbol_ids\"=[-1, ", "symbol_ids\"=[", SPYRE_ERROR_PARSE,
	  { "bundle.mlir:192", "95 symbol_ids", "96 operands" } },
	{ "add", "bundle.mlir", "symbol_ids\"=[-1, -2,", "symbol_ids\"=[-1, -1,", SPYRE_ERROR_PARSE,
	  { "symbol id -1 twice" } },
	{ "add", "bundle.mlir", "symbol_ids\"=[-1, ", "symbol_ids\"=[-1, -500, ", SPYRE_ERROR_PARSE,
	  { "more symbol_ids" } },
	{ "add", "bundle.mlir", "symbol_ids\"=[-1, ", "symbol_ids\"=[-500, ", SPYRE_ERROR_PARSE,
	  { "sdsc_0.json uses symbol -1" } },
	{ "add", "bundle.mlir", "%arg_0_core_offset_65536 = ", "%x = ", SPYRE_ERROR_PARSE,
	  { "bundle.mlir:9", "%arg_0_core_offset_65536 is not defined" } },
	{ "add", "bundle.mlir", "return", NULL, SPYRE_ERROR_PARSE, { "ends within the module" } },
	{ "add", "bundle.mlir", "arith.addi", "arith.muli", SPYRE_ERROR_PARSE,
	  { "bundle.mlir:7", "unknown operation" } },
	{ "add", "bundle.mlir", "sdsc_filename=\"sdsc_0.json\"", "sdsc_filename=\"../x.json\"",
	  SPYRE_ERROR_PARSE, { "plain file name" } },
	{ "add", "bundle.mlir", "\"sdsc_0.json\"", "\"sdsc_9.json\"", SPYRE_ERROR_FILE,
	  { "sdsc_9.json", "No such file" } },
	{ "add", "bundle.mlir", "%arg_2_base_addr: !sdscbundle.input_arg<index>) {",
	  "%arg_3_base_addr: !sdscbundle.input_arg<index>) {", SPYRE_ERROR_PARSE,
	  { "%arg_2_base_addr is not defined" } },
	{ "add", "bundle.mlir", "constant 65536", "constant 65537", SPYRE_ERROR_PARSE,
	  { "core 2", "byte 65537", "multiples of 128" } },
	{ "add", "bundle.mlir", "constant 65536", "constant 9999999999999999999", SPYRE_ERROR_PARSE,
	  { "63 bits" } },
	{ "add", "bundle.mlir", "constant 65536", "constant 17179869184", SPYRE_ERROR_SPAN_LIMIT,
	  { "17179869184" } },
	{ "loop_add", "bundle.mlir", "constant 16 ", "constant 70000 ", SPYRE_ERROR_UNSUPPORTED,
	  { "70000 iterations", "65535" } },
	{ "loop_add", "bundle.mlir", "constant 16 ", "constant 0 ", SPYRE_ERROR_PARSE,
	  { "no sdsc_execute" } },
	{ "loop_add", "bundle.mlir", "step %c1", "step %c0", SPYRE_ERROR_PARSE, { "by 0" } },
	{ "loop_add", "bundle.mlir", "128*d0", "100*d0", SPYRE_ERROR_UNSUPPORTED,
	  { "100 bytes per loop iteration" } },
	{ "loop_add", "bundle.mlir", "128*d0", "128*d1", SPYRE_ERROR_PARSE, { "d1" } },
	{ "loop_add", "bundle.mlir", "(s0 + 128*d0)", "(s0 + s0)", SPYRE_ERROR_PARSE,
	  { "not multiplied" } },
	/* sdsc_0.json */
	{ "add", "sdsc_0.json", "\"numCoresUsed_\": 32", "\"numCoresUsed_\": \"32\"",
	  SPYRE_ERROR_PARSE, { "$.0_add.numCoresUsed_", "\"32\"", "1 to 32" } },
	{ "add", "sdsc_0.json", "\"numCoresUsed_\": 32", "\"numCoresUsed_\": 33",
	  SPYRE_ERROR_PARSE, { "found 33" } },
	{ "add", "sdsc_0.json", "\"mb_\": 512", "\"mb_\": 0", SPYRE_ERROR_PARSE,
	  { "$.0_add.dscs_[0].add.N_.mb_", "found 0" } },
	{ "add", "sdsc_0.json", "\"mb_\": 512", "\"mb_\": 9007199254740992", SPYRE_ERROR_PARSE,
	  { "N_.mb_" } },
	{ "add", "sdsc_0.json", "\"mb_\": 512", "\"mb_\": 1024", SPYRE_ERROR_PARSE,
	  { "el_.mb_", "1024 / 2" } },
	{ "add", "sdsc_0.json", "\"mb_\": 512", "\"mb_\": 1e300", SPYRE_ERROR_PARSE,
	  { "N_.mb_", "the fraction 1e+300" } },
	{ "add", "sdsc_0.json", "\"opFuncName\": \"add\"", "\"opFuncName\": \"leakyrelufwd\"",
	  SPYRE_ERROR_UNSUPPORTED, { "sdsc_0.json", "leakyrelufwd", "docs/unsupported.md" } },
	{ "add", "sdsc_0.json", "\"wordLength\": 2", "\"wordLength\": 4", SPYRE_ERROR_PARSE,
	  { "labeledDs_[0].dataFormat_", "wordLength = 4" } },
	{ "add", "sdsc_0.json", "\"dataFormat_\": \"SEN169_FP16\"", "\"dataFormat_\": \"FP17\"",
	  SPYRE_ERROR_PARSE, { "FP17", "data format" } },
	{ "add", "sdsc_0.json", "\"component_\": \"hbm\"", "\"component_\": \"l3\"",
	  SPYRE_ERROR_PARSE, { "scheduleTree_[0].component_", "l3" } },
	{ "add", "sdsc_0.json", "\"[5, 0, 0]\": \"-6\"", "\"[5, 0, 0]\": \"-6x\"",
	  SPYRE_ERROR_PARSE, { "[5, 0, 0]", "-6x", "decimal" } },
	{ "add", "sdsc_0.json", "\"[5, 0, 0]\": \"-6\"", "\"[5, 0, 0]\": \"-9223372036854775808\"",
	  SPYRE_ERROR_PARSE, { "[5, 0, 0]", "decimal" } },
	{ "add", "sdsc_0.json", "\"[5, 0, 0]\": \"-6\"", "\"[77, 0, 0]\": \"-6\"",
	  SPYRE_ERROR_PARSE, { "[5, 0, 0]", "found nothing" } },
	{ "add", "sdsc_0.json", "Tensor1-idx1", "Tensor1-idx7", SPYRE_ERROR_PARSE,
	  { "inputLabeledDs[1]", "below 3" } },
	{ "add", "sdsc_0.json", "\"dscs_\"", "\"dscs\"", SPYRE_ERROR_PARSE,
	  { "$.0_add.dscs_", "found nothing", "an array" } },
	{ "add", "sdsc_0.json", "\"dscs_\"", "\"dataOpdscs_\"", SPYRE_ERROR_UNSUPPORTED,
	  { "dataOpdscs_" } },
	{ "add", "sdsc_0.json", "\"el_\": {", "\"el_\": {\"symbolicDimInfo_\": {\"nb\": \"s0\"},",
	  SPYRE_ERROR_PARSE, { "symbolicDimInfo_", "dimension of N_" } },
	{ "add", "sdsc_0.json", "\"labeledDs_\"", NULL, SPYRE_ERROR_PARSE, { "not JSON" } },
	{ "add", "sdsc_0.json", "no_indirection", "index_tensor", SPYRE_ERROR_PARSE,
	  { "relatedIndirectAccessAlloc_" } },
	{ "mean_keepdim", "sdsc_0.json", "scaling_factor", "scale", SPYRE_ERROR_UNSUPPORTED,
	  { "lacks scaling_factor" } },
	{ "layernorm", "sdsc_0.json", "exx2scale", "scale", SPYRE_ERROR_UNSUPPORTED,
	  { "exx2", "lacks exx2scale" } },
	{ "layernorm", "sdsc_1.json", "\"eps\"", "\"epsilon\"", SPYRE_ERROR_UNSUPPORTED,
	  { "layernormscale", "lacks eps" } },
	{ "exp", "sdsc_0.json", "\"opFuncName\": \"exp\"", "\"opFuncName\": \"clip\"",
	  SPYRE_ERROR_UNSUPPORTED, { "clip", "lacks clipMin" } },
	{ "exp", "sdsc_0.json", "\"opFuncName\": \"exp\"", "\"opFuncName\": \"softplus\"",
	  SPYRE_ERROR_UNSUPPORTED, { "softplus", "lacks softplusBeta" } },
	{ "exp", "sdsc_0.json", "\"opFuncName\": \"exp\"", "\"opFuncName\": \"layernormscale\"",
	  SPYRE_ERROR_UNSUPPORTED, { "layernormscale", "result of exx2" } },
	{ "fma", "sdsc_0.json", "\"[3, 0, 0]\": \"0\"", "\"[3, 0, 0]\": \"2096001\"",
	  SPYRE_ERROR_PARSE, { "multiple of 128" } },
	{ "fma", "sdsc_0.json", "\"[3, 0, 0]\": \"0\"", "\"[3, 0, 0]\": \"2097024\"",
	  SPYRE_ERROR_LX_OVERFLOW, { "Tensor2", "2129792", "2097152" } },
	{ "restickify", "sdsc_0.json", "SEN169_FP16", "SENINT16", SPYRE_ERROR_UNSUPPORTED,
	  { "no rule from SENINT16 to SEN169_FP16" } },
	{ "add_baked", "sdsc_0.json", "34359738368", "120259084288", SPYRE_ERROR_PARSE,
	  { "120259084288", "segments 0 to 6" } },
	{ "clone_slice", "sdsc_0.json", "\"768\"", "\"700\"", SPYRE_ERROR_PARSE,
	  { "backGapCore_", "whole sticks of 64" } },
};

static char *read_text(const char *path, size_t *size)
{
	char *text = malloc(1 << 20);
	FILE *f = fopen(path, "r");

	ck_assert_msg(f, "%s cannot be opened", path);
	*size = fread(text, 1, (1 << 20) - 1, f);
	text[*size] = '\0';
	fclose(f);
	return text;
}

static void write_text(const char *directory, const char *file, const char *text, size_t size)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, size, f), size);
	fclose(f);
}

static void remove_bundle(const char *directory)
{
	static const char *const files[] = { "bundle.mlir", "sdsc_0.json", "sdsc_1.json",
					     "sdsc_2.json" };
	char path[600];

	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		unlink(path);
	}
	rmdir(directory);
}

/* Copies a bundle, with one change in one file. */
static void copy_changed(const struct bad *b, const char *directory)
{
	static const char *const files[] = { "bundle.mlir", "sdsc_0.json", "sdsc_1.json",
					     "sdsc_2.json" };

	for (int i = 0; i < 4; i++) {
		char path[1024], *text, *at;
		size_t size;

		snprintf(path, sizeof(path), "%s/%s/%s", corpus, b->bundle, files[i]);
		if (access(path, R_OK))
			continue;
		text = read_text(path, &size);
		at = strcmp(files[i], b->file) ? NULL : strstr(text, b->from);
		if (!strcmp(files[i], b->file))
			ck_assert_msg(at, "%s has no %s", path, b->from);
		if (at && !b->to) {
			size = (size_t)(at - text);
		} else if (at) {
			size_t from = strlen(b->from), to = strlen(b->to);

			memmove(at + to, at + from, size - (size_t)(at - text) - from);
			memcpy(at, b->to, to);
			size = size - from + to;
		}
		write_text(directory, files[i], text, size);
		free(text);
	}
}

START_TEST(refused)
{
	const struct bad *b = &bads[_i];
	char directory[] = "/tmp/spyre-bad-XXXXXX";
	struct spyre_bundle out;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	copy_changed(b, directory);
	ck_assert_msg(compile(directory, 32, &out) == (spyre_status)b->status,
		      "%s -> %s: %s", b->from, b->to ? b->to : "cut", spyre_last_error());
	for (int i = 0; i < 3 && b->words[i]; i++)
		ck_assert_msg(strstr(spyre_last_error(), b->words[i]), "\"%s\" is not in: %s",
			      b->words[i], spyre_last_error());
	ck_assert_ptr_null(out.image);
	remove_bundle(directory);
}
END_TEST

/* The generators of other months write these, and keys that the parser may ignore. */
static const struct bad accepted[] = {
	{ "mm", "sdsc_0.json", "\"0_batchmatmul\": {",
	  "\"0_batchmatmul\": {\"debug_handle_\": {\"id\": \"1868503139818264839\", \"source\": null},",
	  0, { NULL } },
	{ "mm", "sdsc_0.json", "\"el_\": {",
	  "\"el_\": {\"symbolicDimInfo_\": {}, \"maxSymbolicVolume_\": {}, \"coreletSplit_\": {}, \"rowSplit_\": {}, \"peSfpSplit_\": {}, \"paddingSizes_\": {},",
	  0, { NULL } },
	{ "mm", "sdsc_0.json", "\"dscs_\"", "\"dataOpdscs_\": [], \"dscs_\"", 0, { NULL } },
	{ "mm", "bundle.mlir", "\t\treturn", "\n\t\t// the end\r\n\t\treturn", 0, { NULL } },
};

START_TEST(tolerated)
{
	const struct bad *b = &accepted[_i];
	char directory[] = "/tmp/spyre-good-XXXXXX", path[1024];
	struct spyre_bundle out, plain;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	copy_changed(b, directory);
	ck_assert_msg(compile(directory, 32, &out) == SPYRE_SUCCESS, "%s",
		      spyre_last_error());
	snprintf(path, sizeof(path), "%s/%s", corpus, b->bundle);
	ck_assert_int_eq(compile(path, 32, &plain), SPYRE_SUCCESS);
	ck_assert_uint_eq(out.image_bytes, plain.image_bytes);
	ck_assert_int_eq(memcmp(out.image, plain.image, out.image_bytes), 0);
	spyre_bundle_fini(&out);
	spyre_bundle_fini(&plain);
	remove_bundle(directory);
}
END_TEST

/*
 * Baked addresses do not tell whether segment 0 is argument 0 or the pool: a pool
 * is written before it is read.
 */
START_TEST(baked_pool)
{
	static const char mlir[] =
		"module {\n\tfunc.func @sdsc_bundle() {\n"
		"\t\tsdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\"}\n"
		"\t\tsdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_1.json\"}\n"
		"\t\treturn\n\t}\n}\n";
	char directory[] = "/tmp/spyre-baked-XXXXXX", path[1024];
	char *text, *compute;
	struct spyre_bundle out;
	size_t size;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/add_baked/sdsc_0.json", corpus);
	text = read_text(path, &size);
	write_text(directory, "bundle.mlir", mlir, sizeof(mlir) - 1);
	write_text(directory, "sdsc_1.json", text, size);
	/* The first one computes Tensor0, in segment 0, from the other two. */
	compute = strstr(text, "inputLabeledDs");
	memcpy(strstr(compute, "Tensor0-idx0"), "Tensor2-idx2", 12);
	compute = strstr(text, "outputLabeledDs");
	memcpy(strstr(compute, "Tensor2-idx2"), "Tensor0-idx0", 12);
	write_text(directory, "sdsc_0.json", text, size);
	ck_assert_msg(compile(directory, 32, &out) == SPYRE_SUCCESS, "%s",
		      spyre_last_error());
	ck_assert_uint_eq(out.pool_bytes, 1 << 20);
	ck_assert_uint_eq(out.num_args, 2);
	ck_assert_int_eq(out.args[0].role, SPYRE_ARG_INPUT);
	ck_assert_int_eq(out.args[1].role, SPYRE_ARG_INPUT_OUTPUT);
	ck_assert_str_eq(out.name, "0_add+0_add");
	spyre_bundle_fini(&out);
	free(text);
	remove_bundle(directory);
}
END_TEST

/* Above 256 MiB per core: a million rows of 4096 elements on one core. */
START_TEST(span)
{
	char directory[] = "/tmp/spyre-span-XXXXXX";
	struct spyre_bundle out;
	char *text, *at, *big;
	char path[1024];
	size_t size;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/add_1core/bundle.mlir", corpus);
	text = read_text(path, &size);
	write_text(directory, "bundle.mlir", text, size);
	free(text);
	snprintf(path, sizeof(path), "%s/add_1core/sdsc_0.json", corpus);
	text = read_text(path, &size);
	big = calloc(1, size + 100);
	for (char *from = text; ; from = at + strlen("\"mb_\": 512")) {
		at = strstr(from, "\"mb_\": 512");
		if (!at) {
			strcat(big, from);
			break;
		}
		strncat(big, from, (size_t)(at - from));
		strcat(big, "\"mb_\": 1048576");
	}
	write_text(directory, "sdsc_0.json", big, strlen(big));
	ck_assert_int_eq(compile(directory, 32, &out), SPYRE_ERROR_SPAN_LIMIT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "2147483648"));
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "268435456"));
	free(text);
	free(big);
	remove_bundle(directory);
}
END_TEST

START_TEST(nested)
{
	char directory[] = "/tmp/spyre-deep-XXXXXX";
	size_t depth = 100000;
	char *text = malloc(depth + 1);
	struct spyre_bundle out;
	char path[1024], *mlir;
	size_t size;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/add/bundle.mlir", corpus);
	mlir = read_text(path, &size);
	write_text(directory, "bundle.mlir", mlir, size);
	memset(text, '[', depth);
	write_text(directory, "sdsc_0.json", text, depth);
	ck_assert_int_eq(compile(directory, 32, &out), SPYRE_ERROR_PARSE);
	memset(text, '{', depth);
	write_text(directory, "bundle.mlir", text, depth);
	ck_assert_int_eq(compile(directory, 32, &out), SPYRE_ERROR_PARSE);
	write_text(directory, "bundle.mlir", text, 0);
	ck_assert_int_eq(compile(directory, 32, &out), SPYRE_ERROR_PARSE);
	free(text);
	free(mlir);
	remove_bundle(directory);
}
END_TEST

START_TEST(directories)
{
	struct spyre_bundle out;
	char path[1024];

	ck_assert_int_eq(compile("/nonexistent", 32, &out), SPYRE_ERROR_FILE);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "/nonexistent/bundle.mlir"));
	ck_assert_int_eq(compile(NULL, 32, &out), SPYRE_ERROR_INVALID_ARGUMENT);
	snprintf(path, sizeof(path), "%s/add", corpus);
	ck_assert_int_eq(compile(path, 8, &out), SPYRE_ERROR_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "SENCORES=8"));
}
END_TEST

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Tables have indices, which the references of sdsc_card.c lack: bundle_indirect runs these. */
static bool has_table(const char *name)
{
	return !strncmp(name, "gather", 6) || !strcmp(name, "scatter");
}

static void list_corpus(void)
{
	const char *root = getenv("SPYRE_SRCDIR");
	struct dirent *entry;
	DIR *dir;

	snprintf(corpus, sizeof(corpus), "%s/tests/conformance/bundles", root ? root : ".");
	dir = opendir(corpus);
	while (dir && (entry = readdir(dir)) && num_bundles < 256)
		if (!strchr(entry->d_name, '.') && !has_table(entry->d_name))
			bundles[num_bundles++] = strdup(entry->d_name);
	if (dir)
		closedir(dir);
	qsort(bundles, (size_t)num_bundles, sizeof(bundles[0]), by_name);
}

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	Suite *s = suite_create("compile");
	TCase *t = tcase_create("compile");
	int failed;

	list_corpus();
	if (!num_bundles) {
		printf("Bail out! no bundles in %s\n", corpus);
		return EXIT_FAILURE;
	}
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, bundle, 0, num_bundles);
	tcase_add_loop_test(t, built, 0, COUNT(splits));
	tcase_add_loop_test(t, refused, 0, COUNT(bads));
	tcase_add_loop_test(t, tolerated, 0, COUNT(accepted));
	tcase_add_test(t, baked_pool);
	tcase_add_test(t, span);
	tcase_add_test(t, nested);
	tcase_add_test(t, directories);
	suite_add_tcase(s, t);
	failed = suite_run_many(s);
	for (int i = 0; i < num_bundles; i++)
		free(bundles[i]);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
