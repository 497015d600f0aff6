// SPDX-License-Identifier: MIT
/* Every function and reduction of each unit, in every format, against the reference. */
#include "model_reference.h"
#include "model_util.h"
#include "suite.h"
#include "tests/order.h"
#include "model/simd/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t formats[] = {
	SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP16, SPYRE_FMT_BFLOAT16,
	SPYRE_FMT_SEN143_FP8, SPYRE_FMT_SEN152_FP8, SPYRE_FMT_SENINT4, SPYRE_FMT_SENINT8,
	SPYRE_FMT_SENINT16, SPYRE_FMT_IEEE_INT32, SPYRE_FMT_SENUINT32,
};

#define FORMATS 11

static const uint32_t functions[] = {
	SPYRE_FUNC_IDENTITY, SPYRE_FUNC_RELU, SPYRE_FUNC_NEG, SPYRE_FUNC_ABS, SPYRE_FUNC_ADD,
	SPYRE_FUNC_SUB, SPYRE_FUNC_MUL, SPYRE_FUNC_MAX, SPYRE_FUNC_MIN, SPYRE_FUNC_EQ,
	SPYRE_FUNC_NE, SPYRE_FUNC_GT, SPYRE_FUNC_LT, SPYRE_FUNC_GE, SPYRE_FUNC_LE,
	SPYRE_FUNC_WHERE, SPYRE_FUNC_REVSUB, SPYRE_FUNC_REALDIV, SPYRE_FUNC_RECIPROCAL,
	SPYRE_FUNC_SQRT, SPYRE_FUNC_RSQRT, SPYRE_FUNC_FLOOR, SPYRE_FUNC_CLIP,
	SPYRE_FUNC_LAYERNORMSCALE, SPYRE_FUNC_LAYERNORMNORM, SPYRE_FUNC_LEAKYRELU,
	SPYRE_FUNC_ROUND, SPYRE_FUNC_TRUNC, SPYRE_FUNC_MASKBYINDEX, SPYRE_FUNC_MULADD,
	SPYRE_FUNC_FNMS, SPYRE_FUNC_FMOD, SPYRE_FUNC_REMAINDER,
	/* No IEEE operations: compared with the scalar unit on fp32. */
	SPYRE_FUNC_EXP, SPYRE_FUNC_LOG, SPYRE_FUNC_TANH, SPYRE_FUNC_SIGMOID, SPYRE_FUNC_SILU,
	SPYRE_FUNC_GELU, SPYRE_FUNC_SOFTPLUS, SPYRE_FUNC_MISH, SPYRE_FUNC_SIN, SPYRE_FUNC_COS,
	SPYRE_FUNC_ERF, SPYRE_FUNC_POW,
};

#define FUNCTIONS ((int)(sizeof(functions) / sizeof(functions[0])))

static const uint32_t reductions[] = {
	SPYRE_FUNC_SUM, SPYRE_FUNC_MEAN, SPYRE_FUNC_AMAX, SPYRE_FUNC_AMIN, SPYRE_FUNC_ABSMAX,
	SPYRE_FUNC_EXX2, SPYRE_FUNC_EXX2_ZEROMEAN, SPYRE_FUNC_QUANTSCALE, SPYRE_FUNC_MULSUM,
};

#define REDUCTIONS ((int)(sizeof(reductions) / sizeof(reductions[0])))

/* Even, for SENINT4. */
static const uint32_t lane_counts[] = { 2, 6, 30, 32, 64, 78, 128, 130, 192 };

#define LANE_COUNTS 9
#define MAX_LANES 192
#define POINTS 4
#define ROW 1024			/* bytes of a point, with space after it */
#define BYTES (POINTS * ROW)
#define GUARD 0x5a

static uint32_t float_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

static bool is_long(uint32_t func)
{
	return func == SPYRE_FUNC_EXP || func == SPYRE_FUNC_LOG || func == SPYRE_FUNC_TANH ||
	       func == SPYRE_FUNC_SIGMOID || func == SPYRE_FUNC_SILU || func == SPYRE_FUNC_GELU ||
	       func == SPYRE_FUNC_SOFTPLUS || func == SPYRE_FUNC_MISH ||
	       (func >= SPYRE_FUNC_SIN && func <= SPYRE_FUNC_ERF) || func == SPYRE_FUNC_POW;
}

