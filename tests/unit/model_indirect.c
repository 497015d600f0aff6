// SPDX-License-Identifier: MIT
/*
 * GATHER and SCATTER: results, duplicate indices, and the stop at an index that is not
 * below its extent, on every unit and thread count; the verifier's proof, in which each
 * field is invalid in turn; phases that have to wait for them; their cost.
 */
#include "model_util.h"
#include "suite.h"
#include "tests/order.h"
#include "model/core.h"
#include "model/verify.h"

#include <stdlib.h>
#include <string.h>

#define ROWS 10u		/* extent of the first index */
#define COLUMNS 3u		/* extent of the second one */
#define POINTS 6u
#define ROW 384u		/* bytes: 3 sticks */
#define STICK 128u
#define INT32 SPYRE_FMT_IEEE_INT32

enum { OUT, IN, ROW_INDEX, COLUMN_INDEX, OPERANDS };

static struct builder b;

struct memory {
	struct guarded op[OPERANDS], lx[4];
	uint8_t *operand[OPERANDS], *lx_of[4];
};

static struct spyre_view *index_view(struct spyre_instr *in, uint32_t index, uint32_t operand)
{
	struct spyre_view *view = build_view(in, index, operand, 0);

	view->format = INT32;
	view->lanes = SPYRE_LANES_SPLAT;
	return view;
}

/*
 * Dims: points, rows (replaced by index), columns (replaced by index). Point p moves a
 * stick between p and (row index p, column index p) of a table of ROWS x COLUMNS sticks.
 */
static struct spyre_instr *add_pairs(uint32_t opcode)
{
	struct spyre_instr *in = build_instr(&b, opcode, SPYRE_FUNC_NONE, 3, 64);
	struct spyre_view *table, *flat;

	build_more_views(&b, in, 2);
	in->count[0] = POINTS;
	in->reduce_mask = 6;
	in->imm[0] = ROWS;
	in->imm[1] = COLUMNS;
	table = build_view(in, opcode == SPYRE_OP_GATHER, opcode == SPYRE_OP_GATHER ? IN : OUT, 0);
	flat = build_view(in, opcode != SPYRE_OP_GATHER, opcode == SPYRE_OP_GATHER ? OUT : IN, 0);
	table->stride[1] = ROW;
	table->stride[2] = STICK;
	flat->stride[0] = STICK;
	index_view(in, 2, ROW_INDEX)->stride[0] = 4;
	index_view(in, 3, COLUMN_INDEX)->stride[0] = 8;
	return in;
}

static void *pairs(uint32_t opcode, size_t *size)
{
	build_start(&b, 1, 0, OPERANDS);
	build_phase(&b);
	build_stream(&b, 0);
	add_pairs(opcode);
	return build_image(&b, size);
}

static void fill(struct memory *m, const struct spyre_program *prog, const int32_t *row,
		 const int32_t *column)
{
	uint64_t seed = 99;
	uint32_t i;

	for (i = 0; i < prog->header->num_operands; i++) {
		guarded_alloc(&m->op[i], prog->operands[i].extent);
		m->operand[i] = m->op[i].p;
	}
	for (i = 0; i < prog->header->num_cores; i++) {
		guarded_alloc(&m->lx[i], prog->header->lx_bytes);
		m->lx_of[i] = m->lx[i].p;
	}
	memset(m->op[OUT].p, 0x11, m->op[OUT].bytes);
	rng_fill(&seed, m->op[IN].p, m->op[IN].bytes, SPYRE_FMT_SEN169_FP16);
	for (i = 0; i < POINTS; i++) {
		put_le(m->op[ROW_INDEX].p + 4 * i, (uint32_t)row[i], 4);
		put_le(m->op[COLUMN_INDEX].p + 8 * i, (uint32_t)column[i], 4);
	}
}

static void done(struct memory *m, const struct spyre_program *prog)
{
	uint32_t i;

	for (i = 0; i < prog->header->num_operands; i++) {
		ck_assert_msg(guarded_intact(&m->op[i]), "guard of operand %u", i);
		guarded_free(&m->op[i]);
	}
	for (i = 0; i < prog->header->num_cores; i++) {
		ck_assert_msg(guarded_intact(&m->lx[i]), "guard of LX %u", i);
		guarded_free(&m->lx[i]);
	}
}

static enum spyre_stop run(struct memory *m, const struct spyre_program *prog,
			   const struct spyre_unit *unit, int threads, long polls, long *left)
{
	struct test_host host;
	struct spyre_exec x = { .host = &host.host, .prog = prog, .operand = m->operand,
				.lx = m->lx_of };
	enum spyre_stop stop;

	test_host_init(&host, unit, threads);
	host.polls_left = polls;
	stop = spyre_card_exec(&x, &host.self);
	ck_assert_int_eq(host.errors, 0);
	if (left)
		*left = host.polls_left;
	test_host_done(&host);
	return stop;
}

