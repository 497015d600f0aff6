// SPDX-License-Identifier: MIT
/* Marks of a graph: what is built after a rollback is what would have been built without it. */
#include "runtime_check.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#define MOST_BYTES (1 << 18)

/* The text of all files of a bundle. */
struct text {
	size_t bytes;
	char text[MOST_BYTES];
};

static uint32_t argument_of(spyre_sdsc_graph *graph, int64_t rows, int64_t columns)
{
	spyre_sdsc_operand o = { .rank = 2, .size = { rows, columns } };
	uint32_t tensor;

	ck_ok(spyre_layout_init(&o.layout, o.rank, o.size, SPYRE_FORMAT_IEEE_FP16));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &o, &tensor));
	return tensor;
}

static uint32_t argument(spyre_sdsc_graph *graph)
{
	return argument_of(graph, 8, 100);
}

static uint32_t add(spyre_sdsc_graph *graph, const char *op, uint32_t in, uint32_t out)
{
	ck_ok(spyre_sdsc_graph_add_op(graph, op, NULL, 0, &in, 1, &out));
	return out;
}

/* A product: the rows of @x end within a stick, so its steps depend on their padding. */
static void finish(spyre_sdsc_graph *graph, uint32_t x)
{
	uint32_t in[2] = { x, argument_of(graph, 100, 64) }, out = argument_of(graph, 8, 64);

	ck_ok(spyre_sdsc_graph_add_op(graph, "matmul", NULL, 0, in, 2, &out));
}

/* Adds everything that a rollback has to undo: all of it changes the bundle. */
static void spoil(spyre_sdsc_graph *graph, uint32_t x)
{
	spyre_sdsc_split rows = { -2, 2 };
	uint32_t y = argument(graph);

	ck_ok(spyre_sdsc_graph_set_division(graph, &rows, 1));
	ck_ok(spyre_sdsc_graph_set_padding(graph, x, SPYRE_SDSC_PADDING_FOREIGN));
	ck_ok(spyre_sdsc_graph_set_padding(graph, x, SPYRE_SDSC_PADDING_ZERO));
	add(graph, "exp", add(graph, "softmax", y, SPYRE_SDSC_NEW), x);
}

static void append(struct text *t, const char *directory, const char *name)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	t->bytes += fread(t->text + t->bytes, 1, MOST_BYTES - t->bytes, file);
	ck_assert_uint_lt(t->bytes, MOST_BYTES);
	fclose(file);
	unlink(path);
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void write_text(const spyre_sdsc_graph *graph, struct text *t)
{
	char directory[] = "/tmp/spyre-mark-XXXXXX";
	struct dirent **entry;
	int n;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_ok(spyre_sdsc_graph_write(graph, 32, directory));
	n = scandir(directory, &entry, is_file, alphasort);
	ck_assert_int_gt(n, 1);
	t->bytes = 0;
	for (int i = 0; i < n; i++) {
		append(t, directory, entry[i]->d_name);
		free(entry[i]);
	}
	free(entry);
	ck_assert_int_eq(rmdir(directory), 0);
}

/* Builds finish(); @undo: with as many attempts that are taken back on the way. */
static void build(struct text *t, int undo)
{
	uint32_t mark = 0, x;
	spyre_sdsc_graph *graph;

	ck_ok(spyre_sdsc_graph_create(&graph));
	x = argument(graph);
	if (undo)
		ck_ok(spyre_sdsc_graph_mark(graph, &mark));
	for (int i = 0; i < undo; i++) {
		spoil(graph, x);
		ck_ok(spyre_sdsc_graph_rollback(graph, mark));
	}
	finish(graph, x);
	write_text(graph, t);
	spyre_sdsc_graph_destroy(graph);
}

static struct text plain, other;

START_TEST(rollback_leaves_no_trace)
{
	build(&plain, 0);
	for (int undo = 1; undo < 4; undo++) {
		build(&other, undo);
		ck_assert_uint_eq(plain.bytes, other.bytes);
		ck_assert_mem_eq(plain.text, other.text, plain.bytes);
	}
}
END_TEST

/* The test above compares something only if each of these changes the bundle. */
START_TEST(additions_change_the_bundle)
{
	spyre_sdsc_graph *graph;
	uint32_t x;

	build(&plain, 0);
	ck_ok(spyre_sdsc_graph_create(&graph));
	x = argument(graph);
	spoil(graph, x);
	finish(graph, x);
	write_text(graph, &other);
	ck_assert(plain.bytes != other.bytes || memcmp(plain.text, other.text, plain.bytes));
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* An operation that fails late, by its division, leaves the output's padding as it was. */
START_TEST(a_failed_operation_leaves_no_trace)
{
	spyre_sdsc_split odd = { -2, 3 };
	spyre_sdsc_graph *graph;
	uint32_t x, y, out;

	for (int fail = 0; fail < 2; fail++) {
		ck_ok(spyre_sdsc_graph_create(&graph));
		x = argument(graph);
		y = argument(graph);
		if (fail) {
			out = x;
			ck_ok(spyre_sdsc_graph_set_division(graph, &odd, 1));
			ck_assert_int_eq(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &y, 1,
								 &out),
					 SPYRE_ERROR_INVALID_ARGUMENT);
			ck_mentions("dimension -2, of 8 elements");
			ck_ok(spyre_sdsc_graph_set_division(graph, NULL, 0));
		}
		finish(graph, x);
		write_text(graph, fail ? &other : &plain);
		spyre_sdsc_graph_destroy(graph);
	}
	ck_assert_uint_eq(plain.bytes, other.bytes);
	ck_assert_mem_eq(plain.text, other.text, plain.bytes);
}
END_TEST

START_TEST(marks_end)
{
	uint32_t first, second, third, x, again;
	spyre_sdsc_graph *graph;

	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_ok(spyre_sdsc_graph_mark(graph, &first));
	x = argument(graph);
	ck_ok(spyre_sdsc_graph_mark(graph, &second));
	ck_ok(spyre_sdsc_graph_mark(graph, &third));
	ck_ok(spyre_sdsc_graph_rollback(graph, second));
	ck_assert_int_eq(spyre_sdsc_graph_rollback(graph, third), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("there is no mark 2, the graph has 2");
	ck_ok(spyre_sdsc_graph_rollback(graph, second));
	ck_ok(spyre_sdsc_graph_rollback(graph, first));
	/* Numbers are given out again. */
	again = argument(graph);
	ck_assert_uint_eq(again, x);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

START_TEST(refused)
{
	spyre_sdsc_graph *graph;
	uint32_t mark;

	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_assert_int_eq(spyre_sdsc_graph_mark(NULL, &mark), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_sdsc_graph_mark(graph, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_sdsc_graph_rollback(NULL, 0), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_sdsc_graph_rollback(graph, 0), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("the graph has 0");
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mark");

	tcase_add_test(t, rollback_leaves_no_trace);
	tcase_add_test(t, additions_change_the_bundle);
	tcase_add_test(t, a_failed_operation_leaves_no_trace);
	tcase_add_test(t, marks_end);
	tcase_add_test(t, refused);
	return run_suite("mark", t);
}
