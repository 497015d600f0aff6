// SPDX-License-Identifier: MIT
/* Every operation, on every unit and thread count, against the naive reference. */
#include "model_util.h"
#include "model_checked.h"
#include "suite.h"
#include "tests/order.h"

#include <stdlib.h>
#include <string.h>

#define DL16 SPYRE_FMT_SEN169_FP16
#define FP32 SPYRE_FMT_IEEE_FP32
#define FP16 SPYRE_FMT_IEEE_FP16
#define BF16 SPYRE_FMT_BFLOAT16
#define E4M3 SPYRE_FMT_SEN143_FP8
#define E5M2 SPYRE_FMT_SEN152_FP8
#define INT4 SPYRE_FMT_SENINT4
#define INT8 SPYRE_FMT_SENINT8
#define INT32 SPYRE_FMT_IEEE_INT32

#define MAX_CORES 8
#define OUT 4			/* operands 0..3 are inputs */

static struct builder b;

struct memory {
	struct guarded op[SPYRE_MAX_OPERANDS];
	struct guarded lx[MAX_CORES];
	uint8_t *operand[SPYRE_MAX_OPERANDS];
	uint8_t *lx_of[MAX_CORES];
};

/* Inputs are random in @format; outputs are initialised to 0x11. */
static void memory_init(struct memory *m, const struct spyre_program *prog, uint32_t format)
{
	uint64_t seed = 1234;
	uint32_t i;

	for (i = 0; i < prog->header->num_operands; i++) {
		guarded_alloc(&m->op[i], prog->operands[i].extent);
		m->operand[i] = m->op[i].p;
		if (i < OUT)
			rng_fill(&seed, m->op[i].p, m->op[i].bytes, format);
		else
			memset(m->op[i].p, 0x11, m->op[i].bytes);
	}
	for (i = 0; i < prog->header->num_cores; i++) {
		guarded_alloc(&m->lx[i], prog->header->lx_bytes);
		m->lx_of[i] = m->lx[i].p;
		rng_fill(&seed, m->lx[i].p, m->lx[i].bytes, format);
	}
}

static void memory_done(struct memory *m, const struct spyre_program *prog)
{
	uint32_t i;

	for (i = 0; i < prog->header->num_operands; i++)
		guarded_free(&m->op[i]);
	for (i = 0; i < prog->header->num_cores; i++)
		guarded_free(&m->lx[i]);
}

static void compare(const struct memory *want, const struct memory *got,
		    const struct spyre_program *prog, const char *unit, int threads)
{
	uint32_t i;
	size_t k;

	for (i = 0; i < prog->header->num_operands; i++) {
		ck_assert_msg(guarded_intact(&got->op[i]), "%s: guard of operand %u", unit, i);
		for (k = 0; k < want->op[i].bytes; k++)
			expect(want->op[i].p[k] == got->op[i].p[k],
			       "%s x %d: operand %u byte %zu: %02x, want %02x", unit, threads,
			       i, k, got->op[i].p[k], want->op[i].p[k]);
	}
	for (i = 0; i < prog->header->num_cores; i++) {
		ck_assert_msg(guarded_intact(&got->lx[i]), "%s: guard of LX %u", unit, i);
		ck_assert(!memcmp(want->lx[i].p, got->lx[i].p, want->lx[i].bytes));
	}
}

/* Runs the builder's program on all units and thread counts. */
static void check(uint32_t format)
{
	const struct spyre_unit *const *unit;
	struct spyre_program prog;
	struct memory want, got;
	struct test_host host;
	size_t size;
	void *image = build_image(&b, &size);
	char fault[200] = "";
	int threads;

	build_seal(image, size, 32, &prog);
	memory_init(&want, &prog, format);
	ck_assert_msg(checked_exec(&prog, want.operand, want.lx_of, fault, sizeof(fault)), "%s",
		      fault);
	for (unit = test_units(); *unit; unit++) {
		for (threads = 1; threads <= 3; threads += 2) {
			struct spyre_exec x = { .host = &host.host, .prog = &prog };

			test_host_init(&host, *unit, threads);
			memory_init(&got, &prog, format);
			x.operand = got.operand;
			x.lx = got.lx_of;
			ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_NONE);
			compare(&want, &got, &prog, spyre_unit_name(*unit), threads);
			memory_done(&got, &prog);
			test_host_done(&host);
		}
	}
	memory_done(&want, &prog);
	free(image);
}

