// SPDX-License-Identifier: MIT
/* launch_spec.json, symbol_kinds.json and bundle.mlir: accepted and refused contents. */
#include <stdio.h>

#include "bundle_files.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "runtime_check.h"

static char folder[64];

static void setup(void)
{
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };

	files_make(folder);
	files_build(folder, "add", size, 3, (const int64_t[]){ 2, 1 });
}

static void teardown(void)
{
	files_remove(folder);
}

static spyre_status compile(struct spyre_bundle *bundle)
{
	return spyre_bundle_load(folder, 32, CODE_CACHE_OFF, bundle, NULL);
}

#define INPUT(n) "{\"arg_index\": " #n ", \"role\": \"input\"}"
#define OUTPUT(n) "{\"arg_index\": " #n ", \"role\": \"output\"}"
#define ARGS(one) "{\"args\": [" INPUT(0) ", " INPUT(1) ", " one "]}"
#define LAST(fields) ARGS("{\"arg_index\": 2, \"role\": \"output\", " fields "}")

struct wrong {
	const char *text;
	const char *words[2];
};

static const struct wrong wrong_specs[] = {
	{ "", { "launch_spec.json", "not JSON" } },
	{ "[]", { "an object" } },
	{ "{\"kernel_name\": 5}", { "$.kernel_name", "found 5" } },
	{ "{\"pool_size\": -1}", { "$.pool_size", "-1" } },
	{ "{\"pool_size\": 100}", { "$.pool_size", "multiple of 128" } },
	{ "{\"pool_size\": \"128\"}", { "$.pool_size" } },
	{ "{\"bundle_symbolic_args\": 7}", { "bundle_symbolic_args", "true or false" } },
	{ "{\"bundle_symbolic_args\": false}", { "bundle_symbolic_args is false", "symbols" } },
	{ "{\"symbols\": []}", { "$.symbols", "an object" } },
	{ "{\"symbols\": {\"s0\": 5}}", { "$.symbols.s0" } },
	{ "{\"symbols\": {\"s0\": {\"min\": 0, \"max\": 4}}}", { "$.symbols.s0.min", "found 0" } },
	{ "{\"symbols\": {\"s0\": {\"min\": 5, \"max\": 4}}}", { "$.symbols.s0.max", "from 5" } },
	{ "{\"symbols\": {\"s0\": {\"min\": 5}}}", { "$.symbols.s0.max", "nothing" } },
	{ "{\"symbols\": {\"\": {\"min\": 5, \"max\": 6}}}", { "1 to 31 bytes" } },
	{ "{\"args\": {}}", { "$.args", "an array" } },
	{ "{\"args\": []}", { "lists 0 arguments", "takes 3" } },
	{ "{\"args\": [" INPUT(0) ", " INPUT(1) "]}", { "lists 2 arguments", "takes 3" } },
	{ "{\"args\": [" INPUT(0) ", " INPUT(0) ", " OUTPUT(2) "]}", { "args[1].arg_index", "once" } },
	{ ARGS("{\"arg_index\": 3, \"role\": \"output\"}"), { "args[2].arg_index", "found 3" } },
	{ ARGS("{\"arg_index\": 2}"), { "args[2].role", "nothing" } },
	{ ARGS("{\"arg_index\": 2, \"role\": \"in\"}"), { "args[2].role", "\"in\"" } },
	{ ARGS(INPUT(2)), { "argument 2 is \"input\"", "as \"output\"" } },
	{ "{\"args\": [" OUTPUT(0) ", " INPUT(1) ", " OUTPUT(2) "]}", { "argument 0 is \"output\"" } },
	{ LAST("\"shape\": 5"), { "args[2].shape", "an array" } },
	{ LAST("\"shape\": [-1]"), { "args[2].shape[0]", "-1" } },
	{ LAST("\"shape\": [\"s0\"]"), { "args[2].shape[0]", "$.symbols" } },
	{ LAST("\"shape\": [1, 1, 1, 1, 1, 1, 1, 1]"), { "at most 7" } },
	{ LAST("\"dtype\": \"fp17\""), { "args[2].dtype", "fp17" } },
	{ LAST("\"layout\": 5"), { "args[2].layout", "a string" } },
	{ LAST("\"layout\": \"x\""), { "args[2].layout", "SpyreTensorLayout" } },
	{ LAST("\"layout\": \"SpyreTensorLayout(device_size=[4], device_dtype=SENINT8)\""),
	  { "2 to 8" } },
	{ LAST("\"layout\": \"SpyreTensorLayout(device_size=[2, 64\""), { "2 to 8" } },
	{ LAST("\"layout\": \"SpyreTensorLayout(device_size=[2, 64, 64])\""), { "device_dtype" } },
	{ LAST("\"layout\": \"SpyreTensorLayout(device_size=[2, 64, 64], device_dtype=X.Y)\""),
	  { "device data format" } },
	{ LAST("\"layout\": {\"device_size\": [2, 0], \"device_dtype\": \"SENINT8\"}"),
	  { "layout.device_size[1]" } },
	{ LAST("\"layout\": {\"device_size\": [2, 64, 64], \"device_dtype\": \"IEEE_FP32\"}"),
	  { "argument 2 has a layout of IEEE_FP32", "SEN169_FP16" } },
	{ LAST("\"layout\": {\"device_size\": [2, 65, 64], \"device_dtype\": \"SEN169_FP16\"}"),
	  { "argument 2", "other device sizes" } },
	{ LAST("\"layout\": {\"device_size\": [2, 64, 64], \"device_dtype\": \"SEN169_FP16\", "
	       "\"element_arrangement\": \"ODD\"}"), { "element_arrangement", "ODD" } },
	{ "{\"symbol_kinds\": {}}", { "$.symbol_kinds", "an array" } },
	{ "{\"symbol_kinds\": []}", { "has 0 symbols", "symbol -" } },
};

