// SPDX-License-Identifier: MIT
/* Phases without barriers: which ones qualify, and that the result does not change. */
#include "model_util.h"
#include "suite.h"
#include "model/core.h"

#include <stdlib.h>
#include <string.h>

#define CORES 4u
#define POINTS 2048u		/* of a core; enough to pay for the proof */
#define SLICE (POINTS * 128u)
#define WHOLE (CORES * SLICE)

enum { IN, MIDDLE, OUT, OPERANDS };

static const struct {
	const char *what;
	uint32_t middle;	/* an operand, or SPYRE_VIEW_LX */
	uint32_t from;		/* the second phase reads that of core + from */
	bool alias;		/* OUT shares IN's memory */
	uint32_t group;		/* number of phases expected in the group */
} cases[] = {
	{ "own slice of an operand", MIDDLE, 0, false, 2 },
	{ "a neighbour's slice", MIDDLE, 1, false, 1 },
	{ "own LX", SPYRE_VIEW_LX, 0, false, 2 },
	{ "a neighbour's LX", SPYRE_VIEW_LX, 3, false, 1 },
	{ "own slice, but operands share memory", MIDDLE, 0, true, 1 },
};

static void move(struct builder *b, uint32_t to, uint64_t to_at, uint32_t from, uint64_t from_at)
{
	struct spyre_instr *in = build_instr(b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 1, 64);

	in->count[0] = POINTS;
	build_view(in, 0, to, to_at)->stride[0] = 128;
	build_view(in, 1, from, from_at)->stride[0] = 128;
}

/* The output becomes the input; each core reads the slice of core + from. */
static void *build(int which, size_t *size)
{
	static struct builder b;
	bool lx = cases[which].middle == SPYRE_VIEW_LX;
	uint32_t core, other;

	build_start(&b, CORES, lx ? SLICE : 0, OPERANDS);
	build_phase(&b);
	for (core = 0; core < CORES; core++) {
		build_stream(&b, core);
		move(&b, cases[which].middle, lx ? 0 : core * SLICE, IN, core * SLICE);
		if (lx)		/* every operand must be used */
			move(&b, MIDDLE, core * SLICE, IN, core * SLICE);
	}
	build_phase(&b);
	for (core = 0; core < CORES; core++) {
		other = (core + cases[which].from) % CORES;
		build_stream(&b, core);
		if (!lx)
			move(&b, OUT, core * SLICE, MIDDLE, other * SLICE);
		else
			move(&b, OUT, core * SLICE, other == core ? SPYRE_VIEW_LX :
			     SPYRE_VIEW_RING | other, 0);
	}
	return build_image(&b, size);
}

static void run(int which, const struct spyre_program *prog, int threads, u8 *const *operand,
		u8 *const *lx)
{
	struct test_host host;
	struct spyre_exec x = { .prog = prog, .operand = operand, .lx = lx };

	test_host_init(&host, test_units()[0], threads);
	x.host = &host.host;
	ck_assert_uint_eq(spyre_phase_group(&x, 0, host.self.scratch), cases[which].group);
	ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_NONE);
	ck_assert_int_eq(host.errors, 0);
	test_host_done(&host);
}

START_TEST(test_group)
{
	struct guarded memory[OPERANDS], pads[CORES];
	uint8_t *operand[OPERANDS], *lx[CORES];
	struct spyre_program prog;
	uint64_t seed = 77;
	size_t size;
	void *image = build(_i, &size);
	uint32_t i, from;
	int threads;

	build_seal(image, size, 32, &prog);
	for (i = 0; i < CORES; i++) {
		guarded_alloc(&pads[i], SLICE);
		lx[i] = pads[i].p;
	}
	for (i = 0; i < OPERANDS; i++) {
		guarded_alloc(&memory[i], WHOLE);
		operand[i] = memory[cases[_i].alias && i == OUT ? IN : i].p;
	}
	for (threads = 1; threads <= 3; threads++) {
		rng_fill(&seed, memory[IN].p, WHOLE, SPYRE_FMT_SEN169_FP16);
		memset(memory[MIDDLE].p, 0x11, WHOLE);
		run(_i, &prog, threads, operand, lx);
		for (i = 0; i < CORES; i++) {
			from = (i + cases[_i].from) % CORES;
			ck_assert_msg(!memcmp(operand[OUT] + i * SLICE,
					      memory[IN].p + from * SLICE, SLICE),
				      "%s, %d threads: slice %u", cases[_i].what, threads, i);
		}
	}
	for (i = 0; i < OPERANDS; i++) {
		ck_assert(guarded_intact(&memory[i]));
		guarded_free(&memory[i]);
	}
	for (i = 0; i < CORES; i++) {
		ck_assert(guarded_intact(&pads[i]));
		guarded_free(&pads[i]);
	}
	free(image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group");
	TCase *tc = tcase_create("group");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_group, 0, sizeof(cases) / sizeof(cases[0]));
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
