// SPDX-License-Identifier: MIT
/* Operands on the command line. */
#include "tools/spyre/shape.h"

#include "tools_check.h"

START_TEST(shapes)
{
	struct shape_spec spec;
	struct text why;
	char text[160];

	ck_assert_int_eq(shape_parse_input("512x1024@fp16", &spec, &why), 0);
	ck_assert(spec.has_shape && !spec.path);
	ck_assert_uint_eq(spec.rank, 2);
	ck_assert_int_eq(spec.size[0], 512);
	ck_assert_int_eq(spec.size[1], 1024);
	ck_assert_int_eq(spec.format, SPYRE_FORMAT_IEEE_FP16);
	ck_assert_int_eq(spec.order, SHAPE_ORDER_AUTO);
	shape_format(spec.rank, spec.size, text, sizeof(text));
	ck_assert_str_eq(text, "512x1024");

	ck_assert_int_eq(shape_parse_input("scalar@bf16", &spec, &why), 0);
	ck_assert_uint_eq(spec.rank, 0);
	ck_assert_int_eq(spec.format, SPYRE_FORMAT_BFLOAT16);
	shape_format(0, spec.size, text, sizeof(text));
	ck_assert_str_eq(text, "scalar");

	ck_assert_int_eq(shape_parse_output("1x2x3x4x5x6x7@IEEE_FP32", &spec, &why), 0);
	ck_assert_uint_eq(spec.rank, 7);
	ck_assert_int_eq(spec.format, SPYRE_FORMAT_IEEE_FP32);
	ck_assert_int_eq(shape_parse_input("0x4@int8", &spec, &why), 0);
	ck_assert_int_eq(shape_elements(spec.rank, spec.size), 0);
}
END_TEST

START_TEST(orders)
{
	struct shape_spec spec;
	struct text why;

	ck_assert_int_eq(shape_parse_input("4x8@fp16:1,0", &spec, &why), 0);
	ck_assert_int_eq(spec.order, SHAPE_ORDER_GIVEN);
	ck_assert_uint_eq(spec.order_len, 2);
	ck_assert_int_eq(spec.dim_order[0], 1);
	ck_assert_int_eq(spec.dim_order[1], 0);
	ck_assert_int_eq(shape_parse_output("4x8@fp16:0,1,-1=/a/b=c.npy", &spec, &why), 0);
	ck_assert_uint_eq(spec.order_len, 3);
	ck_assert_int_eq(spec.dim_order[2], -1);
	ck_assert_str_eq(spec.path, "/a/b=c.npy");
	shape_fini(&spec);
	ck_assert_int_eq(shape_parse_output("512@fp16:sparse", &spec, &why), 0);
	ck_assert_int_eq(spec.order, SHAPE_ORDER_SPARSE);
}
END_TEST

START_TEST(files)
{
	struct shape_spec spec;
	struct text why;

	ck_assert_int_eq(shape_parse_input("dir/a.npy", &spec, &why), 0);
	ck_assert_str_eq(spec.path, "dir/a.npy");
	ck_assert(!spec.has_shape);
	ck_assert_int_eq(spec.format, SPYRE_FORMAT_INVALID);
	shape_fini(&spec);
	ck_assert_int_eq(shape_parse_input("a.npy@x/b.npy@bf16:0,1", &spec, &why), 0);
	ck_assert_str_eq(spec.path, "a.npy@x/b.npy");
	ck_assert_int_eq(spec.format, SPYRE_FORMAT_BFLOAT16);
	ck_assert_uint_eq(spec.order_len, 2);
	shape_fini(&spec);
}
END_TEST

/* Layouts against the public vectors of SpyreTensorLayout. */
START_TEST(layouts)
{
	static const struct {
		const char *word;
		uint32_t rank;
		int64_t size[5], stride[5];
	} vectors[] = {
		{"512x240@fp16", 3, {4, 512, 64}, {64, 240, 1}},
		{"512x256@fp16:1,0", 3, {8, 256, 64}, {16384, 1, 256}},
		{"512x256@fp16:sparse", 4, {256, 1, 512, 64}, {1, -1, 256, -1}},
		{"512@fp16:sparse", 3, {1, 512, 64}, {-1, 1, -1}},
		{"scalar@fp16", 2, {1, 64}, {-1, -1}},
	};
	const size_t n = sizeof(vectors) / sizeof(vectors[0]);
	struct shape_spec spec;
	spyre_layout layout;
	struct text why;

	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(shape_parse_input(vectors[i].word, &spec, &why), 0);
		ck_assert_int_eq(shape_layout(&spec, &layout), SPYRE_SUCCESS);
		ck_assert_uint_eq(layout.device_rank, vectors[i].rank);
		ck_assert_mem_eq(layout.device_size, vectors[i].size, vectors[i].rank * 8);
		ck_assert_mem_eq(layout.stride_map, vectors[i].stride, vectors[i].rank * 8);
	}
}
END_TEST

static const struct {
	const char *word, *part;
} bad[] = {
	{"", "the format is missing"},
	{"512x1024", "the format is missing; write"},
	{"@fp16", "expected a number at character 1"},
	{"512x@fp16", "expected a number at character 5, found '@'"},
	{"x4@fp16", "expected a number at character 1, found 'x'"},
	{"4xx4@fp16", "expected a number at character 3, found 'x'"},
	{"4*4@fp16", "expected 'x' or '@' at character 2, found '*'"},
	{"-4@fp16", "expected a number at character 1, found '-'"},
	{" 4@fp16", "expected a number"},
	{"4@", "unknown format ''"},
	{"4@fp17", "unknown format 'fp17'"},
	{"4@fp16@fp16", "unknown format 'fp16@fp16'"},
	{"1x1x1x1x1x1x1x1@fp16", "more than 7 dimensions"},
	{"99999999999999999999@fp16", "a dimension exceeds"},
	{"4398046511104x4398046511104@fp16", "elements"},
	{"4x4@fp16:", "expected a dimension"},
	{"4x4@fp16:0,", "expected a dimension or 'sparse' at its end"},
	{"4x4@fp16:0;1", "expected ','"},
	{"4x4@fp16:0,7", "dimension 7 is out of range"},
	{"4x4@fp16:-2", "dimension -2 is out of range"},
	{"4x4@fp16:0,1,2,3,4,5,6,0,1", "the order has more than"},
};

START_TEST(bad_words)
{
	struct shape_spec spec;
	struct text why;

	ck_assert_int_eq(shape_parse_input(bad[_i].word, &spec, &why), -1);
	ck_mentions(why, bad[_i].word);
	ck_mentions(why, bad[_i].part);
	ck_assert_ptr_null(spec.path);
	ck_assert_int_eq(shape_parse_output(bad[_i].word, &spec, &why), -1);
	ck_mentions(why, bad[_i].part);
}
END_TEST

START_TEST(bad_outputs)
{
	struct shape_spec spec;
	struct text why;

	ck_assert_int_eq(shape_parse_output("a.npy@fp16", &spec, &why), -1);
	ck_mentions(why, "needs a shape");
	ck_assert_int_eq(shape_parse_output("4@fp16=", &spec, &why), -1);
	ck_mentions(why, "the file name");
	ck_assert_int_eq(shape_parse_input("a.npy@fp99", &spec, &why), -1);
	ck_mentions(why, "fp99");
	ck_assert_ptr_null(spec.path);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("shape");

	tcase_add_test(tests, shapes);
	tcase_add_test(tests, orders);
	tcase_add_test(tests, files);
	tcase_add_test(tests, layouts);
	tcase_add_loop_test(tests, bad_words, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tests, bad_outputs);
	return run_case("shape", tests);
}