static void start(void)
{
	build_start(&b, 1, 0, 8);
	build_phase(&b);
	build_stream(&b, 0);
}

static const uint32_t functions[] = {
	SPYRE_FUNC_IDENTITY, SPYRE_FUNC_RELU, SPYRE_FUNC_NEG, SPYRE_FUNC_ABS, SPYRE_FUNC_ADD,
	SPYRE_FUNC_SUB, SPYRE_FUNC_MUL, SPYRE_FUNC_MAX, SPYRE_FUNC_MIN, SPYRE_FUNC_EQ,
	SPYRE_FUNC_NE, SPYRE_FUNC_GT, SPYRE_FUNC_LT, SPYRE_FUNC_GE, SPYRE_FUNC_LE,
	SPYRE_FUNC_WHERE, SPYRE_FUNC_REVSUB, SPYRE_FUNC_REALDIV, SPYRE_FUNC_RECIPROCAL,
	SPYRE_FUNC_SQRT, SPYRE_FUNC_RSQRT, SPYRE_FUNC_FLOOR, SPYRE_FUNC_CLIP,
	SPYRE_FUNC_LAYERNORMSCALE, SPYRE_FUNC_LAYERNORMNORM,
};

static void set_imms(struct spyre_instr *in)
{
	static const uint32_t imm[4] = { 0xbfc00000, 0x40c00000 };	/* -1.5, 6 */

	memcpy(in->imm, imm, 4 * spyre_func_imms(in->func));
	if (in->func == SPYRE_FUNC_LAYERNORMSCALE)
		in->imm[0] = 0x3727c5ac;	/* 1e-5 */
}

#define NUM_FUNCTIONS ((int)(sizeof(functions) / sizeof(functions[0])))

/* Contiguous sticks, in every format. */
START_TEST(test_sfu_dense)
{
	static const uint32_t formats[] = { DL16, FP32, FP16, BF16 };
	uint32_t f, v;

	for (f = 0; f < 4; f++) {
		uint32_t bytes = spyre_fmt_bytes(formats[f]), lanes = 128 / bytes;
		struct spyre_instr *in;

		start();
		in = build_instr(&b, SPYRE_OP_SFU, functions[_i], 2, lanes);
		set_imms(in);
		in->count[0] = 5;
		in->count[1] = 37;
		for (v = 0; v < in->num_views; v++) {
			struct spyre_view *view = build_view(in, v, v ? (v - 1) % OUT : OUT, 0);

			view->format = formats[f];
			view->stride[1] = 128;
			view->stride[0] = 37 * 128;
		}
		check(formats[f]);
	}
}
END_TEST

/* Mixed formats, odd lanes, gaps, broadcast rows and splats. */
START_TEST(test_sfu_strided)
{
	static const uint32_t formats[] = { DL16, FP32, FP16, BF16 };
	static const uint32_t lane_counts[] = { 1, 3, 31, 64, 77, 128 };
	uint32_t n, v;

	for (n = 0; n < 24; n++) {
		uint32_t lanes = lane_counts[n % 6];
		struct spyre_instr *in;

		start();
		in = build_instr(&b, SPYRE_OP_SFU, functions[_i], 3, lanes);
		set_imms(in);
		in->count[0] = 3;
		in->count[1] = 4;
		in->count[2] = 5;
		for (v = 0; v < in->num_views; v++) {
			struct spyre_view *view = build_view(in, v, v ? (v - 1) % OUT : OUT,
							     16 * n);
			uint32_t format = formats[(n + v * (n / 6)) % 4];
			uint32_t bytes = spyre_fmt_bytes(format);

			view->format = format;
			view->stride[2] = lanes * bytes + (n % 3) * bytes;
			view->stride[1] = 5 * view->stride[2];
			view->stride[0] = 4 * view->stride[1] + (n % 2) * bytes;
			if (v && (n + v) % 4 == 1)
				view->lanes = SPYRE_LANES_SPLAT;
			if (v && (n + v) % 5 == 2)
				view->stride[2] = 0;
			if (v && (n + v) % 7 == 3)
				view->stride[0] = 0;
		}
		check(formats[n % 4]);
	}
}
END_TEST

