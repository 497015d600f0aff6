// SPDX-License-Identifier: MIT
/*
 * Random programs: a verified program stays within its operands and LX; random
 * damage to an image never crashes the verifier, and a damaged image that is still
 * accepted runs within bounds as well.
 */
#include "model_util.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORES 4
#define OPERANDS 5
#define LX 8192

static struct builder b;
static uint64_t seed;

static void random_view(struct spyre_instr *in, uint32_t index)
{
	static const uint32_t formats[] = {
		SPYRE_FMT_SEN169_FP16, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP16,
		SPYRE_FMT_BFLOAT16,
	};
	struct spyre_view *view = build_view(in, index, rng_below(&seed, OPERANDS), 0);
	bool raw = in->opcode == SPYRE_OP_MOVE || in->opcode == SPYRE_OP_RESTICK;
	uint32_t bytes, d, place = rng_below(&seed, 8);

	view->format = raw ? SPYRE_FMT_SEN169_FP16 : formats[rng_below(&seed, 4)];
	bytes = spyre_fmt_bytes(view->format);
	if (place == 0)
		view->operand = SPYRE_VIEW_LX;
	else if (place == 1 && index)
		view->operand = SPYRE_VIEW_RING | rng_below(&seed, CORES);
	view->offset = bytes * rng_below(&seed, 200);
	for (d = 0; d < in->num_dims; d++)
		view->stride[d] = bytes * rng_below(&seed, place < 2 ? 40 : 300);
	view->loop_stride[0] = bytes * rng_below(&seed, 100);
	if (index && !raw && in->opcode != SPYRE_OP_PT && !rng_below(&seed, 4))
		view->lanes = SPYRE_LANES_SPLAT;
}

static void random_roles(struct spyre_instr *in)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1);
	uint32_t d;

	if (in->opcode == SPYRE_OP_REDUCE) {
		in->reduce_mask = rng_below(&seed, 1u << in->num_dims);
		in->flags = !in->reduce_mask || in->func == SPYRE_FUNC_EXX2 ||
			    rng_below(&seed, 2);
		if (in->func == SPYRE_FUNC_EXX2 && in->lanes < 2)
			in->lanes = 2;
		if (in->flags && rng_below(&seed, 2))
			in->valid = 1 + rng_below(&seed, in->lanes);
		for (d = 0; d < in->num_dims; d++)
			if (in->reduce_mask & 1u << d)
				view[0].stride[d] = 0;
	} else if (in->opcode == SPYRE_OP_PT) {
		in->count[4] = 1 + rng_below(&seed, 2);
		in->count[5] = 64 * (1 + rng_below(&seed, 2));
		view[0].stride[5] = 0;
		view[1].stride[4] = 0;
		view[2].stride[3] = 0;
	} else if (in->opcode == SPYRE_OP_RESTICK) {
		in->count[4] = 64;
		in->count[5] = 64;
		view[0].stride[4] = 0;
		view[1].stride[5] = 0;
	}
}

static void random_instr(void)
{
	static const uint32_t opcodes[][2] = {
		{ SPYRE_OP_MOVE, 0 }, { SPYRE_OP_SFU, SPYRE_FUNC_ADD },
		{ SPYRE_OP_SFU, SPYRE_FUNC_WHERE }, { SPYRE_OP_SFU, SPYRE_FUNC_RELU },
		{ SPYRE_OP_REDUCE, SPYRE_FUNC_SUM }, { SPYRE_OP_REDUCE, SPYRE_FUNC_AMAX },
		{ SPYRE_OP_SFU, SPYRE_FUNC_LAYERNORMNORM }, { SPYRE_OP_SFU, SPYRE_FUNC_REALDIV },
		{ SPYRE_OP_REDUCE, SPYRE_FUNC_EXX2 }, { SPYRE_OP_PT, 0 }, { SPYRE_OP_RESTICK, 0 },
	};
	uint32_t pick = rng_below(&seed, 11), i;
	bool fixed = pick >= 9;
	struct spyre_instr *in = build_instr(&b, opcodes[pick][0], opcodes[pick][1],
					     fixed ? 6 : rng_below(&seed, 7),
					     fixed ? 64 : 1 + rng_below(&seed, 128));

	for (i = 0; i < in->num_dims; i++)
		in->count[i] = 1 + rng_below(&seed, 4);
	for (i = 0; i < in->num_views; i++)
		random_view(in, i);
	random_roles(in);
}

static void *random_program(size_t *size)
{
	uint32_t phases = 1 + rng_below(&seed, 3), p, c, n;
	void *image;

	build_start(&b, CORES, LX, OPERANDS);
	build_loop(&b, 1 + rng_below(&seed, 3));
	for (p = 0; p < phases; p++) {
		build_phase(&b);
		for (c = 0; c < CORES; c++) {
			if (c && rng_below(&seed, 2))
				continue;
			build_stream(&b, c);
			for (n = rng_below(&seed, 4); n; n--)
				random_instr();
		}
	}
	build_end(&b);
	image = build_image(&b, size);
	return image;
}

/* Corrects the table; returns false if the program is refused for another reason. */
static bool settle(void *image, size_t size, struct spyre_program *prog)
{
	struct spyre_prog_operand *op = (void *)((struct spyre_prog_header *)image + 1);
	struct spyre_verify_error err;
	int round;

	for (round = 0; round < 4 * OPERANDS; round++) {
		if (!spyre_program_verify(image, size, CORES, prog, &err))
			return true;
		if (err.view >= OPERANDS)
			return false;
		if (err.stop == SPYRE_STOP_ACCESS)
			op[err.view].flags = err.limit;
		else if (err.stop == SPYRE_STOP_EXTENT && err.limit <= 1 << 20)
			op[err.view].extent = err.limit;
		else
			return false;
	}
	return false;
}