static float apply(const struct spyre_sfu_run *run, uint32_t coord, const float *x)
{
	const uint32_t imm[4] = { run->imm[0], run->imm[1], 0, run->width };
	float r = 0;
	struct spyre_sfu_run one = {
		.func = run->func, .lanes = 1, .points = 1, .imm = { imm[0], imm[1] },
		.v[0] = { .p = (uint8_t *)&r, .format = SPYRE_FMT_SCRATCH_FP32 },
		.v[1] = { .p = (uint8_t *)x, .format = SPYRE_FMT_SCRATCH_FP32 },
		.v[2] = { .p = (uint8_t *)(x + 1), .format = SPYRE_FMT_SCRATCH_FP32 },
	};

	if (!is_long(run->func))
		return reference_apply(run->func, imm, coord, x);
	spyre_unit_scalar.sfu(&one);
	return r;
}

static void reference_sfu(const struct spyre_sfu_run *run)
{
	uint32_t inputs = spyre_func_inputs(run->func);
	uint32_t point, lane, i;

	for (point = 0; point < run->points; point++) {
		float r[MAX_LANES];

		for (lane = 0; lane < run->lanes; lane++) {
			float x[SPYRE_MAX_VIEWS - 1] = { 0 };

			for (i = 0; i < inputs; i++)
				x[i] = reference_load(run->v[i + 1].format, run->v[i + 1].p +
						      point * run->v[i + 1].stride,
						      run->v[i + 1].splat ? 0 : lane);
			r[lane] = apply(run, run->coord + point * run->coord_step + lane, x);
		}
		for (lane = 0; lane < run->lanes; lane++)
			reference_store(run->v[0].format, run->v[0].p + point * run->v[0].stride,
					lane, r[lane]);
	}
}

/* The end of a mask lies among the lanes; in fp32 it is sometimes a fraction or huge. */
static void fill_index(uint64_t *seed, uint8_t *p, uint32_t format)
{
	uint32_t row, lane;

	for (row = 0; row < POINTS; row++) {
		for (lane = 0; lane < MAX_LANES; lane++) {
			float x = rng_below(seed, 2 * MAX_LANES);

			if (rng_below(seed, 8) == 0)
				x = ldexpf((float)rng_next(seed), -31 - rng_below(seed, 20));
			reference_store(format, p + row * ROW, lane, x);
		}
	}
}

static void set_imms(struct spyre_sfu_run *run, uint64_t *seed)
{
	switch (run->func) {
	case SPYRE_FUNC_CLIP:
		run->imm[0] = float_bits(-1.5f);
		run->imm[1] = float_bits(6);
		break;
	case SPYRE_FUNC_LAYERNORMSCALE:
		run->imm[0] = float_bits(1e-5f);
		break;
	case SPYRE_FUNC_SOFTPLUS:
		run->imm[0] = float_bits(1.5f);
		run->imm[1] = float_bits(20);
		break;
	case SPYRE_FUNC_LEAKYRELU:
		run->imm[0] = float_bits(0.01f);
		break;
	case SPYRE_FUNC_MASKBYINDEX:
		run->imm[0] = float_bits(-65504);
		run->coord = rng_below(seed, 3) ? rng_below(seed, 300) :
			     (uint32_t)rng_next(seed);
		run->coord_step = rng_below(seed, 200) - 100;
		run->width = rng_below(seed, 2) ? rng_below(seed, MAX_LANES) : 0;
		break;
	}
}

static void compare(const struct spyre_unit *unit, const struct spyre_sfu_run *run,
		    const uint8_t *got, const uint8_t *want)
{
	uint32_t i;

	for (i = 0; i < BYTES; i++)
		expect(got[i] == want[i],
		       "%s: function %u of %u lanes, formats %u %u %u: byte %u is %02x, want %02x",
		       spyre_unit_name(unit), run->func, run->lanes, run->v[0].format,
		       run->v[1].format, run->v[2].format, i, got[i], want[i]);
}