/* The last of two equal pairs remains: points are moved in their order. */
static const int32_t rows[POINTS] = { 9, 0, 4, 9, 4, 9 };
static const int32_t columns[POINTS] = { 2, 0, 1, 0, 1, 2 };

START_TEST(test_pairs)
{
	static const uint32_t opcode[] = { SPYRE_OP_GATHER, SPYRE_OP_SCATTER };
	const struct spyre_unit *const *unit;
	uint8_t want[ROWS * ROW];
	struct spyre_program prog;
	struct memory m;
	size_t size;
	void *image = pairs(opcode[_i], &size);
	uint32_t p, at;
	int threads;

	build_seal(image, size, 1, &prog);
	for (unit = test_units(); *unit; unit++) {
		for (threads = 1; threads <= 3; threads += 2) {
			fill(&m, &prog, rows, columns);
			memset(want, 0x11, sizeof(want));
			for (p = 0; p < POINTS; p++) {
				at = rows[p] * ROW + columns[p] * STICK;
				if (_i)
					memcpy(want + at, m.op[IN].p + p * STICK, STICK);
				else
					memcpy(want + p * STICK, m.op[IN].p + at, STICK);
			}
			ck_assert_int_eq(run(&m, &prog, *unit, threads, -1, NULL),
					 SPYRE_STOP_NONE);
			ck_assert(!memcmp(m.op[OUT].p, want, m.op[OUT].bytes));
			done(&m, &prog);
		}
	}
	free(image);
}
END_TEST

/* Each bad index stops the program at its point; nothing beyond the view is touched. */
START_TEST(test_bad_index)
{
	static const struct { uint32_t point; int32_t row, column; } bad[] = {
		{ 0, ROWS, 0 }, { 3, -1, 0 }, { 5, INT32_MIN, 0 }, { 2, INT32_MAX, 0 },
		{ 4, 0, COLUMNS }, { 1, 0, -128 }, { 5, ROWS, COLUMNS },
	};
	static const uint32_t opcode[] = { SPYRE_OP_GATHER, SPYRE_OP_SCATTER };
	const struct spyre_unit *const *unit;
	int32_t row[POINTS], column[POINTS];
	struct spyre_program prog;
	struct memory m;
	size_t size;
	void *image = pairs(opcode[_i % 2], &size);
	uint32_t first;
	int threads;

	build_seal(image, size, 1, &prog);
	memcpy(row, rows, sizeof(row));
	memcpy(column, columns, sizeof(column));
	row[bad[_i / 2].point] = bad[_i / 2].row;
	column[bad[_i / 2].point] = bad[_i / 2].column;
	for (unit = test_units(); *unit; unit++) {
		for (threads = 1; threads <= 3; threads += 2) {
			fill(&m, &prog, row, column);
			ck_assert_int_eq(run(&m, &prog, *unit, threads, -1, NULL),
					 SPYRE_STOP_INDEX);
			/* The points before it were moved, the others were not. */
			for (first = 0; !(_i % 2) && first < POINTS; first++)
				ck_assert_int_eq(m.op[OUT].p[first * STICK] == 0x11 &&
						 m.op[OUT].p[first * STICK + 1] == 0x11,
						 first >= bad[_i / 2].point);
			done(&m, &prog);
		}
	}
	free(image);
}
END_TEST

/* The host asks to stop right after the bad index: the stop keeps its reason. */
START_TEST(test_stop_after_bad_index)
{
	int32_t row[POINTS] = { ROWS };
	struct spyre_program prog;
	struct memory m;
	size_t size;
	void *image = pairs(SPYRE_OP_GATHER, &size);

	build_seal(image, size, 1, &prog);
	fill(&m, &prog, row, columns);
	ck_assert_int_eq(run(&m, &prog, test_units()[0], 1, 0, NULL), SPYRE_STOP_INDEX);
	done(&m, &prog);
	free(image);
}
END_TEST

