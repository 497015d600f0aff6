// SPDX-License-Identifier: MIT
/*
 * Compares modelled time with the public figures of the card and prints the table
 * of docs/timing.md.
 */
#include "model_util.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STICK SPYRE_STICK_BYTES
#define LX SPYRE_VIEW_LX

static struct builder b;

struct figure {
	const char *name, *unit;
	double public;
	double (*modelled)(void);
	bool apart;		/* more than 20 % off; docs/timing.md has the reason */
};

static struct spyre_counters cost_of(uint32_t cores)
{
	struct spyre_program prog;
	struct spyre_counters cost;
	size_t size;
	void *image = build_image(&b, &size);

	build_seal(image, size, cores, &prog);
	cost = prog.cost;
	free(image);
	return cost;
}

static double seconds(const struct spyre_counters *cost)
{
	return (double)cost->cycles / SPYRE_CLOCK_HZ;
}

static double gigabytes_per_s(const struct spyre_counters *cost)
{
	return (double)(cost->bytes_read + cost->bytes_written) / seconds(cost) / 1e9;
}

/* One dim of contiguous sticks. */
static void sticks(struct spyre_instr *in, uint32_t view, uint32_t operand, uint64_t offset)
{
	build_view(in, view, operand, offset)->stride[0] = STICK;
}

/* Every core multiplies 1024 rows by 4096 x 512 elements in its LX. */
static double peak_tflops(void)
{
	struct spyre_counters cost;

	build_start(&b, 32, SPYRE_LX_BYTES, 0);
	build_phase(&b);
	for (uint32_t core = 0; core < 32; core++) {
		struct spyre_instr *in;

		build_stream(&b, core);
		in = build_instr(&b, SPYRE_OP_PT, SPYRE_FUNC_NONE, 6, 64);
		in->count[3] = 1024;
		in->count[4] = 4;
		in->count[5] = 512;
		build_view(in, 0, LX, 0)->stride[3] = STICK;
		build_view(in, 0, LX, 0)->stride[4] = 1024 * STICK;
		build_view(in, 1, LX, 0)->stride[3] = STICK;
		build_view(in, 1, LX, 0)->stride[5] = 1024 * STICK;
		build_view(in, 2, LX, 1 << 20)->stride[5] = STICK;
		build_view(in, 2, LX, 1 << 20)->stride[4] = 512 * STICK;
	}
	cost = cost_of(32);
	return 2.0 * (double)cost.macs / seconds(&cost) / 1e12;
}

/* 32 cores, 8192 sticks each, from @from to @to. */
static double move_rate(bool in_lpddr, bool out_lpddr)
{
	struct spyre_counters cost;

	build_start(&b, 32, 8192 * STICK, 2);
	build_phase(&b);
	for (uint32_t core = 0; core < 32; core++) {
		struct spyre_instr *in;

		build_stream(&b, core);
		in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 1, 64);
		in->count[0] = 8192;
		sticks(in, 0, out_lpddr ? 0 : LX, out_lpddr ? core * 8192 * STICK : 0);
		sticks(in, 1, in_lpddr ? 1 : LX, in_lpddr ? core * 8192 * STICK : 0);
	}
	cost = cost_of(32);
	return gigabytes_per_s(&cost);
}

static double read_rate(void) { return move_rate(true, false); }
static double write_rate(void) { return move_rate(false, true); }
static double mixed_rate(void) { return move_rate(true, true); }

static double restickify_rate(void)
{
	struct spyre_counters cost;

	build_start(&b, 32, 0, 2);
	build_phase(&b);
	for (uint32_t core = 0; core < 32; core++) {
		struct spyre_instr *in;

		build_stream(&b, core);
		in = build_instr(&b, SPYRE_OP_RESTICK, SPYRE_FUNC_NONE, 6, 64);
		in->count[3] = 128;
		in->count[4] = 64;
		in->count[5] = 64;
		for (uint32_t v = 0; v < 2; v++) {
			struct spyre_view *view = build_view(in, v, v, core * 8192 * STICK);

			view->stride[3] = 64 * STICK;
			view->stride[v ? 4 : 5] = STICK;
		}
	}
	cost = cost_of(32);
	return gigabytes_per_s(&cost);
}

/* 32 cores sum 512 rows of 16 sticks. */
static double outer_reduce_rate(void)
{
	struct spyre_counters cost;

	build_start(&b, 32, 0, 2);
	build_phase(&b);
	for (uint32_t core = 0; core < 32; core++) {
		struct spyre_instr *in;

		build_stream(&b, core);
		in = build_instr(&b, SPYRE_OP_REDUCE, SPYRE_FUNC_SUM, 2, 64);
		in->count[0] = 16;
		in->count[1] = 512;
		in->reduce_mask = 2;
		build_view(in, 0, 0, core * 16 * STICK)->stride[0] = STICK;
		build_view(in, 1, 1, core * 8192 * STICK)->stride[0] = 512 * STICK;
		build_view(in, 1, 1, core * 8192 * STICK)->stride[1] = STICK;
	}
	cost = cost_of(32);
	return gigabytes_per_s(&cost);
}