/* @last: bytes between the points of the fourth and the fifth input. */
static void check_sfu(struct spyre_sfu_run *run, uint64_t *seed, uint32_t last)
{
	static uint8_t memory[SPYRE_MAX_VIEWS][BYTES], want[BYTES];
	const struct spyre_unit *const *unit;
	uint32_t i;

	for (i = 0; i <= spyre_func_inputs(run->func); i++) {
		run->v[i].p = memory[i];
		run->v[i].stride = i < 4 ? ROW : last;
		rng_fill(seed, memory[i], BYTES, run->v[i].format);
		if (run->func == SPYRE_FUNC_MASKBYINDEX && i == 2)
			fill_index(seed, memory[i], run->v[i].format);
	}
	set_imms(run, seed);
	memset(want, GUARD, BYTES);
	run->v[0].p = want;
	reference_sfu(run);
	for (unit = test_units(); *unit; unit++) {
		run->v[0].p = memory[0];
		memset(memory[0], GUARD, BYTES);
		(*unit)->sfu(run);
		compare(*unit, run, memory[0], want);
	}
}

START_TEST(test_functions)
{
	uint32_t func = functions[_i], out, in, n, i;
	uint64_t seed = 1 + func;

	for (out = 0; out < FORMATS; out++) {
		for (in = 0; in < FORMATS; in++) {
			for (n = (out + in) % 3; n < LANE_COUNTS; n += 3) {
				struct spyre_sfu_run run = {
					.func = func, .lanes = lane_counts[n], .points = POINTS,
				};

				run.v[0].format = formats[out];
				for (i = 1; i <= spyre_func_inputs(func); i++) {
					run.v[i].format = formats[i % 2 ? in : out];
					run.v[i].splat = (n + i + in) % 4 == 0;
				}
				/* The case of one format for all has a separate path. */
				if (out == in && n != 4)
					for (i = 1; i <= spyre_func_inputs(func); i++)
						run.v[i].splat = false;
				check_sfu(&run, &seed, ROW);
			}
		}
	}
}
END_TEST

/* Rows with a number each, and LAYERNORMNORM whose factors and terms are those of all rows. */
START_TEST(test_rows)
{
	uint32_t func = functions[_i], format, n, i;
	uint64_t seed = 2000 + func;

	for (n = 0; n < 12; n++) {
		struct spyre_sfu_run run = { .func = func, .lanes = n % 2 ? 64 : 78,
					     .points = POINTS };

		for (format = 0; format < 2; format++) {
			for (i = 0; i <= spyre_func_inputs(func); i++) {
				run.v[i].format = formats[format];
				run.v[i].splat = i == 2 || (i == 3 && n % 3);
			}
			check_sfu(&run, &seed, n % 4 < 2 ? 0 : ROW);
		}
	}
}
END_TEST

/* All quotients of two significands of DL16, which units may compute from the inverse. */
START_TEST(test_quotients)
{
	static uint8_t in[512 * 128], divisor[512 * 2], out[512 * 128];
	const struct spyre_unit *unit = test_units()[_i];
	struct spyre_sfu_run run = {
		.func = SPYRE_FUNC_REALDIV, .lanes = 64, .points = 512,
		.v[0] = { out, 128, SPYRE_FMT_SEN169_FP16, false },
		.v[1] = { in, 128, SPYRE_FMT_SEN169_FP16, false },
		.v[2] = { divisor, 2, SPYRE_FMT_SEN169_FP16, true },
	};
	uint32_t first, row, lane;

	for (row = 0; row < 512; row++)
		reference_store(SPYRE_FMT_SEN169_FP16, divisor, row, 512 + row);
	for (first = 0; first < 512; first += 64) {
		for (row = 0; row < 512; row++)
			for (lane = 0; lane < 64; lane++)
				reference_store(SPYRE_FMT_SEN169_FP16, in + row * 128, lane,
						(512 + first + lane) * (row % 2 ? 1 : -2.0f));
		unit->sfu(&run);
		for (row = 0; row < 512; row++)
			for (lane = 0; lane < 64; lane++) {
				uint8_t code[2];

				reference_store(SPYRE_FMT_SEN169_FP16, code, 0,
						reference_load(SPYRE_FMT_SEN169_FP16,
							       in + row * 128, lane) / (512 + row));
				expect(!memcmp(code, out + row * 128 + lane * 2, 2),
				       "%s: %u / %u", unit->name, 512 + first + lane, 512 + row);
			}
	}
}
END_TEST

