// SPDX-License-Identifier: MIT
/* The planners: known divisions, known LX plans, and bundles of the corpus to the byte. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spyre/spyre.h>

#include "libspyre/sdsc/plan/plan.h"
#include "suite.h"

#define END -9
#define DL16 SPYRE_FORMAT_IEEE_FP16
#define FP32 SPYRE_FORMAT_IEEE_FP32

#define ck_ok(call) ck_assert_msg((call) == SPYRE_SUCCESS, "%s: %s", #call, spyre_last_error())

static spyre_sdsc_operand operand(const int64_t *size, spyre_format format, bool sparse)
{
	spyre_sdsc_operand o = { 0 };
	int64_t stride[8], step = 1;
	int32_t order[9];

	for (; size[o.rank] != END; o.rank++) {
		o.size[o.rank] = size[o.rank];
		order[o.rank] = (int32_t)o.rank;
	}
	order[o.rank] = -1;
	for (uint32_t d = o.rank; d-- > 0; step *= o.size[d])
		stride[d] = step;
	ck_ok(spyre_layout_init_strided(&o.layout, o.rank, o.size, stride, format, order,
					o.rank + sparse));
	return o;
}

struct operation {
	const char *name;
	int64_t size[4][8];	/* inputs, output */
	spyre_format format;
	bool sparse;		/* the output is sparse */
	spyre_sdsc_attribute attr;
	uint32_t cores;
	uint32_t step;		/* the step to check */
	int64_t slices[5];
};

static spyre_sdsc_graph *graph_of(const struct operation *op)
{
	uint32_t tensor[4], n = 0;
	spyre_sdsc_graph *graph;

	ck_ok(spyre_sdsc_graph_create(&graph));
	for (; n < 4 && op->size[n][0]; n++) {
		bool last = n == 3 || !op->size[n + 1][0];
		spyre_sdsc_operand o = operand(op->size[n], op->format, last && op->sparse);

		ck_ok(spyre_sdsc_graph_add_argument(graph, &o, &tensor[n]));
	}
	ck_ok(spyre_sdsc_graph_add_op(graph, op->name, &op->attr, op->attr.name != NULL, tensor,
				      n - 1, &tensor[n - 1]));
	return graph;
}

#define PLAIN { 512, 1024, END }

/* Published divisions, or those that follow from the published rule. */
static const struct operation divisions[] = {
	{ "add", { PLAIN, PLAIN, PLAIN }, DL16, 0, { 0 }, 32, 0, { 2, 16 } },
	{ "exp", { PLAIN, PLAIN }, DL16, 0, { 0 }, 32, 0, { 2, 16 } },
	{ "add", { PLAIN, PLAIN, PLAIN }, FP32, 0, { 0 }, 32, 0, { 1, 32 } },
	{ "add", { { 4, 256, 512, END }, { 4, 256, 512, END }, { 4, 256, 512, END } }, DL16, 0,
	  { 0 }, 32, 0, { 1, 4, 8 } },
	{ "mean", { PLAIN, { 512, 1, END } }, DL16, 0, { 0 }, 32, 0, { 32, 1 } },
	{ "sum", { PLAIN, { 1024, END } }, DL16, 0, { "dim", 0 }, 32, 0, { 16, 2 } },
	{ "matmul", { PLAIN, { 1024, 256, END }, { 512, 256, END } }, DL16, 0, { 0 }, 32, 0,
	  { 8, 4, 1 } },
	{ "matmul", { PLAIN, { 1024, 256, END }, { 512, 256, END } }, DL16, 0, { 0 }, 1, 0,
	  { 1, 1, 1 } },
	{ "matmul", { { 8, 128, 256, END }, { 8, 256, 128, END }, { 8, 128, 128, END } }, DL16, 0,
	  { 0 }, 8, 0, { 8, 1, 1, 1 } },
	{ "matmul", { { 1, 4096, END }, { 4096, 4096, END }, { 1, 4096, END } }, DL16, 0, { 0 },
	  32, 0, { 16, 2 } },
	/* Cores have full rows, and the slices of K that they would have without. */
	{ "matmul", { { 64, 576, END }, { 576, 1536, END }, { 64, 1536, END } }, DL16, 0, { 0 },
	  32, 0, { 1, 24, 1 } },
	{ "matmul", { { 64, 1536, END }, { 1536, 576, END }, { 64, 576, END } }, DL16, 0, { 0 },
	  32, 0, { 1, 9, 1 } },
	{ "matmul", { { 12, 4096, END }, { 4096, 64, END }, { 12, 64, END } }, DL16, 0, { 0 }, 32,
	  0, { 1, 1, 2 } },
	{ "matmul", { { 128, 576, END }, { 576, 1536, END }, { 128, 1536, END } }, DL16, 0, { 0 },
	  32, 0, { 2, 12, 1 } },
	{ "swiglu", { { 128, 4096, END }, { 128, 4096, END }, { 128, 4096, END } }, DL16, 0, { 0 },
	  8, 0, { 1, 8 } },
	{ "softmax", { PLAIN, PLAIN }, DL16, 0, { 0 }, 32, 2, { 32, 1 } },
};