START_TEST(refused_spec)
{
	const struct wrong *w = &wrong_specs[_i];
	struct spyre_bundle bundle;

	files_write(folder, "launch_spec.json", w->text);
	ck_status(compile(&bundle), SPYRE_ERROR_PARSE);
	for (int i = 0; i < 2 && w->words[i]; i++)
		ck_mentions(w->words[i]);
	ck_assert_ptr_null(bundle.image);
}
END_TEST

static const char *const right_specs[] = {
	"{}",
	"{\"version\": \"1.2\", \"kernel_name\": null, \"pool_size\": 0, \"args\": null, "
	"\"bundle_symbolic_args\": true, \"emitter\": {\"x\": 1}, \"symbols\": {}, \"layout\": 3}",
	ARGS(OUTPUT(2)),
	LAST("\"shape\": [64, 128], \"dtype\": \"torch.float16\", \"layout\": null"),
	LAST("\"layout\": {\"device_size\": [2, 64, 64], \"device_dtype\": \"SEN169_FP16\"}"),
	LAST("\"layout\": \"SpyreTensorLayout(device_size=[2, 1, 64, 64], stride_map =[64, -1, 128, 1], "
	     "device_dtype=DataFormats.SEN169_FP16, element_arrangement=ElementArrangement.EXX2)\""),
};

START_TEST(accepted_spec)
{
	struct spyre_bundle bundle;

	files_write(folder, "launch_spec.json", right_specs[_i]);
	ck_ok(compile(&bundle));
	ck_assert_uint_eq(bundle.num_args, 3);
	ck_assert_int_eq(bundle.args[2].role, SPYRE_ARG_OUTPUT);
	spyre_bundle_fini(&bundle);
}
END_TEST

/* Symbols -1 … -6: each argument on two cores, the second starting 32 rows later. */
#define KERNEL(n) "{\"kind\": \"kernel\", \"arg_index\": " #n "}"
#define SLICE(base, offset) \
	"{\"kind\": \"kernel_slice\", \"base_sym_idx\": " #base ", \"offset\": " #offset "}"
#define KINDS \
	"[" KERNEL(0) ", " SLICE(0, 4096) ", " KERNEL(1) ", " \
	"{\"kind\": \"kernel_derived\", \"arg_index\": 1, \"offset\": 4096}, " \
	KERNEL(2) ", " SLICE(4, 4096) "]"

