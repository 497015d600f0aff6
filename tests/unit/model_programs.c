// SPDX-License-Identifier: MIT
/*
 * Random valid programs: the checked interpreter finds no access that the verifier
 * should have refused, and every unit leaves the same bytes as the interpreter,
 * with one thread and with four. Programs that keep LX run twice: the second run reads
 * what the first one left.
 */
#include "model_checked.h"
#include "model_generate.h"
#include "model_util.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAMS 40		/* per test; SPYRE_PROGRAMS in the environment overrides */
#define TESTS 10

struct memory {
	struct guarded op[GENERATE_OPERANDS];
	struct guarded lx[GENERATE_CORES];
	uint8_t *operand[SPYRE_MAX_OPERANDS];
	uint8_t *lx_of[GENERATE_CORES];
};

static void memory_init(struct memory *m, const struct spyre_program *prog, uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < prog->header->num_operands; i++) {
		guarded_alloc(&m->op[i], prog->operands[i].extent);
		generate_operand(seed, i, m->op[i].p, m->op[i].bytes);
		m->operand[i] = m->op[i].p;
	}
	for (i = 0; i < prog->header->num_cores; i++) {
		guarded_alloc(&m->lx[i], prog->header->lx_bytes);
		m->lx_of[i] = m->lx[i].p;
	}
}

static uint32_t runs_of(const struct spyre_program *prog)
{
	return prog->header->lx_kept ? 2 : 1;
}

static void memory_done(struct memory *m, const struct spyre_program *prog)
{
	uint32_t i;

	for (i = 0; i < prog->header->num_operands; i++)
		guarded_free(&m->op[i]);
	for (i = 0; i < prog->header->num_cores; i++)
		guarded_free(&m->lx[i]);
}

static void same(const struct guarded *want, const struct guarded *got, uint64_t seed,
		 const char *unit, int threads, const char *what, uint32_t index)
{
	size_t i;

	expect(guarded_intact(got), "program %llu, %s x %d: guard of %s %u",
	       (unsigned long long)seed, unit, threads, what, index);
	for (i = 0; i < want->bytes; i++)
		expect(want->p[i] == got->p[i],
		       "program %llu, %s x %d: %s %u byte %zu of %zu: %02x, want %02x",
		       (unsigned long long)seed, unit, threads, what, index, i, want->bytes,
		       got->p[i], want->p[i]);
}

static void run_fast(const struct spyre_program *prog, const struct memory *want, uint64_t seed,
		     const struct spyre_unit *unit, int threads)
{
	struct test_host host;
	struct memory got;
	struct spyre_exec x = {
		.host = &host.host, .prog = prog, .operand = got.operand, .lx = got.lx_of,
	};
	uint32_t i;

	test_host_init(&host, unit, threads);
	memory_init(&got, prog, seed);
	for (i = 0; i < runs_of(prog); i++)
		ck_assert_int_eq(spyre_card_exec(&x, &host.self), SPYRE_STOP_NONE);
	for (i = 0; i < prog->header->num_operands; i++)
		same(&want->op[i], &got.op[i], seed, spyre_unit_name(unit), threads, "operand", i);
	for (i = 0; i < prog->header->num_cores; i++)
		same(&want->lx[i], &got.lx[i], seed, spyre_unit_name(unit), threads, "LX", i);
	memory_done(&got, prog);
	test_host_done(&host);
}

static void run_program(uint64_t seed)
{
	const struct spyre_unit *const *unit;
	struct spyre_verify_error err;
	struct spyre_program prog;
	struct memory want;
	char fault[200] = "";
	size_t size;
	void *image = generate_program(seed, false, &size, &prog, &err);

	if (!image)
		ck_abort_msg("program %llu: %s: core %u instr %u view %u value %llu limit %llu",
			     (unsigned long long)seed, spyre_stop_name(err.stop), err.core,
			     err.instr, err.view, (unsigned long long)err.value,
			     (unsigned long long)err.limit);
	memory_init(&want, &prog, seed);
	for (uint32_t i = 0; i < runs_of(&prog); i++)
		expect(checked_exec(&prog, want.operand, want.lx_of, fault, sizeof(fault)),
		       "program %llu: %s", (unsigned long long)seed, fault);
	for (unit = test_units(); *unit; unit++) {
		run_fast(&prog, &want, seed, *unit, 1);
		run_fast(&prog, &want, seed, *unit, 4);
	}
	memory_done(&want, &prog);
	free(image);
}

START_TEST(test_programs)
{
	const char *more = getenv("SPYRE_PROGRAMS");
	uint64_t n = more ? strtoull(more, NULL, 0) / TESTS : PROGRAMS, i;

	for (i = 0; i < n; i++)
		run_program(i * TESTS + _i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_programs");
	TCase *tc = tcase_create("programs");

	test_units_report();
	tcase_set_timeout(tc, 0);
	tcase_add_loop_test(tc, test_programs, 0, TESTS);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