/* Odd numbers of lanes, in formats of whole bytes. */
START_TEST(test_odd_lanes)
{
	uint32_t func = functions[_i], n, i;
	uint64_t seed = 1000 + func;

	for (n = 0; n < 100; n++) {
		struct spyre_sfu_run run = {
			.func = func, .lanes = 1 + 2 * rng_below(&seed, MAX_LANES / 2),
			.points = POINTS,
		};

		for (i = 0; i <= spyre_func_inputs(func); i++) {
			do
				run.v[i].format = formats[rng_below(&seed, n % 2 ? 2 : FORMATS)];
			while (run.v[i].format == SPYRE_FMT_SENINT4);
			run.v[i].splat = i && rng_below(&seed, 4) == 0;
		}
		check_sfu(&run, &seed, ROW);
	}
}
END_TEST

static void reference_reduce(const struct spyre_reduce_run *run, float *acc, float *squares)
{
	uint32_t point, lane;

	for (point = 0; point < run->points; point++) {
		const uint8_t *p = run->in.p + point * run->in.stride;
		const uint8_t *q = run->in2.p + point * run->in2.stride;

		for (lane = 0; lane < run->lanes; lane++) {
			float x = reference_load(run->in.format, p, run->in.splat ? 0 : lane);
			float y = 0;

			if (run->func == SPYRE_FUNC_MULSUM)
				y = reference_load(run->in2.format, q, run->in2.splat ? 0 : lane);
			acc[lane] = reference_combine(run->func, acc[lane], x, y, false);
			squares[lane] = reference_combine(run->func, squares[lane], x, y, true);
		}
	}
}

static void check_reduce(const struct spyre_reduce_run *run, uint32_t to, bool across)
{
	static float acc[SPYRE_ACC_BYTES / 4] __attribute__((aligned(64)));
	float want_acc[128], want_squares[128];
	uint8_t want[512], got[512];
	const float factor = 0.037f;
	const struct spyre_unit *const *unit;
	uint32_t lane;

	for (lane = 0; lane < 128; lane++)
		want_acc[lane] = want_squares[lane] = reference_first(run->func);
	reference_reduce(run, want_acc, want_squares);
	reference_reduce(run, want_acc, want_squares);
	if (across) {
		reference_across(run->func, want_acc);
		reference_across(run->func, want_squares);
	}
	reference_finish(run->func, factor, want_acc, want_squares);
	memset(want, GUARD, sizeof(want));
	for (lane = 0; lane < run->lanes; lane++)
		reference_store(to, want, lane, want_acc[lane]);
	for (unit = test_units(); *unit; unit++) {
		struct spyre_reduce_run part = *run;
		struct spyre_reduce_end end = {
			.func = run->func, .lanes = run->lanes, .imm = float_bits(factor),
			.across = across, .out = got, .format = to, .acc = acc,
		};

		memset(got, GUARD, sizeof(got));
		part.acc = acc;
		(*unit)->reduce_begin(run->func, acc);
		(*unit)->reduce(&part);
		(*unit)->reduce(&part);
		(*unit)->reduce_end(&end);
		for (lane = 0; lane < sizeof(got); lane++)
			expect(got[lane] == want[lane],
			       "%s: reduction %u of %u lanes%s, formats %u %u to %u: byte %u is %02x, want %02x",
			       spyre_unit_name(*unit), run->func, run->lanes,
			       across ? " across" : "", run->in.format, run->in2.format, to, lane,
			       got[lane], want[lane]);
	}
}

