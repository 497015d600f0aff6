// SPDX-License-Identifier: MIT
/* A valid program is accepted; each field, invalid in turn, causes the right stop. */
#include "model_util.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

static struct builder b;

/* Two cores; a move to LX, an add in a loop, a reduction, a product, a tile. */
static void *good(size_t *size)
{
	struct spyre_program prog;
	struct spyre_instr *in;
	void *image;
	int v;

	build_start(&b, 2, 1024, 4);
	build_loop(&b, 3);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, 1, 64);
	in->count[0] = 8;
	build_view(in, 0, SPYRE_VIEW_LX, 0)->stride[0] = 128;
	build_view(in, 1, 0, 256)->stride[0] = 128;
	build_view(in, 1, 0, 256)->loop_stride[0] = 1024;
	build_stream(&b, 1);
	in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_ADD, 2, 64);
	in->count[0] = 2;
	in->count[1] = 3;
	for (v = 0; v < 3; v++) {
		build_view(in, v, v ? 0 : 1, 128)->stride[0] = 1024;
		build_view(in, v, v ? 0 : 1, 128)->stride[1] = 256;
	}
	build_view(in, 2, 2, 4)->lanes = SPYRE_LANES_SPLAT;
	build_end(&b);
	build_phase(&b);
	build_stream(&b, 1);
	in = build_instr(&b, SPYRE_OP_REDUCE, SPYRE_FUNC_MEAN, 2, 64);
	in->count[0] = 2;
	in->count[1] = 3;
	in->reduce_mask = 2;
	in->flags = SPYRE_INSTR_REDUCE_LANES;
	in->valid = 130;
	in->imm[0] = 0x3f800000;
	build_view(in, 0, 1, 0)->stride[0] = 128;
	build_view(in, 1, SPYRE_VIEW_RING | 0, 0)->stride[1] = 128;
	in = build_instr(&b, SPYRE_OP_PT, SPYRE_FUNC_NONE, 6, 64);
	in->count[3] = 4;
	in->count[4] = 2;
	in->count[5] = 128;
	build_view(in, 0, 3, 0)->stride[3] = 128;
	build_view(in, 0, 3, 0)->stride[4] = 512;
	build_view(in, 1, 0, 0)->stride[3] = 128;
	build_view(in, 1, 0, 0)->stride[5] = 512;
	build_view(in, 2, 2, 0)->stride[4] = 128 * 128;
	build_view(in, 2, 2, 0)->stride[5] = 128;
	in = build_instr(&b, SPYRE_OP_RESTICK, SPYRE_FUNC_NONE, 6, 64);
	in->count[4] = 64;
	in->count[5] = 64;
	build_view(in, 0, 3, 1024)->stride[5] = 128;
	build_view(in, 1, 0, 0)->stride[4] = 128;
	image = build_image(&b, size);
	build_seal(image, *size, 2, &prog);
	/* The farthest access of each operand, computed by hand. */
	ck_assert_uint_eq(prog.operands[0].extent, 64 * 128);
	ck_assert_uint_eq(prog.operands[0].flags, SPYRE_OPERAND_READ);
	ck_assert_uint_eq(prog.operands[1].extent, 128 + 1024 + 2 * 256 + 128);
	ck_assert_uint_eq(prog.operands[1].flags, SPYRE_OPERAND_WRITE);
	ck_assert_uint_eq(prog.operands[2].extent, 128 * 128 + 127 * 128 + 128);
	ck_assert_uint_eq(prog.operands[3].extent, 1024 + 64 * 128);
	ck_assert_uint_eq(prog.cost.macs, 4 * 128 * 128);
	ck_assert_uint_eq(prog.cost.elements, 3 * 6 * 64 + 6 * 64);
	return image;
}

struct parts {
	struct spyre_prog_header *h;
	struct spyre_prog_operand *op;
	struct spyre_prog_step *step;
	struct spyre_prog_stream *stream;
	struct spyre_instr *in[5];	/* move, add, mean, product, tile */
	struct spyre_view *view[5];
};

