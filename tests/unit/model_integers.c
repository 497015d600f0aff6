// SPDX-License-Identifier: MIT
/*
 * INT and the integer reductions: results of plain C, equal bits on every unit, the
 * fields that the verifier refuses, modelled cost, and the polls for a stop.
 */
#include "model_reference.h"
#include "model_util.h"
#include "suite.h"
#include "tests/order.h"

#include "model/simd/unit.h"
#include "model/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define F(name) SPYRE_FUNC_INT_##name

static const uint32_t functions[] = {
	F(IDENTITY), F(NEG), F(ABS), F(NOT), F(ADD), F(SUB), F(MUL), F(MAX), F(MIN), F(EQ), F(NE),
	F(GT), F(LT), F(GE), F(LE), F(AND), F(OR), F(XOR), F(SHL), F(SHR), F(FLOORDIV),
	F(REMAINDER), F(TRUNCDIV), F(FMOD), F(WHERE), F(CLIP),
};

#define FUNCTIONS ((int)(sizeof(functions) / sizeof(functions[0])))

static const uint32_t formats[] = {
	SPYRE_FMT_IEEE_INT32, SPYRE_FMT_SENINT16, SPYRE_FMT_SENINT8, SPYRE_FMT_SENINT4,
	SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP16, SPYRE_FMT_BFLOAT16,
	SPYRE_FMT_SEN143_FP8, SPYRE_FMT_SEN152_FP8,
};

#define FORMATS 10

static const int32_t edges[] = {
	0, 1, -1, 2, -2, 3, 5, -7, 31, 32, 33, -32, 127, -128, 255, 32767, -32768, 65535, 65536,
	46341, -46341, 0x7ffffffe, INT32_MAX, INT32_MIN, INT32_MIN + 1, 0x55555555, 0x40000000,
	-0x40000000, 1000000007, -1000000007, 16777217, -16777217,
};

#define EDGES 32
#define PAIRS (EDGES * EDGES)

/* The bounds of CLIP. */
#define LOW (-40000)
#define HIGH 16777217

/* Literal results, so that not everything depends on the reference. */
static const struct {
	uint32_t func;
	int32_t a, b, want;
} known[] = {
	{ F(NEG), INT32_MIN, 0, INT32_MIN }, { F(ABS), INT32_MIN, 0, INT32_MIN },
	{ F(ABS), -5, 0, 5 }, { F(CLIP), 16777218, 0, HIGH }, { F(CLIP), -40001, 0, LOW },
	{ F(CLIP), -40000, 0, -40000 }, { F(CLIP), 16777216, 0, 16777216 },
	{ F(NOT), 0, 0, -1 }, { F(NOT), INT32_MAX, 0, INT32_MIN },
	{ F(ADD), INT32_MAX, 1, INT32_MIN }, { F(ADD), 16777217, 1, 16777218 },
	{ F(SUB), INT32_MIN, 1, INT32_MAX }, { F(SUB), 0, INT32_MIN, INT32_MIN },
	{ F(MUL), 65536, 65536, 0 }, { F(MUL), 46341, 46341, -2147479015 },
	{ F(MUL), INT32_MIN, -1, INT32_MIN }, { F(MUL), 1000000007, 3, -1294967275 },
	{ F(MAX), 16777217, 16777216, 16777217 }, { F(MIN), -1, 1, -1 },
	{ F(EQ), 16777217, 16777216, 0 }, { F(NE), 16777217, 16777216, 1 },
	{ F(GT), 16777217, 16777216, 1 }, { F(LT), INT32_MIN, INT32_MAX, 1 },
	{ F(GE), -1, 0, 0 }, { F(LE), 7, 7, 1 },
	{ F(AND), -2, 7, 6 }, { F(OR), INT32_MIN, 1, INT32_MIN + 1 }, { F(XOR), -1, 5, -6 },
	{ F(SHL), 1, 31, INT32_MIN }, { F(SHL), 1, 32, 0 }, { F(SHL), 1, -1, 0 },
	{ F(SHL), 3, INT32_MIN, 0 }, { F(SHR), INT32_MIN, 31, -1 }, { F(SHR), -8, 1, -4 },
	{ F(SHR), -8, 32, -1 }, { F(SHR), 8, 32, 0 }, { F(SHR), -8, -1, -1 },
	{ F(SHR), 8, -5, 0 },
	{ F(FLOORDIV), 7, -2, -4 }, { F(FLOORDIV), -7, 2, -4 }, { F(FLOORDIV), -7, -2, 3 },
	{ F(FLOORDIV), INT32_MIN, -1, INT32_MIN }, { F(FLOORDIV), 5, 0, -1 },
	{ F(FLOORDIV), 0, 0, -1 }, { F(FLOORDIV), INT32_MIN, 1, INT32_MIN },
	{ F(FLOORDIV), INT32_MAX, INT32_MIN, -1 },
	{ F(REMAINDER), 7, -2, -1 }, { F(REMAINDER), -7, 2, 1 }, { F(REMAINDER), -7, -2, -1 },
	{ F(REMAINDER), INT32_MIN, -1, 0 }, { F(REMAINDER), 5, 0, 5 },
	{ F(REMAINDER), INT32_MIN, 0, INT32_MIN }, { F(REMAINDER), INT32_MAX, INT32_MIN, -1 },
	{ F(TRUNCDIV), 7, -2, -3 }, { F(TRUNCDIV), -7, 2, -3 }, { F(TRUNCDIV), 5, 0, -1 },
	{ F(TRUNCDIV), INT32_MIN, -1, INT32_MIN }, { F(TRUNCDIV), -5, 0, -1 },
	{ F(FMOD), 7, -2, 1 }, { F(FMOD), -7, 2, -1 }, { F(FMOD), INT32_MIN, -1, 0 },
	{ F(FMOD), -5, 0, -5 },
};

