// SPDX-License-Identifier: MIT
/*
 * Indirect access on the card: the rows of a table follow from each launch, and an index
 * beyond them fails its context only. The family "indirect" of the conformance tests checks
 * results of other forms.
 */
#include <stdio.h>

#include "bundle_files.h"
#include "runtime_check.h"
#include "tests/order.h"

#define POINTS 5
#define COLUMNS 128
#define MAX_ROWS 16
#define ROW_BYTES (COLUMNS * 2)

static char folder[64];
static spyre_context *context;
static spyre_stream *stream;
static spyre_kernel *kernel;
static spyre_devptr indices, rows, out;

static void setup(void)
{
	files_make(folder);
	context = open_card();
	stream = get_stream(context, 0);
	ck_ok(spyre_mem_alloc(context, SPYRE_STICK, &indices));
	ck_ok(spyre_mem_alloc(context, MAX_ROWS * ROW_BYTES, &rows));
	ck_ok(spyre_mem_alloc(context, MAX_ROWS * ROW_BYTES, &out));
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
	files_remove(folder);
}

static void set_indices(const uint32_t index[POINTS])
{
	uint32_t words[POINTS];

	memcpy(words, index, sizeof(words));
	order_le(words, POINTS, sizeof(*words));
	ck_ok(spyre_memcpy_h2d(context, indices, words, sizeof(words)));
}

/* Element c of row r is r * 256 + c, as a raw code; rows are continuous on the device. */
static void set_rows(spyre_devptr at, uint32_t count)
{
	uint16_t code[MAX_ROWS * COLUMNS];

	for (uint32_t i = 0; i < count * COLUMNS; i++)
		code[i] = (uint16_t)(i / COLUMNS * 256 + i % COLUMNS);
	ck_ok(spyre_memcpy_h2d(context, at, code, count * ROW_BYTES));
}

/* The layout of a table of @count rows; NULL for 0. */
static const spyre_layout *table_layout(uint32_t count)
{
	static spyre_layout layout;

	if (!count)
		return NULL;
	ck_ok(spyre_layout_init_explicit(&layout, 3, (int64_t[]){ count, COLUMNS / 64, 64 },
					 (int64_t[]){ COLUMNS, 64, 1 }, SPYRE_FORMAT_SEN169_FP16,
					 SPYRE_EA_STANDARD));
	return &layout;
}

/* Launches gather with a table of @count rows, or of as many as its memory has. */
static spyre_status gather(spyre_devptr table, uint32_t count)
{
	const spyre_arg args[] = { { indices, NULL }, { table, table_layout(count) },
				   { out, NULL } };
	spyre_status status = spyre_launch(stream, kernel, args, 3);

	return status ? status : spyre_stream_synchronize(stream);
}

/* The output's sticks are [columns / 64, points, 64]. */
static void check_gathered(const uint32_t index[POINTS])
{
	uint16_t code[POINTS * COLUMNS];

	ck_ok(spyre_memcpy_d2h(context, code, out, sizeof(code)));
	for (uint32_t p = 0; p < POINTS; p++)
		for (uint32_t c = 0; c < COLUMNS; c++)
			ck_assert_uint_eq(code[(c / 64 * POINTS + p) * 64 + c % 64],
					  index[p] * 256 + c);
}

static void check_fault(spyre_status status)
{
	ck_assert_int_eq(status, SPYRE_ERROR_CARD_FAULT);
	ck_mentions("an index was not below the extent");
	ck_ok(spyre_context_reset(context));
}

static void load(void)
{
	ck_ok(spyre_kernel_load(context, folder, &kernel));
}

/* The image of a compiled bundle has no sources, from which it could be compiled again. */
static void load_image(void)
{
	uint8_t *image = malloc(FILES_MAX_TEXT);
	char path[128];
	size_t bytes;
	FILE *f;

	ck_ok(spyre_kernel_compile(folder, NULL, 0, NULL));
	snprintf(path, sizeof(path), "%s/spyreCodeDir/init_binary.bin", folder);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	bytes = fread(image, 1, FILES_MAX_TEXT, f);
	fclose(f);
	ck_ok(spyre_kernel_load_image(context, image, bytes, &kernel));
	free(image);
}