static const struct wrong wrong_kinds[] = {
	{ "{}", { "symbol_kinds.json", "an array" } },
	{ "[5]", { "$[0]", "an object" } },
	{ "[{\"kind\": \"x\"}]", { "$[0].kind", "\"kernel\"" } },
	{ "[{\"kind\": \"kernel\"}]", { "$[0].arg_index", "nothing" } },
	{ "[{\"kind\": \"kernel\", \"arg_index\": 64}]", { "$[0].arg_index", "64" } },
	{ "[{\"kind\": \"kernel_slice\"}]", { "arg_index or base_sym_idx" } },
	{ "[" SLICE(0, 0) "]", { "$[0].base_sym_idx" } },
	{ "[" KERNEL(0) ", " SLICE(0, -1) "]", { "$[1].offset", "-1" } },
	{ "[{\"kind\": \"pool\"}, " SLICE(0, 0) "]", { "kernel symbol" } },
	{ "[" KERNEL(0) ", {\"kind\": \"kernel_slice\", \"base_sym_idx\": 0, \"arg_index\": 1}]",
	  { "kernel symbol of arg_index" } },
	{ "[" KERNEL(0) "]", { "has 1 symbols", "binds symbol -" } },
	{ "[" KERNEL(0) ", " SLICE(0, 8192) ", " KERNEL(1) ", " SLICE(2, 4096) ", " KERNEL(2)
	  ", " SLICE(4, 4096) "]", { "symbol -2 is argument 0 + 8192", "argument 0 + 4096" } },
	{ "[{\"kind\": \"pool\"}, " KERNEL(1) "," KERNEL(1) "," KERNEL(1) "," KERNEL(1) ","
	  KERNEL(1) "]", { "symbol -", "argument" } },
};

START_TEST(refused_kinds)
{
	const struct wrong *w = &wrong_kinds[_i];
	struct spyre_bundle bundle;

	files_write(folder, "symbol_kinds.json", w->text);
	ck_status(compile(&bundle), SPYRE_ERROR_PARSE);
	for (int i = 0; i < 2 && w->words[i]; i++)
		ck_mentions(w->words[i]);
}
END_TEST

/* The kinds give the same program as the operands that they replace. */
START_TEST(kinds)
{
	struct spyre_bundle plain, bundle;
	char *text, *at;

	ck_ok(compile(&plain));
	files_write(folder, "symbol_kinds.json", KINDS);
	ck_ok(compile(&bundle));
	spyre_bundle_fini(&bundle);
	text = files_read(folder, "bundle.mlir");
	at = strstr(text, "sdscbundle.sdsc_execute");
	strcpy(at, "sdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\"}\n\t\treturn\n\t}\n}\n");
	files_write(folder, "bundle.mlir", text);
	free(text);
	ck_ok(compile(&bundle));
	ck_assert_uint_eq(bundle.image_bytes, plain.image_bytes);
	ck_assert(!memcmp(bundle.image, plain.image, plain.image_bytes));
	spyre_bundle_fini(&bundle);
	/* The same in launch_spec.json. */
	files_write(folder, "launch_spec.json", "{\"symbol_kinds\": " KINDS "}");
	ck_assert_int_eq(remove(strcat(strcpy((char[128]){ 0 }, folder), "/symbol_kinds.json")), 0);
	ck_ok(compile(&bundle));
	ck_assert(!memcmp(bundle.image, plain.image, plain.image_bytes));
	spyre_bundle_fini(&bundle);
	/* A symbol that neither defines. */
	files_write(folder, "launch_spec.json", "{\"symbol_kinds\": [" KERNEL(0) "]}");
	ck_status(compile(&bundle), SPYRE_ERROR_PARSE);
	ck_mentions("uses symbol -");
	spyre_bundle_fini(&plain);
}
END_TEST

/* Makes the second input an allocation of the bundle. */
static spyre_status allocate(const char *allocation, struct spyre_bundle *bundle)
{
	char *text = files_read(folder, "bundle.mlir"), *at;
	char line[200];

	at = strstr(text, "%arg_1 = sdscbundle.input_arg_extract");
	ck_assert_ptr_nonnull(at);
	snprintf(line, sizeof(line), "%%size = arith.constant 16384 : index\n\t\t%%arg_1 = %s",
		 allocation);
	memmove(at + strlen(line), strchr(at, '\n'), strlen(strchr(at, '\n')) + 1);
	memcpy(at, line, strlen(line));
	files_write(folder, "bundle.mlir", text);
	free(text);
	return compile(bundle);
}

static const char *const allocations[] = {
	"sdscbundle.device_mem_allocate 16384 bytes : index",
	"sdscbundle.device_mem_allocate %size bytes : index",
	"sdscbundle.device_mem_allocate 16384 : index",
	"sdscbundle.device_mem_allocate %size : index",
	"sdscbundle.device_mem_allocate(%size) : index -> index",
	"sdscbundle.device_mem_allocate {size = 16384 : i64} : () -> index",
};