#define KNOWN ((int)(sizeof(known) / sizeof(known[0])))

/* Computes @n numbers of the host, which device memory holds in its own byte order. */
static void apply(const struct spyre_unit *unit, uint32_t func, int32_t *out, const int32_t *a,
		  const int32_t *b, const int32_t *c, uint32_t n)
{
	int32_t *in = malloc(3 * n * sizeof(*in));
	struct spyre_sfu_run run = {
		.func = func, .lanes = n, .points = 1, .imm = { LOW, HIGH },
		.v = {
			{ .p = (uint8_t *)out, .format = SPYRE_FMT_IEEE_INT32 },
			{ .p = (uint8_t *)in, .format = SPYRE_FMT_IEEE_INT32 },
			{ .p = (uint8_t *)(in + n), .format = SPYRE_FMT_IEEE_INT32 },
			{ .p = (uint8_t *)(in + 2 * n), .format = SPYRE_FMT_IEEE_INT32 },
		},
	};

	memcpy(in, a, n * sizeof(*in));
	memcpy(in + n, b, n * sizeof(*in));
	memcpy(in + 2 * n, c, n * sizeof(*in));
	order_le(in, 3 * n, sizeof(*in));
	unit->sfu(&run);
	order_le(out, n, sizeof(*out));
	free(in);
}

START_TEST(test_known)
{
	const struct spyre_unit *const *unit;

	for (unit = test_units(); *unit; unit++) {
		int32_t got;

		apply(*unit, known[_i].func, &got, &known[_i].a, &known[_i].b, &known[_i].b, 1);
		expect(got == known[_i].want, "%s: function %u of %d, %d: %d, want %d",
		       spyre_unit_name(*unit), known[_i].func, known[_i].a, known[_i].b, got,
		       known[_i].want);
	}
}
END_TEST

static int32_t any_integer(uint64_t *seed)
{
	uint32_t bits = (uint32_t)rng_next(seed);

	return rng_below(seed, 4) ? (int32_t)bits >> rng_below(seed, 32) :
				    edges[rng_below(seed, EDGES)];
}