static void find(void *image, struct parts *p)
{
	int i;

	p->h = image;
	p->op = (void *)(p->h + 1);
	p->step = (void *)(p->op + p->h->num_operands);
	p->stream = (void *)(p->step + p->h->num_steps);
	p->in[0] = (void *)(p->stream + p->h->num_streams);
	for (i = 0; i < 5; i++) {
		p->view[i] = (void *)(p->in[i] + 1);
		if (i < 4)
			p->in[i + 1] = (void *)(p->view[i] + p->in[i]->num_views);
	}
}

static struct spyre_verify_error refused(const void *image, size_t size, uint32_t cores,
					 const char *what, enum spyre_stop stop)
{
	struct spyre_verify_error err;
	struct spyre_program prog;
	int ret = spyre_program_verify(image, size, cores, &prog, &err);

	ck_assert_msg(ret == -EINVAL, "%s: passed", what);
	ck_assert_msg(err.stop == stop, "%s: %s, want %s (value %llu limit %llu)", what,
		      spyre_stop_name(err.stop), spyre_stop_name(stop),
		      (unsigned long long)err.value, (unsigned long long)err.limit);
	ck_assert_ptr_eq(prog.header, NULL);
	return err;
}

/* A fresh image with one field changed. */
#define BAD(field, new_value, reason)						\
	do {									\
		size_t bad_size;						\
		void *bad = good(&bad_size);					\
		struct parts p;							\
										\
		find(bad, &p);							\
		p.field = new_value;						\
		refused(bad, bad_size, 2, #field " = " #new_value,		\
			SPYRE_STOP_##reason);					\
		free(bad);							\
	} while (0)

START_TEST(test_good)
{
	struct spyre_verify_error err;
	struct spyre_program prog;
	size_t size;
	void *image = good(&size);

	ck_assert_int_eq(spyre_program_verify(image, size, 32, &prog, &err), 0);
	ck_assert_int_eq(err.stop, SPYRE_STOP_NONE);
	((struct spyre_prog_header *)image)->lx_kept = 1024;
	ck_assert_int_eq(spyre_program_verify(image, size, 32, &prog, &err), 0);
	free(image);
}
END_TEST

START_TEST(test_header)
{
	size_t size, n;
	void *image = good(&size);
	char *moved = malloc(size + 8);

	for (n = 0; n < size; n += 8)
		refused(image, n, 2, "short image", SPYRE_STOP_TRUNCATED);
	refused(image, size, 1, "one core", SPYRE_STOP_TOO_MANY_CORES);
	memcpy(moved + 4, image, size);
	refused(moved + 4, size, 2, "unaligned", SPYRE_STOP_BAD_HEADER);
	free(moved);
	free(image);
	BAD(h->magic, 1, BAD_MAGIC);
	BAD(h->version, 1, BAD_VERSION);
	BAD(h->version, SPYRE_PROG_VERSION + 1, BAD_VERSION);
	BAD(h->num_cores, 0, BAD_HEADER);
	BAD(h->num_cores, 33, BAD_HEADER);
	BAD(h->size, 64, BAD_HEADER);
	BAD(h->size, ~0ull, TRUNCATED);
	BAD(h->num_operands, 65, BAD_HEADER);
	BAD(h->num_operands, 3, BAD_HEADER);
	BAD(h->num_steps, ~0u, BAD_HEADER);
	BAD(h->num_streams, ~0u, BAD_HEADER);
	BAD(h->lx_bytes, (2 << 20) + 128, BAD_HEADER);
	BAD(h->lx_bytes, 1000, BAD_HEADER);
	BAD(h->lx_bytes, 896, LX_OVERFLOW);
	BAD(h->instr_bytes, 8, BAD_HEADER);
	BAD(h->lx_kept, 64, BAD_HEADER);
	BAD(h->lx_kept, 1024 + 128, BAD_HEADER);
	BAD(h->lx_kept, ~127u, BAD_HEADER);
	BAD(h->reserved[0], 1, BAD_HEADER);
	BAD(h->reserved[5], 1, BAD_HEADER);
}
END_TEST

START_TEST(test_operands)
{
	BAD(op[0].extent, 64 * 128 + 1, EXTENT);
	BAD(op[0].extent, 64 * 128 - 1, EXTENT);
	BAD(op[1].flags, SPYRE_OPERAND_READ, ACCESS);
	BAD(op[1].flags, SPYRE_OPERAND_READ | SPYRE_OPERAND_WRITE, ACCESS);
	BAD(op[2].reserved, 1, BAD_HEADER);
}
END_TEST

START_TEST(test_steps_and_streams)
{
	BAD(step[0].kind, 0, BAD_STEP);
	BAD(step[0].kind, 4, BAD_STEP);
	BAD(step[0].count, 0, BAD_STEP);
	BAD(step[0].count, 65536, BAD_STEP);
	BAD(step[0].num_streams, 1, BAD_STEP);
	BAD(step[1].count, 1, BAD_STEP);
	BAD(step[1].first_stream, 1, BAD_STREAM);
	BAD(step[1].num_streams, 0, BAD_STREAM);
	BAD(step[1].num_streams, 3, BAD_STREAM);
	BAD(step[2].count, 1, BAD_STEP);
	BAD(step[3].first_stream, 0, BAD_STREAM);
	BAD(step[3].num_streams, 2, BAD_STREAM);
	BAD(stream[0].core, 1, BAD_STREAM);
	BAD(stream[0].core, 2, BAD_STREAM);
	BAD(stream[1].core, 0, BAD_STREAM);
	BAD(stream[0].num_instrs, 2, BAD_STREAM);
	BAD(stream[0].num_instrs, 0, BAD_STREAM);
	BAD(stream[2].num_instrs, 4, BAD_STREAM);
	BAD(stream[2].num_instrs, 2, BAD_STREAM);
	BAD(stream[1].offset, 0, BAD_STREAM);
	BAD(stream[1].offset, ~7u, BAD_STREAM);
	BAD(stream[2].reserved, 1, BAD_STREAM);
}
END_TEST

START_TEST(test_instructions)
{
	BAD(in[0]->opcode, 0, BAD_OPCODE);
	BAD(in[0]->opcode, SPYRE_OP_INT + 1, BAD_OPCODE);
	BAD(in[0]->func, SPYRE_FUNC_ADD, BAD_FUNC);
	BAD(in[1]->func, SPYRE_FUNC_SUM, BAD_FUNC);
	BAD(in[1]->func, 999, BAD_FUNC);
	BAD(in[2]->func, SPYRE_FUNC_ADD, BAD_FUNC);
	BAD(in[1]->func, SPYRE_FUNC_RELU, BAD_SHAPE);
	BAD(in[1]->func, SPYRE_FUNC_LAYERNORMNORM, BAD_SHAPE);
	BAD(in[1]->func, 42, BAD_FUNC);
	BAD(in[1]->func, 47, BAD_FUNC);
	BAD(in[1]->func, 57, BAD_FUNC);
	BAD(in[2]->func, 73, BAD_FUNC);
	BAD(in[2]->func, SPYRE_FUNC_SUM, BAD_SHAPE);
	BAD(in[1]->num_views, 7, BAD_SHAPE);
	BAD(in[1]->num_dims, 7, BAD_SHAPE);
	BAD(in[1]->num_dims, 1, BAD_SHAPE);
	BAD(in[1]->count[0], 0, BAD_SHAPE);
	BAD(in[1]->count[0], 65536, BAD_SHAPE);
	BAD(in[1]->count[2], 2, BAD_SHAPE);
	BAD(in[1]->lanes, 0, BAD_SHAPE);
	BAD(in[1]->lanes, 129, BAD_SHAPE);
	BAD(in[1]->flags, 1, BAD_SHAPE);
	BAD(in[1]->reduce_mask, 1, BAD_SHAPE);
	BAD(in[1]->reserved, 1, BAD_SHAPE);
	BAD(in[1]->valid, 1, BAD_SHAPE);
	BAD(in[1]->imm[0], 1, BAD_SHAPE);
	BAD(in[2]->imm[1], 1, BAD_SHAPE);
	BAD(in[2]->flags, 2, BAD_SHAPE);
	BAD(in[2]->flags, 0, BAD_SHAPE);
	BAD(in[2]->valid, 3 * 64 + 1, BAD_SHAPE);
	BAD(in[2]->reduce_mask, 4, BAD_SHAPE);
	BAD(in[2]->reduce_mask, 1, BAD_VIEW);
	BAD(in[3]->num_dims, 5, BAD_SHAPE);
	BAD(in[3]->lanes, 63, BAD_SHAPE);
	BAD(in[3]->count[5], 100, BAD_SHAPE);
	BAD(in[3]->count[5], 192, EXTENT);
	BAD(in[4]->count[4], 32, BAD_SHAPE);
	BAD(in[4]->count[5], 128, BAD_SHAPE);
	BAD(in[4]->lanes, 32, BAD_SHAPE);
}
END_TEST

START_TEST(test_views)
{
	BAD(view[1][0].operand, 4, BAD_VIEW);
	BAD(view[1][0].operand, 64, BAD_VIEW);
	BAD(view[1][1].operand, 0x8002, BAD_VIEW);
	BAD(view[1][0].operand, 0x8000, BAD_VIEW);
	BAD(view[1][0].operand, SPYRE_VIEW_LX, LX_OVERFLOW);
	BAD(view[1][0].operand, 2, EXTENT);
	BAD(view[1][0].format, 0, BAD_FORMAT);
	BAD(view[1][0].format, SPYRE_FMT_BOOL, BAD_FORMAT);
	BAD(view[1][0].format, 255, BAD_FORMAT);
	BAD(view[0][0].format, SPYRE_FMT_IEEE_FP16, BAD_FORMAT);
	BAD(view[0][1].format, SPYRE_FMT_SENINT4, BAD_FORMAT);
	BAD(view[3][1].format, SPYRE_FMT_IEEE_INT32, BAD_FORMAT);
	BAD(view[1][0].lanes, SPYRE_LANES_SPLAT, BAD_VIEW);
	BAD(view[1][1].lanes, 2, BAD_VIEW);
	BAD(view[3][1].lanes, SPYRE_LANES_SPLAT, BAD_VIEW);
	BAD(view[0][1].lanes, SPYRE_LANES_SPLAT, BAD_VIEW);
	BAD(view[1][1].reserved, 1, BAD_VIEW);
	BAD(view[1][1].offset, 1, BAD_VIEW);
	BAD(view[1][1].offset, ~1ull, EXTENT);
	BAD(view[1][0].offset, 130, EXTENT);
	BAD(view[1][1].stride[0], 3, BAD_VIEW);
	BAD(view[1][1].stride[1], ~1ull, EXTENT);
	BAD(view[1][1].stride[2], 2, BAD_VIEW);
	BAD(view[3][0].stride[0], 1ull << 35, EXTENT);
	BAD(view[0][1].loop_stride[0], 1, BAD_VIEW);
	BAD(view[0][1].loop_stride[0], 1ull << 40, EXTENT);
	BAD(view[0][1].loop_stride[1], 128, BAD_VIEW);
	BAD(view[0][0].loop_stride[0], 128, LX_OVERFLOW);
	BAD(view[3][0].stride[5], 128, BAD_VIEW);
	BAD(view[3][1].stride[4], 128, BAD_VIEW);
	BAD(view[3][2].stride[3], 128, BAD_VIEW);
	BAD(view[4][0].stride[4], 128, BAD_VIEW);
	BAD(view[4][1].stride[5], 128, BAD_VIEW);
}
END_TEST

/* Errors name the position. */
START_TEST(test_error_place)
{
	struct spyre_verify_error err;
	struct parts p;
	size_t size;
	void *image = good(&size);

	find(image, &p);
	p.view[3][2].operand = 9;
	err = refused(image, size, 2, "operand", SPYRE_STOP_BAD_VIEW);
	ck_assert_uint_eq(err.step, 3);
	ck_assert_uint_eq(err.core, 1);
	ck_assert_uint_eq(err.instr, 1);
	ck_assert_uint_eq(err.view, 2);
	ck_assert_uint_eq(err.value, 9);
	ck_assert_uint_eq(err.limit, 4);
	free(image);
}
END_TEST

/* Work is bounded, even that of empty loops. */
START_TEST(test_too_long)
{
	struct spyre_instr *in;
	size_t size;
	void *image;
	int i;

	build_start(&b, 1, 0, 0);
	for (i = 0; i < 4; i++)
		build_loop(&b, 65535);
	for (i = 0; i < 4; i++)
		build_end(&b);
	image = build_image(&b, &size);
	refused(image, size, 1, "empty loops", SPYRE_STOP_TOO_LONG);
	free(image);
	build_start(&b, 1, 0, 1);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_NEG, 6, 64);
	for (i = 0; i < 6; i++)
		in->count[i] = 65535;
	image = build_image(&b, &size);
	refused(image, size, 1, "big dims", SPYRE_STOP_TOO_LONG);
	free(image);
	build_start(&b, 1, 0, 0);
	for (i = 0; i < 5; i++)
		build_loop(&b, 1);
	for (i = 0; i < 5; i++)
		build_end(&b);
	image = build_image(&b, &size);
	refused(image, size, 1, "five loops", SPYRE_STOP_BAD_STEP);
	free(image);
	build_start(&b, 1, 0, 0);
	build_loop(&b, 2);
	image = build_image(&b, &size);
	refused(image, size, 1, "open loop", SPYRE_STOP_BAD_STEP);
	free(image);
}
END_TEST