START_TEST(test_reductions)
{
	static uint8_t in[BYTES], in2[BYTES];
	uint32_t func = reductions[_i], n, to, from;
	bool squares = func == SPYRE_FUNC_EXX2 || func == SPYRE_FUNC_EXX2_ZEROMEAN;
	uint64_t seed = 2000 + func;

	for (from = 0; from < FORMATS; from++) {
		for (to = 0; to < FORMATS; to++) {
			/* Up to 128 lanes. */
			for (n = (from + to) % 3; n < 7; n += 3) {
				struct spyre_reduce_run run = {
					.func = func, .rows = 1, .lanes = lane_counts[n],
					.points = POINTS,
					.in = { .p = in, .stride = ROW, .format = formats[from],
						.splat = (n + to) % 5 == 1 },
					.in2 = { .p = in2, .stride = ROW,
						 .format = formats[n % 2 ? from : to],
						 .splat = (n + to) % 5 == 2 },
				};

				rng_fill(&seed, in, BYTES, formats[from]);
				rng_fill(&seed, in2, BYTES, run.in2.format);
				/*
				 * Random bits would mostly give NaN: integers below
				 * 2^15 read as small floats.
				 */
				if ((from + to) % 2 && spyre_fmt_bits(formats[from]) > 8)
					for (uint32_t i = 1; i < BYTES; i += 2)
						in[i] &= 0xbf;
				check_reduce(&run, formats[to], squares || (n + to) % 2);
			}
		}
	}
}
END_TEST

/* Codes at both ends, zeros, and sometimes NaN, the last two codes. */
static uint16_t extreme(uint64_t *seed)
{
	static const uint16_t codes[] = {
		0x7fff, 0xffff, 0x7ffd, 0xfffd, 0, 0x8000, 1, 0x8001, 0x3e00, 0xbe00, 0x7ffe,
		0xfffe,
	};
	/* Few kinds at a time, since otherwise all lanes would give the same result. */
	uint32_t from = rng_below(seed, 10), kinds = rng_below(seed, 30) ? 1 : 12 - from;

	return codes[from + rng_below(seed, kinds)];
}

#define EXTREME_ROWS 5		/* more than a unit processes at once */
#define EXTREME_POINTS 6
#define EXTREME_LANES 64

/* Compares row @row of @run with the reference in DL16, lane by lane. */
static void check_extremes(const struct spyre_unit *unit, const struct spyre_reduce_run *run,
			   uint32_t row)
{
	uint16_t got[EXTREME_LANES], code;
	struct spyre_reduce_end end = {
		.func = run->func, .lanes = run->lanes, .imm = float_bits(1),
		.out = (uint8_t *)got, .format = run->in.format,
		.acc = (uint8_t *)run->acc + row * SPYRE_ACC_BYTES,
	};
	uint32_t point, lane;

	unit->reduce_end(&end);
	for (lane = 0; lane < run->lanes; lane++) {
		const uint8_t *p = run->in.p + row * run->row_stride;
		float want = reference_first(run->func);

		for (point = 0; point < run->points; point++, p += run->in.stride)
			want = reference_combine(run->func, want,
						 reference_load(run->in.format, p, lane), 0, false);
		reference_store(run->in.format, (uint8_t *)&code, 0, want);
		expect(got[lane] == code, "%s: reduction %u of %u points: %04x, want %04x",
		       spyre_unit_name(unit), run->func, run->points, got[lane], code);
	}
}

/* The largest and smallest of infinities, NaN and zeros, in several rows of sticks at once. */
START_TEST(test_extremes)
{
	static const uint32_t funcs[] = {
		SPYRE_FUNC_AMAX, SPYRE_FUNC_AMIN, SPYRE_FUNC_ABSMAX, SPYRE_FUNC_QUANTSCALE,
	};
	static uint8_t acc[EXTREME_ROWS * SPYRE_ACC_BYTES] __attribute__((aligned(64)));
	static uint16_t in[EXTREME_ROWS * EXTREME_POINTS * EXTREME_LANES];
	const struct spyre_unit *unit = test_units()[_i];
	uint64_t seed = 4000;
	uint32_t n, row, i;

	for (n = 0; n < 4000; n++) {
		struct spyre_reduce_run run = {
			.func = funcs[n % 4], .rows = EXTREME_ROWS, .lanes = EXTREME_LANES,
			.row_stride = 2 * EXTREME_POINTS * EXTREME_LANES,
			.points = 1 + n % EXTREME_POINTS, .acc = acc,
			.in = { .p = (uint8_t *)in, .stride = 2 * EXTREME_LANES,
				.format = SPYRE_FMT_SEN169_FP16 },
		};

		for (i = 0; i < sizeof(in) / sizeof(in[0]); i++)
			in[i] = extreme(&seed);
		for (row = 0; row < run.rows; row++)
			unit->reduce_begin(run.func, acc + row * SPYRE_ACC_BYTES);
		unit->reduce(&run);
		for (row = 0; row < run.rows; row++)
			check_extremes(unit, &run, row);
	}
}
END_TEST