/* All pairs of edges, and numbers of all magnitudes. */
START_TEST(test_functions)
{
	static int32_t a[4 * PAIRS], b[4 * PAIRS], c[4 * PAIRS], got[4 * PAIRS];
	const struct spyre_unit *const *unit;
	uint64_t seed = 9000 + functions[_i];
	uint32_t i;

	for (i = 0; i < 4 * PAIRS; i++) {
		a[i] = i < PAIRS ? edges[i / EDGES] : any_integer(&seed);
		b[i] = i < PAIRS ? edges[i % EDGES] : any_integer(&seed);
		c[i] = any_integer(&seed);
	}
	for (unit = test_units(); *unit; unit++) {
		apply(*unit, functions[_i], got, a, b, c, 4 * PAIRS);
		for (i = 0; i < 4 * PAIRS; i++) {
			bool clip = functions[_i] == F(CLIP);
			int32_t x[3] = { a[i], clip ? LOW : b[i], clip ? HIGH : c[i] };
			int32_t want = reference_apply_integer(functions[_i], x);

			expect(got[i] == want, "%s: function %u of %d, %d, %d: %d, want %d",
			       spyre_unit_name(*unit), functions[_i], a[i], b[i], c[i], got[i],
			       want);
		}
	}
}
END_TEST

#define MAX_LANES 192
#define POINTS 3
#define ROW 1024
#define BYTES (POINTS * ROW)
#define GUARD 0x5a

static void reference_run(const struct spyre_sfu_run *run)
{
	uint32_t point, lane, i;

	for (point = 0; point < run->points; point++) {
		int32_t r[MAX_LANES];

		for (lane = 0; lane < run->lanes; lane++) {
			int32_t x[3] = { 0, (int32_t)run->imm[0], (int32_t)run->imm[1] };

			for (i = 0; i < spyre_func_inputs(run->func); i++) {
				const struct spyre_span *v = &run->v[i + 1];

				x[i] = reference_load_integer(v->format, v->p + point * v->stride,
							      v->splat ? 0 : lane);
			}
			r[lane] = reference_apply_integer(run->func, x);
		}
		for (lane = 0; lane < run->lanes; lane++)
			reference_store_integer(run->v[0].format,
						run->v[0].p + point * run->v[0].stride, lane,
						r[lane]);
	}
}

static void check_run(struct spyre_sfu_run *run, uint64_t *seed)
{
	static uint8_t memory[4][BYTES], want[BYTES];
	const struct spyre_unit *const *unit;
	uint32_t i;

	for (i = 0; i <= spyre_func_inputs(run->func); i++) {
		run->v[i].p = memory[i];
		run->v[i].stride = ROW;
		rng_fill(seed, memory[i], BYTES, run->v[i].format);
	}
	memset(want, GUARD, BYTES);
	run->v[0].p = want;
	reference_run(run);
	run->v[0].p = memory[0];
	for (unit = test_units(); *unit; unit++) {
		memset(memory[0], GUARD, BYTES);
		(*unit)->sfu(run);
		for (i = 0; i < BYTES; i++)
			expect(memory[0][i] == want[i],
			       "%s: function %u of %u lanes, formats %u %u: byte %u is %02x, want %02x",
			       spyre_unit_name(*unit), run->func, run->lanes, run->v[0].format,
			       run->v[1].format, i, memory[0][i], want[i]);
	}
}

/* Every format of each view, odd and even numbers of lanes, splats. */
START_TEST(test_formats)
{
	uint64_t seed = 9100 + functions[_i];
	uint32_t out, in, i;

	for (out = 0; out < FORMATS; out++) {
		for (in = 0; in < FORMATS; in++) {
			struct spyre_sfu_run run = {
				.func = functions[_i], .lanes = 1 + rng_below(&seed, MAX_LANES),
				.points = POINTS, .imm = { LOW, HIGH },
			};

			for (i = 0; i <= spyre_func_inputs(run.func); i++) {
				run.v[i].format = formats[i ? (in + i * i * out) % FORMATS : out];
				run.v[i].splat = i && rng_below(&seed, 4) == 0;
				if (run.v[i].format == SPYRE_FMT_SENINT4)
					run.lanes = (run.lanes + 1) / 2 * 2;
			}
			run.lanes = run.lanes > MAX_LANES ? MAX_LANES : run.lanes;
			check_run(&run, &seed);
		}
	}
}
END_TEST

static const uint32_t reductions[] = { F(SUM), F(AMAX), F(AMIN) };

