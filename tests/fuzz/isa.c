// SPDX-License-Identifier: MIT
/*
 * Small programs of the card, mutated at full speed: a program that the verifier
 * accepts runs on memory of exactly the operands' extents and the LX, with poisoned
 * surroundings. If only the operand table of a mutant is wrong, it is corrected, so
 * that strides, counts and offsets change and still run. If the order of accesses
 * is defined and they are few enough, the checked interpreter runs the program as
 * well, and every arithmetic unit must leave the same bytes; others are stopped
 * early. Programs that keep LX start with noise in it, and run twice: the second run
 * reads what the first one left.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/card.h"
#include "tests/fuzz/cover.h"
#include "tests/unit/model_checked.h"
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
#define SPAN_BYTES (256u << 10)	/* an operand, or the LX of a core */
#define CORES 4u
#define MAX_ELEMENTS (1u << 15)	/* of an instruction that the interpreter executes */
#define MAX_ACCESSES 60000u	/* of a program */
#define MAX_MACS 32768u
#define FORMATS_OF_VIEW 32u
#define POLLS 2u		/* about 20 us each; then the program is stopped */

#define GOOD_INDICES 512u	/* for each that may be beyond its extent */

/* A span of memory, of which @open bytes are accessible. */
struct span {
	u8 *p;
	uint64_t open;
};

static struct span operand[GENERATE_OPERANDS], lx[CORES];
static unsigned long long executed, stopped, unordered, long_ones, index_faults, kept;
static uint8_t *noise[GENERATE_OPERANDS];	/* 2 * SPAN_BYTES bytes that fill operands */
static uint8_t *want[GENERATE_OPERANDS], *want_lx[CORES];
static struct checked_order order;

enum {
	FORM_ACCUMULATE = SPYRE_OP_INT + 1,
	FORM_FUNCTIONS,
	FORMS = FORM_FUNCTIONS + SPYRE_FUNC_INT_AMIN + 1,
};

static void make_span(struct span *span)
{
	span->p = fuzz_card_memory(SPAN_BYTES);
	memset(span->p, 0x3c, SPAN_BYTES);
	__asan_poison_memory_region(span->p, SPAN_BYTES);
}

static void open_span(struct span *span, uint64_t bytes)
{
	if (bytes > span->open)
		__asan_unpoison_memory_region(span->p, bytes);
	else
		__asan_poison_memory_region(span->p + bytes,
					    (span->open + 127) / 128 * 128 - bytes);
	span->open = bytes;
}

static struct checked_byte *make_order(void)
{
	struct checked_byte *bytes = calloc(SPAN_BYTES, sizeof(*bytes));

	if (!bytes)
		fuzz_fail("no memory");
	return bytes;
}

/* Some indices stop a program, at extents of 4 to 6. */
static void spoil_indices(uint32_t *index, size_t count)
{
	size_t i = fuzz_random(GOOD_INDICES);

	for (; i < count; i += 1 + fuzz_random(2 * GOOD_INDICES))
		index[i] = fuzz_random(4) ? 4 + fuzz_random(4) : ~0u << fuzz_random(32);
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
	for (i = 0; i < GENERATE_OPERANDS; i++) {
		make_span(&operand[i]);
		noise[i] = fuzz_card_memory(2 * SPAN_BYTES);
		generate_operand(1, i, noise[i], 2 * SPAN_BYTES);
		want[i] = fuzz_card_memory(SPAN_BYTES);
		order.operand[i] = make_order();
	}
	spoil_indices((uint32_t *)noise[GENERATE_INDICES], 2 * SPAN_BYTES / 4);
	for (i = 0; i < CORES; i++) {
		make_span(&lx[i]);
		want_lx[i] = fuzz_card_memory(SPAN_BYTES);
		order.lx[i] = make_order();
	}
}

static bool fits(const struct spyre_program *program)
{
	const struct spyre_prog_header *h = program->header;
	uint32_t i;

	if (h->num_operands > GENERATE_OPERANDS || h->num_cores > CORES || h->lx_bytes > SPAN_BYTES)
		return false;
	for (i = 0; i < h->num_operands; i++)
		if (program->operands[i].extent > SPAN_BYTES)
			return false;
	return true;
}

typedef void (*instr_fn)(const struct spyre_instr *in, void *arg);

