// SPDX-License-Identifier: MIT
/* Divisions that a caller requests: how they are applied, and that they do not change results. */
#include "runtime_check.h"

#include <stdio.h>
#include <unistd.h>

#define DL16 SPYRE_FORMAT_IEEE_FP16
#define FP32 SPYRE_FORMAT_IEEE_FP32
#define END -9
#define K SPYRE_SDSC_SUMMED
#define MOST 3

/* An operation with requested divisions. */
struct division {
	const char *op;
	int64_t size[MOST][6];	/* inputs, output */
	spyre_format format;
	spyre_sdsc_attribute attr;
	spyre_sdsc_split split[3];
	uint32_t step;		/* the step to check */
	int64_t slices[4];	/* its expected slices */
};

static spyre_sdsc_operand operand(const int64_t *size, spyre_format format)
{
	spyre_sdsc_operand o = { 0 };
	int64_t stride[6], step = 1;
	int32_t order[7];

	for (; size[o.rank] != END; o.rank++) {
		o.size[o.rank] = size[o.rank];
		order[o.rank] = (int32_t)o.rank;
	}
	for (uint32_t d = o.rank; d-- > 0; step *= o.size[d])
		stride[d] = step;
	order[o.rank] = -1;
	ck_ok(spyre_layout_init_strided(&o.layout, o.rank, o.size, stride, format, order,
					o.rank + (o.size[o.rank - 1] == 1)));
	return o;
}

static uint32_t operands_of(const struct division *d, spyre_sdsc_operand *o)
{
	uint32_t n = 0;

	for (; n < MOST && d->size[n][0]; n++)
		o[n] = operand(d->size[n], d->format);
	return n;
}

/* Adds the operation to a graph; @asked: with the requested divisions. */
static spyre_status add(const struct division *d, bool asked, spyre_sdsc_graph **graph)
{
	uint32_t tensor[MOST], n, splits = 0;
	spyre_sdsc_operand o[MOST];

	n = operands_of(d, o);
	ck_ok(spyre_sdsc_graph_create(graph));
	for (uint32_t i = 0; i < n; i++)
		ck_ok(spyre_sdsc_graph_add_argument(*graph, &o[i], &tensor[i]));
	while (asked && splits < 3 && d->split[splits].slices)
		splits++;
	ck_ok(spyre_sdsc_graph_set_division(*graph, d->split, splits));
	return spyre_sdsc_graph_add_op(*graph, d->op, &d->attr, d->attr.name != NULL, tensor,
				       n - 1, &tensor[n - 1]);
}

#define PLAIN { 512, 1024, END }
#define PRODUCT { { 512, 1024, END }, { 1024, 256, END }, { 512, 256, END } }