/* Each launch has the rows of its own table, also with the program of another still cached. */
START_TEST(other_sizes)
{
	static const uint32_t low[POINTS] = { 3, 0, 7, 7, 1 }, high[POINTS] = { 15, 8, 0, 9, 7 };

	files_copy(folder, "gather");
	if (_i)
		load_image();
	else
		load();
	set_rows(rows, MAX_ROWS);
	set_indices(low);
	ck_ok(gather(rows, 8));
	check_gathered(low);
	set_indices(high);
	ck_ok(gather(rows, MAX_ROWS));
	check_gathered(high);
	set_indices(low);
	ck_ok(gather(rows, 8));
	check_gathered(low);
	set_indices(high);
	check_fault(gather(rows, 8));
}
END_TEST

/* Without a layout, the table ends with its memory. */
START_TEST(memory_ends)
{
	static const uint32_t last[POINTS] = { 5, 0, 1, 2, 3 }, beyond[POINTS] = { 0, 0, 0, 0, 6 };
	spyre_devptr table;

	files_copy(folder, "gather");
	load();
	ck_ok(spyre_mem_alloc(context, 6 * ROW_BYTES, &table));
	set_rows(table, 6);
	set_indices(last);
	ck_ok(gather(table, 0));
	check_gathered(last);
	set_indices(beyond);
	check_fault(gather(table, 0));
}
END_TEST

START_TEST(bad_index)
{
	static const uint32_t bad[] = { 8, 9, 0x7fffffff, 0x80000000, 0xffffffff };
	uint32_t index[POINTS] = { 1, 2, 3, 4, 5 };
	spyre_context *other = open_card();
	uint8_t before[ROW_BYTES], after[ROW_BYTES];
	spyre_devptr memory;

	files_copy(folder, _i % 2 ? "gather_exp" : "gather");
	load();
	set_rows(rows, MAX_ROWS);
	set_indices(index);
	ck_ok(gather(rows, 8));
	index[4] = bad[_i];
	set_indices(index);
	check_fault(gather(rows, 8));
	ck_ok(spyre_mem_alloc(other, sizeof(before), &memory));
	memset(before, 0x5a, sizeof(before));
	ck_ok(spyre_memcpy_h2d(other, memory, before, sizeof(before)));
	ck_ok(spyre_memcpy_d2h(other, after, memory, sizeof(after)));
	ck_assert_mem_eq(before, after, sizeof(after));
	ck_ok(spyre_context_destroy(other));
}
END_TEST

/* A bad index of a scatter changes nothing behind the table, and not the rows after it. */
START_TEST(bad_scatter)
{
	const uint32_t index[POINTS] = { 2, 0, 8, 1, 3 };
	uint16_t code[MAX_ROWS * COLUMNS];
	spyre_devptr source;
	spyre_arg args[4];

	files_copy(folder, "scatter");
	load();
	ck_ok(spyre_mem_alloc(context, MAX_ROWS * ROW_BYTES, &source));
	set_rows(rows, 8);
	set_rows(source, MAX_ROWS);
	set_rows(out, MAX_ROWS);
	set_indices(index);
	args[0] = (spyre_arg){ rows, NULL };
	args[1] = (spyre_arg){ indices, NULL };
	args[2] = (spyre_arg){ source, NULL };
	args[3] = (spyre_arg){ out, table_layout(8) };
	ck_ok(spyre_launch(stream, kernel, args, 4));
	check_fault(spyre_stream_synchronize(stream));
	ck_ok(spyre_memcpy_d2h(context, code, out, sizeof(code)));
	for (uint32_t i = 8 * COLUMNS; i < MAX_ROWS * COLUMNS; i++)
		ck_assert_uint_eq(code[i], i / COLUMNS * 256 + i % COLUMNS);
}
END_TEST