/* Operands and LX have exactly the sizes that the program declares. */
static void run(const struct spyre_program *prog, const struct spyre_unit *unit)
{
	struct guarded op[SPYRE_MAX_OPERANDS], lx[SPYRE_MAX_CORES];
	uint8_t *operand[SPYRE_MAX_OPERANDS], *lx_of[SPYRE_MAX_CORES];
	struct test_host host;
	struct spyre_exec x = { .host = &host.host, .prog = prog, .operand = operand, .lx = lx_of };
	uint32_t i;

	test_host_init(&host, unit, 1);
	host.polls_left = 300;
	for (i = 0; i < prog->header->num_operands; i++) {
		guarded_alloc(&op[i], prog->operands[i].extent);
		rng_fill(&seed, op[i].p, op[i].bytes, SPYRE_FMT_SEN169_FP16);
		operand[i] = op[i].p;
	}
	for (i = 0; i < prog->header->num_cores; i++) {
		guarded_alloc(&lx[i], prog->header->lx_bytes);
		lx_of[i] = lx[i].p;
	}
	spyre_card_exec(&x, &host.self);
	for (i = 0; i < prog->header->num_operands; i++) {
		expect(guarded_intact(&op[i]), "operand %u", i);
		guarded_free(&op[i]);
	}
	for (i = 0; i < prog->header->num_cores; i++) {
		expect(guarded_intact(&lx[i]), "LX %u", i);
		guarded_free(&lx[i]);
	}
	test_host_done(&host);
}

START_TEST(test_random_programs)
{
	const struct spyre_unit *unit = test_units()[_i];
	struct spyre_program prog;
	int n, ran = 0;
	size_t size;
	void *image;

	seed = 2024;
	for (n = 0; n < 300; n++) {
		image = random_program(&size);
		if (settle(image, size, &prog)) {
			run(&prog, unit);
			ran++;
		}
		free(image);
	}
	/* Most must be valid, or this test would show nothing. */
	ck_assert_int_gt(ran, 100);
}
END_TEST

static void damage(uint8_t *image, size_t size)
{
	static const uint64_t values[] = {
		0, 1, ~0ull, 1ull << 63, 0x7fffffff, 0x80000000, 0xffff, 0x8000, 1ull << 34, 128,
	};
	uint32_t n = 1 + rng_below(&seed, 3);

	while (n--) {
		size_t at = rng_below(&seed, size);
		uint64_t value = values[rng_below(&seed, 10)];

		switch (rng_below(&seed, 4)) {
		case 0:
			image[at] ^= 1u << rng_below(&seed, 8);
			break;
		case 1:
			image[at] = rng_next(&seed);
			break;
		case 2:
			memcpy(image + at / 4 % (size / 4) * 4, &value, 4);
			break;
		default:
			memcpy(image + at / 8 * 8, &value, 8);
		}
	}
}

START_TEST(test_damaged_programs)
{
	struct spyre_verify_error err;
	struct spyre_program prog;
	int n, m, passed = 0;
	void *image, *copy;
	size_t size;

	seed = 4711;
	for (n = 0; n < 100; n++) {
		image = random_program(&size);
		if (!settle(image, size, &prog)) {
			free(image);
			continue;
		}
		/* Exactly as large as the image, so that a sanitizer sees the end. */
		copy = malloc(size);
		for (m = 0; m < 200; m++) {
			memcpy(copy, image, size);
			damage(copy, size);
			if (spyre_program_verify(copy, size, CORES, &prog, &err)) {
				expect(err.stop > SPYRE_STOP_NONE && err.stop < SPYRE_STOP_COUNT,
				       "stop %d", err.stop);
			} else if (passed++ % 4 == 0) {
				run(&prog, test_units()[0]);
			}
		}
		free(copy);
		free(image);
	}
	ck_assert_int_gt(passed, 10);
}
END_TEST

/* Random bytes after a valid header. */
START_TEST(test_noise)
{
	struct spyre_verify_error err;
	struct spyre_program prog;
	int n;

	seed = 99991;
	for (n = 0; n < 20000; n++) {
		size_t size = 64 + 8 * rng_below(&seed, 100);
		struct spyre_prog_header *h = malloc(size);

		rng_fill(&seed, h, size, SPYRE_FMT_IEEE_INT32);
		memset(h, 0, sizeof(*h));
		h->magic = SPYRE_PROG_MAGIC;
		h->version = SPYRE_PROG_VERSION;
		h->size = size;
		h->num_cores = 1 + rng_below(&seed, CORES);
		h->num_steps = rng_below(&seed, 3);
		h->num_streams = rng_below(&seed, 3);
		h->instr_bytes = size - 64 - 16 * (h->num_steps + h->num_streams);
		if (h->num_steps && size > 96) {
			struct spyre_prog_step *step = (void *)(h + 1);

			step->kind = 1 + rng_below(&seed, 3);
			step->count = 0;
			step->first_stream = 0;
			step->num_streams = rng_below(&seed, 2);
		}
		spyre_program_verify(h, size, CORES, &prog, &err);
		free(h);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_fuzz");
	TCase *tc = tcase_create("fuzz");
	int units = test_units_report();

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_random_programs, 0, units);
	tcase_add_test(tc, test_damaged_programs);
	tcase_add_test(tc, test_noise);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