/* Costs are part of a program's report: fixed figures for fixed programs. */
START_TEST(test_cost)
{
	struct spyre_counters cost;
	struct spyre_program prog;
	struct spyre_instr *in;
	uint32_t mw, mc;
	size_t size;
	void *image;
	int v;

	build_start(&b, 1, 0, 3);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_ADD, 1, 64);
	in->count[0] = 1600;
	for (v = 0; v < 3; v++)
		build_view(in, v, v, 0)->stride[0] = 128;
	image = build_image(&b, &size);
	build_seal(image, size, 1, &prog);
	ck_assert_uint_eq(prog.cost.bytes_read, 2 * 1600 * 128);
	ck_assert_uint_eq(prog.cost.bytes_written, 1600 * 128);
	/* LPDDR5: 100 bytes per cycle, and 6/700 more per byte written; a barrier. */
	ck_assert_uint_eq(prog.cost.cycles, (7 * 614400 + 6 * 204800) / 700 + 65);
	free(image);
	spyre_cost_linear(2048000, 2048000, &cost);
	/* 105 GB/s for both directions together. */
	ck_assert_uint_eq(cost.cycles, 4096000 / 70 + 16);
	spyre_cost_linear(0, 1500000, &cost);
	ck_assert_uint_eq(cost.cycles, 15000 + 16);
	spyre_power_model(0, 1000000, 0, 0, &mw, &mc);
	ck_assert_uint_eq(mw, 20000);
	ck_assert_uint_eq(mc, 35000);
	spyre_power_model(1000000000, 1000000000, 49152000000000ull, 204800000000ull, &mw, &mc);
	ck_assert_uint_gt(mw, 74000);
	ck_assert_uint_le(mw, 75000);
	spyre_power_model(~0ull, ~0ull, ~0ull, ~0ull, &mw, &mc);
	ck_assert_uint_le(mw, 75000);
	ck_assert_uint_le(mc, 85000);
	spyre_power_model(5, 0, 5, 5, &mw, &mc);
	ck_assert_uint_eq(mw, 20000);
}
END_TEST

START_TEST(test_names)
{
	int i;

	for (i = 0; i < SPYRE_STOP_COUNT; i++)
		ck_assert_ptr_ne(spyre_stop_name(i), NULL);
	ck_assert_str_eq(spyre_stop_name(SPYRE_STOP_EXTENT), "EXTENT");
	ck_assert_str_eq(spyre_stop_name(SPYRE_STOP_COUNT), "UNKNOWN");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_verify");
	TCase *tc = tcase_create("verify");

	tcase_add_test(tc, test_good);
	tcase_add_test(tc, test_header);
	tcase_add_test(tc, test_operands);
	tcase_add_test(tc, test_steps_and_streams);
	tcase_add_test(tc, test_instructions);
	tcase_add_test(tc, test_views);
	tcase_add_test(tc, test_error_place);
	tcase_add_test(tc, test_too_long);
	tcase_add_test(tc, test_cost);
	tcase_add_test(tc, test_names);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