static void each_instr(const struct spyre_program *program, instr_fn fn, void *arg)
{
	uint32_t s, n;

	for (s = 0; s < program->header->num_streams; s++) {
		const struct spyre_prog_stream *stream = &program->streams[s];
		const struct spyre_instr *in = (const void *)(program->instrs + stream->offset);

		for (n = 0; n < stream->num_instrs; n++, in = spyre_instr_next(in))
			fn(in, arg);
	}
}

static void largest(const struct spyre_instr *in, void *arg)
{
	/* The lanes of a transpose are one of its dims. */
	uint64_t *most = arg, n = in->opcode == SPYRE_OP_RESTICK ? 1 : in->lanes;

	for (uint32_t d = 0; d < in->num_dims && n <= MAX_ELEMENTS; d++)
		n *= in->count[d];
	*most = n > *most ? n : *most;
}

/* Forms combine opcodes and functions; formats are those of each view. */
static uint32_t form_of(const struct spyre_instr *in)
{
	if (in->func)
		return FORM_FUNCTIONS + in->func;
	return in->opcode == SPYRE_OP_PT && in->flags ? FORM_ACCUMULATE : in->opcode;
}

static void cover(const struct spyre_instr *in, void *arg)
{
	const uint32_t *unit = arg;

	for (uint32_t v = 0; v < in->num_views; v++)
		fuzz_cover_add(form_of(in), v * FORMATS_OF_VIEW + spyre_instr_views(in)[v].format,
			       *unit);
}

static uint32_t hash(const struct spyre_program *program)
{
	const uint32_t *word = (const void *)program->header;
	uint32_t h = 0, i;

	for (i = 0; i < program->header->size / 4; i++)
		h = (h ^ word[i]) * 0x9e3779b1u;
	return h >> 8;
}

/*
 * Fills operands of exactly their extents with noise; the LX does not start with 0. If the
 * program keeps a part of it, that is noise as well.
 */
static void open_memory(const struct spyre_program *program, uint32_t seed)
{
	const struct spyre_prog_header *h = program->header;
	uint32_t i;

	for (i = 0; i < h->num_operands; i++) {
		open_span(&operand[i], program->operands[i].extent);
		memcpy(operand[i].p, noise[i] + seed % SPAN_BYTES / 128 * 128, operand[i].open);
	}
	for (i = 0; i < h->num_cores; i++) {
		open_span(&lx[i], h->lx_bytes);
		memcpy(lx[i].p, noise[i] + seed % SPAN_BYTES / 128 * 128, h->lx_kept);
	}
}

static enum spyre_stop execute(const struct spyre_program *program, uint32_t unit,
			       uint32_t patience)
{
	const struct spyre_prog_header *h = program->header;
	struct fuzz_card *card = fuzz_card();
	u8 *op[GENERATE_OPERANDS], *scratchpad[CORES];
	struct spyre_exec x = {
		.host = &card->host, .job = card, .prog = program,
		.operand = op, .lx = h->lx_bytes ? scratchpad : NULL,
	};
	uint32_t i;

	for (i = 0; i < h->num_operands; i++)
		op[i] = operand[i].p;
	for (i = 0; i < h->num_cores; i++)
		scratchpad[i] = lx[i].p;
	card->host.unit = card->unit[unit];
	card->patience = patience;
	executed++;
	return spyre_card_exec(&x, &card->worker);
}

/* Runs the checked interpreter; false if it ends early. */
static bool checked(const struct spyre_program *program, uint8_t *const *op,
		    uint8_t *const *scratchpad)
{
	char fault[200] = "";

	if (order.given_up || order.open)
		return false;
	if (!checked_exec_ordered(program, op, scratchpad, &order, fault, sizeof(fault)) &&
	    !order.index)
		fuzz_fail("%s", fault);
	return !order.index;
}

/*
 * Fills want[] with the checked interpreter, which runs the program *@runs times; returns
 * false if the values are undefined. After an index beyond its extent, order.index, in the
 * last run they are undefined and the stop is not.
 */
