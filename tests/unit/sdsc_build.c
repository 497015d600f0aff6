// SPDX-License-Identifier: MIT
/* Compares the builder's files with the corpus, and tests its refusals. */
#include <spyre/spyre.h>

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/write/write.h"
#include "suite.h"

#define FP16 SPYRE_FORMAT_IEEE_FP16
#define FP32 SPYRE_FORMAT_IEEE_FP32
#define END -9

static char directory[64];

static void make_directory(void)
{
	snprintf(directory, sizeof(directory), "/tmp/spyre-build-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void remove_directory(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
	unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

static char *slurp(const char *dir, const char *file, size_t *size)
{
	char path[512], *text = malloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "r");
	ck_assert_msg(f, "%s: %s", path, strerror(errno));
	*size = fread(text, 1, 1 << 20, f);
	fclose(f);
	return text;
}

enum layout_kind { DENSE, SPARSE, PADDED_ROWS };

struct shape {
	int64_t size[5];
	enum layout_kind layout;
};

static spyre_sdsc_operand operand(const struct shape *shape, spyre_format format)
{
	spyre_sdsc_operand o = { 0 };
	int64_t stride[5], step = 1;
	int32_t order[6];

	while (shape->size[o.rank] != END) {
		o.size[o.rank] = shape->size[o.rank];
		order[o.rank] = (int32_t)o.rank;
		o.rank++;
	}
	order[o.rank] = -1;
	for (uint32_t d = o.rank; d-- > 0;) {
		stride[d] = step;
		step *= o.size[d];
	}
	ck_assert_int_eq(spyre_layout_init_strided(&o.layout, o.rank, o.size, stride, format,
						   order, o.rank + (shape->layout == SPARSE)),
			 SPYRE_SUCCESS);
	if (shape->layout == PADDED_ROWS)
		o.layout.device_size[o.layout.device_rank - 2] =
			(o.size[o.rank - 2] + 63) / 64 * 64;
	return o;
}

struct equal {
	const char *bundle;
	const char *op;
	spyre_format format;
	uint32_t cores;
	int64_t slices[4];	/* first 0: the builder chooses */
	struct shape operand[5];
};

#define FULL { { 512, 1024, END }, DENSE }
#define PAD { { 100, 150, END }, DENSE }

static const struct equal equals[] = {
	{ "add", "add", FP16, 32, { 0 }, { FULL, FULL, FULL } },
	{ "mul", "mul", FP16, 32, { 0 }, { FULL, FULL, FULL } },
	{ "sub", "sub", FP16, 32, { 0 }, { FULL, FULL, FULL } },
	{ "relu", "relu", FP16, 32, { 0 }, { FULL, FULL } },
	{ "add_fp32", "add", FP32, 32, { 0 }, { FULL, FULL, FULL } },
	{ "add_1core", "add", FP16, 1, { 0 }, { FULL, FULL, FULL } },
	{ "sum_last", "sum", FP16, 32, { 0 }, { FULL, { { 512, END }, SPARSE } } },
	{ "max_last", "amax", FP16, 32, { 0 }, { FULL, { { 512, END }, SPARSE } } },
	{ "mean_keepdim", "mean", FP16, 32, { 0 }, { FULL, { { 512, 1, END }, DENSE } } },
	{ "sum_last_pad", "sum", FP16, 32, { 0 }, { PAD, { { 100, END }, SPARSE } } },
	{ "max_last_pad", "amax", FP16, 32, { 0 }, { PAD, { { 100, END }, SPARSE } } },
	{ "mean_last_pad", "mean", FP16, 32, { 0 }, { PAD, { { 100, END }, SPARSE } } },
	{ "mm", "matmul", FP16, 32, { 0 },
	  { FULL, { { 1024, 256, END }, DENSE }, { { 512, 256, END }, DENSE } } },
	{ "mm_1core", "matmul", FP16, 1, { 0 },
	  { FULL, { { 1024, 256, END }, DENSE }, { { 512, 256, END }, DENSE } } },
	{ "mm_pad", "matmul", FP16, 32, { 0 },
	  { PAD, { { 150, 70, END }, PADDED_ROWS }, { { 100, 70, END }, DENSE } } },
	/* divisions of the June planner */
	{ "add_juneplan", "add", FP16, 32, { 32, 1 }, { FULL, FULL, FULL } },
	{ "add_pad", "add", FP16, 32, { 25, 1 }, { PAD, PAD, PAD } },
	{ "add_bcast1d", "add", FP16, 32, { 32, 1 }, { FULL, { { 1024, END }, DENSE }, FULL } },
	{ "add_bcast_col", "add", FP16, 32, { 32, 1 }, { FULL, { { 512, 1, END }, DENSE }, FULL } },
	{ "scalar_mul", "mul", FP16, 32, { 32, 1 }, { FULL, { { END }, DENSE }, FULL } },
	{ "where3", "where", FP16, 32, { 32, 1 }, { FULL, FULL, FULL, FULL } },
	{ "eq_ints", "eq", FP16, 32, { 32, 1 }, { FULL, FULL, FULL } },
	{ "gt", "gt", FP16, 32, { 32, 1 }, { FULL, FULL, FULL } },
	{ "bmm", "matmul", FP16, 32, { 1, 32, 1, 1 },
	  { { { 8, 128, 256, END }, DENSE }, { { 8, 256, 128, END }, DENSE },
	    { { 8, 128, 128, END }, DENSE } } },
};

START_TEST(corpus)
{
	const struct equal *e = &equals[_i];
	spyre_sdsc_operand operands[5];
	const char *root = getenv("SPYRE_SRCDIR");
	char want_dir[512], *want, *got;
	size_t want_size, got_size;
	yyjson_doc *a, *b;
	uint32_t n = 0;

	snprintf(want_dir, sizeof(want_dir), "%s/tests/conformance/bundles/%s",
		 root ? root : ".", e->bundle);
	while (e->operand[n].size[0]) {
		operands[n] = operand(&e->operand[n], e->format);
		n++;
	}
	make_directory();
	ck_assert_msg(build_bundle(e->op, operands, n, e->cores, e->slices[0] ? e->slices : NULL,
				   directory) == SPYRE_SUCCESS, "%s", spyre_last_error());
	want = slurp(want_dir, "bundle.mlir", &want_size);
	got = slurp(directory, "bundle.mlir", &got_size);
	ck_assert_uint_eq(got_size, want_size);
	ck_assert_int_eq(memcmp(got, want, want_size), 0);
	free(want);
	free(got);
	want = slurp(want_dir, "sdsc_0.json", &want_size);
	got = slurp(directory, "sdsc_0.json", &got_size);
	a = yyjson_read(want, want_size, 0);
	b = yyjson_read(got, got_size, 0);
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert(yyjson_equals(yyjson_doc_get_root(a), yyjson_doc_get_root(b)));
	/* and to the byte: the order of keys and white space as well */
	ck_assert_uint_eq(got_size, want_size);
	ck_assert_int_eq(memcmp(got, want, want_size), 0);
	yyjson_doc_free(a);
	yyjson_doc_free(b);
	free(want);
	free(got);
	remove_directory();
}
END_TEST

struct built {
	const char *op;
	uint32_t cores;		/* number of cores expected to be used */
	struct shape operand[5];
	int64_t device_size[9];	/* of the last argument, as compiled */
};

/* Shapes that are not in the corpus: they must compile to the requested shape. */
static const struct built builts[] = {
	{ "add", 32, { { { 4, 256, 512, END }, DENSE }, { { 4, 256, 512, END }, DENSE },
		       { { 4, 256, 512, END }, DENSE } }, { 256, 8, 4, 64, END } },
	{ "add", 30, { PAD, { { 150, END }, DENSE }, PAD }, { 3, 100, 64, END } },
	{ "mul", 16, { { { 2, 3, 70, END }, DENSE }, { { 3, 1, END }, DENSE },
		       { { 2, 3, 70, END }, DENSE } }, { 3, 2, 2, 64, END } },
	{ "relu", 1, { { { 60, END }, DENSE }, { { 60, END }, DENSE } }, { 1, 64, END } },
	{ "relu", 1, { { { END }, DENSE }, { { END }, DENSE } }, { 1, 64, END } },
	{ "neg", 10, { { { 1, 5, 128, END }, DENSE }, { { 1, 5, 128, END }, DENSE } },
	  { 5, 2, 64, END } },
	{ "sum", 1, { { { 1000, END }, DENSE }, { { END }, DENSE } }, { 1, 64, END } },
	{ "sum", 20, { { { 4, 5, 70, END }, DENSE }, { { 4, 5, END }, SPARSE } },
	  { 5, 1, 4, 64, END } },
	{ "matmul", 2, { { { 1, 100, END }, DENSE }, { { 100, 100, END }, PADDED_ROWS },
			 { { 1, 100, END }, DENSE } }, { 2, 64, END } },
	{ "matmul", 32, { { { 8, 128, 256, END }, DENSE }, { { 256, 128, END }, DENSE },
			  { { 8, 128, 128, END }, DENSE } }, { 128, 2, 8, 64, END } },
};

START_TEST(other_shapes)
{
	const struct built *b = &builts[_i];
	spyre_sdsc_operand operands[5];
	struct spyre_bundle bundle;
	const spyre_arg_info *arg;
	uint32_t n = 0;

	while (b->operand[n].size[0]) {
		operands[n] = operand(&b->operand[n], FP16);
		n++;
	}
	make_directory();
	ck_assert_msg(spyre_sdsc_build(b->op, operands, n, 32, directory) == SPYRE_SUCCESS, "%s",
		      spyre_last_error());
	ck_assert_msg(spyre_bundle_load(directory, 32, CODE_CACHE_OFF, &bundle, NULL) ==
		      SPYRE_SUCCESS, "%s", spyre_last_error());
	ck_assert_uint_eq(bundle.num_args, n);
	if (strcmp(b->op, "mul"))
		ck_assert_uint_eq(bundle.num_cores, b->cores);
	arg = &bundle.args[n - 1];
	for (uint32_t j = 0; j < arg->device_rank; j++)
		ck_assert_int_eq(arg->device_size[j], b->device_size[j]);
	ck_assert_int_eq(b->device_size[arg->device_rank], END);
	ck_assert_int_eq(arg->role, SPYRE_ARG_OUTPUT);
	ck_assert_uint_eq(arg->bytes, spyre_layout_bytes(&operands[n - 1].layout));
	spyre_bundle_fini(&bundle);
	remove_directory();
}
END_TEST

static spyre_status build(const char *op, const struct shape *shapes, uint32_t n)
{
	spyre_sdsc_operand operands[5];

	for (uint32_t i = 0; i < n; i++)
		operands[i] = operand(&shapes[i], FP16);
	return spyre_sdsc_build(op, operands, n, 4, "/nonexistent/spyre");
}

START_TEST(refused)
{
	static const struct shape full[] = { FULL, FULL, FULL }, other[] = { FULL, PAD, FULL };
	static const struct shape dense_sum[] = { FULL, { { 512, END }, DENSE } };
	static const struct shape huge[] = { { { 1 << 20, 4096, END }, DENSE },
					     { { 1 << 20, 4096, END }, DENSE } };
	static const struct shape empty[] = { { { 0, 64, END }, DENSE },
					      { { 0, 64, END }, DENSE } };
	static const struct shape singles[] = { { { 20, 5, END }, SPARSE },
						{ { 20, END }, SPARSE } };
	spyre_sdsc_operand operands[3];

	ck_assert_int_eq(build("frobnicate", full, 2), SPYRE_ERROR_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "frobnicate"));
	ck_assert_int_eq(build("add", full, 2), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_assert_int_eq(build("add", other, 3), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "expected 512"));
	ck_assert_int_eq(build("sum", dense_sum, 2), SPYRE_ERROR_LAYOUT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "[512, 64]"));
	/*
	 * A search reads whole sticks: the lanes after a single element are not
	 * part of its rows.
	 */
	ck_assert_int_eq(build("argmax", singles, 2), SPYRE_ERROR_LAYOUT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "one element per stick"));
	ck_assert_int_eq(build("relu", huge, 2), SPYRE_ERROR_SPAN_LIMIT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "268435456"));
	ck_assert_int_eq(build("relu", empty, 2), SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_assert_int_eq(build("add", full, 3), SPYRE_ERROR_FILE);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "/nonexistent/spyre"));
	for (int i = 0; i < 3; i++)
		operands[i] = operand(&full[i], i == 1 ? FP32 : FP16);
	ck_assert_int_eq(spyre_sdsc_build("add", operands, 3, 4, "/tmp"), SPYRE_ERROR_FORMAT);
	operands[1] = operand(&full[1], FP16);
	ck_assert_int_eq(spyre_sdsc_build("add", operands, 3, 33, "/tmp"),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	setenv("SENCORES", "many", 1);
	ck_assert_int_eq(spyre_sdsc_build("add", operands, 3, 0, "/tmp"),
			 SPYRE_ERROR_CONFIGURATION);
	unsetenv("SENCORES");
}
END_TEST