/* The output may be an input, element by element. */
START_TEST(test_sfu_in_place)
{
	struct spyre_instr *in;
	int v;

	start();
	in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_ADD, 1, 64);
	in->count[0] = 100;
	for (v = 0; v < 3; v++)
		build_view(in, v, v == 2 ? 1 : 0, 0)->stride[0] = 128;
	check(DL16);
	start();
	in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_MUL, 1, 64);
	in->count[0] = 100;
	for (v = 0; v < 3; v++)
		build_view(in, v, 0, 0)->stride[0] = 128;
	build_view(in, 2, 0, 0)->lanes = SPYRE_LANES_SPLAT;
	check(DL16);
}
END_TEST

static const uint32_t reductions[] = {
	SPYRE_FUNC_SUM, SPYRE_FUNC_MEAN, SPYRE_FUNC_AMAX, SPYRE_FUNC_AMIN, SPYRE_FUNC_ABSMAX,
	SPYRE_FUNC_EXX2,
};

/* Random data would mostly give NaN, so one group is finite only. */
START_TEST(test_reduce)
{
	static const uint32_t formats[] = { DL16, FP32, FP16, BF16 };
	uint32_t n;

	for (n = 0; n < 48; n++) {
		uint32_t format = formats[n % 4];
		uint32_t lanes = n % 3 ? 128 / spyre_fmt_bytes(format) : 45;
		uint32_t bytes = spyre_fmt_bytes(format);
		struct spyre_view *out, *src;
		struct spyre_instr *in;

		start();
		in = build_instr(&b, SPYRE_OP_REDUCE, reductions[_i], 4, lanes);
		in->count[0] = 3;
		in->count[1] = 1 + n % 7;
		in->count[2] = 2;
		in->count[3] = n < 40 ? 5 : 700;
		in->reduce_mask = n % 5 ? 1 + n % 15 : 0;
		in->flags = n % 2 || !in->reduce_mask || reductions[_i] == SPYRE_FUNC_EXX2 ?
			    SPYRE_INSTR_REDUCE_LANES : 0;
		if (spyre_func_imms(reductions[_i]))
			in->imm[0] = 0x3d4ccccd;
		if (in->flags && n % 4 == 1)
			in->valid = 1 + n % lanes;
		if (in->flags && n % 4 == 3)
			in->valid = lanes;
		out = build_view(in, 0, OUT, 0);
		src = build_view(in, 1, 0, 2 * bytes);
		out->format = n % 6 ? format : FP32;
		src->format = format;
		src->stride[3] = lanes * bytes;
		src->stride[2] = in->count[3] * src->stride[3];
		src->stride[1] = 2 * src->stride[2];
		src->stride[0] = in->count[1] * src->stride[1];
		out->stride[3] = lanes * spyre_fmt_bytes(out->format);
		out->stride[2] = in->count[3] * out->stride[3];
		out->stride[1] = 2 * out->stride[2];
		out->stride[0] = in->count[1] * out->stride[1];
		out->stride[0] = in->reduce_mask & 1 ? 0 : out->stride[0];
		out->stride[1] = in->reduce_mask & 2 ? 0 : out->stride[1];
		out->stride[2] = in->reduce_mask & 4 ? 0 : out->stride[2];
		out->stride[3] = in->reduce_mask & 8 ? 0 : out->stride[3];
		if (n % 11 == 10)
			src->lanes = SPYRE_LANES_SPLAT;
		/* INT16 patterns interpreted in any format are mostly finite. */
		check(n % 2 ? format : FP16);
	}
}
END_TEST

