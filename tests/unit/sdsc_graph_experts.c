// SPDX-License-Identifier: MIT
/*
 * Products of tiles with matrices that indices select: random shapes, layouts, indices and numbers
 * of cores, compared with plain loops. Factors are small integers, whose sums are exact.
 */
#include <stdio.h>

#include "bundle_files.h"
#include "runtime_check.h"

#define CASES 48
#define INT32 SPYRE_FORMAT_IEEE_INT32

struct value {
	spyre_sdsc_operand operand;
	size_t elements;
	float *data;
	spyre_devptr device;
};

static spyre_context *context;
static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * below) >> 32);
}

static void transfer(const struct value *v, bool up)
{
	bool index = v->operand.layout.device_format == INT32;
	int32_t *number = calloc(v->elements, sizeof(*number));
	spyre_host_tensor h;

	for (size_t i = 0; i < v->elements; i++)
		number[i] = (int32_t)v->data[i];
	ck_ok(spyre_host_tensor_dense(&h, index ? (void *)number : v->data,
				      index ? INT32 : SPYRE_FORMAT_IEEE_FP32, v->operand.rank,
				      v->operand.size));
	if (up)
		ck_ok(spyre_copy_h2d(context, v->device, &v->operand.layout, &h));
	else
		ck_ok(spyre_copy_d2h(context, &h, v->device, &v->operand.layout));
	free(number);
}

/* Makes a tensor of numbers below @below, with its dims in memory as @order says. */
static void make(struct value *v, uint32_t rank, const int64_t *size, const int32_t *order,
		 spyre_format format, uint32_t below)
{
	int64_t stride[3];

	memset(v, 0, sizeof(*v));
	v->operand.rank = rank;
	v->elements = 1;
	for (uint32_t d = rank; d-- > 0;) {
		v->operand.size[d] = size[d];
		stride[d] = (int64_t)v->elements;
		v->elements *= (size_t)size[d];
	}
	ck_ok(spyre_layout_init_strided(&v->operand.layout, rank, size, stride, format, order,
					rank));
	v->data = calloc(v->elements, sizeof(*v->data));
	for (size_t i = 0; i < v->elements; i++)
		v->data[i] = (float)draw(below);
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&v->operand.layout), &v->device));
	transfer(v, true);
}

/* [tiles, rows, k] x [experts, k, columns] at [tiles]; @swap: the table is [.., columns, k]. */
struct example {
	bool swap;
	int64_t tiles, rows, k, columns, experts;
	struct value a, b, index, c;
};

static void draw_case(struct example *e)
{
	static const int64_t sizes[] = { 1, 2, 3, 7, 64, 70, 130 };
	static const spyre_format formats[] = { SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_IEEE_FP32,
						SPYRE_FORMAT_BFLOAT16 };
	static const int32_t orders[][3] = { { 0, 1, 2 }, { 1, 0, 2 }, { 0, 2, 1 }, { 2, 0, 1 } };
	spyre_format format = formats[draw(3)];
	const int32_t *order = orders[draw(4)];

	e->swap = draw(2);
	e->tiles = sizes[draw(5)];
	e->rows = sizes[draw(4)];
	e->k = 2 + sizes[draw(7)];
	e->columns = 1 + sizes[draw(7)];
	e->experts = 1 + draw(5);
	make(&e->a, 3, (int64_t[]){ e->tiles, e->rows, e->k }, orders[0], format, 2);
	make(&e->b, 3, (int64_t[]){ e->experts, e->swap ? e->columns : e->k,
				    e->swap ? e->k : e->columns }, order, format, 2);
	make(&e->index, 1, &e->tiles, orders[0], INT32, (uint32_t)e->experts);
	make(&e->c, 3, (int64_t[]){ e->tiles, e->rows, e->columns }, orders[0], format, 2);
}

static spyre_sdsc_graph *build(const struct example *e)
{
	const struct value *operand[] = { &e->a, &e->b, &e->index, &e->c };
	spyre_sdsc_attribute swap = { "transpose_b", e->swap };
	spyre_sdsc_graph *graph;
	uint32_t in[4];

	ck_ok(spyre_sdsc_graph_create(&graph));
	for (uint32_t i = 0; i < 4; i++) {
		ck_ok(spyre_sdsc_graph_add_argument(graph, &operand[i]->operand, &in[i]));
		if (draw(2))
			ck_ok(spyre_sdsc_graph_set_padding(graph, in[i],
							   SPYRE_SDSC_PADDING_UNKNOWN));
	}
	ck_ok(spyre_sdsc_graph_add_op(graph, "index_matmul", &swap, 1, in, 3, &in[3]));
	return graph;
}

