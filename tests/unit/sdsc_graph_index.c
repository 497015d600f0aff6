// SPDX-License-Identifier: MIT
/*
 * Rows and elements at indices: random tables, layouts, indices and numbers of cores, compared
 * with plain loops. An index that is not below the extent fails the context.
 */
#include <stdio.h>
#include <unistd.h>

#include "bundle_files.h"
#include "runtime_check.h"

#define CASES 300
#define MAX_RANK 5
#define INT32 SPYRE_FORMAT_IEEE_INT32

struct value {
	spyre_sdsc_operand operand;
	size_t elements;
	int32_t *data;
	spyre_devptr device;
};

static spyre_context *context;
static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * below) >> 32);
}

static size_t product(uint32_t rank, const int64_t *size)
{
	size_t n = 1;

	for (uint32_t d = 0; d < rank; d++)
		n *= (size_t)size[d];
	return n;
}

/* Any order of dims, at times with one element per stick. */
static void lay_out(struct value *v, uint32_t rank, const int64_t *size, spyre_format format)
{
	int32_t order[MAX_RANK + 1], swap;
	int64_t stride[MAX_RANK] = { 0 };
	bool sparse = !rank || !draw(6);

	for (uint32_t d = rank; d-- > 0;)
		stride[d] = d + 1 == rank ? 1 : stride[d + 1] * size[d + 1];
	for (uint32_t d = 0; d < rank; d++)
		order[d] = (int32_t)d;
	for (uint32_t d = rank; d > 1 && draw(2); d--) {
		uint32_t k = draw(d);

		swap = order[d - 1];
		order[d - 1] = order[k];
		order[k] = swap;
	}
	order[rank] = -1;
	memset(v, 0, sizeof(*v));
	v->operand.rank = rank;
	memcpy(v->operand.size, size, rank * sizeof(*size));
	ck_ok(spyre_layout_init_strided(&v->operand.layout, rank, size, stride, format, order,
					rank + sparse));
	v->elements = product(rank, size);
	v->data = malloc(v->elements * sizeof(*v->data));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&v->operand.layout), &v->device));
}

static spyre_host_tensor host(const struct value *v)
{
	spyre_host_tensor h;

	ck_ok(spyre_host_tensor_dense(&h, v->data, INT32, v->operand.rank, v->operand.size));
	return h;
}

/* Numbers of the host are integers, which 16-bit formats hold up to 512. */
static void transfer(const struct value *v, bool up)
{
	spyre_format format = v->operand.layout.device_format;
	spyre_host_tensor h = host(v);
	float *number = malloc(v->elements * sizeof(*number));

	if (format != INT32)
		ck_ok(spyre_host_tensor_dense(&h, number, SPYRE_FORMAT_IEEE_FP32, v->operand.rank,
					      v->operand.size));
	for (size_t i = 0; i < v->elements && up; i++)
		number[i] = (float)v->data[i];
	if (up)
		ck_ok(spyre_copy_h2d(context, v->device, &v->operand.layout, &h));
	else
		ck_ok(spyre_copy_d2h(context, &h, v->device, &v->operand.layout));
	for (size_t i = 0; i < v->elements && !up && format != INT32; i++)
		v->data[i] = (int32_t)number[i];
	free(number);
}

static void make(struct value *v, uint32_t rank, const int64_t *size, spyre_format format,
		 uint32_t below)
{
	lay_out(v, rank, size, format);
	for (size_t i = 0; i < v->elements; i++)
		v->data[i] = (int32_t)draw(below);
	transfer(v, true);
}

/* One case */

struct example {
	const char *op;
	bool elements, write, wrap;
	uint32_t rank, dim;
	int64_t size[MAX_RANK];
	struct value table, index, part;
};

static bool is(const struct example *e, const char *op)
{
	return !strcmp(e->op, op);
}