/* Core 1 meets a bad index: the phase after it does not run, whatever the threads are. */
START_TEST(test_phase_after_bad_index)
{
	int32_t row[POINTS] = { 0, 1, 2, 3, 4, ROWS };
	struct spyre_program prog;
	struct spyre_instr *in;
	struct memory m;
	size_t size;
	void *image;
	int threads;

	build_start(&b, 2, 0, OPERANDS);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 0, 64);
	build_view(in, 0, OUT, 64 * STICK);
	build_view(in, 1, IN, 0);
	build_stream(&b, 1);
	add_pairs(SPYRE_OP_GATHER);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 0, 64);
	build_view(in, 0, OUT, 65 * STICK);
	build_view(in, 1, OUT, 0);
	image = build_image(&b, &size);
	build_seal(image, size, 2, &prog);
	for (threads = 1; threads <= 3; threads++) {
		fill(&m, &prog, row, columns);
		ck_assert_int_eq(run(&m, &prog, test_units()[0], threads, -1, NULL),
				 SPYRE_STOP_INDEX);
		ck_assert_uint_eq(m.op[OUT].p[65 * STICK], 0x11);
		done(&m, &prog);
	}
	free(image);
}
END_TEST

/* Rows of three sticks; the indices were computed into LX, which a peer reads over the ring. */
START_TEST(test_index_in_lx)
{
	struct spyre_program prog;
	struct spyre_instr *in;
	struct spyre_view *view;
	struct memory m;
	size_t size;
	void *image;
	uint32_t p;

	build_start(&b, 2, STICK, OPERANDS);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 0, POINTS);
	build_view(in, 0, SPYRE_VIEW_LX, 0)->format = INT32;
	build_view(in, 1, ROW_INDEX, 0)->format = INT32;
	build_phase(&b);
	build_stream(&b, 1);
	/* Dims: points, which the index replaces in the table, and sticks of a row. */
	in = build_instr(&b, SPYRE_OP_GATHER, SPYRE_FUNC_NONE, 2, 64);
	build_more_views(&b, in, 1);
	in->count[0] = POINTS;
	in->count[1] = 3;
	in->reduce_mask = 1;
	in->imm[0] = ROWS;
	view = build_view(in, 0, OUT, 0);
	view->stride[0] = ROW;
	view->stride[1] = STICK;
	view = build_view(in, 1, IN, 0);
	view->stride[0] = ROW;
	view->stride[1] = STICK;
	index_view(in, 2, SPYRE_VIEW_RING | 0)->stride[0] = 4;
	/* Every operand must be used. */
	in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 0, 2 * POINTS);
	build_view(in, 0, OUT, POINTS * ROW)->format = INT32;
	build_view(in, 1, COLUMN_INDEX, 0)->format = INT32;
	image = build_image(&b, &size);
	build_seal(image, size, 2, &prog);
	ck_assert_uint_eq(prog.operands[IN].extent, ROWS * ROW);
	fill(&m, &prog, rows, columns);
	ck_assert_int_eq(run(&m, &prog, test_units()[0], 2, -1, NULL), SPYRE_STOP_NONE);
	for (p = 0; p < POINTS; p++)
		ck_assert(!memcmp(m.op[OUT].p + p * ROW, m.op[IN].p + rows[p] * ROW, ROW));
	done(&m, &prog);
	free(image);
}
END_TEST

/* Many points of few bytes still poll for a stop; no index is read for the others. */
START_TEST(test_polls)
{
	static const int32_t zero[POINTS];
	struct spyre_program prog;
	struct spyre_instr *in;
	struct memory m;
	size_t size;
	void *image;
	long left;

	build_start(&b, 1, 0, OPERANDS);
	build_phase(&b);
	build_stream(&b, 0);
	in = add_pairs(SPYRE_OP_GATHER);
	in->count[1] = 60000;
	in->count[2] = 60000;
	image = build_image(&b, &size);
	build_seal(image, size, 1, &prog);
	fill(&m, &prog, zero, zero);
	ck_assert_int_eq(run(&m, &prog, test_units()[0], 1, 50, &left), SPYRE_STOP_CANCELLED);
	ck_assert_int_ge(left, -3);
	done(&m, &prog);
	free(image);
}
END_TEST

/* A program of one instruction with one field changed. */
#define BAD(opcode, field, new_value, reason)					\
	do {									\
		struct spyre_prog_operand *op;					\
		struct spyre_verify_error err;					\
		struct spyre_program prog;					\
		struct spyre_instr *in;						\
		struct spyre_view *view;					\
		size_t bad_size;						\
		void *h = pairs(opcode, &bad_size);				\
										\
		build_seal(h, bad_size, 1, &prog);				\
		op = (void *)((struct spyre_prog_header *)h + 1);		\
		in = (void *)((char *)(op + OPERANDS) + 16 + 16);		\
		view = (void *)(in + 1);					\
		(void)view;							\
		field = new_value;						\
		ck_assert_int_eq(spyre_program_verify(h, bad_size, 1, &prog, &err), -EINVAL); \
		ck_assert_msg(err.stop == SPYRE_STOP_##reason,			\
			      #opcode " " #field " = " #new_value ": %s, value %llu limit %llu", \
			      spyre_stop_name(err.stop), (unsigned long long)err.value, \
			      (unsigned long long)err.limit);			\
		free(h);							\
	} while (0)