/* Loads the program from memory, or from the files of its bundle. */
static void load(const struct example *e, bool files, uint32_t cores, spyre_kernel **kernel)
{
	spyre_sdsc_graph *graph = build(e);
	char folder[64];

	if (!files) {
		ck_ok(spyre_sdsc_graph_load(context, graph, cores, kernel));
	} else {
		files_make(folder);
		ck_ok(spyre_sdsc_graph_write(graph, cores, folder));
		ck_ok(spyre_kernel_load(context, folder, kernel));
		files_remove(folder);
	}
	spyre_sdsc_graph_destroy(graph);
}

static spyre_status launch(const struct example *e, spyre_kernel *kernel)
{
	spyre_stream *stream = get_stream(context, 0);
	const spyre_arg args[] = { { e->a.device, NULL }, { e->b.device, NULL },
				   { e->index.device, NULL }, { e->c.device, NULL } };
	spyre_status status = spyre_launch(stream, kernel, args, 4);

	return status ? status : spyre_stream_synchronize(stream);
}

static float expected(const struct example *e, int64_t tile, int64_t row, int64_t column)
{
	int64_t expert = (int64_t)e->index.data[tile];
	float sum = 0;

	for (int64_t k = 0; k < e->k; k++) {
		int64_t in = e->swap ? column * e->k + k : k * e->columns + column;

		sum += e->a.data[(tile * e->rows + row) * e->k + k] *
		       e->b.data[expert * e->k * e->columns + in];
	}
	return sum;
}

static void compare(const struct example *e, int number)
{
	transfer(&e->c, false);
	for (int64_t i = 0; i < (int64_t)e->c.elements; i++) {
		int64_t column = i % e->columns, row = i / e->columns % e->rows;
		float want = expected(e, i / e->columns / e->rows, row, column);

		ck_assert_msg(e->c.data[i] == want,
			      "case %d: %d tiles of %d x %d x %d, %d experts: element %d is %g, expected %g",
			      number, (int)e->tiles, (int)e->rows, (int)e->k, (int)e->columns,
			      (int)e->experts, (int)i, e->c.data[i], want);
	}
}

static void finish(struct example *e)
{
	struct value *all[] = { &e->a, &e->b, &e->index, &e->c };

	for (int i = 0; i < 4; i++) {
		free(all[i]->data);
		ck_ok(spyre_mem_free(context, all[i]->device));
	}
}

