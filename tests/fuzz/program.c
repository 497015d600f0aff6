// SPDX-License-Identifier: MIT
/*
 * Fuzzes programs: a program that the verifier accepts stays within its operands
 * and its LX on every arithmetic unit, and all units leave the same bytes.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/bundles.h"
#include "tests/fuzz/card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"

#define MAX_BYTES (4u << 20)
#define MAX_CYCLES 20000000ull

#define LX_PIECE (128u << 10)	/* cleared by the card between two polls */

struct operands {
	u8 *memory[SPYRE_MAX_OPERANDS];
	u8 *lx[SPYRE_MAX_CORES];
	u32 count, cores;
};

static unsigned long executed, stopped;

static void report(void)
{
	printf("fuzz-program: %lu programs executed, of these %lu stopped early\n", executed,
	       stopped);
}

static void add_bundle(const char *directory)
{
	struct spyre_bundle bundle;

	if (spyre_bundle_load(directory, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL))
		return;		/* for operations that do not exist yet */
	fuzz_seed(bundle.image, bundle.image_bytes);
	spyre_bundle_fini(&bundle);
}

static void seeds(const char *source_dir)
{
	fuzz_each_bundle(source_dir, add_bundle);
	atexit(report);
}

static void make_operands(struct operands *o, const struct spyre_program *program)
{
	o->count = program->header->num_operands;
	o->cores = program->header->num_cores;
	for (u32 i = 0; i < o->count; i++)
		o->memory[i] = fuzz_card_memory(program->operands[i].extent);
	for (u32 c = 0; c < o->cores; c++)
		o->lx[c] = program->header->lx_bytes ? fuzz_card_memory(program->header->lx_bytes) :
						       NULL;
}

static void free_operands(struct operands *o)
{
	for (u32 i = 0; i < o->count; i++)
		free(o->memory[i]);
	for (u32 c = 0; c < o->cores; c++)
		free(o->lx[c]);
}

static bool small(const struct spyre_program *program)
{
	u64 bytes = (u64)program->header->num_cores * program->header->lx_bytes;

	for (u32 i = 0; i < program->header->num_operands; i++) {
		if (program->operands[i].extent > MAX_BYTES)
			return false;
		bytes += program->operands[i].extent;
	}
	return bytes <= 32ull * MAX_BYTES && program->cost.cycles <= MAX_CYCLES;
}

static enum spyre_stop execute(struct fuzz_card *card, const struct spyre_program *program,
			       struct operands *o)
{
	struct spyre_exec exec = {
		.host = &card->host, .job = card, .prog = program,
		.operand = o->memory, .lx = program->header->lx_bytes ? o->lx : NULL,
	};

	/* The patience does not include clearing the LX. */
	card->patience += program->header->num_cores *
			  ((program->header->lx_bytes + LX_PIECE - 1) / LX_PIECE);
	return spyre_card_exec(&exec, &card->worker);
}

static void compare(const struct spyre_program *program, const struct operands *a,
		    const struct operands *b, const struct spyre_unit *unit)
{
	for (u32 i = 0; i < a->count; i++) {
		if (memcmp(a->memory[i], b->memory[i], program->operands[i].extent))
			fuzz_fail("operand %u differs between unit %s and scalar", i,
				  spyre_unit_name(unit));
	}
}

static void run_on_all_units(const struct spyre_program *program)
{
	struct operands first, other;
	enum spyre_stop stop;

	make_operands(&first, program);
	fuzz_card()->host.unit = fuzz_card()->unit[0];
	stop = execute(fuzz_card(), program, &first);
	executed++;
	stopped += stop != SPYRE_STOP_NONE;
	for (unsigned int unit = 1; unit < fuzz_card()->num_units; unit++) {
		struct fuzz_card *card = fuzz_card();

		make_operands(&other, program);
		card->host.unit = card->unit[unit];
		/* Units stop at different places, so stopped work is not compared. */
		if (execute(card, program, &other) == SPYRE_STOP_NONE && stop == SPYRE_STOP_NONE)
			compare(program, &first, &other, card->unit[unit]);
		free_operands(&other);
	}
	free_operands(&first);
}

static bool run(const uint8_t *data, size_t size)
{
	struct spyre_verify_error why = { 0 };
	struct spyre_program program;
	/* 8-byte aligned and exactly as long as the image. */
	void *image = malloc(size ? size : 1);
	bool accepted;

	if (!image)
		fuzz_fail("no memory");
	memcpy(image, data, size);
	accepted = !spyre_program_verify(image, size, SPYRE_MAX_CORES, &program, &why);
	if (!accepted && (why.stop == SPYRE_STOP_NONE || why.stop >= SPYRE_STOP_COUNT))
		fuzz_fail("refused without a reason (%d)", why.stop);
	if (accepted && small(&program))
		run_on_all_units(&program);
	free(image);
	return accepted;
}

const struct fuzz_target fuzz_target = { .name = "fuzz-program", .seeds = seeds, .run = run };