static bool run_checked(const struct spyre_program *program, uint32_t seed, uint32_t *runs)
{
	const struct spyre_prog_header *h = program->header;
	uint8_t *op[GENERATE_OPERANDS], *scratchpad[CORES];
	uint64_t elements = 0;
	uint32_t i;

	each_instr(program, largest, &elements);
	order.open = false;
	order.index = false;
	/* Products take most of the time, so only a quarter of them run. */
	order.given_up = elements > MAX_ELEMENTS || program->cost.macs > MAX_MACS ||
			 (program->cost.macs && seed % 4);
	order.accesses = MAX_ACCESSES;
	for (i = 0; i < h->num_operands; i++) {
		op[i] = want[i];
		memcpy(want[i], operand[i].p, operand[i].open);
	}
	for (i = 0; i < h->num_cores; i++) {
		scratchpad[i] = want_lx[i];
		memcpy(want_lx[i], lx[i].p, h->lx_kept);
	}
	*runs = 1;
	if (checked(program, op, scratchpad) && h->lx_kept) {
		checked(program, op, scratchpad);
		*runs = 2;
	}
	unordered += order.open;
	long_ones += order.given_up && !order.open;
	/* A core that the interpreter did not reach may write what another one read. */
	return !order.open && !order.given_up && !(order.index && h->num_cores > 1);
}

static void compare_span(const uint8_t *got, const uint8_t *expected, uint64_t bytes,
			 const char *what, uint32_t index, uint32_t unit)
{
	uint64_t i = 0;

	if (!memcmp(got, expected, bytes))
		return;
	while (got[i] == expected[i])
		i++;
	fuzz_fail("%s: byte %llu of %s %u is %02x, want %02x",
		  spyre_unit_name(fuzz_card()->unit[unit]), (unsigned long long)i, what, index,
		  got[i], expected[i]);
}

/* Runs the program on a unit as often as the interpreter did; only the last run may stop. */
static void run_unit(const struct spyre_program *program, uint32_t unit, uint32_t runs)
{
	enum spyre_stop stop, want_stop;

	while (runs--) {
		want_stop = order.index && !runs ? SPYRE_STOP_INDEX : SPYRE_STOP_NONE;
		stop = execute(program, unit, ~0u);
		if (stop != want_stop)
			fuzz_fail("unit %s: stop %s, want %s",
				  spyre_unit_name(fuzz_card()->unit[unit]), spyre_stop_name(stop),
				  spyre_stop_name(want_stop));
	}
}

/* Runs each unit and compares with the interpreter's results, or with its stop. */
static void compare(const struct spyre_program *program, uint32_t seed, uint32_t runs)
{
	const struct spyre_prog_header *h = program->header;
	uint32_t unit, i;

	for (unit = 0; unit < fuzz_card()->num_units; unit++) {
		if (unit)
			open_memory(program, seed);
		run_unit(program, unit, runs);
		if (order.index)
			continue;
		for (i = 0; i < h->num_operands; i++)
			compare_span(operand[i].p, want[i], operand[i].open, "operand", i, unit);
		/* Several cores may share scratchpads, unless these are kept. */
		for (i = 0; i < h->num_cores && (h->num_cores == 1 || h->lx_kept); i++)
			compare_span(lx[i].p, want_lx[i], h->lx_bytes, "LX", i, unit);
		each_instr(program, cover, &unit);
	}
	index_faults += order.index;
	kept += runs > 1;
	fuzz_compared++;
}

static void execute_all(const struct spyre_program *program)
{
	uint32_t seed = hash(program), runs;

	open_memory(program, seed);
	if (run_checked(program, seed, &runs))
		compare(program, seed, runs);
	else
		stopped += execute(program, seed / 4 % fuzz_card()->num_units,
				   POLLS + 2 * program->header->num_cores) != SPYRE_STOP_NONE;
}

static bool run(const uint8_t *data, size_t size)
{
	static struct span image;
	struct spyre_verify_error err = { 0 };
	struct spyre_program program;
	bool accepted;

	if (!image.p)
		make_span(&image);
	if (size > SPAN_BYTES)
		return false;
	/* Exactly as long as the image. */
	open_span(&image, size);
	memcpy(image.p, data, size);
	accepted = build_settle(image.p, size, SPYRE_MAX_CORES, &program, &err);
	if (!accepted && (err.stop == SPYRE_STOP_NONE || err.stop >= SPYRE_STOP_COUNT))
		fuzz_fail("refused without a reason (%d)", err.stop);
	if (accepted && fits(&program))
		execute_all(&program);
	return accepted;
}

/* Sometimes creates a new program instead of a mutant. */
static size_t make(uint8_t *data)
{
	struct spyre_verify_error err;
	struct spyre_program program;
	uint64_t seed = SEEDS + fuzz_random(1u << 30);
	size_t size;
	void *image;

	if (fuzz_random(8))
		return 0;
	image = generate_program(seed, true, &size, &program, &err);
	if (!image)
		fuzz_fail("program %llu is refused: %s", (unsigned long long)seed,
			  spyre_stop_name(err.stop));
	if (size > FUZZ_MAX_INPUT)
		size = 0;
	memcpy(data, image, size);
	free(image);
	return size;
}