/* The element of the table that belongs to element @i of the part. */
static size_t source_of(const struct example *e, size_t i)
{
	const spyre_sdsc_operand *part = &e->part.operand, *index = &e->index.operand;
	int64_t at[2 * MAX_RANK];
	size_t place = 0, found = 0;
	uint32_t own = 0;
	int32_t row;

	for (uint32_t d = part->rank; d-- > 0; i /= (size_t)part->size[d])
		at[d] = (int64_t)(i % (size_t)part->size[d]);
	for (uint32_t d = 0; d < index->rank; d++)
		place = place * (size_t)index->size[d] +
			(size_t)at[e->elements ? d : d + e->dim];
	row = e->index.data[place];
	row += row < 0 ? (int32_t)e->size[e->dim] : 0;
	for (uint32_t d = 0; d < e->rank; d++) {
		own = e->elements || d < e->dim ? d : d + index->rank - 1;
		found = found * (size_t)e->size[d] + (size_t)(d == e->dim ? row : at[own]);
	}
	return found;
}

static void draw_shapes(struct example *e)
{
	static const int64_t sizes[] = { 1, 2, 3, 7, 33, 64, 70, 128 };
	int64_t index[MAX_RANK], part[2 * MAX_RANK];
	static const spyre_format formats[] = { SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_IEEE_FP32,
						INT32 };
	spyre_format format = formats[draw(3)];
	uint32_t n = 0, rank = e->elements ? 0 : draw(3);

	e->rank = 1 + draw(3);
	e->dim = draw(e->rank);
	for (uint32_t d = 0; d < e->rank; d++)
		e->size[d] = d == 2 ? 1 + draw(4) : sizes[draw(8)];
	for (uint32_t d = 0; d < rank; d++)
		index[d] = sizes[draw(d ? 4 : 8)];
	for (uint32_t d = 0; d < e->dim; d++)
		part[n++] = e->size[d];
	for (uint32_t d = 0; d < rank; d++)
		part[n++] = index[d];
	for (uint32_t d = e->dim + 1; d < e->rank; d++)
		part[n++] = e->size[d];
	if (e->elements) {
		rank = n = e->rank;
		for (uint32_t d = 0; d < rank; d++)
			index[d] = part[d] = d == e->dim ? sizes[draw(7)] :
					     1 + draw((uint32_t)e->size[d]);
	}
	make(&e->table, e->rank, e->size, format, 512);
	make(&e->part, n, part, format, 512);
	make(&e->index, rank, index, INT32, (uint32_t)e->size[e->dim]);
}

/* Of equal indices, only the value counts that all of them store. */
static void make_equal(const struct example *e)
{
	for (size_t i = 0; i < e->part.elements; i++)
		e->part.data[i] = e->table.data[source_of(e, i)] ^ 1;
	transfer(&e->part, true);
}

static void draw_case(struct example *e)
{
	static const char *const ops[] = { "index_select", "embedding", "gather", "index_put",
					   "scatter" };

	memset(e, 0, sizeof(*e));
	e->op = ops[draw(5)];
	e->elements = is(e, "gather") || is(e, "scatter");
	e->write = is(e, "index_put") || is(e, "scatter");
	e->wrap = draw(2);
	draw_shapes(e);
	for (size_t i = 0; i < e->index.elements && e->wrap; i++)
		e->index.data[i] -= draw(2) ? (int32_t)e->size[e->dim] : 0;
	if (e->wrap)
		transfer(&e->index, true);
	if (e->write)
		make_equal(e);
}

static spyre_sdsc_graph *build(const struct example *e, uint32_t *out)
{
	const struct value *operand[] = { &e->table, &e->index, &e->part };
	spyre_sdsc_attribute attr[] = { { "dim", (double)e->dim }, { "wrap", e->wrap } };
	spyre_sdsc_graph *graph;
	uint32_t in[3];

	ck_ok(spyre_sdsc_graph_create(&graph));
	for (uint32_t i = 0; i < 3; i++) {
		ck_ok(spyre_sdsc_graph_add_argument(graph, &operand[i]->operand, &in[i]));
		ck_ok(spyre_sdsc_graph_set_padding(graph, in[i], SPYRE_SDSC_PADDING_UNKNOWN));
	}
	*out = e->write ? in[0] : in[2];
	ck_ok(spyre_sdsc_graph_add_op(graph, e->op, attr, 2, in, e->write ? 3 : 2, out));
	return graph;
}