START_TEST(allocated)
{
	struct spyre_bundle bundle;

	ck_ok(allocate(allocations[_i], &bundle));
	ck_assert_uint_eq(bundle.pool_bytes, 16384);
	ck_assert_uint_eq(bundle.num_operands, 3);
	spyre_bundle_fini(&bundle);
}
END_TEST

static const struct wrong wrong_allocations[] = {
	{ "sdscbundle.device_mem_allocate 8192 bytes : index", { "of 8192 bytes", "use 16384" } },
	{ "sdscbundle.device_mem_allocate 8192 : index", { "of 8192 bytes", "use 16384" } },
	{ "sdscbundle.device_mem_allocate 16384 sticks : index", { "':'", "sticks" } },
	{ "sdscbundle.device_mem_allocate (16384) bytes : index", { "':'", "bytes" } },
	{ "sdscbundle.device_mem_allocate 0 : index", { "allocation of 0 bytes" } },
	{ "sdscbundle.device_mem_allocate 99999999999 : index", { "99999999999" } },
	{ "sdscbundle.device_mem_allocate %arg_0 : index", { "must be a constant" } },
	{ "sdscbundle.device_mem_allocate {bytes = 5} : index", { "'size'" } },
	{ "sdscbundle.device_mem_allocate (5 : index", { "')'" } },
	{ "sdscbundle.device_mem_allocate 5", { "':'" } },
};

START_TEST(refused_allocation)
{
	const struct wrong *w = &wrong_allocations[_i];
	struct spyre_bundle bundle;

	ck_status(allocate(w->text, &bundle), SPYRE_ERROR_PARSE);
	for (int i = 0; i < 2 && w->words[i]; i++)
		ck_mentions(w->words[i]);
}
END_TEST

/* Bits of constants are JSON numbers in the public front-end's files, strings in others. */
START_TEST(constants)
{
	int64_t size[2][2] = { { 64, 128 }, { 64, 128 } };
	struct spyre_bundle text, number;
	char *file, *at;

	files_build(folder, "leaky_relu", size, 2, NULL);
	ck_ok(compile(&text));
	file = files_read(folder, "sdsc_0.json");
	at = strstr(strstr(file, "\"constantInfo_\""), "\"[0, 0, 0]\"");
	at = strchr(strchr(at, '['), '"');
	at = strchr(at + 1, '"');	/* that of the value, after "[0, 0, 0]" */
	ck_assert_msg(at[1] >= '0' && at[1] <= '9', "no constant in a string: %.40s", at);
	at[0] = ' ';
	*strchr(at, '"') = ' ';
	files_write(folder, "sdsc_0.json", file);
	ck_ok(compile(&number));
	ck_assert_uint_eq(number.image_bytes, text.image_bytes);
	ck_assert_mem_eq(number.image, text.image, text.image_bytes);
	spyre_bundle_fini(&number);
	spyre_bundle_fini(&text);
	memcpy(at, "-1,", 3);
	files_write(folder, "sdsc_0.json", file);
	ck_status(compile(&number), SPYRE_ERROR_PARSE);
	ck_mentions("found -1, expected an integer from 0 to 4294967295");
	memcpy(at, "[],", 3);
	files_write(folder, "sdsc_0.json", file);
	ck_status(compile(&number), SPYRE_ERROR_PARSE);
	ck_mentions("constantInfo_");
	free(file);
}
END_TEST

/* Replaces the first execute's operand %arg_0 by @map of a loop's variable. */
static spyre_status mapped(const char *bounds, const char *map, const char *arguments,
			   struct spyre_bundle *bundle)
{
	char *text = files_read(folder, "bundle.mlir"), *at, *all = calloc(1, FILES_MAX_TEXT);
	char *execute = strstr(text, "\t\tsdscbundle.sdsc_execute");
	char *operand = strstr(execute, "%arg_0,");

	at = all + sprintf(all, "#map = affine_map<%s>\n", map);
	at += sprintf(at, "%.*s", (int)(execute - text), text);
	at += sprintf(at, "\t\t%%from = arith.constant %d : index\n", atoi(bounds));
	at += sprintf(at, "\t\t%%to = arith.constant %d : index\n", atoi(strchr(bounds, ' ')));
	at += sprintf(at, "\t\t%%step = arith.constant %d : index\n", atoi(strrchr(bounds, ' ')));
	at += sprintf(at, "\t\tscf.for %%i = %%from to %%to step %%step {\n");
	at += sprintf(at, "\t\t%%place = affine.apply #map%s\n", arguments);
	at += sprintf(at, "%.*s%%place%.*s\n\t\t}\n\t\treturn\n\t}\n}\n", (int)(operand - execute),
		      execute, (int)(strchr(operand, '}') + 1 - operand - 6), operand + 6);
	files_write(folder, "bundle.mlir", all);
	free(all);
	free(text);
	return compile(bundle);
}

