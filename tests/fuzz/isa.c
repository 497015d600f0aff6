// SPDX-License-Identifier: MIT
/*
 * Small programs of the card, mutated, as fast as they will go: what the
 * verifier accepts runs on memory that is exactly as large as the operands'
 * extents and the LX, the rest of it poisoned.  A mutant whose operand table
 * alone is wrong gets a right one, so that strides, counts and offsets change
 * and still run.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/card.h"
#include "tests/unit/model_generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, n) ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif

#define SEEDS 256u
#define ROOM (256u << 10)	/* an operand, or the LX of a core */
#define CORES 4u
#define POLLS 2u		/* of about 20 us; then the program is stopped */

/* One span of memory, of which @open bytes may be touched. */
struct span {
	u8 *p;
	uint64_t open;
};

static struct span operand[GENERATE_OPERANDS], lx[CORES];
static unsigned long long executed, stopped;

static void report(void)
{
	printf("fuzz-isa: %llu executed, of these %llu stopped early\n", executed, stopped);
}

static void make_span(struct span *span)
{
	span->p = fuzz_card_memory(ROOM);
	memset(span->p, 0x3c, ROOM);
	__asan_poison_memory_region(span->p, ROOM);
}

static void open_span(struct span *span, uint64_t bytes)
{
	if (bytes > span->open)
		__asan_unpoison_memory_region(span->p, bytes);
	else
		__asan_poison_memory_region(span->p + bytes, (span->open + 127) / 128 * 128 - bytes);
	span->open = bytes;
}

static void seeds(const char *source_dir)
{
	struct spyre_verify_error err;
	struct spyre_program program;
	uint32_t i;
	size_t size;
	void *image;

	(void)source_dir;
	for (i = 0; i < SEEDS; i++) {
		image = generate_program(i, true, &size, &program, &err);
		if (!image)
			fuzz_fail("program %u is refused: %s", i, spyre_stop_name(err.stop));
		fuzz_seed(image, size);
		free(image);
	}
	for (i = 0; i < GENERATE_OPERANDS; i++)
		make_span(&operand[i]);
	for (i = 0; i < CORES; i++)
		make_span(&lx[i]);
	atexit(report);
}

static bool fits(const struct spyre_program *program)
{
	const struct spyre_prog_header *h = program->header;
	uint32_t i;

	if (h->num_operands > GENERATE_OPERANDS || h->num_cores > CORES || h->lx_bytes > ROOM)
		return false;
	for (i = 0; i < h->num_operands; i++)
		if (program->operands[i].extent > ROOM)
			return false;
	return true;
}

/* On any unit; values are not compared, for mutants may overlap themselves. */
static void execute(const struct spyre_program *program)
{
	const struct spyre_prog_header *h = program->header;
	struct fuzz_card *card = fuzz_card();
	u8 *op[GENERATE_OPERANDS], *scratchpad[CORES];
	struct spyre_exec x = {
		.host = &card->host, .job = card, .prog = program,
		.operand = op, .lx = h->lx_bytes ? scratchpad : NULL,
	};
	uint32_t i;

	card->host.unit = card->unit[fuzz_random(card->num_units)];
	card->patience = POLLS + 2 * h->num_cores;
	for (i = 0; i < h->num_operands; i++) {
		op[i] = operand[i].p;
		open_span(&operand[i], program->operands[i].extent);
	}
	for (i = 0; i < h->num_cores; i++) {
		scratchpad[i] = lx[i].p;
		open_span(&lx[i], h->lx_bytes);
	}
	executed++;
	stopped += spyre_card_exec(&x, &card->worker) != SPYRE_STOP_NONE;
}

static bool run(const uint8_t *data, size_t size)
{
	static struct span image;
	struct spyre_verify_error err = { 0 };
	struct spyre_program program;
	bool accepted;

	if (!image.p)
		make_span(&image);
	if (size > ROOM)
		return false;
	/* Exactly as long as it is. */
	open_span(&image, size);
	memcpy(image.p, data, size);
	accepted = build_settle(image.p, size, SPYRE_MAX_CORES, &program, &err);
	if (!accepted && (err.stop == SPYRE_STOP_NONE || err.stop >= SPYRE_STOP_COUNT))
		fuzz_fail("refused without a reason (%d)", err.stop);
	if (accepted && fits(&program))
		execute(&program);
	return accepted;
}

const struct fuzz_target fuzz_target = { "fuzz-isa", seeds, run, NULL };