/* 32 cores write a row of 16 sticks 512 times. */
static double broadcast_rate(void)
{
	struct spyre_counters cost;

	build_start(&b, 32, 0, 2);
	build_phase(&b);
	for (uint32_t core = 0; core < 32; core++) {
		struct spyre_instr *in;

		build_stream(&b, core);
		in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 2, 64);
		in->count[0] = 16;
		in->count[1] = 512;
		build_view(in, 0, 0, core * 8192 * STICK)->stride[0] = 512 * STICK;
		build_view(in, 0, 0, core * 8192 * STICK)->stride[1] = STICK;
		build_view(in, 1, 1, 0)->stride[0] = STICK;
	}
	cost = cost_of(32);
	return gigabytes_per_s(&cost);
}

/* A pass of softmax over 512 rows of 16 sticks on one core, as a separate phase. */
static void pass(uint32_t opcode, uint32_t func, uint32_t out, uint32_t from, bool column)
{
	const uint32_t x = 512 * STICK;		/* after the row values in LX */
	struct spyre_instr *in;

	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, opcode, func, 2, 64);
	in->count[0] = 512;
	in->count[1] = 16;
	for (uint32_t v = 0; v < 2; v++) {
		struct spyre_view *view = build_view(in, v, v ? from : out,
						     (v ? from : out) == LX ? x : 0);

		view->stride[0] = STICK;
		view->stride[1] = 512 * STICK;
	}
	if (opcode == SPYRE_OP_REDUCE) {
		struct spyre_view *row = build_view(in, 0, LX, 0);

		in->flags = SPYRE_INSTR_REDUCE_LANES;
		in->reduce_mask = 2;
		row->stride[1] = 0;
	}
	if (column) {
		struct spyre_view *row = build_view(in, 2, LX, 0);

		row->stride[0] = STICK;
		row->lanes = SPYRE_LANES_SPLAT;
	}
}

static double softmax_us(uint32_t where)
{
	struct spyre_counters cost;
	uint32_t source = where == LX ? LX : 1;

	build_start(&b, 1, (512 + 512 * 16) * STICK, 2);
	if (where == LX)
		pass(SPYRE_OP_MOVE, SPYRE_FUNC_NONE, LX, 1, false);
	pass(SPYRE_OP_REDUCE, SPYRE_FUNC_AMAX, LX, source, false);
	pass(SPYRE_OP_SFU, SPYRE_FUNC_SUB, where, source, true);
	pass(SPYRE_OP_SFU, SPYRE_FUNC_EXP, where, where, false);
	pass(SPYRE_OP_REDUCE, SPYRE_FUNC_SUM, LX, where, false);
	pass(SPYRE_OP_SFU, SPYRE_FUNC_REALDIV, 0, where, true);
	cost = cost_of(1);
	return seconds(&cost) * 1e6;
}

static double softmax_lx(void) { return softmax_us(LX); }
static double softmax_no_lx(void) { return softmax_us(0); }

static const struct figure figures[] = {
	{ "matmul in LX, 32 cores", "TFLOP/s", 98.304, peak_tflops, false },
	{ "LPDDR5 read", "GB/s", 150, read_rate, false },
	{ "LPDDR5 write", "GB/s", 150, write_rate, false },
	{ "LPDDR5 read and write", "GB/s", 105, mixed_rate, false },
	{ "restickify", "GB/s", 116, restickify_rate, false },
	{ "outer reduce", "GB/s", 113, outer_reduce_rate, false },
	{ "broadcast", "GB/s", 118, broadcast_rate, false },
	{ "softmax 512x1024, one core, LX", "us", 23.7, softmax_lx, false },
	{ "softmax 512x1024, one core, no LX", "us", 32.5, softmax_no_lx, true },
};

START_TEST(test_figure)
{
	const struct figure *f = &figures[_i];
	double modelled = f->modelled();
	double off = modelled / f->public - 1;

	printf("# %-36s modelled %8.2f  public %8.2f %-8s %+6.1f %%\n", f->name, modelled,
	       f->public, f->unit, 100 * off);
	/* A figure that comes within 20 % must no longer be marked. */
	ck_assert_msg((fabs(off) <= 0.2) == !f->apart, "%s: %.2f %s, public figure %.2f", f->name,
		      modelled, f->unit, f->public);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_timing");
	TCase *tc = tcase_create("timing");

	tcase_add_loop_test(tc, test_figure, 0, sizeof(figures) / sizeof(figures[0]));
	suite_add_tcase(suite, tc);
	return suite_run_in_process(suite);
}
