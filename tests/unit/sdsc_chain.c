// SPDX-License-Identifier: MIT
/*
 * Random chains of operations: for any division and placement of the planners, the
 * result has the same bits as that of one core without LX and without reuse.
 */
#include <stdio.h>

#include "runtime_check.h"
#include "suite.h"

#define MAX_TENSORS 40
#define MAX_OPS 14
#define CHAINS 60

static spyre_context *context;
static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

struct chain {
	spyre_sdsc_graph *graph;
	int64_t size[3];
	uint32_t rank;
	uint32_t tensor[MAX_TENSORS];	/* readable tensors */
	uint32_t count;
	uint32_t args;
	spyre_layout layout;
	size_t elements;
};

static void add_argument(struct chain *c)
{
	spyre_sdsc_operand o = { .rank = c->rank, .layout = c->layout };

	memcpy(o.size, c->size, sizeof(c->size));
	ck_ok(spyre_sdsc_graph_add_argument(c->graph, &o, &c->tensor[c->count++]));
	c->args++;
}

/* Adds an operation on existing tensors whose values stay small. */
static void add_random(struct chain *c)
{
	static const char *const unary[] = { "relu", "neg", "abs", "tanh", "sigmoid", "silu",
					     "identity" };
	static const char *const binary[] = { "add", "sub", "mul", "maximum", "minimum", "gt" };
	static const char *const reductions[] = { "amax", "mean", "amin", "absmax" };
	spyre_sdsc_attribute keep = { "keepdim", 1 };
	uint32_t in[2], out = SPYRE_SDSC_NEW, kind = random_below(10);

	/* Often uses the latest results, which gives long chains. */
	for (int i = 0; i < 2; i++)
		in[i] = c->tensor[random_below(2) ? c->count - 1 : random_below(c->count)];
	if (kind < 3)
		ck_ok(spyre_sdsc_graph_add_op(c->graph, unary[random_below(7)], NULL, 0, in, 1,
					      &out));
	else if (kind < 7)
		ck_ok(spyre_sdsc_graph_add_op(c->graph, binary[random_below(6)], NULL, 0, in, 2,
					      &out));
	else if (kind < 9)
		ck_ok(spyre_sdsc_graph_add_op(c->graph, reductions[random_below(4)], &keep, 1,
					      &c->tensor[random_below(c->args)], 1, &out));
	else
		ck_ok(spyre_sdsc_graph_add_op(c->graph, "softmax", NULL, 0,
					      &c->tensor[random_below(c->args)], 1, &out));
	c->tensor[c->count++] = out;
}

static void make_chain(struct chain *c)
{
	static const int64_t sizes[] = { 1, 2, 7, 32, 33, 64, 100, 128, 150, 256 };
	uint32_t ops = 1 + random_below(MAX_OPS), sum, last;

	memset(c, 0, sizeof(*c));
	c->rank = 2 + random_below(2);
	c->elements = 1;
	for (uint32_t d = 0; d < c->rank; d++) {
		c->size[d] = sizes[random_below(d + 3 < c->rank + 1 ? 4 : 10)];
		c->elements *= (size_t)c->size[d];
	}
	if (c->size[c->rank - 1] == 1) {
		c->size[c->rank - 1] = 70;
		c->elements *= 70;
	}
	ck_ok(spyre_layout_init(&c->layout, c->rank, c->size, SPYRE_FORMAT_IEEE_FP16));
	ck_ok(spyre_sdsc_graph_create(&c->graph));
	for (uint32_t i = 0; i < 1 + random_below(2); i++)
		add_argument(c);
	for (uint32_t i = 0; i < ops; i++)
		add_random(c);
	/* The output combines the last result and an argument, so that it has their shape. */
	last = c->tensor[c->count - 1];
	sum = c->count;
	add_argument(c);
	ck_ok(spyre_sdsc_graph_add_op(c->graph, "add", NULL, 0,
				      (uint32_t[]){ c->tensor[0], last }, 2, &c->tensor[sum]));
}

static void run_chain(struct chain *c, uint32_t cores, const spyre_devptr *device, float *result)
{
	spyre_stream *stream = get_stream(context, 0);
	spyre_host_tensor host;
	spyre_kernel *kernel;
	spyre_arg args[4];

	ck_ok(spyre_sdsc_graph_load(context, c->graph, cores, &kernel));
	for (uint32_t i = 0; i < c->args; i++)
		args[i] = (spyre_arg){ device[i], &c->layout };
	ck_ok(spyre_launch(stream, kernel, args, c->args));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_kernel_unload(kernel));
	ck_ok(spyre_host_tensor_dense(&host, result, SPYRE_FORMAT_IEEE_FP32, c->rank, c->size));
	ck_ok(spyre_copy_d2h(context, &host, device[c->args - 1], &c->layout));
}

static void fill(struct chain *c, spyre_devptr device, float *values)
{
	spyre_host_tensor host;

	for (size_t i = 0; i < c->elements; i++)
		values[i] = (float)random_below(4096) / 1024 - 2;
	ck_ok(spyre_host_tensor_dense(&host, values, SPYRE_FORMAT_IEEE_FP32, c->rank, c->size));
	ck_ok(spyre_copy_h2d(context, device, &c->layout, &host));
}

START_TEST(same_bits)
{
	static const char *const fractions[] = { "0.2", "0", "0.9", "0.98", "0.995", "0.999", "1" };
	static const uint32_t cores[] = { 32, 1, 5, 16, 24, 31, 2 };
	spyre_devptr device[4];
	float *want, *got;
	struct chain c;

	seed = 77 + 1000003ull * (uint64_t)_i;
	context = open_card();
	make_chain(&c);
	want = malloc(c.elements * sizeof(*want));
	got = malloc(c.elements * sizeof(*got));
	for (uint32_t i = 0; i < c.args; i++) {
		ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&c.layout), &device[i]));
		fill(&c, device[i], want);
	}
	setenv("LX_PLANNING", "0", 1);
	setenv("HBM_POOL_PLANNING", "0", 1);
	run_chain(&c, 1, device, want);
	unsetenv("HBM_POOL_PLANNING");
	run_chain(&c, 32, device, got);
	ck_assert_msg(!memcmp(want, got, c.elements * sizeof(*want)), "pool, chain %d", _i);
	unsetenv("LX_PLANNING");
	for (int k = 0; k < 7; k++) {
		setenv("DXP_LX_FRAC_AVAIL", fractions[k], 1);
		run_chain(&c, cores[k], device, got);
		ck_assert_msg(!memcmp(want, got, c.elements * sizeof(*want)),
			      "chain %d differs on %u cores with a fraction of %s", _i, cores[k],
			      fractions[k]);
	}
	unsetenv("DXP_LX_FRAC_AVAIL");
	spyre_sdsc_graph_destroy(c.graph);
	free(want);
	free(got);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("chain");
	TCase *t = tcase_create("chain");

	setenv("SPYRE_BACKEND", "embedded", 0);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, same_bits, 0, CHAINS);
	suite_add_tcase(s, t);
	return suite_run(s);
}
