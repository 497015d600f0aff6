// SPDX-License-Identifier: MIT
/* Operations of the builder on IEEE_INT32: small numbers in all placings, and all 32 bits. */
#include "sdsc_operation.h"

#define ELEMENTS 500

START_TEST(one_operation)
{
	run(&integer_operations[_i / NUM_PLACINGS], _i % NUM_PLACINGS);
}
END_TEST

static void layout_of(spyre_sdsc_operand *operand, int64_t size)
{
	const int64_t stride = 1;
	const int32_t order = 0;

	*operand = (spyre_sdsc_operand){ .rank = 1, .size = { size } };
	ck_ok(spyre_layout_init_strided(&operand->layout, 1, &size, &stride,
					SPYRE_FORMAT_IEEE_INT32, &order, 1));
}

/* An operation with a number, or on the numbers themselves. */
static void run_on(const char *op, const spyre_sdsc_attribute *attr, const int32_t *x, int32_t *y)
{
	const int64_t size = ELEMENTS;
	spyre_sdsc_operand operand;
	spyre_sdsc_graph *graph;
	spyre_kernel *kernel;
	spyre_host_tensor h;
	spyre_devptr from, to;
	uint32_t tensor[2];
	size_t bytes;

	layout_of(&operand, size);
	bytes = spyre_layout_bytes(&operand.layout);
	ck_ok(spyre_mem_alloc(context, bytes, &from));
	ck_ok(spyre_mem_alloc(context, bytes, &to));
	ck_ok(spyre_host_tensor_dense(&h, (void *)x, SPYRE_FORMAT_IEEE_INT32, 1, &size));
	ck_ok(spyre_copy_h2d(context, from, &operand.layout, &h));
	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &tensor[0]));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &tensor[1]));
	ck_ok(spyre_sdsc_graph_add_op(graph, op, attr, attr ? 1 : 0, tensor, 1, &tensor[1]));
	ck_ok(spyre_sdsc_graph_load(context, graph, 4, &kernel));
	{
		spyre_arg args[] = { { from, &operand.layout }, { to, &operand.layout } };
		spyre_stream *stream = get_stream(context, 0);

		ck_ok(spyre_launch(stream, kernel, args, 2));
		ck_ok(spyre_stream_synchronize(stream));
	}
	ck_ok(spyre_host_tensor_dense(&h, y, SPYRE_FORMAT_IEEE_INT32, 1, &size));
	ck_ok(spyre_copy_d2h(context, &h, to, &operand.layout));
	ck_ok(spyre_kernel_unload(kernel));
	spyre_sdsc_graph_destroy(graph);
	ck_ok(spyre_mem_free(context, from));
	ck_ok(spyre_mem_free(context, to));
}

/* Numbers of all magnitudes, and a constant of 31 bits: fp32 has neither. */
START_TEST(all_bits)
{
	static const double number = 1000000007;
	spyre_sdsc_attribute other = { "other", number }, min = { "min", number };
	int32_t x[ELEMENTS], y[ELEMENTS];
	uint32_t seed = 7;

	context = open_card();
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		seed = seed * 1664525 + 1013904223;
		x[i] = (int32_t)seed >> i % 32;
	}
	x[0] = INT32_MIN;
	x[1] = INT32_MAX;
	run_on("add", &other, x, y);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		ck_assert_int_eq(y[i], (int32_t)((uint32_t)x[i] + 1000000007u));
	run_on("mul", &other, x, y);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		ck_assert_int_eq(y[i], (int32_t)((uint32_t)x[i] * 1000000007u));
	run_on("bitwise_xor", &other, x, y);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		ck_assert_int_eq(y[i], x[i] ^ 1000000007);
	run_on("neg", NULL, x, y);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		ck_assert_int_eq(y[i], (int32_t)(0 - (uint32_t)x[i]));
	run_on("clamp", &min, x, y);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		ck_assert_int_eq(y[i], x[i] < 1000000007 ? 1000000007 : x[i]);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* Numbers that are not integers of 32 bits, and formats that an operation lacks. */
START_TEST(refused)
{
	static const struct {
		const char *op;
		spyre_sdsc_attribute attr;
		const char *text;
	} bad[] = {
		{ "add", { "other", 0.5 }, "0.5 is not an integer of 32 bits" },
		{ "mul", { "other", 2147483648.0 }, "2147483648 is not an integer of 32 bits" },
		{ "eq", { "other", -2147483649.0 }, "-2147483649 is not an integer of 32 bits" },
		{ "lt", { "other", INFINITY }, "inf is not an integer of 32 bits" },
		{ "clamp", { "min", 4294967296.0 }, "4294967296 is not an integer of 32 bits" },
		{ "clamp", { "max", 1.5 }, "1.5 is not an integer of 32 bits" },
		{ "exp", { NULL, 0 }, "exp does not compute on IEEE_INT32" },
	};
	spyre_sdsc_operand operand, half = { .rank = 1, .size = { 64 } };
	const int64_t size = 64, stride = 1;
	const int32_t order = 0;
	spyre_sdsc_graph *graph;
	uint32_t tensor[2], made;

	layout_of(&operand, 64);
	ck_ok(spyre_layout_init_strided(&half.layout, 1, &size, &stride,
					SPYRE_FORMAT_SEN169_FP16, &order, 1));
	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &tensor[0]));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &half, &tensor[1]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		made = SPYRE_SDSC_NEW;
		ck_assert_int_ne(spyre_sdsc_graph_add_op(graph, bad[i].op, &bad[i].attr,
							 bad[i].attr.name != NULL, tensor, 1,
							 &made), SPYRE_SUCCESS);
		ck_assert_msg(strstr(spyre_last_error(), bad[i].text), "%s: %s", bad[i].op,
			      spyre_last_error());
	}
	made = SPYRE_SDSC_NEW;
	ck_assert_int_eq(spyre_sdsc_graph_add_op(graph, "add", NULL, 0, tensor, 2, &made),
			 SPYRE_ERROR_FORMAT);
	ck_assert_int_eq(spyre_sdsc_graph_add_op(graph, "left_shift", NULL, 0,
						 (uint32_t[]){ tensor[1], tensor[1] }, 2, &made),
			 SPYRE_ERROR_FORMAT);
	ck_assert_msg(strstr(spyre_last_error(), "left_shift does not compute on SEN169_FP16"),
		      "%s", spyre_last_error());
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

int main(void)
{
	TCase *operations = tcase_create("operations"), *numbers = tcase_create("numbers");

	tcase_set_timeout(operations, 300);
	tcase_add_loop_test(operations, one_operation, 0, num_integer_operations * NUM_PLACINGS);
	tcase_add_test(numbers, all_bits);
	tcase_add_test(numbers, refused);
	return run_both("integers", operations, numbers);
}
