// SPDX-License-Identifier: MIT
/* Programs that keep a part of LX: what they find in it, and where it stays. */
#include "model_util.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define CORES 3u
#define LX 4096u
#define KEPT 1536u

/* Of the grouped program; enough work that its phases run core by core. */
#define LARGE (256u << 10)

enum { IN, OUT, OPERANDS };

static struct builder b;
static uint8_t *operand[OPERANDS], *lx[CORES];
static struct guarded memory[OPERANDS], scratchpad[CORES];

/* Each core moves its @bytes of an operand to its LX, or back. */
static void move(uint32_t bytes, bool load)
{
	build_phase(&b);
	for (uint32_t c = 0; c < CORES; c++) {
		struct spyre_instr *in;

		build_stream(&b, c);
		in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 1, 64);
		in->count[0] = bytes / SPYRE_STICK_BYTES;
		build_view(in, load ? 0 : 1, SPYRE_VIEW_LX, 0)->stride[0] = SPYRE_STICK_BYTES;
		build_view(in, load ? 1 : 0, load ? IN : OUT, c * bytes)->stride[0] =
			SPYRE_STICK_BYTES;
	}
}

static void run(const struct spyre_unit *unit, int threads, uint32_t bytes, uint32_t kept)
{
	struct spyre_program prog;
	struct test_host host;
	struct spyre_exec x = { .host = &host.host, .prog = &prog, .operand = operand, .lx = lx };
	size_t size;
	void *image;

	b.header.lx_bytes = bytes;
	b.header.lx_kept = kept;
	image = build_image(&b, &size);
	build_seal(image, size, CORES, &prog);
	test_host_init(&host, unit, threads);
	ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_NONE);
	test_host_done(&host);
	free(image);
}

static void memory_init(uint32_t bytes)
{
	uint64_t seed = 7;

	for (uint32_t i = 0; i < OPERANDS; i++) {
		guarded_alloc(&memory[i], CORES * bytes);
		operand[i] = memory[i].p;
	}
	rng_fill(&seed, operand[IN], CORES * bytes, SPYRE_FMT_SEN169_FP16);
	for (uint32_t c = 0; c < CORES; c++) {
		guarded_alloc(&scratchpad[c], bytes);
		lx[c] = scratchpad[c].p;
	}
}

static void memory_done(void)
{
	for (uint32_t i = 0; i < OPERANDS; i++) {
		ck_assert(guarded_intact(&memory[i]));
		guarded_free(&memory[i]);
	}
	for (uint32_t c = 0; c < CORES; c++) {
		ck_assert(guarded_intact(&scratchpad[c]));
		guarded_free(&scratchpad[c]);
	}
}

/* The output has the first @kept bytes of each core's input, and zeroes behind them. */
static void expect_kept(uint32_t kept)
{
	for (uint32_t c = 0; c < CORES; c++) {
		const uint8_t *got = operand[OUT] + c * LX, *want = operand[IN] + c * LX;

		for (uint32_t i = 0; i < LX; i++)
			expect(got[i] == (i < kept ? want[i] : 0), "core %u, byte %u of %u", c, i,
			       kept);
	}
}

/* A program fills LX, the next one stores it. */
static void hand_over(const struct spyre_unit *unit, int threads)
{
	static const uint32_t kept[] = { KEPT, LX, SPYRE_STICK_BYTES, 0 };

	for (uint32_t i = 0; i < 4; i++) {
		memory_init(LX);
		build_start(&b, CORES, LX, OPERANDS);
		move(LX, true);
		/* The producer may keep another part than the consumer. */
		run(unit, threads, LX, kept[3 - i]);
		build_start(&b, CORES, LX, OPERANDS);
		move(LX, false);
		run(unit, threads, LX, kept[i]);
		expect_kept(kept[i]);
		memory_done();
	}
}

START_TEST(test_hand_over)
{
	const struct spyre_unit *const *unit;

	for (unit = test_units(); *unit; unit++) {
		hand_over(*unit, 1);
		hand_over(*unit, 3);
	}
}
END_TEST

/* Stores LX, then fills it: the second run stores what the first one has filled in. */
static void grouped(const struct spyre_unit *unit, int threads)
{
	memory_init(LARGE);
	for (uint32_t i = 0; i < 2; i++) {
		build_start(&b, CORES, LARGE, OPERANDS);
		move(LARGE, false);
		move(LARGE, true);
		run(unit, threads, LARGE, LARGE);
	}
	ck_assert(!memcmp(operand[OUT], operand[IN], CORES * LARGE));
	memory_done();
}

/* Each core has its own LX, even if its phases run in a row. */
START_TEST(test_grouped)
{
	const struct spyre_unit *const *unit;

	for (unit = test_units(); *unit; unit++) {
		grouped(*unit, 1);
		grouped(*unit, 3);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_kept");
	TCase *tc = tcase_create("kept");

	test_units_report();
	tcase_add_test(tc, test_hand_over);
	tcase_add_test(tc, test_grouped);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