/* Formats of C, A, B; a stick has @lanes columns. */
static struct spyre_instr *add_pt(uint32_t batch, uint32_t m, uint32_t n, uint32_t k,
				  uint32_t lanes, const uint32_t *formats)
{
	struct spyre_instr *in = build_instr(&b, SPYRE_OP_PT, SPYRE_FUNC_NONE, 6, lanes);
	uint32_t bits = spyre_fmt_bits(formats[2]), p = bits == 4 ? 4 : bits == 8 ? 2 : 1;
	uint32_t depth = 1024 / spyre_fmt_bits(formats[1]);
	uint32_t rows = formats[1] == SPYRE_FMT_SENINT4 ? m / 2 : m;
	uint64_t c = lanes * spyre_fmt_bytes(formats[0]), group = lanes * p * bits / 8;
	struct spyre_view *view;

	in->count[1] = batch;
	in->count[3] = m;
	in->count[4] = n / lanes;
	in->count[5] = k;
	view = build_view(in, 0, OUT, 0);
	view->format = formats[0];
	view->stride[1] = c * m * (n / lanes);
	view->stride[4] = c * m;
	view->stride[3] = c;
	view = build_view(in, 1, 0, 0);
	view->format = formats[1];
	view->stride[1] = 128 * rows * (k / depth);
	view->stride[5] = 128 * rows;
	view->stride[3] = 128;
	view = build_view(in, 2, 1, 0);
	view->format = formats[2];
	view->stride[4] = group * (k / p);
	view->stride[5] = group;
	return in;
}

static const uint32_t products[][3] = {
	{ DL16, DL16, DL16 }, { FP32, DL16, DL16 }, { DL16, BF16, DL16 },
	{ FP32, FP32, FP32 }, { FP16, FP16, FP16 }, { BF16, BF16, BF16 },
	{ DL16, E4M3, E4M3 }, { FP32, E5M2, E4M3 }, { E4M3, DL16, E4M3 }, { E5M2, FP32, E5M2 },
	{ INT32, INT8, INT8 }, { DL16, INT8, INT8 }, { INT32, INT4, INT4 },
	{ FP32, INT8, INT4 }, { BF16, INT4, INT8 },
};

#define NUM_PRODUCTS ((int)(sizeof(products) / sizeof(products[0])))

START_TEST(test_pt)
{
	const uint32_t *f = products[_i];
	uint32_t lanes;

	for (lanes = 32; lanes <= 64; lanes += 32) {
		start();
		add_pt(1, 2, 64, 128, lanes, f);
		check(f[1]);
		start();
		add_pt(2, 8, 192, 256, lanes, f);
		check(f[1]);
		start();
		add_pt(1, 14, lanes, 384, lanes, f);
		check(f[1]);
	}
	start();
	/* More than one block of rows, of sticks and of depth. */
	add_pt(1, 270, 64, 128, 64, f);
	check(FP16);
	start();
	add_pt(1, 2, 576, 384, 64, f);
	check(FP16);
}
END_TEST

/* Accumulates: the second product starts with the result of the first. */
START_TEST(test_pt_accumulate)
{
	static const uint32_t sums[][3] = {
		{ FP32, DL16, DL16 }, { FP32, BF16, FP32 }, { FP32, E4M3, E5M2 },
		{ INT32, INT8, INT8 }, { INT32, INT4, INT4 }, { INT32, INT4, INT8 },
	};
	uint32_t i;

	start();
	for (i = 0; i < 2; i++)
		add_pt(2, 4, 64, 2176, 32, sums[_i])->flags = SPYRE_INSTR_ACCUMULATE;
	check(sums[_i][1]);
}
END_TEST