static void check_verifier(uint32_t opcode, uint32_t table)
{
	BAD(opcode, in->imm[0], 0, BAD_SHAPE);
	BAD(opcode, in->imm[1], (1u << 31) + 1, BAD_SHAPE);
	BAD(opcode, in->imm[2], 1, BAD_SHAPE);
	/* One more row than the operand has, and many more. */
	BAD(opcode, in->imm[0], ROWS + 1, EXTENT);
	BAD(opcode, in->imm[0] = 1u << 31; view[table].stride[1], 1ull << 34, EXTENT);
	BAD(opcode, in->imm[0] = 1u << 31; view[table].stride[1], 128, EXTENT);
	/* 2^30 rows times 2^34 bytes are 0 modulo 2^64: it is not a table of one row. */
	BAD(opcode, in->imm[0] = (1u << 30) + 1; view[table].stride[1] = 1ull << 34;
	    op[table].extent, ROW, EXTENT);
	BAD(opcode, view[table].stride[1], ROW + 2, EXTENT);
	BAD(opcode, view[table].stride[1], ROW + 1, BAD_VIEW);
	BAD(opcode, view[table].offset, 2, EXTENT);
	BAD(opcode, in->reduce_mask, 0, BAD_SHAPE);
	BAD(opcode, in->reduce_mask, 2, BAD_SHAPE);
	BAD(opcode, in->reduce_mask, 7, BAD_SHAPE);
	BAD(opcode, in->reduce_mask, 10, BAD_SHAPE);
	BAD(opcode, in->reduce_mask, 0x1f, BAD_SHAPE);
	BAD(opcode, in->reduce_mask, 0xff, BAD_SHAPE);
	BAD(opcode, in->func, SPYRE_FUNC_IDENTITY, BAD_FUNC);
	BAD(opcode, in->flags, SPYRE_INSTR_ACCUMULATE, BAD_SHAPE);
	BAD(opcode, in->valid, 1, BAD_SHAPE);
	BAD(opcode, in->lanes, 129, BAD_SHAPE);
	BAD(opcode, view[0].format, SPYRE_FMT_SENINT4, BAD_FORMAT);
	BAD(opcode, view[1].format, SPYRE_FMT_SENINT16, BAD_FORMAT);
	BAD(opcode, view[1].lanes, SPYRE_LANES_SPLAT, BAD_VIEW);
	BAD(opcode, view[2].format, SPYRE_FMT_IEEE_INT64, BAD_FORMAT);
	BAD(opcode, view[2].format, SPYRE_FMT_IEEE_FP32, BAD_FORMAT);
	BAD(opcode, view[3].format, SPYRE_FMT_SENINT16, BAD_FORMAT);
	BAD(opcode, view[2].lanes, SPYRE_LANES_ALL, BAD_VIEW);
	BAD(opcode, view[3].offset, 2, BAD_VIEW);
	BAD(opcode, view[3].stride[0], 12, EXTENT);
	BAD(opcode, view[3].operand, OPERANDS, BAD_VIEW);
	BAD(opcode, view[2].reserved, 1, BAD_VIEW);
	BAD(opcode, view[0].operand, SPYRE_VIEW_RING, BAD_VIEW);
	/* An unsigned index is as good. */
	BAD(opcode, view[2].format = SPYRE_FMT_SENUINT32; op[ROW_INDEX].extent, 20, EXTENT);
}

START_TEST(test_verifier)
{
	check_verifier(SPYRE_OP_GATHER, 1);
	check_verifier(SPYRE_OP_SCATTER, 0);
	BAD(SPYRE_OP_GATHER, in->opcode, SPYRE_OP_SCATTER, EXTENT);
	BAD(SPYRE_OP_GATHER, in->opcode, SPYRE_OP_MOVE, BAD_SHAPE);
	BAD(SPYRE_OP_GATHER, in->opcode, SPYRE_OP_INT + 1, BAD_OPCODE);
}
END_TEST