static void check_reduction(const struct spyre_reduce_run *run, uint32_t to, bool across)
{
	static uint8_t acc[SPYRE_ACC_BYTES] __attribute__((aligned(64)));
	const struct spyre_unit *const *unit;
	int32_t sum[128], all = reference_first_integer(run->func);
	uint8_t want[512], got[512];
	uint32_t point, lane;

	memset(want, GUARD, sizeof(want));
	for (lane = 0; lane < run->lanes; lane++) {
		sum[lane] = reference_first_integer(run->func);
		for (point = 0; point < 2 * run->points; point++)
			sum[lane] = reference_combine_integer(run->func, sum[lane],
				reference_load_integer(run->in.format, run->in.p +
						       point / 2 * run->in.stride,
						       run->in.splat ? 0 : lane));
		all = reference_combine_integer(run->func, all, sum[lane]);
	}
	for (lane = 0; lane < run->lanes; lane++)
		reference_store_integer(to, want, lane, across ? all : sum[lane]);
	for (unit = test_units(); *unit; unit++) {
		struct spyre_reduce_run part = *run;
		struct spyre_reduce_end end = {
			.func = run->func, .lanes = run->lanes, .across = across, .out = got,
			.format = to, .acc = acc,
		};

		memset(got, GUARD, sizeof(got));
		part.acc = acc;
		(*unit)->reduce_begin(run->func, acc);
		(*unit)->reduce(&part);
		(*unit)->reduce(&part);
		(*unit)->reduce_end(&end);
		for (lane = 0; lane < sizeof(got); lane++)
			expect(got[lane] == want[lane],
			       "%s: reduction %u of %u lanes%s, format %u to %u: byte %u is %02x, want %02x",
			       spyre_unit_name(*unit), run->func, run->lanes,
			       across ? " across" : "", run->in.format, to, lane, got[lane],
			       want[lane]);
	}
}

START_TEST(test_reductions)
{
	static uint8_t in[BYTES];
	uint64_t seed = 9200 + reductions[_i];
	uint32_t from, to, n;

	for (from = 0; from < FORMATS; from++) {
		for (to = 0; to < FORMATS; to++) {
			for (n = 0; n < 6; n++) {
				struct spyre_reduce_run run = {
					.func = reductions[_i], .rows = 1, .points = 1 + n % POINTS,
					.lanes = n == 5 ? 128 : 2 * (1 + rng_below(&seed, 64)),
					.in = { .p = in, .stride = ROW, .format = formats[from],
						.splat = rng_below(&seed, 5) == 0 },
				};

				if (formats[from] != SPYRE_FMT_SENINT4 &&
				    formats[to] != SPYRE_FMT_SENINT4 && n % 2)
					run.lanes -= run.lanes > 1;
				rng_fill(&seed, in, BYTES, formats[from]);
				check_reduction(&run, formats[to], n % 2 || n == 4);
			}
		}
	}
}
END_TEST

static struct builder b;

/* Operand 0 is written; an INT of three inputs and a reduction of two dims read 1 to 3. */
static void *good(bool reduce, size_t *size)
{
	struct spyre_program prog;
	struct spyre_instr *in;
	void *image;
	uint32_t v;

	build_start(&b, 1, 0, 4);
	build_phase(&b);
	build_stream(&b, 0);
	in = reduce ? build_instr(&b, SPYRE_OP_REDUCE, F(SUM), 2, 32) :
		      build_instr(&b, SPYRE_OP_INT, F(WHERE), 2, 32);
	in->count[0] = 2;
	in->count[1] = 3;
	if (reduce) {
		in->reduce_mask = 2;
		in->flags = SPYRE_INSTR_REDUCE_LANES;
		in->valid = 90;
	}
	for (v = 0; v < in->num_views; v++) {
		struct spyre_view *view = build_view(in, v, v, 0);

		view->format = SPYRE_FMT_IEEE_INT32;
		view->stride[0] = 384;
		view->stride[1] = v || !reduce ? 128 : 0;
	}
	image = build_image(&b, size);
	build_seal(image, *size, 1, &prog);
	return image;
}