/* -128 * -128 over the longest permitted K: 2^14 * 65,408 stays below 2^31. */
START_TEST(test_pt_largest_sum)
{
	static const uint32_t f[3] = { INT32, INT8, INT8 };
	const struct spyre_unit *const *unit;
	struct spyre_program prog;
	struct memory m;
	struct test_host host;
	size_t size;
	void *image;
	int32_t sum;

	start();
	add_pt(1, 1, 32, 65408, 32, f);
	image = build_image(&b, &size);
	build_seal(image, size, 1, &prog);
	for (unit = test_units(); *unit; unit++) {
		struct spyre_exec x = { .host = &host.host, .prog = &prog };

		test_host_init(&host, *unit, 1);
		memory_init(&m, &prog, INT8);
		memset(m.operand[0], 0x80, m.op[0].bytes);
		memset(m.operand[1], 0x80, m.op[1].bytes);
		x.operand = m.operand;
		x.lx = m.lx_of;
		ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_NONE);
		sum = get_le(m.operand[OUT], 4);
		ck_assert_int_eq(sum, 65408 * 16384);
		memory_done(&m, &prog);
		test_host_done(&host);
	}
	free(image);
}
END_TEST

START_TEST(test_move_and_restick)
{
	static const uint32_t formats[] = { DL16, FP32, SPYRE_FMT_SENINT8, SPYRE_FMT_IEEE_INT64 };
	struct spyre_instr *in;
	uint32_t n;

	for (n = 0; n < 16; n++) {
		uint32_t bytes = spyre_fmt_bytes(formats[n % 4]);
		uint32_t lanes = n < 8 ? 128 / bytes : 11;
		uint32_t v;

		start();
		in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 2, lanes);
		in->count[0] = 9;
		in->count[1] = 70;
		for (v = 0; v < 2; v++) {
			struct spyre_view *view = build_view(in, v, v ? 0 : OUT, 0);

			view->format = formats[n % 4];
			view->stride[1] = lanes * bytes + (n & 1 && v ? bytes : 0);
			view->stride[0] = 70 * view->stride[1];
		}
		check(DL16);
	}
	start();
	in = build_instr(&b, SPYRE_OP_RESTICK, SPYRE_FUNC_NONE, 6, 64);
	in->count[0] = 3;
	in->count[3] = 2;
	in->count[4] = 64;
	in->count[5] = 64;
	build_view(in, 0, OUT, 0)->stride[0] = 2 * 8192;
	build_view(in, 0, OUT, 0)->stride[3] = 8192;
	build_view(in, 0, OUT, 0)->stride[5] = 128;
	build_view(in, 1, 0, 0)->stride[0] = 2 * 64 * 130;
	build_view(in, 1, 0, 0)->stride[3] = 64 * 130;
	build_view(in, 1, 0, 0)->stride[4] = 130;
	check(DL16);
}
END_TEST

/* Loads to LX, computes there, exchanges over the ring, stores; in two loops. */
START_TEST(test_phases)
{
	struct spyre_instr *in;
	struct spyre_view *view;
	uint32_t core;

	build_start(&b, 6, 4096, 8);
	build_loop(&b, 3);
	build_loop(&b, 4);
	build_phase(&b);
	for (core = 0; core < 6; core++) {
		build_stream(&b, core);
		in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 1, 64);
		in->count[0] = 4;
		view = build_view(in, 0, SPYRE_VIEW_LX, 128);
		view->stride[0] = 128;
		view = build_view(in, 1, 0, core * 512);
		view->stride[0] = 128;
		view->loop_stride[0] = 6 * 512 * 4;
		view->loop_stride[1] = 6 * 512;
		/* Sums over the iterations: LX keeps its contents for the whole program. */
		in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_ADD, 1, 64);
		in->count[0] = 4;
		build_view(in, 0, SPYRE_VIEW_LX, 1024)->stride[0] = 128;
		build_view(in, 1, SPYRE_VIEW_LX, 1024)->stride[0] = 128;
		build_view(in, 2, SPYRE_VIEW_LX, 128)->stride[0] = 128;
	}
	build_phase(&b);
	for (core = 0; core < 6; core++) {
		build_stream(&b, core);
		in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_SUB, 1, 64);
		in->count[0] = 4;
		view = build_view(in, 0, OUT, core * 512);
		view->stride[0] = 128;
		view->loop_stride[0] = 6 * 512 * 4;
		view->loop_stride[1] = 6 * 512;
		build_view(in, 1, SPYRE_VIEW_RING | (core + 1) % 6, 128)->stride[0] = 128;
		build_view(in, 2, SPYRE_VIEW_LX, 1024)->stride[0] = 128;
	}
	build_end(&b);
	build_end(&b);
	check(DL16);
}
END_TEST