static void setup(void)
{
	context = open_card();
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

START_TEST(random_cases)
{
	static const uint32_t cores[] = { 1, 7, 32 };
	struct example e;
	spyre_kernel *kernel;

	for (int number = 0; number < CASES; number++) {
		seed = 11 + (uint32_t)number;
		draw(1);
		draw_case(&e);
		load(&e, draw(2), cores[draw(3)], &kernel);
		ck_ok(launch(&e, kernel));
		ck_ok(spyre_kernel_unload(kernel));
		compare(&e, number);
		finish(&e);
	}
}
END_TEST

/*
 * Matrices that LX cannot hold are gathered in parts of their columns, and in parts of the
 * tiles, which end within a stick of indices.
 */
static const struct example large[] = {
	{ .tiles = 3, .rows = 2, .k = 3000, .columns = 448, .experts = 4 },
	{ .tiles = 37, .rows = 1, .k = 4096, .columns = 65, .experts = 4 },
};

START_TEST(in_parts)
{
	struct example e = large[_i];
	static const int32_t order[] = { 0, 1, 2 };
	spyre_kernel *kernel;

	seed = 5;
	make(&e.a, 3, (int64_t[]){ e.tiles, e.rows, e.k }, order, SPYRE_FORMAT_IEEE_FP32, 2);
	make(&e.b, 3, (int64_t[]){ e.experts, e.k, e.columns }, order, SPYRE_FORMAT_IEEE_FP32, 2);
	make(&e.index, 1, &e.tiles, order, INT32, 4);
	make(&e.c, 3, (int64_t[]){ e.tiles, e.rows, e.columns }, order, SPYRE_FORMAT_IEEE_FP32, 2);
	load(&e, false, 1, &kernel);
	ck_ok(launch(&e, kernel));
	compare(&e, -1);
	e.index.data[e.tiles - 2] = 4;
	transfer(&e.index, true);
	ck_status(launch(&e, kernel), SPYRE_ERROR_CARD_FAULT);
	ck_mentions("an index was not below the extent");
	ck_ok(spyre_context_reset(context));
	finish(&e);
}
END_TEST

/* Cores divide columns; rows only if columns are few, since each core gathers for itself. */
static const struct {
	int64_t rows, columns;
	uint32_t cores;
} divided[] = {
	{ 64, 256, 4 },
	{ 8, 1024, 16 },
	{ 256, 64, 4 },
};

START_TEST(division)
{
	struct example e = { .tiles = 4, .rows = divided[_i].rows, .k = 64,
			     .columns = divided[_i].columns, .experts = 3 };
	static const int32_t order[] = { 0, 1, 2 };
	const spyre_format fp16 = SPYRE_FORMAT_IEEE_FP16;
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_kernel *kernel;

	seed = 3;
	make(&e.a, 3, (int64_t[]){ e.tiles, e.rows, e.k }, order, fp16, 2);
	make(&e.b, 3, (int64_t[]){ e.experts, e.k, e.columns }, order, fp16, 2);
	make(&e.index, 1, &e.tiles, order, INT32, 3);
	make(&e.c, 3, (int64_t[]){ e.tiles, e.rows, e.columns }, order, fp16, 2);
	load(&e, false, 32, &kernel);
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.num_cores, divided[_i].cores);
	ck_ok(launch(&e, kernel));
	compare(&e, -1);
	ck_ok(spyre_kernel_unload(kernel));
	finish(&e);
}
END_TEST

/* Shapes and formats that do not fit are refused with both numbers. */
static const struct {
	int64_t k, tiles, columns;
	spyre_format index;
	const char *text;
} bad[] = {
	{ 65, 3, 64, INT32, "operand 1 has size[1] = 65, expected 64" },
	{ 64, 4, 64, INT32, "operand 2 has size[0] = 4, expected 3" },
	{ 64, 3, 65, INT32, "operand 3 has size[2] = 65, expected 64" },
	{ 64, 3, 64, SPYRE_FORMAT_IEEE_FP32, "use IEEE_INT32 or SENUINT32" },
};

START_TEST(refused)
{
	const spyre_format fp16 = SPYRE_FORMAT_IEEE_FP16;
	spyre_sdsc_operand o[4] = { 0 };
	const int64_t size[4][3] = { { 3, 2, 64 }, { 5, bad[_i].k, 64 }, { bad[_i].tiles },
				     { 3, 2, bad[_i].columns } };
	spyre_sdsc_graph *graph;
	uint32_t in[4];

	ck_ok(spyre_sdsc_graph_create(&graph));
	for (uint32_t i = 0; i < 4; i++) {
		o[i].rank = i == 2 ? 1 : 3;
		memcpy(o[i].size, size[i], sizeof(size[i]));
		ck_ok(spyre_layout_init(&o[i].layout, o[i].rank, size[i],
					i == 2 ? bad[_i].index : fp16));
		ck_ok(spyre_sdsc_graph_add_argument(graph, &o[i], &in[i]));
	}
	ck_assert_int_ne(spyre_sdsc_graph_add_op(graph, "index_matmul", NULL, 0, in, 3, &in[3]),
			 SPYRE_SUCCESS);
	ck_mentions(bad[_i].text);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sdsc_graph_experts");
	TCase *t = tcase_create("index_matmul");

	setenv("SPYRE_BACKEND", "embedded", 0);
	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, random_cases);
	tcase_add_loop_test(t, in_parts, 0, (int)(sizeof(large) / sizeof(large[0])));
	tcase_add_loop_test(t, division, 0, (int)(sizeof(divided) / sizeof(divided[0])));
	tcase_add_loop_test(t, refused, 0, (int)(sizeof(bad) / sizeof(bad[0])));
	suite_add_tcase(s, t);
	return suite_run_many(s);
}