/* A fresh program of one instruction with one field changed. */
#define BAD(reduce, field, new_value, reason)					\
	do {									\
		size_t bad_size;						\
		struct spyre_prog_header *h = good(reduce, &bad_size);		\
		struct spyre_prog_operand *op = (void *)(h + 1);		\
		struct spyre_instr *in = (void *)((char *)(op + 4) + 16 + 16);	\
		struct spyre_view *view = (void *)(in + 1);			\
		struct spyre_verify_error err;					\
		struct spyre_program prog;					\
										\
		(void)view;							\
		ck_assert_int_eq(spyre_program_verify(h, bad_size, 1, &prog, &err), 0); \
		field = new_value;						\
		ck_assert_int_eq(spyre_program_verify(h, bad_size, 1, &prog, &err), -EINVAL); \
		ck_assert_msg(err.stop == SPYRE_STOP_##reason,			\
			      #field " = " #new_value ": %s, value %llu limit %llu", \
			      spyre_stop_name(err.stop), (unsigned long long)err.value, \
			      (unsigned long long)err.limit);			\
		free(h);							\
	} while (0)

START_TEST(test_refused)
{
	BAD(false, in->opcode, SPYRE_OP_SFU, BAD_FUNC);
	BAD(false, in->opcode, SPYRE_OP_INT + 1, BAD_OPCODE);
	BAD(false, in->func, SPYRE_FUNC_ADD, BAD_FUNC);
	BAD(false, in->func, F(SUM), BAD_FUNC);
	BAD(false, in->func, F(IDENTITY) - 1, BAD_FUNC);
	BAD(false, in->func, F(CLIP) + 1, BAD_FUNC);
	BAD(false, in->func, F(FMOD) + 1, BAD_FUNC);
	BAD(false, in->func, F(WHERE) + 1, BAD_FUNC);
	BAD(false, in->func, F(ADD), BAD_SHAPE);
	BAD(false, in->num_views, 3, BAD_SHAPE);
	BAD(false, in->num_dims, 7, BAD_SHAPE);
	BAD(false, in->count[1], 0, BAD_SHAPE);
	BAD(false, in->count[1], 4, EXTENT);
	BAD(false, in->lanes, 129, BAD_SHAPE);
	BAD(false, in->lanes, 33, EXTENT);
	BAD(false, in->imm[0], 1, BAD_SHAPE);
	BAD(false, in->imm[3], 1, BAD_SHAPE);
	BAD(false, in->flags, SPYRE_INSTR_REDUCE_LANES, BAD_SHAPE);
	BAD(false, in->reduce_mask, 1, BAD_SHAPE);
	BAD(false, in->valid, 1, BAD_SHAPE);
	BAD(false, in->reserved, 1, BAD_SHAPE);
	BAD(false, view[0].format, SPYRE_FMT_SENUINT32, BAD_FORMAT);
	BAD(false, view[1].format, SPYRE_FMT_SENUINT32, BAD_FORMAT);
	BAD(false, view[3].format, SPYRE_FMT_IEEE_INT64, BAD_FORMAT);
	BAD(false, view[2].format, SPYRE_FMT_BOOL, BAD_FORMAT);
	BAD(false, view[2].format, SPYRE_FMT_UINT8, BAD_FORMAT);
	BAD(false, view[1].format, SPYRE_FMT_SENINT8, EXTENT);
	BAD(false, view[0].lanes, SPYRE_LANES_SPLAT, BAD_VIEW);
	BAD(false, view[1].lanes, SPYRE_LANES_SPLAT, EXTENT);
	BAD(false, view[2].offset, 2, BAD_VIEW);
	BAD(false, view[2].stride[1], 126, BAD_VIEW);
	BAD(false, view[2].operand, 4, BAD_VIEW);
	BAD(false, view[0].operand, SPYRE_VIEW_LX, LX_OVERFLOW);
	BAD(false, op[1].flags, SPYRE_OPERAND_WRITE, ACCESS);
}
END_TEST

