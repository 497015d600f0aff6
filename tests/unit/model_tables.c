// SPDX-License-Identifier: MIT
/*
 * Tables of functions of one DL16 number: all codes of all functions have the bits that
 * the unit computes, before, while and after the table is filled.
 */
#include "model/simd/unit.h"
#include "model/table.h"
#include "model_util.h"
#include "suite.h"
#include "tests/order.h"

#include <stdlib.h>
#include <string.h>

#define CODES SPYRE_TABLE_CODES
#define CORES 4u
#define STRIDE 384u			/* bytes between points, if these are not dense */

static const uint32_t functions[SPYRE_TABLES] = {
	SPYRE_FUNC_EXP, SPYRE_FUNC_LOG, SPYRE_FUNC_SQRT, SPYRE_FUNC_RSQRT, SPYRE_FUNC_RECIPROCAL,
	SPYRE_FUNC_TANH, SPYRE_FUNC_SIGMOID, SPYRE_FUNC_SILU, SPYRE_FUNC_GELU, SPYRE_FUNC_MISH,
	SPYRE_FUNC_SIN, SPYRE_FUNC_COS, SPYRE_FUNC_ERF, SPYRE_FUNC_SOFTPLUS,
};

static struct builder b;
static uint16_t want[CODES];
static uint8_t in[CODES / 64 * STRIDE], out[CODES / 64 * STRIDE];

/* Beta and threshold of SOFTPLUS. */
static void set_imm(uint32_t *imm, uint32_t func, uint32_t beta)
{
	if (func != SPYRE_FUNC_SOFTPLUS)
		return;
	imm[0] = beta;
	imm[1] = 0x41a00000;
}

static void compute(const struct spyre_unit *unit, uint32_t func, uint32_t beta)
{
	struct spyre_span span = { .p = (uint8_t *)want, .format = SPYRE_FMT_SEN169_FP16 };
	struct spyre_sfu_run run = {
		.func = func, .lanes = CODES, .points = 1, .v = { span, span },
	};
	uint32_t i;

	set_imm(run.imm, func, beta);
	for (i = 0; i < CODES; i++)
		want[i] = spyre_le16(i);
	unit->sfu(&run);
}

/* Points of 64 of all codes, a quarter of them for each core; @stride 128 is dense. */
static void *program(uint32_t func, uint32_t beta, uint32_t stride, bool in_place,
		     struct spyre_program *prog)
{
	uint32_t core, points = CODES / 64 / CORES;
	size_t size;
	void *image;

	build_start(&b, CORES, 0, 2);
	build_phase(&b);
	for (core = 0; core < CORES; core++) {
		struct spyre_instr *instr;

		build_stream(&b, core);
		instr = build_instr(&b, SPYRE_OP_SFU, func, 1, 64);
		instr->count[0] = points;
		set_imm(instr->imm, func, beta);
		build_view(instr, 0, 1, core * points * stride)->stride[0] = stride;
		build_view(instr, 1, in_place ? 1 : 0, core * points * stride)->stride[0] = stride;
	}
	image = build_image(&b, &size);
	build_seal(image, size, CORES, prog);
	return image;
}

/* Runs the function on all codes and returns how many results differ from want[]. */
static uint32_t differences(struct test_host *host, uint32_t func, uint32_t beta, uint32_t stride,
			    bool in_place)
{
	uint8_t *const operand[] = { in, out };
	struct spyre_program prog;
	struct spyre_exec x = { .host = &host->host, .prog = &prog, .operand = operand };
	void *image = program(func, beta, stride, in_place, &prog);
	uint32_t i, wrong = 0;

	memset(out, 0x11, sizeof(out));
	for (i = 0; i < CODES; i++) {
		put_le((in_place ? out : in) + i / 64 * stride + i % 64 * 2, i, 2);
	}
	ck_assert_int_eq(spyre_card_exec(&x, &host->self), SPYRE_STOP_NONE);
	for (i = 0; i < CODES; i++)
		wrong += memcmp(out + i / 64 * stride + i % 64 * 2, &want[i], 2) != 0;
	/* The space between the points keeps its bytes. */
	for (i = 128; stride > 128 && i < stride; i++)
		ck_assert_int_eq(out[i], 0x11);
	free(image);
	return wrong;
}

static void host_init(struct test_host *host, const struct spyre_unit *unit, int threads)
{
	test_host_init(host, unit, threads);
	host->host.tables = aligned_alloc(64, (SPYRE_TABLES_BYTES + 63) / 64 * 64);
	memset(host->host.tables, 0, SPYRE_TABLES_BYTES);
}

static void host_done(struct test_host *host)
{
	free(host->host.tables);
	test_host_done(host);
}

START_TEST(all_codes)
{
	const struct spyre_unit *unit = test_units()[_i];
	const struct spyre_table *table;
	struct test_host host;
	uint32_t i;

	host_init(&host, unit, 3);
	table = host.host.tables;
	for (i = 0; i < SPYRE_TABLES; i++) {
		compute(unit, functions[i], 0x3f800000);
		ck_assert(!spyre_table_ready(&table[i]));
		ck_assert_int_eq(differences(&host, functions[i], 0x3f800000, 128, false), 0);
		ck_assert(spyre_table_ready(&table[i]));
		ck_assert_int_eq(differences(&host, functions[i], 0x3f800000, STRIDE, false), 0);
		ck_assert_int_eq(differences(&host, functions[i], 0x3f800000, 128, true), 0);
	}
	host_done(&host);
}
END_TEST

/* A wrong code in a full table is found, in one that is not full it is not. */
START_TEST(only_full_tables)
{
	struct spyre_table *table;
	struct test_host host;

	host_init(&host, test_units()[_i], 1);
	table = (struct spyre_table *)host.host.tables + 5;
	compute(host.host.unit, SPYRE_FUNC_TANH, 0);
	table->claimed = SPYRE_TABLE_BLOCKS;
	table->filled = SPYRE_TABLE_BLOCKS - 1;
	ck_assert_int_eq(differences(&host, SPYRE_FUNC_TANH, 0, 128, false), 0);
	memcpy(table->code, want, sizeof(want));
	table->code[0x3e00] ^= 1;
	table->filled = SPYRE_TABLE_BLOCKS;
	ck_assert_int_eq(differences(&host, SPYRE_FUNC_TANH, 0, 128, false), 1);
	ck_assert_int_eq(differences(&host, SPYRE_FUNC_TANH, 0, STRIDE, false), 1);
	host_done(&host);
}
END_TEST

/* A table of SOFTPLUS has one beta; another is computed. */
START_TEST(immediates)
{
	const uint32_t beta_1 = 0x3f800000, beta_2 = 0x40000000;
	const struct spyre_unit *unit = test_units()[_i];
	struct test_host host;

	host_init(&host, unit, 1);
	compute(unit, SPYRE_FUNC_SOFTPLUS, beta_1);
	ck_assert_int_eq(differences(&host, SPYRE_FUNC_SOFTPLUS, beta_1, 128, false), 0);
	compute(unit, SPYRE_FUNC_SOFTPLUS, beta_2);
	ck_assert_int_eq(differences(&host, SPYRE_FUNC_SOFTPLUS, beta_2, 128, false), 0);
	host_done(&host);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_tables");
	TCase *tcase = tcase_create("tables");
	int units = test_units_report();

	tcase_set_timeout(tcase, 600);
	tcase_add_loop_test(tcase, all_codes, 0, units);
	tcase_add_loop_test(tcase, only_full_tables, 0, units);
	tcase_add_loop_test(tcase, immediates, 0, units);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