static spyre_status launch(const struct example *e, spyre_kernel *kernel)
{
	spyre_stream *stream = get_stream(context, 0);
	const spyre_arg args[] = { { e->table.device, &e->table.operand.layout },
				   { e->index.device, &e->index.operand.layout },
				   { e->part.device, &e->part.operand.layout } };
	spyre_status status = spyre_launch(stream, kernel, args, 3);

	return status ? status : spyre_stream_synchronize(stream);
}

static void load(const struct example *e, bool files, uint32_t cores, spyre_kernel **kernel)
{
	uint32_t out;
	spyre_sdsc_graph *graph = build(e, &out);
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

static void compare(const struct example *e, int number)
{
	const struct value *v = e->write ? &e->table : &e->part;
	int32_t *want = malloc(v->elements * sizeof(*want));

	memcpy(want, v->data, v->elements * sizeof(*want));
	for (size_t i = 0; i < e->part.elements; i++)
		if (e->write)
			want[source_of(e, i)] = e->part.data[i];
		else
			want[i] = e->table.data[source_of(e, i)];
	transfer(v, false);
	for (size_t i = 0; i < v->elements; i++)
		ck_assert_msg(v->data[i] == want[i],
			      "case %d, %s along %u of %u dims: element %zu is %d, expected %d",
			      number, e->op, e->dim, e->rank, i, v->data[i], want[i]);
	free(want);
}

static void finish(struct example *e)
{
	struct value *all[] = { &e->table, &e->index, &e->part };

	for (int i = 0; i < 3; i++) {
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

	for (int number = _i; number < CASES; number += 4) {
		seed = 77 + (uint32_t)number;
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

/* Makes a case of chosen sizes: a table [rows, columns] and indices [points]. */
static void choose(struct example *e, const char *op, int64_t rows, int64_t columns, int64_t points)
{
	int64_t part[] = { points, columns };

	memset(e, 0, sizeof(*e));
	e->op = op;
	e->write = is(e, "index_put");
	e->rank = 2;
	e->size[0] = rows;
	e->size[1] = columns;
	seed = 1;
	make(&e->table, 2, e->size, SPYRE_FORMAT_IEEE_FP16, 512);
	make(&e->part, 2, part, SPYRE_FORMAT_IEEE_FP16, 512);
	make(&e->index, 1, &points, INT32, (uint32_t)rows);
}

/* Each index that is out of range fails the launch, which changes only its own context. */
START_TEST(beyond)
{
	static const int32_t bad[] = { 10, -1, INT32_MIN, INT32_MAX };
	static const char *const ops[] = { "index_select", "index_put" };
	struct example e;
	spyre_kernel *kernel;

	choose(&e, ops[_i / 4], 10, 100, 40);
	load(&e, false, 0, &kernel);
	ck_ok(launch(&e, kernel));
	e.index.data[39] = bad[_i % 4];
	transfer(&e.index, true);
	ck_status(launch(&e, kernel), SPYRE_ERROR_CARD_FAULT);
	ck_mentions("an index was not below the extent");
	ck_ok(spyre_context_reset(context));
	e.index.data[39] = 9;
	transfer(&e.index, true);
	transfer(&e.table, true);
	ck_ok(launch(&e, kernel));
	if (!e.write)
		compare(&e, -1);
	finish(&e);
}
END_TEST

/* With wrap, indices from -rows on are valid, and others are not. */
START_TEST(beyond_wrapped)
{
	static const int32_t bad[] = { 10, -11, INT32_MIN, INT32_MAX, (1 << 24) + 1 };
	struct example e;
	spyre_kernel *kernel;

	choose(&e, "index_select", 10, 100, 40);
	e.wrap = true;
	e.index.data[0] = -10;
	e.index.data[39] = bad[_i];
	transfer(&e.index, true);
	load(&e, false, 0, &kernel);
	ck_status(launch(&e, kernel), SPYRE_ERROR_CARD_FAULT);
	ck_mentions("an index was not below the extent");
	ck_ok(spyre_context_reset(context));
	finish(&e);
}
END_TEST

/* Of equal indices the last row remains, with any number of cores. */
START_TEST(last_remains)
{
	struct example e;
	spyre_kernel *kernel;

	choose(&e, "index_put", 7, 300, 128);
	for (uint32_t cores = 1; cores <= 32; cores += 31) {
		transfer(&e.table, true);
		load(&e, cores == 1, cores, &kernel);
		ck_ok(launch(&e, kernel));
		ck_ok(spyre_kernel_unload(kernel));
		compare(&e, -1);
	}
	finish(&e);
}
END_TEST

/* An output of its own gets a copy of the table with the rows. */
START_TEST(copied)
{
	spyre_sdsc_graph *graph;
	struct example e;
	spyre_kernel *kernel;
	struct value out;
	int32_t before[9 * 100];
	uint32_t in[4];

	choose(&e, "index_put", 9, 100, 5);
	make(&out, 2, e.size, SPYRE_FORMAT_IEEE_FP16, 512);
	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &e.table.operand, &in[0]));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &e.index.operand, &in[1]));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &e.part.operand, &in[2]));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &out.operand, &in[3]));
	ck_ok(spyre_sdsc_graph_add_op(graph, e.op, NULL, 0, in, 3, &in[3]));
	ck_ok(spyre_sdsc_graph_load(context, graph, 0, &kernel));
	spyre_sdsc_graph_destroy(graph);
	ck_ok(spyre_launch(get_stream(context, 0), kernel,
			   (spyre_arg[]){ { e.table.device, NULL }, { e.index.device, NULL },
					  { e.part.device, NULL }, { out.device, NULL } }, 4));
	ck_ok(spyre_context_synchronize(context));
	transfer(&out, false);
	memcpy(before, e.table.data, sizeof(before));
	for (size_t i = 0; i < e.part.elements; i++)
		e.table.data[source_of(&e, i)] = e.part.data[i];
	ck_assert_mem_eq(out.data, e.table.data, out.elements * sizeof(*out.data));
	transfer(&e.table, false);
	ck_assert_mem_eq(e.table.data, before, sizeof(before));
	free(out.data);
	ck_ok(spyre_mem_free(context, out.device));
	finish(&e);
}
END_TEST