START_TEST(wrong_tables)
{
	const spyre_arg one_stick[] = { { indices, NULL }, { rows, NULL }, { out, NULL } };
	const uint32_t zero[POINTS] = { 0 };
	spyre_layout stick;
	spyre_arg args[3];
	spyre_devptr small;

	files_copy(folder, "gather");
	load();
	set_indices(zero);
	memcpy(args, one_stick, sizeof(args));
	ck_ok(spyre_layout_init_explicit(&stick, 2, (int64_t[]){ 1, 64 }, (int64_t[]){ 64, 1 },
					 SPYRE_FORMAT_SEN169_FP16, SPYRE_EA_STANDARD));
	args[1].layout = &stick;
	ck_status(spyre_launch(stream, kernel, args, 3), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("the first row of the table ends at byte 256, the layout has 128 bytes");
	ck_ok(spyre_layout_init_explicit(&stick, 2, (int64_t[]){ 8, 32 }, (int64_t[]){ 32, 1 },
					 SPYRE_FORMAT_IEEE_FP32, SPYRE_EA_STANDARD));
	ck_status(spyre_launch(stream, kernel, args, 3), SPYRE_ERROR_FORMAT);
	ck_ok(spyre_mem_alloc(context, ROW_BYTES, &small));
	ck_status(gather(small, 2), SPYRE_ERROR_INVALID_ADDRESS);
	ck_status(gather(small + SPYRE_STICK, 0), SPYRE_ERROR_INVALID_ADDRESS);
	ck_ok(gather(small, 0));
}
END_TEST

/* Layouts of a table of 64 or 128 columns, by the sizes and strides of their dims. */
static const struct {
	uint32_t columns, rank;
	int64_t size[4], stride[4];
	const char *text;		/* NULL: accepted */
} widths[] = {
	{ 128, 3, { 8, 2, 64 }, { 128, 64, 1 }, NULL },
	{ 128, 3, { 1, 2, 64 }, { -1, 64, 1 }, NULL },
	{ 128, 4, { 2, 4, 2, 64 }, { 512, 128, 64, 1 }, NULL },
	{ 128, 3, { 8, 4, 64 }, { 256, 64, 1 },
	  "the bundle has a table with rows of 256 bytes, the layout [8, 4, 64] has rows of 512; pass a layout whose outermost dimension is that of the rows" },
	{ 128, 3, { 8, 1, 64 }, { 64, -1, 1 }, "the layout [8, 1, 64] has rows of 128" },
	{ 128, 3, { 3, 3, 64 }, { 192, 64, 1 }, "rows of 256 bytes, the layout [3, 3, 64] has rows of 384" },
	/* Sticks outside of the rows. */
	{ 128, 3, { 2, 8, 64 }, { 64, 128, 1 }, "the layout [2, 8, 64] has rows of 1024" },
	{ 128, 3, { 2, 2, 64 }, { 64, 128, 1 },
	  "rows of 256 bytes, the layout [2, 2, 64] has the sticks of a row in dimension 0, outside of 256 bytes" },
	{ 64, 3, { 8, 1, 64 }, { 64, -1, 1 }, NULL },
	{ 64, 3, { 8, 1, 64 }, { 64, 64, 1 }, NULL },
	{ 64, 2, { 8, 64 }, { 64, 1 }, NULL },
	{ 64, 3, { 8, 2, 64 }, { 128, 64, 1 }, "the layout [8, 2, 64] has rows of 256" },
	/* Rows of one stick in the default layout of a matrix; a table of one row. */
	{ 64, 3, { 1, 8, 64 }, { 64, 64, 1 }, NULL },
	{ 64, 4, { 1, 1, 8, 64 }, { -1, 64, 64, 1 }, NULL },
	{ 128, 3, { 2, 1, 64 }, { 64, 128, 1 }, NULL },
	{ 128, 2, { 2, 64 }, { 64, 1 }, NULL },
	/* Rows of one stick that two dims count, or of four: the layout does not tell. */
	{ 64, 4, { 2, 1, 4, 64 }, { 256, -1, 64, 1 }, NULL },
};

/* Rows of another width than the program gathers would be those of other indices. */
START_TEST(row_widths)
{
	const uint32_t zero[POINTS] = { 0 };
	spyre_layout layout;
	spyre_arg args[3] = { { indices, NULL }, { rows, &layout }, { out, NULL } };

	files_copy(folder, "gather");
	for (int i = 0; i < 3 && widths[_i].columns == 64; i++)
		files_edit(folder, "sdsc_0.json", "\"out_\": 128", "\"out_\": 64");
	load();
	set_indices(zero);
	ck_ok(spyre_layout_init_explicit(&layout, widths[_i].rank, widths[_i].size,
					 widths[_i].stride, SPYRE_FORMAT_SEN169_FP16,
					 SPYRE_EA_STANDARD));
	if (!widths[_i].text) {
		ck_ok(spyre_launch(stream, kernel, args, 3));
		ck_ok(spyre_stream_synchronize(stream));
		return;
	}
	ck_status(spyre_launch(stream, kernel, args, 3), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_mentions("argument 1: ");
	ck_mentions(widths[_i].text);
}
END_TEST

static const struct {
	const char *from, *to, *text;
	spyre_status status;
} edits[] = {
	{ "\"index_tensor\"", "\"index_tensors\"", "indirectAllocType_", SPYRE_ERROR_PARSE },
	{ "\"index_tensor\"", "7", "indirectAllocType_", SPYRE_ERROR_PARSE },
	{ "\"index_tensor\"", "\"no_indirection\"", "no name, since it has no indirection",
	  SPYRE_ERROR_PARSE },
	{ "\"value_tensor\"", "\"index_tensor\"", "a node of \"value_tensor\" that names this one",
	  SPYRE_ERROR_PARSE },
	{ "\"value_tensor\"", "\"no_indirection\"", "relatedIndirectAccessAlloc_",
	  SPYRE_ERROR_PARSE },
	{ "_\": \"allocate-Tensor1_hbm\"", "_\": \"allocate-Tensor2_hbm\"",
	  "a node of \"value_tensor\" that names this one", SPYRE_ERROR_PARSE },
	{ "relatedIndirectAccessAlloc_", "relatedIndirectAccessAlloc", "relatedIndirectAccessAlloc_",
	  SPYRE_ERROR_PARSE },
	{ "\"relatedIndirectAccessAlloc_\": \"allocate-Tensor0_hbm\"",
	  "\"relatedIndirectAccessAlloc_\": \"allocate-Tensor1_hbm\"",
	  "several tensors hold its indices", SPYRE_ERROR_UNSUPPORTED },
	{ "\"indexTensorType_\": \"index\"", "\"indexTensorType_\": \"address\"",
	  "indexTensorType_ is \"address\"", SPYRE_ERROR_UNSUPPORTED },
	{ "\"indexTensorType_\": \"index\"", "\"indexTensorType_\": 1", "indexTensorType_",
	  SPYRE_ERROR_PARSE },
	{ "\"Tensor0-idx0\"", "\"Tensor1-idx1\"", "a tensor that is an \"index_tensor\"",
	  SPYRE_ERROR_PARSE },
	{ "\"Tensor0-idx0\"", "\"Tensor0-idx0\", \"Tensor0-idx0\"", "each tensor once",
	  SPYRE_ERROR_PARSE },
	{ "\"indirectAccessIndexLabeledDs\"", "\"indices\"",
	  "indirectAccessIndexLabeledDs lacks Tensor0", SPYRE_ERROR_PARSE },
	{ "\"Tensor1-idx1\"", "\"Tensor0-idx0\"", "Tensor0 is an input or the output",
	  SPYRE_ERROR_PARSE },
	{ "\"SENUINT32\"", "\"IEEE_FP32\"", "it is IEEE_FP32; use IEEE_INT32 or SENUINT32",
	  SPYRE_ERROR_UNSUPPORTED },
	{ "\"opFuncName\": \"identity\"", "\"opFuncName\": \"topkvalue\"", "indirect access; only",
	  SPYRE_ERROR_UNSUPPORTED },
	{ "\"el_\": {", "\"el_\": {\"symbolicDimInfo_\": {\"mb\": \"s0\"},",
	  "symbolic dimensions with indirect access", SPYRE_ERROR_UNSUPPORTED },
	/* A second table of the same indices, whose node does not say so. */
	{ "\"ldsIdx_\": 2,", "\"ldsIdx_\": 2, \"maxDimSizes_\": [1, 1],",
	  "its node names no indices, but maxDimSizes_ is 1 along mb", SPYRE_ERROR_UNSUPPORTED },
	{ "\"stickDimOrder_\": [\n                \"out\"", "\"stickDimOrder_\": [\"mb\"",
	  "its indices are along its sticks, mb", SPYRE_ERROR_UNSUPPORTED },
};

START_TEST(malformed)
{
	files_copy(folder, "gather");
	files_edit(folder, "sdsc_0.json", edits[_i].from, edits[_i].to);
	ck_status(spyre_kernel_load(context, folder, &kernel), edits[_i].status);
	ck_mentions(edits[_i].text);
}
END_TEST

/* Rows that are not outermost have a distance that depends on their number. */
START_TEST(inner_rows)
{
	files_copy(folder, "gather");
	files_edit(folder, "sdsc_0.json", "\"ldsIdx_\": 1,\n              \"component_\": \"hbm\",",
		   "\"ldsIdx_\": 1, \"component_\": \"hbm\", \"layoutDimOrder_\": [\"mb\", \"out\"],");
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("the indexed dimension has to be the outermost, not out");
}
END_TEST

/* Two cores that divide a dimension which the scattered rows lack, such as a reduced one. */
START_TEST(divided_rows)
{
	static const char *const divide[][2] = {
		{ "\"numCoresUsed_\": 1", "\"numCoresUsed_\": 2" },
		{ "\"numWkSlicesPerDim_\": {", "\"numWkSlicesPerDim_\": {\"x\": 2," },
		{ "\"mb\": 0,", "\"x\": 0, \"mb\": 0," },
		{ "\"coreIdToWkSlice_\": {",
		  "\"coreIdToWkSlice_\": {\"1\": {\"x\": 1, \"mb\": 0, \"out\": 0}," },
		{ "\"coreIdsUsed_\": [", "\"coreIdsUsed_\": [0, 1], \"other\": [" },
		{ "\"N_\": {", "\"N_\": {\"x_\": 2," },
		{ "\"el_\": {", "\"el_\": {\"x_\": 1," },
		{ "\"[0, 0, 0]\": \"-3\"", "\"[0, 0, 0]\": \"-3\", \"[1, 0, 0]\": \"-3\"" },
		{ "\"[0, 0, 0]\": \"-4\"", "\"[0, 0, 0]\": \"-4\", \"[1, 0, 0]\": \"-4\"" },
		{ "\"[0, 0, 0]\": \"-5\"", "\"[0, 0, 0]\": \"-5\", \"[1, 0, 0]\": \"-5\"" },
		{ "\"opFuncName\": \"identity\"", "\"opFuncName\": \"neg\"" },
	};

	files_copy(folder, "scatter");
	for (size_t i = 0; i < sizeof(divide) / sizeof(divide[0]); i++)
		files_edit(folder, "sdsc_1.json", divide[i][0], divide[i][1]);
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("x is split over 2 cores, and the output, rows of a table, lacks it");
}
END_TEST

/* The verifier limits the distance between rows even of a table with one row. */
START_TEST(wide_rows)
{
	files_copy(folder, "gather");
	files_edit(folder, "sdsc_0.json", "\"ldsIdx_\": 1,\n              \"component_\"",
		   "\"ldsIdx_\": 1, \"backGapCore_\": {\"out\": {\"-1\": \"17179869184\"}}, "
		   "\"component_\"");
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_SPAN_LIMIT);
	ck_mentions("accesses from offset 0 on reach beyond");
}
END_TEST

START_TEST(unknown_size)
{
	files_copy(folder, "gather");
	for (int i = 0; i < 2; i++)
		files_edit(folder, "bundle.mlir", "%arg_1_base_addr", "%pool_base_addr");
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("a table in the pool that no earlier SDSC writes");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bundle_indirect");
	TCase *tcase = tcase_create("indirect");
	SRunner *runner;
	int failed;

	setenv("SPYRE_KERNEL_CACHE", "0", 0);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, other_sizes, 0, 2);
	tcase_add_test(tcase, memory_ends);
	tcase_add_loop_test(tcase, bad_index, 0, 5);
	tcase_add_test(tcase, bad_scatter);
	tcase_add_test(tcase, wrong_tables);
	tcase_add_loop_test(tcase, row_widths, 0, sizeof(widths) / sizeof(widths[0]));
	tcase_add_loop_test(tcase, malformed, 0, sizeof(edits) / sizeof(edits[0]));
	tcase_add_test(tcase, inner_rows);
	tcase_add_test(tcase, divided_rows);
	tcase_add_test(tcase, wide_rows);
	tcase_add_test(tcase, unknown_size);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
