// SPDX-License-Identifier: MIT
/*
 * Shapes in which dimensions have one point: sticks then lie along a dimension that
 * the builder may not use as an index. Compares convolutions, pooling and other
 * operations that change sticks, from a table and drawn at random, with loops.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sdsc_operation.h"

#define C(...) { { __VA_ARGS__, END }, CHANNELS, 0 }

static const struct operation odd[] = {
	/* one column, of any origin, and in all kinds of sticks */
	{ "conv2d", window, 2e-2, DL16, { D(1, 64, 1, 1), D(64, 64, 1, 1), D(1, 64, 1, 1) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { S(1, 64, 1, 1), D(64, 64, 1, 1), S(1, 64, 1, 1) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { C(2, 70, 1, 1), D(33, 70, 1, 1), D(33), S(2, 33, 1, 1) }, { { 0 } }, 0 },
	{ "conv2d", window, 1e-3, FP32, { D(1, 64, 1, 1), D(64, 64, 1, 1), D(1, 64, 1, 1) }, { { 0 } }, 0 },
	{ "conv2d", window, 1e-3, FP32, { D(2, 8, 5, 1), D(40, 8, 3, 1), D(40), S(2, 40, 3, 1) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(1, 5, 2, 2), D(70, 5, 3, 3), D(1, 70, 1, 1) }, { { "stride", 2 }, { "padding", 1 } }, 0 },
	{ "conv2d", window, 1e-3, FP32, { D(1, 5, 2, 2), D(70, 5, 3, 3), D(1, 70, 1, 1) }, { { "stride", 2 }, { "padding", 1 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(1, 2, 80, 1), D(16, 2, 64, 1), D(1, 16, 17, 1) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(2, 3, 9, 1), D(8, 3, 3, 1), D(2, 8, 9, 1) }, { { "padding", 1 }, { "padding", 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(3, 5, 1), D(8, 3, 3, 1), D(8), S(8, 3, 1) }, { { 0 } }, 0 },
	/* one row, one channel */
	{ "conv2d", window, 2e-2, DL16, { D(1, 3, 1, 9), D(8, 3, 1, 3), T(1, 8, 1, 7) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(2, 70, 4, 5), D(1, 70, 2, 2), D(2, 1, 3, 4) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { S(2, 1, 4, 1), D(1, 1, 2, 1), S(2, 1, 3, 1) }, { { 0 } }, 0 },
	{ "conv2d", window, 2e-2, DL16, { D(2, 1, 4, 5), D(3, 1, 2, 5), D(2, 3, 3, 1) }, { { 0 } }, 0 },
	{ "depthwise_conv2d", window, 1e-2, DL16, { D(1, 70, 9, 1), D(70, 1, 3, 1), D(1, 70, 7, 1) }, { { 0 } }, 0 },
	{ "depthwise_conv2d", window, 1e-3, FP32, { D(2, 5, 3, 3), D(5, 1, 3, 3), D(5), S(2, 5, 1, 1) }, { { 0 } }, 0 },
	{ "max_pool2d", window, 0, DL16, { D(2, 70, 4, 3), D(2, 70, 2, 1) }, { { "kernel_size", 2 } }, 0 },
	{ "avg_pool2d", window, 3e-3, DL16, { D(70, 7, 7), S(70, 1, 1) }, { { "kernel_size", 7 } }, 0 },
	/* other operations that choose sticks */
	{ "transpose", matrix_transpose, 0, DL16, { D(50, 70), S(70, 50) }, { { 0 } }, 0 },
	{ "transpose", matrix_transpose, 0, FP32, { S(50, 70), D(70, 50) }, { { 0 } }, 0 },
	{ "transpose", matrix_transpose, 0, DL16, { D(1, 70), D(70, 1) }, { { 0 } }, 0 },
	{ "transpose", matrix_transpose, 0, DL16, { D(70, 1), D(1, 70) }, { { 0 } }, 0 },
	{ "topk", topk, 0, DL16, { D(10, 150), S(10, 5) }, { { "k", 5 } }, 0 },
	{ "topk", topk, 0, FP32, { D(3, 33), T(3, 5) }, { { "k", 5 } }, 0 },
};

#define COUNT (int)(sizeof(odd) / sizeof(odd[0]))

START_TEST(one_point)
{
	run(&odd[_i / NUM_PLACINGS], _i % NUM_PLACINGS);
}
END_TEST

static uint32_t seed;

static int64_t draw_of(const int64_t *choice, uint32_t count)
{
	seed = seed * 1664525 + 1013904223;
	return choice[(seed >> 16) % count];
}

#define ONE_OF(...) draw_of((const int64_t[]){ __VA_ARGS__ }, \
			    sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

static void set_tensor(struct tensor *t, uint32_t rank, const int64_t *size)
{
	memcpy(t->size, size + (4 - rank), rank * sizeof(*size));
	t->size[rank] = END;
	t->kind = (int)ONE_OF(DENSE, DENSE, SPARSE, TRANSPOSED, CHANNELS);
}

static void set_attr(struct operation *op, uint32_t *count, const char *name, int64_t value)
{
	op->attr[(*count)++] = (spyre_sdsc_attribute){ name, (double)value };
}

/* Sizes along rows or columns, and the attributes for that axis. */
static int64_t draw_axis(int64_t *in_size, int64_t *taps, bool weights, int64_t *stride,
			 int64_t *padding, int64_t *dilation)
{
	int64_t reach;

	*taps = ONE_OF(1, 1, 2, 3, 3, 5);
	*dilation = weights ? ONE_OF(1, 1, 2, 3) : 1;
	*stride = ONE_OF(1, 1, 2, 3);
	reach = (*taps - 1) * *dilation;
	/* Even with the largest padding each window contains an element. */
	*padding = reach ? ONE_OF(0, 1, 2) % (reach + 1) : 0;
	*in_size = ONE_OF(1, 1, 2, 3, 4, 7, 9);
	if (*in_size + 2 * *padding < reach + 1)
		*in_size = reach + 1 - 2 * *padding;
	return (*in_size + 2 * *padding - reach - 1) / *stride + 1;
}

static void draw_operation(struct operation *op)
{
	static const char *const names[] = { "conv2d", "conv2d", "conv2d", "depthwise_conv2d",
					     "max_pool2d", "avg_pool2d" };
	int64_t x[4], w[4], y[4], stride[2], padding[2], dilation[2];
	uint32_t n = 0, attrs = 0, rank = (uint32_t)ONE_OF(4, 4, 4, 3);
	bool weights, deep;

	memset(op, 0, sizeof(*op));
	op->name = names[ONE_OF(0, 1, 2, 3, 4, 5)];
	op->reference = window;
	op->format = (spyre_format)ONE_OF(DL16, FP32);
	op->tolerance = op->format == FP32 ? 1e-3 : 2e-2;
	deep = !strcmp(op->name, "conv2d");
	weights = strstr(op->name, "conv");
	x[0] = y[0] = rank == 3 ? 1 : ONE_OF(1, 1, 2, 3);
	x[1] = ONE_OF(1, 2, 3, 5, 33, 64, 70);
	w[0] = y[1] = deep ? ONE_OF(1, 2, 8, 33, 64, 70) : x[1];
	w[1] = deep ? x[1] : 1;
	for (uint32_t k = 0; k < 2; k++)
		y[2 + k] = draw_axis(&x[2 + k], &w[2 + k], weights, &stride[k], &padding[k],
				     &dilation[k]);
	set_tensor(&op->tensor[n++], rank, x);
	if (weights)
		set_tensor(&op->tensor[n++], 4, w);
	if (weights && ONE_OF(0, 1)) {
		op->tensor[n].size[0] = y[1];
		op->tensor[n].size[1] = END;
		op->tensor[n++].kind = DENSE;
	}
	set_tensor(&op->tensor[n], rank, y);
	for (uint32_t k = 0; k < 2; k++) {
		set_attr(op, &attrs, "stride", stride[k]);
		set_attr(op, &attrs, "padding", padding[k]);
		set_attr(op, &attrs, weights ? "dilation" : "kernel_size",
			 weights ? dilation[k] : w[2 + k]);
	}
}

static void describe_tensor(const struct tensor *t, char *text, size_t bytes)
{
	size_t used = (size_t)snprintf(text, bytes, "kind %d [", t->kind);

	for (uint32_t d = 0; t->size[d] != END && used < bytes; d++)
		used += (size_t)snprintf(text + used, bytes - used, " %lld",
					 (long long)t->size[d]);
	if (used < bytes)
		snprintf(text + used, bytes - used, " ]");
}

#define ROUNDS 60
#define SHAPES 5

/* Each round has its own seed, so that it can be repeated alone. */
START_TEST(random_windows)
{
	for (int i = 0; i < SHAPES; i++) {
		char text[96];
		struct operation op;
		enum placing placing;

		seed = (uint32_t)(_i * SHAPES + i + 1) * 2654435761u;
		draw_operation(&op);
		placing = (enum placing)ONE_OF(AS_COPIED, POISONED, WINDOWS);
		/* This is the last line of the log when a case fails. */
		printf("round %d.%d: %s, format %d, placing %d:", _i, i, op.name, (int)op.format,
		       (int)placing);
		for (uint32_t k = 0; k < MAX_IN && op.tensor[k].size[0]; k++) {
			describe_tensor(&op.tensor[k], text, sizeof(text));
			printf(" %s", text);
		}
		for (uint32_t k = 0; k < MAX_ATTRS && op.attr[k].name; k++)
			printf(" %s=%g", op.attr[k].name, op.attr[k].value);
		printf("\n");
		fflush(stdout);
		run(&op, placing);
	}
}
END_TEST

static uint32_t add(spyre_sdsc_graph *graph, uint32_t rank, const int64_t *size)
{
	spyre_sdsc_operand operand = { .rank = rank };
	uint32_t tensor;

	memcpy(operand.size, size, rank * sizeof(*size));
	ck_ok(spyre_layout_init(&operand.layout, rank, size, DL16));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &tensor));
	return tensor;
}

/* An element per stick, and a device dim for each dim of several points. */
static uint32_t add_sparse(spyre_sdsc_graph *graph, const int64_t size[SPYRE_MAX_RANK])
{
	spyre_sdsc_operand operand = { .rank = SPYRE_MAX_RANK };
	spyre_layout *l = &operand.layout;
	uint32_t tensor;

	memcpy(operand.size, size, sizeof(operand.size));
	l->struct_size = sizeof(*l);
	l->device_format = DL16;
	l->mapped = true;
	for (uint32_t d = 0; d < SPYRE_MAX_RANK; d++)
		if (size[d] > 1) {
			l->device_size[l->device_rank] = size[d];
			l->dim_map[l->device_rank++] = (int8_t)d;
		}
	l->device_size[l->device_rank] = 64;
	l->dim_map[l->device_rank++] = -1;
	ck_ok(spyre_sdsc_graph_add_argument(graph, &operand, &tensor));
	return tensor;
}

/* All seven dims and one element per stick: no layout or index can have that. */
START_TEST(too_many_for_a_layout)
{
	const int64_t a[7] = { 2, 1, 2, 1, 2, 1, 2 }, b[7] = { 1, 2, 1, 2, 1, 2, 1 };
	uint32_t from[2], to = SPYRE_SDSC_NEW;
	spyre_sdsc_graph *graph;

	ck_ok(spyre_sdsc_graph_create(&graph));
	from[0] = add_sparse(graph, a);
	from[1] = add_sparse(graph, b);
	ck_status(spyre_sdsc_graph_add_op(graph, "add", NULL, 0, from, 2, &to),
		  SPYRE_ERROR_LAYOUT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "no valid layout"));
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* An output of the wrong rank gets no additional dim before it is checked. */
START_TEST(output_of_seven_dims)
{
	const int64_t x[3] = { 3, 5, 5 }, w[4] = { 8, 3, 3, 3 }, y[7] = { 1, 1, 1, 1, 8, 3, 3 };
	spyre_sdsc_graph *graph;
	uint32_t from[2], to;

	ck_ok(spyre_sdsc_graph_create(&graph));
	from[0] = add(graph, 3, x);
	from[1] = add(graph, 4, w);
	to = add(graph, 7, y);
	ck_status(spyre_sdsc_graph_add_op(graph, "conv2d", NULL, 0, from, 2, &to),
		  SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "rank 7, operand 0 has 3"));
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* The list of tensors moves when it grows, for any number of tensors. */
START_TEST(argmax_moves_tensors)
{
	const int64_t size[2] = { 10, 150 };

	for (uint32_t more = 0; more < 20; more++) {
		uint32_t from, to = SPYRE_SDSC_NEW;
		spyre_sdsc_operand seen;
		spyre_sdsc_graph *graph;

		ck_ok(spyre_sdsc_graph_create(&graph));
		from = add(graph, 2, size);
		for (uint32_t i = 0; i < more; i++)
			add(graph, 2, size);
		ck_ok(spyre_sdsc_graph_add_op(graph, "argmax", NULL, 0, &from, 1, &to));
		ck_ok(spyre_sdsc_graph_get_tensor(graph, to, &seen));
		ck_assert_uint_eq(seen.rank, 1);
		ck_assert_int_eq(seen.size[0], 10);
		spyre_sdsc_graph_destroy(graph);
	}
}
END_TEST

/* An open output: the last dim has one point, so the sticks are along no dim. */
START_TEST(open_transpose)
{
	const spyre_sdsc_attribute attr[2] = { { "dim0", 0 }, { "dim1", 2 } };
	const int64_t size[3] = { 1, 5, 70 };
	uint32_t from, to = SPYRE_SDSC_NEW, next = SPYRE_SDSC_NEW;
	spyre_sdsc_operand seen;
	spyre_sdsc_graph *graph;

	ck_ok(spyre_sdsc_graph_create(&graph));
	from = add(graph, 3, size);
	ck_ok(spyre_sdsc_graph_add_op(graph, "transpose", attr, 2, &from, 1, &to));
	ck_ok(spyre_sdsc_graph_get_tensor(graph, to, &seen));
	ck_assert_uint_eq(seen.rank, 3);
	ck_assert_int_eq(seen.size[0], 70);
	ck_assert_int_eq(seen.size[2], 1);
	for (uint32_t j = 0; j < seen.layout.device_rank; j++)
		ck_assert_int_lt(seen.layout.dim_map[j], 3);
	ck_ok(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &to, 1, &next));
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("shapes"), *b = tcase_create("builder");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, one_point, 0, COUNT * NUM_PLACINGS);
	tcase_add_loop_test(t, random_windows, 0, ROUNDS);
	tcase_add_test(b, too_many_for_a_layout);
	tcase_add_test(b, output_of_seven_dims);
	tcase_add_test(b, argmax_moves_tensors);
	tcase_add_test(b, open_transpose);
	return run_both("odd", t, b);
}