struct mapping {
	const char *bounds, *map, *arguments;
	uint64_t offset, stride;	/* of the first view of argument 0 */
	spyre_status status;
	const char *word;
};

static const struct mapping mappings[] = {
	{ "0 4 1", "(d0)[s0] -> (s0 + 128*d0)", "(%i)[%arg_0]", 0, 128, 0, NULL },
	{ "2 8 2", "(d0)[s0] -> (s0 + d0*128)", "(%i)[%arg_0]", 256, 256, 0, NULL },
	{ "-2 2 1", "(d0)[s0] -> (256 + s0 + d0 * 128)", "(%i)[%arg_0]", 0, 128, 0, NULL },
	{ "0 4 1", "(d0, d1)[s0, s1] -> (s1 + (d0 + 2) * 128 - s0 + d1)",
	  "(%i, %from)[%from, %arg_0]", 256, 128, 0, NULL },
	{ "0 8 4", "(d0)[s0] -> (s0 + (d0 floordiv 2) * 128)", "(%i)[%arg_0]", 0, 256, 0, NULL },
	{ "0 8 4", "(d0)[s0] -> (s0 + ((d0 + 3) ceildiv 4) * 128 + (d0 mod 2) * 64)",
	  "(%i)[%arg_0]", 128, 128, 0, NULL },
	{ "0 8 4", "(d0)[s0] -> (-(-s0) + 7 mod 4 * 128 + d0 * 32)", "(%i)[%arg_0]", 0, 0,
	  SPYRE_ERROR_PARSE, "not multiplied" },
	{ "0 8 1", "(d0)[s0] -> (s0 + (d0 floordiv 2) * 128)", "(%i)[%arg_0]", 0, 0,
	  SPYRE_ERROR_UNSUPPORTED, "floordiv by 2 of a value that grows by 1" },
	{ "0 8 1", "(d0)[s0] -> (s0 mod 4 + d0)", "(%i)[%arg_0]", 0, 0, SPYRE_ERROR_UNSUPPORTED,
	  "mod of an address" },
	{ "0 8 1", "(d0)[s0] -> (s0 + d0 * d0)", "(%i)[%arg_0]", 0, 0, SPYRE_ERROR_PARSE,
	  "constant factor" },
	{ "0 8 1", "(d0)[s0] -> (s0 + d0 floordiv 0)", "(%i)[%arg_0]", 0, 0, SPYRE_ERROR_PARSE,
	  "constant divisor" },
	{ "0 8 1", "(d0)[s0] -> (s0 + (d0 * 128)", "(%i)[%arg_0]", 0, 0, SPYRE_ERROR_PARSE, ")>" },
	{ "0 8 1", "(d0)[s0] -> (s0 + 9223372036854775807 * 2)", "(%i)[%arg_0]", 0, 0,
	  SPYRE_ERROR_PARSE, "63 bits" },
	{ "0 8 0", "(d0)[s0] -> (s0)", "(%i)[%arg_0]", 0, 0, SPYRE_ERROR_PARSE, "by 0" },
	{ "0 8 1", "(d0)[s0] -> (s0 + d0)", "(%i)", 0, 0, SPYRE_ERROR_PARSE, "'['" },
};

/* Reads the start of a view of argument 0 from its program. */
static void first_place(const struct spyre_bundle *bundle, uint64_t *offset, uint64_t *stride)
{
	const struct spyre_prog_header *h = bundle->image;
	const uint8_t *at = (const uint8_t *)bundle->image + h->size - h->instr_bytes;
	const struct spyre_instr *in = (const void *)at;
	const struct spyre_view *view = spyre_instr_views(in);

	for (uint32_t i = 0; i < in->num_views; i++, view++)
		if (bundle->operands[view->operand].arg == 0) {
			*offset = view->offset;
			*stride = view->loop_stride[0];
			return;
		}
	ck_abort_msg("no view of argument 0");
}