#define MANY_POINTS 40		/* more than a unit reduces before it goes to the next row */

/* Rows of many points, which units divide, against one point of one row at a time. */
START_TEST(test_many_points)
{
	static uint8_t acc[EXTREME_ROWS * SPYRE_ACC_BYTES] __attribute__((aligned(64)));
	static uint8_t want[EXTREME_ROWS * SPYRE_ACC_BYTES] __attribute__((aligned(64)));
	static uint8_t in[EXTREME_ROWS * MANY_POINTS * 128], in2[sizeof(in)];
	const struct spyre_unit *unit = test_units()[_i];
	uint32_t n, row, point, i;
	uint64_t seed = 5000;

	for (n = 0; n < 20 * REDUCTIONS; n++) {
		uint32_t format = formats[n % 2];
		struct spyre_reduce_run one, run = {
			.func = reductions[n / 2 % REDUCTIONS], .rows = EXTREME_ROWS,
			.row_stride = 128, .row_stride2 = 128, .lanes = n % 2 ? 32 : 64,
			.points = 1 + rng_below(&seed, MANY_POINTS), .acc = acc,
			.in = { .p = in, .stride = EXTREME_ROWS * 128, .format = format },
			.in2 = { .p = in2, .stride = EXTREME_ROWS * 128, .format = format },
		};

		for (i = 0; i < sizeof(in) * run.lanes / 128; i++) {
			reference_store(format, in, i, rng_below(&seed, 1000) - 500.0f);
			reference_store(format, in2, i, rng_below(&seed, 1000) - 500.0f);
		}
		for (row = 0; row < run.rows; row++) {
			unit->reduce_begin(run.func, acc + row * SPYRE_ACC_BYTES);
			unit->reduce_begin(run.func, want + row * SPYRE_ACC_BYTES);
		}
		unit->reduce(&run);
		one = run;
		one.rows = 1;
		one.points = 1;
		for (row = 0; row < run.rows; row++)
			for (point = 0; point < run.points; point++) {
				one.in.p = in + point * run.in.stride + row * 128;
				one.in2.p = in2 + point * run.in2.stride + row * 128;
				one.acc = want + row * SPYRE_ACC_BYTES;
				unit->reduce(&one);
			}
		expect(!memcmp(acc, want, sizeof(acc)), "%s: reduction %u of %u points of %u lanes",
		       spyre_unit_name(unit), run.func, run.points, run.lanes);
	}
}
END_TEST

/* The rules by which a store rounds and saturates differ from the DMA engine's. */
START_TEST(test_convert)
{
	const struct spyre_unit *unit = test_units()[_i];
	static uint8_t in[BYTES], want[BYTES], got[BYTES];
	uint64_t seed = 3000;
	uint32_t to, from, n, row, lane;

	for (to = 0; to < FORMATS; to++) {
		for (from = 0; from < FORMATS; from++) {
			for (n = 0; n < LANE_COUNTS; n++) {
				struct spyre_convert_run run = {
					.dst = got, .src = in, .dst_stride = ROW, .src_stride = ROW,
					.rows = POINTS, .lanes = lane_counts[n],
					.dst_format = formats[to], .src_format = formats[from],
				};

				rng_fill(&seed, in, BYTES, formats[from]);
				memset(want, GUARD, BYTES);
				memset(got, GUARD, BYTES);
				for (row = 0; row < POINTS; row++)
					for (lane = 0; lane < run.lanes; lane++)
						reference_store(formats[to], want + row * ROW, lane,
								reference_load(formats[from],
									       in + row * ROW,
									       lane));
				unit->convert(&run);
				for (lane = 0; lane < BYTES; lane++)
					expect(got[lane] == want[lane],
					       "%s: format %u to %u: byte %u is %02x, want %02x",
					       spyre_unit_name(unit), formats[from], formats[to],
					       lane, got[lane], want[lane]);
			}
		}
	}
}
END_TEST