START_TEST(division)
{
	const struct operation *op = &divisions[_i];
	spyre_sdsc_graph *graph;
	struct plan plan;

	graph = graph_of(op);
	ck_ok(plan_make(&plan, graph, op->cores, NULL));
	for (uint32_t d = 0; d < plan.step[op->step].sdsc.num_dims; d++)
		ck_assert_msg(plan.step[op->step].sdsc.slices[d] == op->slices[d],
			      "%s: dim %u has %lld slices, expected %lld", op->name, d,
			      (long long)plan.step[op->step].sdsc.slices[d],
			      (long long)op->slices[d]);
	plan_fini(&plan);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* For every number of cores, shares are whole sticks and use only the given cores. */
START_TEST(shares)
{
	static const int64_t sizes[] = { 1, 33, 64, 100, 150, 192, 500, 1024, 4096 };

	for (size_t a = 0; a < 9; a++)
		for (size_t b = 0; b < 9; b++) {
			struct operation op = { "add", { { sizes[a], sizes[b], END },
							 { sizes[a], sizes[b], END },
							 { sizes[a], sizes[b], END } }, DL16, 0,
						{ 0 }, 0, 0, { 0 } };
			spyre_sdsc_graph *graph = graph_of(&op);
			struct plan plan;

			ck_ok(plan_make(&plan, graph, (uint32_t)_i + 1, NULL));
			for (uint32_t i = 0; i < plan.num_steps; i++) {
				const struct ir_sdsc *s = &plan.step[i].sdsc;

				ck_assert_uint_le(s->num_cores, (uint32_t)_i + 1);
				for (uint32_t d = 0; d < s->num_dims; d++) {
					ck_assert_int_eq(s->el[d] * s->slices[d], s->size[d]);
					if (d == s->tensor[0].stick)
						ck_assert_int_eq(s->el[d] % 64, 0);
				}
			}
			plan_fini(&plan);
			spyre_sdsc_graph_destroy(graph);
		}
}
END_TEST

START_TEST(span)
{
	static const struct operation wide = { "relu", { { 8, 1 << 20, 64, END },
							 { 8, 1 << 20, 64, END } }, DL16, 0, { 0 },
					       0, 0, { 0 } };
	static const struct operation k = { "matmul", { { 64, 1 << 17, END }, { 1 << 17, 64, END },
							{ 64, 64, END } }, DL16, 0, { 0 }, 0, 0,
					    { 0 } };
	spyre_sdsc_graph *graph = graph_of(&wide);
	struct plan plan;
	int64_t product = 1;

	/* 1 GiB: four cores at least, 268435456 bytes each */
	ck_assert_int_eq(plan_make(&plan, graph, 2, NULL), SPYRE_ERROR_SPAN_LIMIT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "268435456"));
	ck_ok(plan_make(&plan, graph, 4, NULL));
	for (uint32_t d = 0; d < plan.step[0].sdsc.num_dims; d++)
		product *= plan.step[0].sdsc.slices[d];
	ck_assert_int_eq(product, 4);
	plan_fini(&plan);
	spyre_sdsc_graph_destroy(graph);
	graph = graph_of(&k);
	ck_assert_int_eq(plan_make(&plan, graph, 1, NULL), SPYRE_ERROR_SPAN_LIMIT);
	ck_ok(plan_make(&plan, graph, 4, NULL));
	ck_assert_int_ge(plan.step[0].sdsc.slices[2], 2);
	plan_fini(&plan);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* Cores that share an output are adjacent. */
START_TEST(k_fastest)
{
	static const struct operation op = { "matmul", { { 100, 1 << 17, END }, { 1 << 17, 64, END },
							 { 100, 64, END } }, DL16, 0, { 0 }, 0, 0,
					     { 0 } };
	spyre_sdsc_graph *graph = graph_of(&op);
	struct plan plan;

	for (int fast = 0; fast < 2; fast++) {
		const struct ir_sdsc *s;

		setenv("SPYRE_CORE_ID_K_FAST_EMISSION", fast ? "1" : "0", 1);
		ck_ok(plan_make(&plan, graph, 32, NULL));
		s = &plan.step[0].sdsc;
		ck_assert_int_ge(s->slices[0], 2);
		ck_assert_int_ge(s->slices[2], 2);
		ck_assert_uint_eq(s->slice[1][2], fast);
		ck_assert_uint_eq(s->slice[1][0], !fast);
		plan_fini(&plan);
	}
	unsetenv("SPYRE_CORE_ID_K_FAST_EMISSION");
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

static const struct operation softmax = { "softmax", { PLAIN, PLAIN }, DL16, 0, { 0 }, 0, 0,
					  { 0 } };

START_TEST(softmax_in_lx)
{
	static const struct {
		const char *op;
		uint64_t at;
	} want[] = { { "identity", 2048 }, { "max", 0 }, { "sub", 34816 }, { "exp", 2048 },
		     { "sum", 0 } };
	spyre_sdsc_graph *graph = graph_of(&softmax);
	struct plan plan;

	ck_ok(plan_make(&plan, graph, 32, NULL));
	ck_assert_uint_eq(plan.num_steps, 6);
	for (uint32_t i = 0; i < 5; i++) {
		const struct build_step *step = &plan.step[i];
		const struct plan_tensor *t = &plan.tensor[step->tensor[step->sdsc.output]];

		ck_assert_str_eq(step->sdsc.op, want[i].op);
		ck_assert_int_eq(t->place, SPYRE_SDSC_LX);
		ck_assert_uint_eq(t->at, want[i].at);
	}
	ck_assert_uint_eq(plan.pool_bytes, 0);
	ck_assert_uint_eq(plan.lx_bytes, 34816 + 32768);
	ck_assert_uint_eq(plan.lx_capacity, 1677696);
	plan_fini(&plan);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* LX_PLANNING=0: five steps and a pool whose space is reused. */
START_TEST(softmax_in_pool)
{
	spyre_sdsc_graph *graph = graph_of(&softmax);
	struct plan plan;
	uint64_t sum = 0;

	setenv("LX_PLANNING", "0", 1);
	ck_ok(plan_make(&plan, graph, 32, NULL));
	ck_assert_uint_eq(plan.num_steps, 5);
	ck_assert_uint_eq(plan.lx_bytes, 0);
	ck_assert_uint_eq(plan.pool_bytes, 2 * 1048576);
	plan_fini(&plan);
	setenv("HBM_POOL_PLANNING", "0", 1);
	ck_ok(plan_make(&plan, graph, 32, NULL));
	for (uint32_t i = 0; i < plan.num_tensors; i++)
		sum += plan.tensor[i].place == SPYRE_SDSC_POOL ? plan.tensor[i].bytes : 0;
	ck_assert_uint_eq(plan.pool_bytes, sum);
	plan_fini(&plan);
	unsetenv("HBM_POOL_PLANNING");
	unsetenv("LX_PLANNING");
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* Buffers that are in use at the same time never overlap, for any size of LX. */
START_TEST(small_lx)
{
	static const char *const fractions[] = { "0", "0.2", "0.5", "0.9", "0.97", "0.985", "0.99",
						 "1" };
	spyre_sdsc_graph *graph = graph_of(&softmax);
	struct plan p;

	setenv("DXP_LX_FRAC_AVAIL", fractions[_i], 1);
	ck_ok(plan_make(&p, graph, 32, NULL));
	ck_assert_uint_le(p.lx_bytes, p.lx_capacity);
	for (uint32_t i = 0; i < p.num_tensors; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct plan_tensor *a = &p.tensor[i], *b = &p.tensor[k];
			bool same_time = a->first < b->last && b->first < a->last;

			if (a->place == SPYRE_SDSC_ARGUMENT || a->place != b->place || !same_time)
				continue;
			ck_assert(a->at >= b->at + b->bytes || b->at >= a->at + a->bytes);
		}
	plan_fini(&p);
	unsetenv("DXP_LX_FRAC_AVAIL");
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* Bundles of the corpus */

static void compare(const char *want_dir, const char *got_dir, const char *file)
{
	static char want[1 << 20], got[1 << 20];
	size_t n[2];
	char path[512];

	for (int i = 0; i < 2; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", i ? got_dir : want_dir, file);
		f = fopen(path, "r");
		ck_assert_msg(f, "%s is missing", path);
		n[i] = fread(i ? got : want, 1, sizeof(want), f);
		fclose(f);
		if (i)
			unlink(path);
	}
	ck_assert_msg(n[0] == n[1] && !memcmp(want, got, n[0]), "%s/%s differs", want_dir, file);
}

static const struct {
	const char *bundle;
	uint32_t files;
	struct operation op;
} chains[] = {
	{ "softmax", 6, { "softmax", { PLAIN, PLAIN }, DL16, 0, { 0 }, 32, 0, { 0 } } },
	{ "swiglu", 2, { "swiglu", { { 128, 4096, END }, { 128, 4096, END }, { 128, 4096, END } },
			 DL16, 0, { 0 }, 8, 0, { 0 } } },
	{ "sum_first", 1, { "sum", { PLAIN, { 1024, END } }, DL16, 0, { "dim", 0 }, 32, 0, { 0 } } },
	{ "gelu", 1, { "gelu", { PLAIN, PLAIN }, DL16, 0, { 0 }, 32, 0, { 0 } } },
	{ "sigmoid", 1, { "sigmoid", { PLAIN, PLAIN }, DL16, 0, { 0 }, 32, 0, { 0 } } },
	{ "restickify", 1, { "transpose", { { 512, 256, END }, { 256, 512, END } }, DL16, 0, { 0 },
			     32, 0, { 0 } } },
};

START_TEST(corpus)
{
	const char *root = getenv("SPYRE_SRCDIR");
	char want[512], got[] = "/tmp/spyre-plan-XXXXXX", file[32];
	spyre_sdsc_graph *graph = graph_of(&chains[_i].op);

	snprintf(want, sizeof(want), "%s/tests/conformance/bundles/%s", root ? root : ".",
		 chains[_i].bundle);
	ck_assert_ptr_nonnull(mkdtemp(got));
	ck_ok(spyre_sdsc_graph_write(graph, chains[_i].op.cores, got));
	for (uint32_t i = 0; i < chains[_i].files; i++) {
		snprintf(file, sizeof(file), "sdsc_%u.json", i);
		compare(want, got, file);
	}
	compare(want, got, "bundle.mlir");
	ck_assert_int_eq(rmdir(got), 0);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* Bad input */

START_TEST(refused)
{
	spyre_sdsc_operand a = operand((int64_t[]){ 64, 64, END }, DL16, false);
	spyre_sdsc_attribute attr = { "dim", 7 };
	uint32_t x, y, column, row, deep, bad = 99, new = SPYRE_SDSC_NEW;
	spyre_sdsc_graph *g;
	spyre_sdsc_plan *plan;

	ck_ok(spyre_sdsc_graph_create(&g));
	ck_ok(spyre_sdsc_graph_add_argument(g, &a, &x));
	ck_ok(spyre_sdsc_graph_add_argument(g, &a, &y));
	ck_assert_int_eq(spyre_sdsc_graph_create(NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "nosuch", NULL, 0, &x, 1, &new),
			 SPYRE_ERROR_UNSUPPORTED);
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "relu", NULL, 0, &bad, 1, &new),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "relu", NULL, 0, &x, 1, &bad),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "relu", NULL, 0, &x, 9, &new),
			 SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "relu", &attr, 1, &x, 1, &new),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "\"dim\""));
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "sum", &attr, 1, &x, 1, &new),
			 SPYRE_ERROR_ARGUMENT_MISMATCH);
	attr.value = 0.5;
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "sum", &attr, 1, &x, 1, &new),
			 SPYRE_ERROR_ARGUMENT_MISMATCH);
	attr = (spyre_sdsc_attribute){ "value", __builtin_nan("") };
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "fill", &attr, 1, &x, 0, &y),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_uint_eq(new, SPYRE_SDSC_NEW);
	ck_assert_uint_eq(g->num_tensors, 2);
	ck_assert_int_eq(spyre_sdsc_graph_plan(g, 0, &plan), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "no operations"));
	a = operand((int64_t[]){ 64, 1, END }, DL16, false);
	ck_ok(spyre_sdsc_graph_add_argument(g, &a, &column));
	a = operand((int64_t[]){ 64, END }, DL16, false);
	ck_ok(spyre_sdsc_graph_add_argument(g, &a, &row));
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "matmul", NULL, 0,
						 (uint32_t[]){ column, row }, 2, &new),
			 SPYRE_ERROR_ARGUMENT_MISMATCH);
	a = operand((int64_t[]){ 2, 2, 2, 2, 2, 2, 64, END }, DL16, false);
	ck_ok(spyre_sdsc_graph_add_argument(g, &a, &deep));
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "matmul", NULL, 0, (uint32_t[]){ row, x }, 2,
						 &deep),
			 SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_assert_int_eq(spyre_sdsc_graph_add_op(g, "matmul", NULL, 0, (uint32_t[]){ deep, x }, 2,
						 &new),
			 SPYRE_ERROR_ARGUMENT_MISMATCH);
	ck_ok(spyre_sdsc_graph_add_op(g, "relu", NULL, 0, &x, 1, &y));
	ck_assert_int_eq(spyre_sdsc_graph_plan(g, 33, &plan), SPYRE_ERROR_INVALID_ARGUMENT);
	setenv("LX_PLANNING", "maybe", 1);
	ck_assert_int_eq(spyre_sdsc_graph_plan(g, 0, &plan), SPYRE_ERROR_CONFIGURATION);
	setenv("LX_PLANNING", "1", 1);
	setenv("DXP_LX_FRAC_AVAIL", "1.5", 1);
	ck_assert_int_eq(spyre_sdsc_graph_plan(g, 0, &plan), SPYRE_ERROR_CONFIGURATION);
	unsetenv("DXP_LX_FRAC_AVAIL");
	ck_ok(spyre_sdsc_graph_add_op(g, "softmax", NULL, 0, &deep, 1, &deep));
	ck_ok(spyre_sdsc_graph_plan(g, 0, &plan));
	spyre_sdsc_plan_free(plan);
	a.layout.device_size[0] = 0;
	ck_assert_int_eq(spyre_sdsc_graph_add_argument(g, &a, &x), SPYRE_ERROR_LAYOUT);
	spyre_sdsc_graph_destroy(g);
}
END_TEST