/* Runs the builder's program; it is told to stop after @polls polls, of which *left remain. */
static enum spyre_stop run_for(long polls, long *left)
{
	struct spyre_program prog;
	struct test_host host;
	struct memory m;
	struct spyre_exec x = { .host = &host.host, .prog = &prog };
	enum spyre_stop stop;
	size_t size;
	void *image = build_image(&b, &size);

	build_seal(image, size, 32, &prog);
	memory_init(&m, &prog, DL16);
	test_host_init(&host, test_units()[0], 1);
	host.polls_left = polls;
	x.operand = m.operand;
	x.lx = m.lx_of;
	stop = spyre_card_exec(&x, &host.self);
	*left = host.polls_left;
	test_host_done(&host);
	memory_done(&m, &prog);
	free(image);
	return stop;
}

/* Long work that moves little data still polls for a stop. */
START_TEST(test_polls)
{
	static const uint32_t kinds[][2] = {
		{ SPYRE_OP_MOVE, 0 }, { SPYRE_OP_SFU, SPYRE_FUNC_NEG },
		{ SPYRE_OP_REDUCE, SPYRE_FUNC_SUM }, { SPYRE_OP_TOPK, SPYRE_FUNC_TOPK_VALUE },
		{ SPYRE_OP_REDUCE, SPYRE_FUNC_MULSUM },
	};
	struct spyre_instr *in;
	long left;
	int d;

	start();
	in = build_instr(&b, kinds[_i][0], kinds[_i][1], 6, 2);
	for (d = 0; d < 6; d++)
		in->count[d] = 40;
	build_view(in, 0, OUT, 0);
	/* Points that cannot be merged, and a million points for each search. */
	build_view(in, 1, 0, 0)->stride[1] = 2;
	build_view(in, 1, 0, 0)->stride[3] = 2;
	if (kinds[_i][0] == SPYRE_OP_REDUCE)
		in->reduce_mask = 0x15;
	if (kinds[_i][0] == SPYRE_OP_TOPK) {
		in->reduce_mask = 0x15;
		in->imm[1] = 2;
	}
	ck_assert_int_eq(run_for(50, &left), SPYRE_STOP_CANCELLED);
	/* It stops at the poll that requests it. */
	ck_assert_int_ge(left, -3);
}
END_TEST

/*
 * Points of two lanes take as long as whole tiles: 64,000 of them take some 500
 * polls of the scalar unit, where their 128,000 lanes alone would take 16.
 */
START_TEST(test_polls_of_small_points)
{
	static const uint32_t kinds[][2] = {
		{ SPYRE_OP_SFU, SPYRE_FUNC_FLOOR }, { SPYRE_OP_REDUCE, SPYRE_FUNC_SUM },
		{ SPYRE_OP_TOPK, SPYRE_FUNC_TOPK_VALUE },
	};
	struct spyre_instr *in;
	long left;
	int d;

	start();
	in = build_instr(&b, kinds[_i][0], kinds[_i][1], 3, 2);
	for (d = 0; d < 3; d++)
		in->count[d] = 40;
	in->reduce_mask = _i ? 6 : 0;
	in->imm[1] = kinds[_i][0] == SPYRE_OP_TOPK;
	build_view(in, 0, OUT, 0)->format = BF16;
	build_view(in, 1, 0, 0)->format = BF16;
	build_view(in, 1, 0, 0)->stride[1] = 2;
	ck_assert_str_eq(spyre_unit_name(test_units()[0]), "scalar");
	ck_assert_int_eq(run_for(1000, &left), SPYRE_STOP_NONE);
	ck_assert_int_le(left, 600);
}
END_TEST

/*
 * Four views to convert take longer than the function itself: 1,600 points take 67
 * polls of the scalar unit, where the functions alone take 25 or fewer.
 */