static const char *form_name(uint32_t form)
{
	static const char *const opcode[] = {
		[SPYRE_OP_MOVE] = "MOVE", [SPYRE_OP_PT] = "PT", [SPYRE_OP_RESTICK] = "RESTICK",
		[SPYRE_OP_GATHER] = "GATHER", [SPYRE_OP_SCATTER] = "SCATTER",
		[FORM_ACCUMULATE] = "PT, accumulating",
	};
	static char name[40];

	if (form < FORM_FUNCTIONS)
		return opcode[form];
	snprintf(name, sizeof(name), "function %u", form - FORM_FUNCTIONS);
	return name;
}

static const char *format_name(uint32_t format)
{
	static char name[40];

	snprintf(name, sizeof(name), "format %u of view %u", format % FORMATS_OF_VIEW,
		 format / FORMATS_OF_VIEW);
	return name;
}

static bool is_float(uint32_t format)
{
	return format == SPYRE_FMT_SEN169_FP16 || format == SPYRE_FMT_IEEE_FP32 ||
	       format == SPYRE_FMT_IEEE_FP16 || format == SPYRE_FMT_BFLOAT16 ||
	       format == SPYRE_FMT_SEN143_FP8 || format == SPYRE_FMT_SEN152_FP8;
}

static bool is_arithmetic(uint32_t format)
{
	return is_float(format) || format == SPYRE_FMT_SENINT4 || format == SPYRE_FMT_SENINT8 ||
	       format == SPYRE_FMT_SENINT16 || format == SPYRE_FMT_IEEE_INT32 ||
	       format == SPYRE_FMT_SENUINT32;
}

/* The formats that docs/isa.md permits for a view of an instruction. */
static bool reachable(uint32_t form, uint32_t format)
{
	uint32_t view = format / FORMATS_OF_VIEW, func = form - FORM_FUNCTIONS;

	format %= FORMATS_OF_VIEW;
	if (form < FORM_FUNCTIONS && format >= SPYRE_FMT_COUNT)
		return false;
	switch (form) {
	case SPYRE_OP_MOVE:
		return view < 2 && spyre_fmt_bytes(format);
	case SPYRE_OP_GATHER:
	case SPYRE_OP_SCATTER:
		if (view < 2)
			return spyre_fmt_bytes(format);
		return view < 2 + SPYRE_MAX_INDEX_VIEWS &&
		       (format == SPYRE_FMT_IEEE_INT32 || format == SPYRE_FMT_SENUINT32);
	case SPYRE_OP_RESTICK:
		return view < 2 && spyre_fmt_bytes(format) && spyre_fmt_bytes(format) <= 4;
	case SPYRE_OP_PT:
	case FORM_ACCUMULATE:
		if (view)
			return view < 3 && (is_float(format) || format == SPYRE_FMT_SENINT8 ||
					    format == SPYRE_FMT_SENINT4);
		return format == SPYRE_FMT_IEEE_INT32 || (form == SPYRE_OP_PT ? is_float(format) :
							  format == SPYRE_FMT_IEEE_FP32);
	}
	if (form < FORM_FUNCTIONS || !is_arithmetic(format))
		return false;
	if (spyre_func_integer(func) && format == SPYRE_FMT_SENUINT32)
		return false;
	if (func >= SPYRE_FUNC_INT_SUM && func <= SPYRE_FUNC_INT_AMIN)
		return view < 2;
	if (func >= SPYRE_FUNC_SUM && func <= SPYRE_FUNC_MULSUM)
		return view < 2 + (func == SPYRE_FUNC_MULSUM);
	if (func == SPYRE_FUNC_TOPK_VALUE || func == SPYRE_FUNC_TOPK_INDEX)
		return view < 2;
	return spyre_func_inputs(func) && view <= spyre_func_inputs(func);
}

static bool report(void)
{
	printf("fuzz-isa: %llu executed, of these %llu stopped early; values open in %llu, "
	       "not looked at in %llu; %llu stopped at an index; %llu kept LX for a second run\n",
	       executed, stopped, unordered, long_ones, index_faults, kept);
	return fuzz_cover_report(FORMS, 6 * FORMATS_OF_VIEW, form_name,
				 format_name, reachable);
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz-isa", .seeds = seeds, .run = run, .make = make, .report = report,
};