#define MOST_ROWS 14u		/* more than twice what a unit computes at once */
#define MOST_K 40u

/* Columns of a product, as the PT adds them. NaN has no payload that counts. */
static void check_sums(const struct spyre_unit *unit, const float *got, const float *old,
		       const float *a, const float *b, uint32_t k, uint32_t row)
{
	for (uint32_t column = 0; column < 64; column++) {
		float want = old[column];

		for (uint32_t i = 0; i < k; i++)
			want = fmaf(a[i], b[i * 64 + column], want);
		expect(isnan(want) ? isnan(got[column]) :
				     float_bits(got[column]) == float_bits(want),
		       "%s: row %u, column %u of %u products is %a, want %a",
		       spyre_unit_name(unit), row, column, k, got[column], want);
	}
}

static void random_floats(uint64_t *seed, float *x, uint32_t count, uint32_t format)
{
	uint8_t codes[64 * 4];

	for (uint32_t i = 0; i < count; i++) {
		if (i % 64 == 0)
			rng_fill(seed, codes, sizeof(codes), format);
		x[i] = reference_load(format, codes, i % 64);
	}
}

/* Any number of rows, of which the units compute some at once. */
START_TEST(test_products)
{
	const struct spyre_unit *unit = test_units()[_i];
	static float a[MOST_ROWS * MOST_K], b[MOST_K * 64], c[MOST_ROWS * 64], old[MOST_ROWS * 64];
	static const uint32_t used[] = { SPYRE_FMT_SEN169_FP16, SPYRE_FMT_BFLOAT16 };
	uint64_t seed = 3100;

	for (uint32_t f = 0; f < 2; f++) {
		for (uint32_t rows = 1; rows <= MOST_ROWS; rows++) {
			struct spyre_pt_run run = { .c = c, .a = a, .b = b, .rows = rows,
						    .k = 1 + rows * 37 % MOST_K,
						    .a_stride = MOST_K * 4, .exact = !f };

			random_floats(&seed, a, MOST_ROWS * MOST_K, used[f]);
			random_floats(&seed, b, MOST_K * 64, used[f]);
			random_floats(&seed, old, MOST_ROWS * 64, SPYRE_FMT_SEN169_FP16);
			memcpy(c, old, sizeof(c));
			unit->pt(&run);
			for (uint32_t row = 0; row < rows; row++)
				check_sums(unit, c + row * 64, old + row * 64, a + row * MOST_K, b,
					   run.k, row);
			expect(!memcmp(c + rows * 64, old + rows * 64,
				       (MOST_ROWS - rows) * 64 * sizeof(*c)),
			       "%s: %u rows write others", spyre_unit_name(unit), rows);
		}
	}
}
END_TEST

/* One row, whose second factor has no NaN and infinities, or one of them. */
START_TEST(test_product_of_a_row)
{
	static const struct {
		uint32_t format;
		uint16_t nan, infinity, most;
	} used[] = { { SPYRE_FMT_SEN169_FP16, 0x7ffe, 0x7fff, 0x7ffd },
		     { SPYRE_FMT_BFLOAT16, 0x7f81, 0x7f80, 0x7f7f } };
	const struct spyre_unit *unit = test_units()[_i];
	static float a[MOST_K], b[MOST_K * 64], c[64], old[64];
	static uint16_t codes[MOST_K * 64];
	uint64_t seed = 3200;

	for (uint32_t n = 0; n < 2 * 200; n++) {
		uint32_t f = n % 2, at = rng_below(&seed, MOST_K * 64);
		uint16_t sign = n / 8 % 2 ? 0x8000 : 0;
		uint16_t special[] = { 0, used[f].most, used[f].infinity, used[f].nan };
		struct spyre_pt_few_run run = { .c = c, .a = a, .b = (const uint8_t *)codes,
						.b_stride = 128, .rows = 1, .k = MOST_K,
						.format = used[f].format };

		random_floats(&seed, a, MOST_K, used[f].format);
		random_floats(&seed, old, 64, used[f].format);
		rng_fill(&seed, (uint8_t *)codes, sizeof(codes), used[f].format);
		order_le(codes, MOST_K * 64, 2);
		for (uint32_t i = 0; i < MOST_K * 64; i++) {
			uint16_t magnitude = codes[i] & 0x7fff;

			if (magnitude > used[f].most || rng_below(&seed, 16) == 0)
				codes[i] &= 0x8000;
		}
		codes[at] = special[n / 2 % 4] | sign;
		order_le(codes, MOST_K * 64, 2);
		for (uint32_t i = 0; i < MOST_K * 64; i++)
			b[i] = reference_load(used[f].format, (const uint8_t *)codes, i);
		memcpy(c, old, sizeof(c));
		unit->pt_few(&run);
		check_sums(unit, c, old, a, b, MOST_K, 0);
	}
}
END_TEST