START_TEST(explained)
{
	spyre_sdsc_graph *graph = graph_of(&softmax);
	spyre_sdsc_plan *plan;

	ck_ok(spyre_sdsc_graph_plan(graph, 32, &plan));
	ck_assert_uint_eq(plan->num_steps, 6);
	ck_assert_uint_gt(plan->cycles, 0);
	ck_assert_str_eq(plan->step[1].op, "max");
	ck_assert_uint_eq(plan->step[1].core_bytes[0], 32768);
	ck_assert_int_eq(plan->step[1].choice[0].slices[0], 32);
	for (uint32_t i = 1; i + 1 < plan->step[1].num_choices; i++)
		ck_assert(plan->step[1].choice[i].microseconds <=
			  plan->step[1].choice[i + 1].microseconds);
	spyre_sdsc_plan_free(plan);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	Suite *s = suite_create("plan");
	TCase *t = tcase_create("plan");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, division, 0, COUNT(divisions));
	tcase_add_loop_test(t, shares, 0, 32);
	tcase_add_test(t, span);
	tcase_add_test(t, k_fastest);
	tcase_add_test(t, softmax_in_lx);
	tcase_add_test(t, softmax_in_pool);
	tcase_add_loop_test(t, small_lx, 0, 8);
	tcase_add_loop_test(t, corpus, 0, COUNT(chains));
	tcase_add_test(t, refused);
	tcase_add_test(t, explained);
	suite_add_tcase(s, t);
	return suite_run(s);
}