START_TEST(mapping)
{
	const struct mapping *m = &mappings[_i];
	struct spyre_bundle bundle;
	uint64_t offset, stride;

	ck_status(mapped(m->bounds, m->map, m->arguments, &bundle), m->status);
	if (m->status) {
		ck_mentions(m->word);
		return;
	}
	first_place(&bundle, &offset, &stride);
	ck_assert_uint_eq(offset, m->offset);
	ck_assert_uint_eq(stride, m->stride);
	spyre_bundle_fini(&bundle);
}
END_TEST

/* symbolicDimInfo_ and maxSymbolicVolume_, and the spec's ranges for them. */
static const struct wrong wrong_dims[] = {
	{ "\"symbolicDimInfo_\": 5", { "symbolicDimInfo_", "an object" } },
	{ "\"symbolicDimInfo_\": {\"mb\": 5}", { "symbolicDimInfo_.mb", "a string" } },
	{ "\"symbolicDimInfo_\": {\"mb\": \"\"}", { "symbolicDimInfo_.mb", "symbol's name" } },
	{ "\"symbolicDimInfo_\": {\"mb\": \"0s\"}", { "symbolicDimInfo_.mb", "symbol's name" } },
	{ "\"symbolicDimInfo_\": {\"mb\": \"s-0\"}", { "symbolicDimInfo_.mb", "symbol's name" } },
	{ "\"symbolicDimInfo_\": {\"x\": \"s0\"}", { "symbolicDimInfo_.x", "dimension of N_" } },
	{ "\"symbolicDimInfo_\": {\"mb\": \"s0\", \"mb\": \"s1\"}", { "each dimension once" } },
	{ "\"symbolicDimInfo_\": {\"mb\": \"s0\"}, \"maxSymbolicVolume_\": {\"mb\": 32}",
	  { "maxSymbolicVolume_.mb", "found 32" } },
	{ "\"maxSymbolicVolume_\": {\"mb\": 64}", { "maxSymbolicVolume_.mb", "symbolicDimInfo_" } },
};

START_TEST(refused_dims)
{
	const struct wrong *w = &wrong_dims[_i];
	struct spyre_bundle bundle;
	char text[256];

	snprintf(text, sizeof(text), "\"el_\": {%s,", w->text);
	files_edit(folder, "sdsc_0.json", "\"el_\": {", text);
	ck_status(compile(&bundle), SPYRE_ERROR_PARSE);
	for (int i = 0; i < 2 && w->words[i]; i++)
		ck_mentions(w->words[i]);
}
END_TEST

START_TEST(ranges)
{
	struct spyre_bundle bundle;

	files_edit(folder, "sdsc_0.json", "\"el_\": {",
		   "\"el_\": {\"symbolicDimInfo_\": {\"mb\": \"s0\"},");
	files_write(folder, "launch_spec.json", "{\"symbols\": {\"s0\": {\"min\": 1, \"max\": 65}}}");
	ck_status(compile(&bundle), SPYRE_ERROR_PARSE);
	ck_mentions("symbol s0 with a maximum of 65");
	ck_mentions("N_ is 64");
	files_write(folder, "launch_spec.json", "{\"symbols\": {\"s0\": {\"min\": 3, \"max\": 33}}}");
	ck_ok(compile(&bundle));
	ck_assert_uint_eq(bundle.num_symbols, 1);
	ck_assert_int_eq(bundle.symbols[0].min, 3);
	ck_assert_int_eq(bundle.symbols[0].max, 33);
	/* The program is that of the maximum: 33 of 64 rows. */
	ck_assert_uint_lt(bundle.args[0].bytes, 64 * 256);
	spyre_bundle_fini(&bundle);
}
END_TEST

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	TCase *tests = tcase_create("spec");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, refused_spec, 0, COUNT(wrong_specs));
	tcase_add_loop_test(tests, accepted_spec, 0, COUNT(right_specs));
	tcase_add_loop_test(tests, refused_kinds, 0, COUNT(wrong_kinds));
	tcase_add_test(tests, kinds);
	tcase_add_loop_test(tests, allocated, 0, COUNT(allocations));
	tcase_add_loop_test(tests, refused_allocation, 0, COUNT(wrong_allocations));
	tcase_add_test(tests, constants);
	tcase_add_loop_test(tests, mapping, 0, COUNT(mappings));
	tcase_add_loop_test(tests, refused_dims, 0, COUNT(wrong_dims));
	tcase_add_test(tests, ranges);
	return run_suite("bundle_spec", tests);
}
