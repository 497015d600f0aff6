// SPDX-License-Identifier: MIT
/*
 * Random valid programs: an input is the number from which a program is generated.
 * The verifier accepts the program, the checked interpreter finds no invalid
 * access, and every arithmetic unit leaves the same bytes as the interpreter. Programs
 * that keep LX run twice: the second run reads what the first one left.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/card.h"
#include "tests/unit/model_checked.h"
#include "tests/unit/model_generate.h"

#include <stdlib.h>
#include <string.h>

#define SEEDS 8u

struct memory {
	u8 *operand[GENERATE_OPERANDS];
	u8 *lx[GENERATE_CORES];
};

static void seeds(const char *source_dir)
{
	uint64_t i;

	(void)source_dir;
	for (i = 0; i < SEEDS; i++)
		fuzz_seed(&(uint64_t){ i * 0x9e3779b97f4a7c15ull }, sizeof(i));
}

static void make_memory(struct memory *m, const struct spyre_program *program, uint64_t seed)
{
	for (u32 i = 0; i < program->header->num_operands; i++) {
		m->operand[i] = fuzz_card_memory(program->operands[i].extent);
		generate_operand(seed, i, m->operand[i], program->operands[i].extent);
	}
	for (u32 i = 0; i < program->header->num_cores; i++)
		m->lx[i] = fuzz_card_memory(program->header->lx_bytes);
	for (u32 i = 0; program->header->lx_kept && i < program->header->num_cores; i++)
		generate_operand(seed, 0, m->lx[i], program->header->lx_bytes);
}

static u32 runs_of(const struct spyre_program *program)
{
	return program->header->lx_kept ? 2 : 1;
}

static void free_memory(struct memory *m, const struct spyre_program *program)
{
	for (u32 i = 0; i < program->header->num_operands; i++)
		free(m->operand[i]);
	for (u32 i = 0; i < program->header->num_cores; i++)
		free(m->lx[i]);
}

static void compare(const struct spyre_program *program, const struct memory *want,
		    const struct memory *got, const struct spyre_unit *unit)
{
	for (u32 i = 0; i < program->header->num_operands; i++)
		if (memcmp(want->operand[i], got->operand[i], program->operands[i].extent))
			fuzz_fail("operand %u of unit %s differs", i, spyre_unit_name(unit));
	for (u32 i = 0; i < program->header->num_cores; i++)
		if (memcmp(want->lx[i], got->lx[i], program->header->lx_bytes))
			fuzz_fail("LX %u of unit %s differs", i, spyre_unit_name(unit));
}

static void run_fast(const struct spyre_program *program, uint64_t seed, const struct memory *want)
{
	for (unsigned int unit = 0; unit < fuzz_card()->num_units; unit++) {
		struct fuzz_card *card = fuzz_card();
		struct memory got;
		struct spyre_exec x = {
			.host = &card->host, .job = card, .prog = program,
			.operand = got.operand, .lx = got.lx,
		};

		card->patience = ~0u;
		card->host.unit = card->unit[unit];
		make_memory(&got, program, seed);
		for (u32 i = 0; i < runs_of(program); i++)
			if (spyre_card_exec(&x, &card->worker) != SPYRE_STOP_NONE)
				fuzz_fail("unit %s stopped", spyre_unit_name(card->unit[unit]));
		compare(program, want, &got, card->unit[unit]);
		free_memory(&got, program);
	}
}

static bool run(const uint8_t *data, size_t size)
{
	struct spyre_verify_error err;
	struct spyre_program program;
	struct memory want;
	char fault[200] = "";
	uint64_t seed = 0;
	void *image;

	memcpy(&seed, data, size < sizeof(seed) ? size : sizeof(seed));
	image = generate_program(seed, false, &size, &program, &err);
	if (!image)
		fuzz_fail("a valid program is refused: %s, core %u instr %u view %u",
			  spyre_stop_name(err.stop), err.core, err.instr, err.view);
	make_memory(&want, &program, seed);
	for (u32 i = 0; i < runs_of(&program); i++)
		if (!checked_exec(&program, want.operand, want.lx, fault, sizeof(fault)))
			fuzz_fail("%s", fault);
	run_fast(&program, seed, &want);
	free_memory(&want, &program);
	free(image);
	return true;
}

const struct fuzz_target fuzz_target = { .name = "fuzz-generated", .seeds = seeds, .run = run };