static const struct division divisions[] = {
	{ "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { -2, 4 } }, 0, { 4, 1 } },
	{ "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { -1, 8 }, { -2, 4 } }, 0, { 4, 8 } },
	{ "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { -1, 1 } }, 0, { 1, 1 } },
	/* The dim does not exist, so the planner divides. */
	{ "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { -3, 4 } }, 0, { 2, 16 } },
	{ "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { K, 4 } }, 0, { 2, 16 } },
	{ "relu", { { 4, 6, 100, END }, { 4, 6, 100, END } }, FP32, { 0 }, { { -2, 3 }, { -1, 2 } },
	  0, { 1, 3, 2 } },
	{ "matmul", PRODUCT, DL16, { 0 }, { { -2, 2 }, { -1, 2 }, { K, 4 } }, 0, { 2, 2, 4 } },
	{ "matmul", PRODUCT, DL16, { 0 }, { { K, 16 } }, 0, { 1, 1, 16 } },
	/* After the steps that write zeros beyond K. */
	{ "matmul", { { 6, 40, 200, END }, { 6, 200, 130, END }, { 6, 40, 130, END } }, DL16, { 0 },
	  { { -3, 6 }, { -2, 5 } }, 3, { 6, 5, 1, 1 } },
	/* A reduced dim can be divided only if it is not along the sticks. */
	{ "sum", { PLAIN, { 512, 1, END } }, DL16, { "keepdim", 1 }, { { -1, 4 }, { -2, 2 } }, 0,
	  { 2, 1 } },
	{ "sum", { PLAIN, { 1024, END } }, DL16, { "dim", 0 }, { { -2, 8 }, { -1, 2 } }, 0,
	  { 2, 8 } },
	{ "softmax", { PLAIN, PLAIN }, DL16, { 0 }, { { -2, 8 } }, 3, { 8, 1 } },
	{ "softmax", { PLAIN, PLAIN }, DL16, { 0 }, { { -1, 8 } }, 1, { 1, 8 } },
	{ "transpose", { PLAIN, { 1024, 512, END } }, DL16, { 0 }, { { -1, 4 } }, 0, { 1, 4 } },
};

START_TEST(taken)
{
	const struct division *d = &divisions[_i];
	spyre_sdsc_graph *graph;
	spyre_sdsc_plan *plan;
	int64_t cores = 1;

	ck_ok(add(d, true, &graph));
	ck_ok(spyre_sdsc_graph_plan(graph, 32, &plan));
	for (uint32_t i = 0; i < plan->step[d->step].num_dims; i++) {
		const spyre_sdsc_plan_step *step = &plan->step[d->step];

		ck_assert_msg(step->choice[0].slices[i] == d->slices[i],
			      "%s: %s has %lld slices, not %lld", d->op, step->dim[i],
			      (long long)step->choice[0].slices[i], (long long)d->slices[i]);
		cores *= d->slices[i];
	}
	ck_assert_uint_eq(plan->step[d->step].num_cores, (uint32_t)cores);
	spyre_sdsc_plan_free(plan);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

static spyre_devptr memory(spyre_context *context, size_t bytes)
{
	spyre_devptr p;

	ck_ok(spyre_mem_alloc(context, bytes, &p));
	return p;
}

/* Computes the operation's result on small integers, whose sums are exact. */
static void compute(spyre_context *context, const struct division *d, bool asked, float *result)
{
	spyre_stream *stream = get_stream(context, 0);
	spyre_arg args[MOST];
	spyre_sdsc_operand o[MOST];
	uint32_t n = operands_of(d, o);
	spyre_host_tensor h;
	spyre_sdsc_graph *graph;
	spyre_kernel *kernel;
	uint64_t state = 7;

	for (uint32_t i = 0; i < n; i++) {
		args[i].address = memory(context, spyre_layout_bytes(&o[i].layout));
		args[i].layout = &o[i].layout;
		ck_ok(spyre_host_tensor_dense(&h, result, FP32, o[i].rank, o[i].size));
		for (size_t k = 0; k < (size_t)1 << 19; k++)
			result[k] = (float)(random_next(&state) >> 40 & 3);
		ck_ok(spyre_copy_h2d(context, args[i].address, &o[i].layout, &h));
	}
	ck_ok(add(d, asked, &graph));
	ck_ok(spyre_sdsc_graph_load(context, graph, 32, &kernel));
	ck_ok(spyre_launch(stream, kernel, args, n));
	ck_ok(spyre_stream_synchronize(stream));
	memset(result, 0, sizeof(float) << 19);
	ck_ok(spyre_copy_d2h(context, &h, args[n - 1].address, &o[n - 1].layout));
	ck_ok(spyre_kernel_unload(kernel));
	spyre_sdsc_graph_destroy(graph);
	for (uint32_t i = 0; i < n; i++)
		ck_ok(spyre_mem_free(context, args[i].address));
}

/* The bits equal those of the planner's own division. */
START_TEST(same_bits)
{
	spyre_context *context = open_card();
	float *planned = malloc(sizeof(float) << 19), *asked = malloc(sizeof(float) << 19);

	ck_assert(planned && asked);
	compute(context, &divisions[_i], false, planned);
	compute(context, &divisions[_i], true, asked);
	ck_assert_msg(!memcmp(planned, asked, sizeof(float) << 19), "%s differs",
		      divisions[_i].op);
	free(planned);
	free(asked);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* The bundle contains the division like a planned one. */
START_TEST(written)
{
	static char text[1 << 20];
	static const char *const want[] = { "\"numCoresUsed_\": 16", "\"numWkSlicesPerDim_\": {\n"
		"      \"mb\": 2,\n      \"out\": 2,\n      \"in\": 4\n" };
	char directory[] = "/tmp/spyre-division-XXXXXX", path[64];
	spyre_sdsc_graph *graph;
	FILE *file;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_ok(add(&divisions[6], true, &graph));
	ck_ok(spyre_sdsc_graph_write(graph, 32, directory));
	snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	for (int i = 0; i < 2; i++)
		ck_assert_msg(strstr(text, want[i]), "%s is not in %s", want[i], path);
	unlink(path);
	snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
	unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

/* Steps share LX only if they have the same requests. */
START_TEST(groups)
{
	spyre_sdsc_operand o = operand((int64_t[])PLAIN, DL16);
	spyre_sdsc_split rows = { -2, 8 }, fewer = { -2, 4 };
	spyre_sdsc_graph *graph;
	spyre_sdsc_plan *plan;

	for (int same = 0; same < 2; same++) {
		uint32_t x, y, between = SPYRE_SDSC_NEW;

		ck_ok(spyre_sdsc_graph_create(&graph));
		ck_ok(spyre_sdsc_graph_add_argument(graph, &o, &x));
		ck_ok(spyre_sdsc_graph_add_argument(graph, &o, &y));
		ck_ok(spyre_sdsc_graph_set_division(graph, &rows, 1));
		ck_ok(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &x, 1, &between));
		ck_ok(spyre_sdsc_graph_set_division(graph, same ? &rows : &fewer, 1));
		ck_ok(spyre_sdsc_graph_add_op(graph, "exp", NULL, 0, &between, 1, &y));
		ck_ok(spyre_sdsc_graph_plan(graph, 32, &plan));
		ck_assert_uint_eq(plan->step[0].num_cores, 8);
		ck_assert_uint_eq(plan->step[1].num_cores, same ? 8 : 4);
		ck_assert_int_eq(plan->step[1].asked[0], same ? 8 : 4);
		ck_assert_int_eq(plan->tensor[between].place,
				 same ? SPYRE_SDSC_LX : SPYRE_SDSC_POOL);
		spyre_sdsc_plan_free(plan);
		spyre_sdsc_graph_destroy(graph);
	}
}
END_TEST

static const struct {
	struct division division;
	spyre_status status;
	const char *says;
	bool planned;		/* refused by the planner only */
} bad[] = {
	{ { "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { -1, 3 } }, 0, { 0 } },
	  SPYRE_ERROR_INVALID_ARGUMENT, "dimension -1, of 16 sticks of 64 elements", false },
	{ { "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { -2, 3 } }, 0, { 0 } },
	  SPYRE_ERROR_INVALID_ARGUMENT, "dimension -2, of 512 elements", false },
	{ { "matmul", PRODUCT, DL16, { 0 }, { { K, 3 } }, 0, { 0 } }, SPYRE_ERROR_INVALID_ARGUMENT,
	  "sums over, of 16 sticks", false },
	{ { "add", { PLAIN, PLAIN, PLAIN }, DL16, { 0 }, { { -2, 8 }, { -1, 8 } }, 0, { 0 } },
	  SPYRE_ERROR_INVALID_ARGUMENT, "64 in all, of 32 cores", true },
	{ { "relu", { { 8192, 65536, END }, { 8192, 65536, END } }, DL16, { 0 }, { { -2, 2 } }, 0,
	    { 0 } }, SPYRE_ERROR_SPAN_LIMIT, "the limit is 268435456", true },
	{ { "matmul", { { 64, 1 << 17, END }, { 1 << 17, 64, END }, { 64, 64, END } }, DL16, { 0 },
	    { { -2, 2 } }, 0, { 0 } }, SPYRE_ERROR_SPAN_LIMIT, "65535", true },
	{ { "sum", { { 64, 1024, 1024, END }, { 1024, 1024, END } }, DL16, { "dim", 0 },
	    { { -3, 4 } }, 0, { 0 } }, SPYRE_ERROR_LX_OVERFLOW, "1048576 bytes of LX", true },
};

START_TEST(refused)
{
	spyre_sdsc_graph *graph;
	spyre_sdsc_plan *plan;
	spyre_status status = add(&bad[_i].division, true, &graph);

	if (bad[_i].planned) {
		ck_ok(status);
		status = spyre_sdsc_graph_plan(graph, 32, &plan);
	}
	ck_assert_int_eq(status, bad[_i].status);
	ck_mentions(bad[_i].says);
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

START_TEST(bad_splits)
{
	spyre_sdsc_split twice[] = { { -1, 2 }, { -1, 2 } }, many[SPYRE_SDSC_MAX_SPLITS + 1];
	spyre_sdsc_split none = { -1, 0 }, front = { 1, 2 };
	spyre_sdsc_graph *graph;

	for (int i = 0; i <= SPYRE_SDSC_MAX_SPLITS; i++)
		many[i] = (spyre_sdsc_split){ -i, 1 };
	ck_ok(spyre_sdsc_graph_create(&graph));
	ck_status(spyre_sdsc_graph_set_division(NULL, twice, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_set_division(graph, NULL, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_set_division(graph, twice, 2), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("twice");
	ck_status(spyre_sdsc_graph_set_division(graph, many, SPYRE_SDSC_MAX_SPLITS + 1),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_set_division(graph, &none, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_sdsc_graph_set_division(graph, &front, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("-1 (the last)");
	ck_ok(spyre_sdsc_graph_set_division(graph, NULL, 0));
	spyre_sdsc_graph_destroy(graph);
}
END_TEST

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	TCase *t = tcase_create("division");

	tcase_add_loop_test(t, taken, 0, COUNT(divisions));
	tcase_add_loop_test(t, same_bits, 0, COUNT(divisions));
	tcase_add_test(t, written);
	tcase_add_test(t, groups);
	tcase_add_loop_test(t, refused, 0, COUNT(bad));
	tcase_add_test(t, bad_splits);
	return run_suite("division", t);
}