START_TEST(test_polls_of_conversions)
{
	static const uint32_t kinds[][3] = {
		{ SPYRE_OP_SFU, SPYRE_FUNC_WHERE, SPYRE_FMT_SEN143_FP8 },
		{ SPYRE_OP_INT, SPYRE_FUNC_INT_WHERE, SPYRE_FMT_SENINT8 },
	};
	struct spyre_instr *in;
	long left;
	int v;

	start();
	in = build_instr(&b, kinds[_i][0], kinds[_i][1], 2, 64);
	in->count[0] = in->count[1] = 40;
	for (v = 0; v < 4; v++)
		build_view(in, v, v ? 0 : OUT, 0)->format = (uint8_t)kinds[_i][2];
	ck_assert_str_eq(spyre_unit_name(test_units()[0]), "scalar");
	ck_assert_int_eq(run_for(1000, &left), SPYRE_STOP_NONE);
	ck_assert_int_le(left, 940);
}
END_TEST

/* Only the first element of a reduction of 2^31 is valid: the others are not walked. */
START_TEST(test_valid_ends_walk)
{
	struct spyre_instr *in;
	long left;
	int d;

	start();
	in = build_instr(&b, SPYRE_OP_REDUCE, SPYRE_FUNC_SUM, 5, 64);
	for (d = 0; d < 5; d++)
		in->count[d] = 32;
	in->reduce_mask = 0x1f;
	in->flags = SPYRE_INSTR_REDUCE_LANES;
	in->valid = 1;
	build_view(in, 0, OUT, 0);
	build_view(in, 1, 0, 0)->stride[2] = 2;
	ck_assert_int_eq(run_for(20, &left), SPYRE_STOP_NONE);
}
END_TEST

START_TEST(test_cancel)
{
	struct spyre_program prog;
	struct spyre_exec x;
	struct memory m;
	struct test_host host;
	struct spyre_instr *in;
	size_t size;
	void *image;
	int v;

	build_start(&b, 1, 0, 8);
	build_loop(&b, 60000);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_ADD, 1, 64);
	in->count[0] = 1000;
	for (v = 0; v < 3; v++)
		build_view(in, v, v ? v - 1 : OUT, 0)->stride[0] = 128;
	build_end(&b);
	image = build_image(&b, &size);
	build_seal(image, size, 32, &prog);
	memory_init(&m, &prog, DL16);
	test_host_init(&host, test_units()[0], 1);
	host.polls_left = 20;
	x = (struct spyre_exec){ .host = &host.host, .prog = &prog, .operand = m.operand };
	ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_CANCELLED);
	ck_assert_int_ge(host.polls_left, -3);
	test_host_done(&host);
	memory_done(&m, &prog);
	free(image);
}
END_TEST

/* 0.1 and 0.2 in literal codes, so that not everything depends on one reference. */
START_TEST(test_known_results)
{
	struct spyre_program prog;
	struct test_host host;
	struct spyre_instr *in;
	uint16_t a[64], c[64], out[64];
	uint8_t *operand[8] = { (uint8_t *)a, (uint8_t *)c, NULL, NULL, (uint8_t *)out };
	struct spyre_exec x = { .host = &host.host, .prog = &prog, .operand = operand };
	size_t size;
	void *image;
	int i;

	start();
	in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_ADD, 0, 64);
	for (i = 0; i < 3; i++)
		build_view(in, i, i ? i - 1 : OUT, 0);
	image = build_image(&b, &size);
	build_seal(image, size, 32, &prog);
	for (i = 0; i < 64; i++) {
		a[i] = 31 << 9;			/* 1.0 */
		c[i] = 21 << 9;			/* 2^-10: half an ulp of 1.0 */
	}
	c[1] = 20 << 9;
	c[2] = 0x8000 | 31 << 9;
	c[3] = SPYRE_DL16_NAN;
	c[4] = SPYRE_DL16_INF;
	c[5] = 0x8000 | SPYRE_DL16_INF;
	a[6] = SPYRE_DL16_INF;
	c[6] = 0x8000 | SPYRE_DL16_INF;
	a[7] = c[7] = 62 << 9 | 510;		/* the sum reaches NaN's code */
	a[8] = c[8] = 0x8000 | 62 << 9 | 509;	/* or the largest number's */
	order_le(a, 64, 2);
	order_le(c, 64, 2);
	test_host_init(&host, test_units()[_i], 1);
	ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_NONE);
	order_le(out, 64, 2);
	ck_assert_uint_eq(out[0], 31 << 9 | 1);	/* ties go away from zero */
	ck_assert_uint_eq(out[1], 31 << 9);
	ck_assert_uint_eq(out[2], 0);
	ck_assert_uint_eq(out[3], SPYRE_DL16_NAN);
	ck_assert_uint_eq(out[4], SPYRE_DL16_INF);
	ck_assert_uint_eq(out[5], 0x8000 | SPYRE_DL16_INF);
	ck_assert_uint_eq(out[6], SPYRE_DL16_NAN);
	ck_assert_uint_eq(out[7], SPYRE_DL16_INF);
	ck_assert_uint_eq(out[8], 0x8000 | 63 << 9 | 509);
	test_host_done(&host);
	free(image);
}
END_TEST