static float window(const struct spyre_unit *unit, uint32_t coord, float index, uint32_t width)
{
	float value = 7, out = 0;
	struct spyre_sfu_run run = {
		.func = SPYRE_FUNC_MASKBYINDEX, .lanes = 1, .points = 1,
		.imm = { float_bits(3) }, .coord = coord, .width = width,
		.v[0] = { .p = (uint8_t *)&out, .format = SPYRE_FMT_SCRATCH_FP32 },
		.v[1] = { .p = (uint8_t *)&value, .format = SPYRE_FMT_SCRATCH_FP32 },
		.v[2] = { .p = (uint8_t *)&index, .format = SPYRE_FMT_SCRATCH_FP32 },
	};

	unit->sfu(&run);
	return out;
}

static float mask(const struct spyre_unit *unit, uint32_t coord, float index)
{
	return window(unit, coord, index, 0);
}

/* Literal codes, so that not everything depends on the reference. */
START_TEST(test_known)
{
	const struct spyre_unit *unit = test_units()[_i];

	ck_assert(mask(unit, 4, 5) == 7);
	ck_assert(mask(unit, 5, 5) == 3);
	ck_assert(mask(unit, 5, 5.25f) == 7);
	ck_assert(mask(unit, 0, NAN) == 3);
	ck_assert(mask(unit, 0, -1) == 3);
	ck_assert(mask(unit, 0, 0) == 3);
	ck_assert(mask(unit, 0, 0x1p-149f) == 7);
	ck_assert(mask(unit, 16777216, 16777216) == 3);
	ck_assert(mask(unit, 16777217, 16777218) == 7);
	ck_assert(mask(unit, 0x7fffffff, 0x1p31f) == 7);
	ck_assert(mask(unit, 0x80000000, 0x1p31f) == 3);
	ck_assert(mask(unit, 0xffffff00, 0xffffff00) == 3);
	ck_assert(mask(unit, 0xfffffeff, 0xffffff00) == 7);
	ck_assert(mask(unit, 0xffffffff, 0x1p32f) == 7);
	ck_assert(mask(unit, 0xffffffff, INFINITY) == 7);
	ck_assert(window(unit, 4, 8, 3) == 3);
	ck_assert(window(unit, 5, 8, 3) == 7);
	ck_assert(window(unit, 7, 8, 3) == 7);
	ck_assert(window(unit, 8, 8, 3) == 3);
	ck_assert(window(unit, 5, 8.5f, 3) == 3);
	ck_assert(window(unit, 6, NAN, 3) == 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_units");
	TCase *tc = tcase_create("units");
	int units = test_units_report();

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_functions, 0, FUNCTIONS);
	tcase_add_loop_test(tc, test_odd_lanes, 0, FUNCTIONS);
	tcase_add_loop_test(tc, test_rows, 0, FUNCTIONS);
	tcase_add_loop_test(tc, test_quotients, 0, units);
	tcase_add_loop_test(tc, test_reductions, 0, REDUCTIONS);
	tcase_add_loop_test(tc, test_extremes, 0, units);
	tcase_add_loop_test(tc, test_many_points, 0, units);
	tcase_add_loop_test(tc, test_convert, 0, units);
	tcase_add_loop_test(tc, test_products, 0, units);
	tcase_add_loop_test(tc, test_product_of_a_row, 0, units);
	tcase_add_loop_test(tc, test_known, 0, units);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