/* Files with other rows than the builder's are refused, or read as what they say. */
static const struct {
	const char *from, *to, *text;
} edits[] = {
	{ "\"indexedSizes_\": {", "\"other\": {",
	  "the indexed dimension has to be the outermost" },
	{ "\"indexedSizes_\": {", "\"indexedSizes_\": 5, \"other\": {", "indexedSizes_: found 5" },
	{ "\"indexedSizes_\": {", "\"indexedSizes_\": {}, \"other\": {",
	  "the sizes of the table along indexed dimensions" },
	{ "\"indexedSizes_\": {", "\"indexedSizes_\": { \"out\": 4,",
	  "no size, since the table or its indices lack out" },
	{ "\"indexedSizes_\": {", "\"indexedSizes_\": { \"lane\": 0,", "lane: found 0" },
	{ "\"indexedSizes_\": {", "\"indexedSizes_\": { \"lane\": 2,", "a size above 1 along one" },
	{ "\"indexedSizes_\": {", "\"indexedSizes_\": { \"mb\": 2147483649 }, \"other\": {",
	  "mb: found 2147483649" },
	{ "\"indexedSizes_\": {",
	  "\"backGapCore_\": { \"lane\": { \"-1\": \"3\" } }, \"indexedSizes_\": { \"lane\": 1,",
	  "indexedSizes_ is 1 along a dimension that has memory, lane" },
};

START_TEST(edited)
{
	struct example e;
	spyre_sdsc_graph *graph;
	spyre_kernel *kernel;
	char folder[64];
	uint32_t out;

	choose(&e, "index_select", 10, 100, 40);
	graph = build(&e, &out);
	files_make(folder);
	ck_ok(spyre_sdsc_graph_write(graph, 0, folder));
	spyre_sdsc_graph_destroy(graph);
	files_edit(folder, "sdsc_0.json", edits[_i].from, edits[_i].to);
	ck_assert_int_ne(spyre_kernel_load(context, folder, &kernel), SPYRE_SUCCESS);
	ck_mentions(edits[_i].text);
	files_remove(folder);
	finish(&e);
}
END_TEST