/* The table is used up to the last row that an index may name; both indices are only read. */
START_TEST(test_extents)
{
	struct spyre_program prog;
	size_t size;
	void *image = pairs(SPYRE_OP_GATHER, &size);

	build_seal(image, size, 1, &prog);
	ck_assert_uint_eq(prog.operands[OUT].extent, POINTS * STICK);
	ck_assert_uint_eq(prog.operands[OUT].flags, SPYRE_OPERAND_WRITE);
	ck_assert_uint_eq(prog.operands[IN].extent, ROWS * ROW);
	ck_assert_uint_eq(prog.operands[IN].flags, SPYRE_OPERAND_READ);
	ck_assert_uint_eq(prog.operands[ROW_INDEX].extent, 4 * POINTS);
	ck_assert_uint_eq(prog.operands[COLUMN_INDEX].extent, 8 * POINTS - 4);
	ck_assert_uint_eq(prog.operands[COLUMN_INDEX].flags, SPYRE_OPERAND_READ);
	free(image);
	image = pairs(SPYRE_OP_SCATTER, &size);
	build_seal(image, size, 1, &prog);
	ck_assert_uint_eq(prog.operands[OUT].extent, ROWS * ROW);
	ck_assert_uint_eq(prog.operands[OUT].flags, SPYRE_OPERAND_WRITE);
	ck_assert_uint_eq(prog.operands[IN].extent, POINTS * STICK);
	free(image);
}
END_TEST

#define MANY 4096u		/* points of a core; enough to pay for the proof of a group */

/*
 * Two cores write half of a table each; then core 0 gathers by @extent rows. If these
 * are its own half, it need not wait for core 1.
 */
static uint32_t phases_in_group(uint32_t extent)
{
	static uint8_t memory[OPERANDS][2 * MANY * STICK];
	uint8_t *operand[OPERANDS];
	struct spyre_program prog;
	struct spyre_exec x = { .prog = &prog, .operand = operand };
	struct spyre_instr *in;
	struct test_host host;
	size_t size;
	void *image;
	uint32_t i, phases;

	for (i = 0; i < OPERANDS; i++)
		operand[i] = memory[i];
	build_start(&b, 2, 0, OPERANDS - 1);
	build_phase(&b);
	for (i = 0; i < 2; i++) {
		build_stream(&b, i);
		in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 1, 64);
		in->count[0] = MANY;
		build_view(in, 0, IN, i * MANY * STICK)->stride[0] = STICK;
		build_view(in, 1, ROW_INDEX, 0);
	}
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_GATHER, SPYRE_FUNC_NONE, 1, 64);
	build_more_views(&b, in, 1);
	in->reduce_mask = 1;
	in->imm[0] = extent;
	build_view(in, 0, OUT, 0);
	build_view(in, 1, IN, 0)->stride[0] = STICK;
	index_view(in, 2, ROW_INDEX);
	image = build_image(&b, &size);
	build_seal(image, size, 2, &prog);
	test_host_init(&host, test_units()[0], 1);
	x.host = &host.host;
	phases = spyre_phase_group(&x, 0, host.self.scratch);
	test_host_done(&host);
	free(image);
	return phases;
}

START_TEST(test_groups)
{
	ck_assert_uint_eq(phases_in_group(MANY), 2);
	ck_assert_uint_eq(phases_in_group(MANY + 1), 1);
}
END_TEST

/* Sticks, and a stick of 32 indices each; an address takes a cycle. */
START_TEST(test_cost)
{
	struct spyre_instr_cost cost;
	struct spyre_program prog;
	size_t size;
	char *image = (char *)pairs(SPYRE_OP_GATHER, &size);
	struct spyre_instr *in = (void *)(image + 64 + OPERANDS * 16 + 16 + 16);

	build_seal(image, size, 1, &prog);
	spyre_cost_instr(in, &cost);
	ck_assert_uint_eq(cost.bytes_read, (POINTS + 2) * STICK);
	ck_assert_uint_eq(cost.bytes_written, POINTS * STICK);
	ck_assert_uint_eq(cost.elements, 0);
	ck_assert_uint_eq(cost.cycles, 2 * POINTS + 16);
	in->count[0] = 33;
	spyre_cost_instr(in, &cost);
	ck_assert_uint_eq(cost.bytes_read, (33 + 4) * STICK);
	ck_assert_uint_eq(cost.cycles, 2 * 33 + 16);
	free(image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_indirect");
	TCase *tc = tcase_create("indirect");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_pairs, 0, 2);
	tcase_add_loop_test(tc, test_bad_index, 0, 14);
	tcase_add_test(tc, test_stop_after_bad_index);
	tcase_add_test(tc, test_phase_after_bad_index);
	tcase_add_test(tc, test_index_in_lx);
	tcase_add_test(tc, test_polls);
	tcase_add_test(tc, test_verifier);
	tcase_add_test(tc, test_extents);
	tcase_add_test(tc, test_groups);
	tcase_add_test(tc, test_cost);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