START_TEST(test_linear)
{
	static const uint8_t pattern[16] = { 1, 2, 3, 4, 5, 6, 7, 8,
					     9, 10, 11, 12, 13, 14, 15, 16 };
	static const size_t sizes[] = { 0, 1, 15, 16, 4097, 1 << 20, (3 << 20) + 5 };
	struct test_host host;
	struct guarded g, from;
	uint64_t seed = 5;
	uint32_t n, i;
	size_t k;

	test_host_init(&host, test_units()[0], 2);
	for (n = 0; n < 7; n++) {
		guarded_alloc(&g, sizes[n]);
		guarded_alloc(&from, sizes[n]);
		for (i = 1; i <= 16; i *= 2) {
			ck_assert_int_eq(spyre_card_fill(&host.host, NULL, &host.self, g.p,
							 sizes[n],
							 pattern, i), SPYRE_STOP_NONE);
			for (k = 0; k < sizes[n]; k++)
				expect(g.p[k] == pattern[k % i], "byte %zu of %u", k, i);
		}
		rng_fill(&seed, from.p, sizes[n], DL16);
		spyre_card_copy(&host.host, NULL, &host.self, g.p, from.p, sizes[n]);
		ck_assert(!memcmp(g.p, from.p, sizes[n]));
		if (sizes[n] > 100) {
			spyre_card_copy(&host.host, NULL, &host.self, g.p + 37, g.p, sizes[n] - 37);
			ck_assert(!memcmp(g.p + 37, from.p, sizes[n] - 37));
			spyre_card_copy(&host.host, NULL, &host.self, g.p, g.p + 37, sizes[n] - 37);
			ck_assert(!memcmp(g.p, from.p, sizes[n] - 37));
		}
		ck_assert(guarded_intact(&g) && guarded_intact(&from));
		guarded_free(&g);
		guarded_free(&from);
	}
	test_host_done(&host);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_exec");
	TCase *tc = tcase_create("exec");
	int units = test_units_report();

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_sfu_dense, 0, NUM_FUNCTIONS);
	tcase_add_loop_test(tc, test_sfu_strided, 0, NUM_FUNCTIONS);
	tcase_add_test(tc, test_sfu_in_place);
	tcase_add_loop_test(tc, test_reduce, 0, 6);
	tcase_add_loop_test(tc, test_pt, 0, NUM_PRODUCTS);
	tcase_add_loop_test(tc, test_pt_accumulate, 0, 6);
	tcase_add_test(tc, test_pt_largest_sum);
	tcase_add_test(tc, test_move_and_restick);
	tcase_add_test(tc, test_phases);
	tcase_add_test(tc, test_cancel);
	tcase_add_loop_test(tc, test_polls, 0, 5);
	tcase_add_loop_test(tc, test_polls_of_small_points, 0, 3);
	tcase_add_loop_test(tc, test_polls_of_conversions, 0, 2);
	tcase_add_test(tc, test_valid_ends_walk);
	tcase_add_loop_test(tc, test_known_results, 0, units);
	tcase_add_test(tc, test_linear);
	suite_add_tcase(suite, tc);
	return suite_run_many(suite);
}