/* A launch is refused if the table has fewer rows than the file states. */
START_TEST(too_many_rows)
{
	struct example e;
	spyre_sdsc_graph *graph;
	spyre_kernel *kernel;
	char folder[64];
	uint32_t out;

	choose(&e, "index_select", 10, 100, 40);
	graph = build(&e, &out);
	files_make(folder);
	ck_ok(spyre_sdsc_graph_write(graph, 0, folder));
	spyre_sdsc_graph_destroy(graph);
	files_edit(folder, "sdsc_0.json", "\"indexedSizes_\": {",
		   "\"indexedSizes_\": { \"mb\": 1000000 }, \"other\": {");
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	ck_assert_int_ne(launch(&e, kernel), SPYRE_SUCCESS);
	ck_mentions("argument 0");
	files_remove(folder);
	finish(&e);
}
END_TEST

/* Refusals name the operand and both numbers. */
static const struct {
	const char *op;
	uint32_t rank[3];
	int64_t size[3][3];
	spyre_format index;
	const char *text;
	double dim;
} refusals[] = {
	{ "index_select", { 2, 1, 2 }, { { 4, 64 }, { 3 }, { 4, 64 } }, INT32,
	  "the output has size[0] = 4, expected 3", 0 },
	{ "index_select", { 2, 2, 2 }, { { 4, 64 }, { 3, 2 }, { 3, 64 } }, INT32,
	  "the output has rank 2, expected 3", 0 },
	{ "index_select", { 2, 1, 2 }, { { 4, 64 }, { 3 }, { 3, 64 } }, SPYRE_FORMAT_IEEE_FP32,
	  "the indices are IEEE_FP32 on the device; use IEEE_INT32 or SENUINT32", 0 },
	{ "index_select", { 0, 1, 1 }, { { 0 }, { 3 }, { 3 } }, INT32, "the table has rank 0", 0 },
	{ "index_select", { 2, 1, 2 }, { { 4, 64 }, { 3 }, { 3, 64 } }, INT32, "dim", 2 },
	{ "gather", { 2, 1, 1 }, { { 4, 64 }, { 3 }, { 3 } }, INT32,
	  "the indices have rank 1, the table 2", 0 },
	{ "gather", { 2, 2, 2 }, { { 4, 64 }, { 3, 65 }, { 3, 65 } }, INT32,
	  "the indices have size[1] = 65, the table 64", 0 },
	{ "index_select", { 2, 1, 2 }, { { 1 << 24, 2 }, { 3 }, { 3, 2 } }, INT32,
	  "cannot wrap indices of 16777216 rows", 0 },
};

START_TEST(refused)
{
	spyre_sdsc_attribute attr[] = { { "dim", refusals[_i].dim }, { "wrap", 1 } };
	spyre_sdsc_graph *graph;
	uint32_t in[3];

	ck_ok(spyre_sdsc_graph_create(&graph));
	for (uint32_t i = 0; i < 3; i++) {
		spyre_sdsc_operand o = { .rank = refusals[_i].rank[i] };

		memcpy(o.size, refusals[_i].size[i], sizeof(refusals[_i].size[i]));
		ck_ok(spyre_layout_init(&o.layout, o.rank, o.size, i == 1 ? refusals[_i].index :
					SPYRE_FORMAT_IEEE_FP32));
		ck_ok(spyre_sdsc_graph_add_argument(graph, &o, &in[i]));
	}
	ck_assert_int_ne(spyre_sdsc_graph_add_op(graph, refusals[_i].op, attr, 2, in, 2, &in[2]),
			 SPYRE_SUCCESS);
	ck_mentions(refusals[_i].text);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sdsc_graph_index");
	TCase *t = tcase_create("rows");

	setenv("SPYRE_BACKEND", "embedded", 0);
	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, random_cases, 0, 4);
	tcase_add_loop_test(t, beyond, 0, 8);
	tcase_add_loop_test(t, beyond_wrapped, 0, 5);
	tcase_add_test(t, last_remains);
	tcase_add_test(t, copied);
	tcase_add_loop_test(t, edited, 0, (int)(sizeof(edits) / sizeof(edits[0])));
	tcase_add_test(t, too_many_rows);
	tcase_add_loop_test(t, refused, 0, (int)(sizeof(refusals) / sizeof(refusals[0])));
	suite_add_tcase(s, t);
	return suite_run_many(s);
}