START_TEST(test_refused_reductions)
{
	BAD(true, in->opcode, SPYRE_OP_INT, BAD_FUNC);
	BAD(true, in->func, F(AMIN) + 1, BAD_FUNC);
	BAD(true, in->func, F(SUM) - 1, BAD_FUNC);
	BAD(true, in->func, F(ADD), BAD_FUNC);
	BAD(true, in->imm[0], 1, BAD_SHAPE);
	BAD(true, in->valid, 97, BAD_SHAPE);
	BAD(true, in->flags, 0, BAD_SHAPE);
	BAD(true, in->reduce_mask, 1, BAD_VIEW);
	BAD(true, view[0].format, SPYRE_FMT_SENUINT32, BAD_FORMAT);
	BAD(true, view[1].format, SPYRE_FMT_SENUINT32, BAD_FORMAT);
	BAD(true, view[1].format, SPYRE_FMT_IEEE_INT64, BAD_FORMAT);
	BAD(true, view[0].stride[1], 128, BAD_VIEW);
}
END_TEST

/* A stick of 32 integers is half a cycle, of a division a whole one. */
START_TEST(test_costs)
{
	static const struct { uint32_t func; uint64_t beats; } want[] = {
		{ F(ADD), 1 }, { F(SHR), 1 }, { F(FLOORDIV), 2 }, { F(REMAINDER), 2 },
		{ F(TRUNCDIV), 2 }, { F(FMOD), 2 },
	};
	struct spyre_instr_cost cost;
	struct spyre_instr *in;
	uint32_t i, v;

	for (i = 0; i < 6; i++) {
		build_start(&b, 1, 0, 4);
		build_phase(&b);
		build_stream(&b, 0);
		in = build_instr(&b, SPYRE_OP_INT, want[i].func, 1, 32);
		in->count[0] = 100;
		/* Repeated sticks of the LX, whose traffic does not hide the cycles. */
		for (v = 0; v < 3; v++)
			build_view(in, v, SPYRE_VIEW_LX, 0)->format = SPYRE_FMT_IEEE_INT32;
		spyre_cost_instr(in, &cost);
		ck_assert_uint_eq(cost.elements, 3200);
		ck_assert_uint_eq(cost.cycles, 50 * want[i].beats + 16);
	}
}
END_TEST

/* 40^6 / 8 elements take more than 100 polls, after which the host stops the program. */
START_TEST(test_polls)
{
	static const uint32_t kinds[][2] = {
		{ SPYRE_OP_INT, F(NEG) }, { SPYRE_OP_INT, F(ABS) }, { SPYRE_OP_REDUCE, F(SUM) },
	};
	struct spyre_program prog;
	struct test_host host;
	struct spyre_instr *in;
	static uint8_t memory[1 << 16];
	uint8_t *operand[2] = { memory, memory + (1 << 15) };
	struct spyre_exec x = { .host = &host.host, .prog = &prog, .operand = operand };
	size_t size;
	void *image;
	int d;

	build_start(&b, 1, 0, 2);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, kinds[_i][0], kinds[_i][1], 6, 2);
	for (d = 0; d < 6; d++)
		in->count[d] = 40;
	if (in->opcode == SPYRE_OP_REDUCE)
		in->reduce_mask = 0x15;
	build_view(in, 0, 0, 0)->format = SPYRE_FMT_IEEE_INT32;
	build_view(in, 1, 1, 0)->format = SPYRE_FMT_IEEE_INT32;
	/* Points that cannot be merged. */
	build_view(in, 1, 1, 0)->stride[1] = 4;
	build_view(in, 1, 1, 0)->stride[3] = 4;
	image = build_image(&b, &size);
	build_seal(image, size, 1, &prog);
	test_host_init(&host, test_units()[0], 1);
	host.polls_left = 100;
	ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_CANCELLED);
	/* It stops at the poll that requests it. */
	ck_assert_int_ge(host.polls_left, -3);
	test_host_done(&host);
	free(image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_integers");
	TCase *tc = tcase_create("integers");

	test_units_report();
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_known, 0, KNOWN);
	tcase_add_loop_test(tc, test_functions, 0, FUNCTIONS);
	tcase_add_loop_test(tc, test_formats, 0, FUNCTIONS);
	tcase_add_loop_test(tc, test_reductions, 0, 3);
	tcase_add_test(tc, test_refused);
	tcase_add_test(tc, test_refused_reductions);
	tcase_add_test(tc, test_costs);
	tcase_add_loop_test(tc, test_polls, 0, 3);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