START_TEST(sencores)
{
	static const struct shape full[] = { FULL, FULL, FULL };
	spyre_sdsc_operand operands[3];
	struct spyre_bundle bundle;

	for (int i = 0; i < 3; i++)
		operands[i] = operand(&full[i], FP16);
	make_directory();
	setenv("SENCORES", "8", 1);
	ck_assert_int_eq(spyre_sdsc_build("add", operands, 3, 0, directory), SPYRE_SUCCESS);
	unsetenv("SENCORES");
	ck_assert_int_eq(spyre_bundle_load(directory, 32, CODE_CACHE_OFF, &bundle, NULL),
			 SPYRE_SUCCESS);
	ck_assert_uint_eq(bundle.num_cores, 8);
	spyre_bundle_fini(&bundle);
	remove_directory();
}
END_TEST

START_TEST(names)
{
	const char *const *name = spyre_sdsc_operations();
	static const struct shape none[1] = { { { END }, DENSE } };

	for (; *name; name++) {
		build(*name, none, 0);
		ck_assert_msg(strstr(spyre_last_error(), "inputs and one output"), "%s: %s", *name,
			      spyre_last_error());
	}
}
END_TEST

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	Suite *s = suite_create("build");
	TCase *t = tcase_create("build");

	tcase_add_loop_test(t, corpus, 0, COUNT(equals));
	tcase_add_loop_test(t, other_shapes, 0, COUNT(builts));
	tcase_add_test(t, refused);
	tcase_add_test(t, sencores);
	tcase_add_test(t, names);
	suite_add_tcase(s, t);
	return suite_run(s);
}
