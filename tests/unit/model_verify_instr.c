// SPDX-License-Identifier: MIT
/*
 * Extents and access of packed products, searches, masks and pairs, computed by
 * hand; each of their fields, invalid in turn, causes the right stop.
 */
#include "model_util.h"
#include "suite.h"

#include "model/verify.h"

#include <stdlib.h>
#include <string.h>

static struct builder b;

enum { PRODUCT4, PRODUCT8, PRODUCT_FP32, TOPK, INDEX, MASK, MULSUM, PAIR, TILE8, NIBBLES, KINDS };

/* The three views of a product, on operands 0 (sums), 1 (A) and 2 (B). */
static void add_product(uint32_t lanes, uint32_t k, uint32_t sum, uint32_t a, uint32_t b_format)
{
	struct spyre_instr *in = build_instr(&b, SPYRE_OP_PT, SPYRE_FUNC_NONE, 6, lanes);
	struct spyre_view *view;

	in->count[3] = 4;
	in->count[4] = 2;
	in->count[5] = k;
	view = build_view(in, 0, 0, 0);
	view->format = sum;
	view->stride[3] = 1024;
	view->stride[4] = 4096;
	view = build_view(in, 1, 1, 0);
	view->format = a;
	view->stride[3] = 128;
	view->stride[5] = 2048;
	view = build_view(in, 2, 2, 0);
	view->format = b_format;
	view->stride[4] = 65536;
	view->stride[5] = 256;
}

static struct spyre_instr *add_search(uint32_t func)
{
	struct spyre_instr *in = build_instr(&b, SPYRE_OP_TOPK, func, 2, 64);

	in->count[0] = 2;
	in->count[1] = 3;
	in->reduce_mask = 2;
	in->imm[0] = 4;
	in->imm[1] = 60;
	in->valid = 190;
	build_view(in, 0, 0, 0)->stride[0] = 128;
	build_view(in, 1, 1, 0)->stride[0] = 384;
	build_view(in, 1, 1, 0)->stride[1] = 128;
	return in;
}

static void add_pointwise(int kind)
{
	struct spyre_instr *in;
	int v;

	if (kind == MASK) {
		in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_MASKBYINDEX, 2, 64);
		in->reduce_mask = 2;
		in->imm[0] = 0xff800000;
		in->imm[1] = 7;
	} else if (kind == MULSUM) {
		in = build_instr(&b, SPYRE_OP_REDUCE, SPYRE_FUNC_MULSUM, 2, 64);
		in->reduce_mask = 1;
	} else if (kind == PAIR) {
		in = build_instr(&b, SPYRE_OP_REDUCE, SPYRE_FUNC_EXX2_ZEROMEAN, 2, 64);
		in->flags = SPYRE_INSTR_REDUCE_LANES;
		in->imm[0] = 0x3f800000;
	} else {
		in = build_instr(&b, SPYRE_OP_SFU, SPYRE_FUNC_IDENTITY, 2, 64);
		build_view(in, 1, 1, 0)->format = SPYRE_FMT_SENINT4;
	}
	in->count[0] = 2;
	in->count[1] = 3;
	for (v = 0; v < in->num_views; v++) {
		build_view(in, v, v, 0)->stride[1] = 128;
		build_view(in, v, v, 0)->stride[0] = v || kind != MULSUM ? 384 : 0;
	}
}

static void *good(int kind, size_t *size)
{
	struct spyre_program prog;
	struct spyre_instr *in;
	void *image;

	build_start(&b, 1, 0, 3);
	build_phase(&b);
	build_stream(&b, 0);
	if (kind == PRODUCT4) {
		add_product(64, 256, SPYRE_FMT_IEEE_INT32, SPYRE_FMT_SENINT4, SPYRE_FMT_SENINT4);
	} else if (kind == PRODUCT8) {
		add_product(64, 256, SPYRE_FMT_SEN169_FP16, SPYRE_FMT_SEN143_FP8,
			    SPYRE_FMT_SEN152_FP8);
	} else if (kind == PRODUCT_FP32) {
		add_product(32, 96, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP32, SPYRE_FMT_IEEE_FP32);
		((struct spyre_instr *)b.instrs)->flags = SPYRE_INSTR_ACCUMULATE;
	} else if (kind == TOPK) {
		add_search(SPYRE_FUNC_TOPK_VALUE)->flags = SPYRE_INSTR_SMALLEST;
	} else if (kind == INDEX) {
		add_search(SPYRE_FUNC_TOPK_INDEX)->imm[2] = 5;
	} else if (kind == TILE8) {
		in = build_instr(&b, SPYRE_OP_RESTICK, SPYRE_FUNC_NONE, 6, 128);
		in->count[4] = 128;
		in->count[5] = 128;
		build_view(in, 0, 0, 0)->format = SPYRE_FMT_SENINT8;
		build_view(in, 1, 1, 0)->format = SPYRE_FMT_SENINT8;
		build_view(in, 0, 0, 0)->stride[5] = 128;
		build_view(in, 1, 1, 0)->stride[4] = 256;
	} else {
		add_pointwise(kind);
	}
	image = build_image(&b, size);
	build_seal(image, *size, 1, &prog);
	return image;
}

static void check_good(int kind, uint64_t out, uint32_t flags, uint64_t first, uint64_t second)
{
	const struct spyre_prog_operand *op;
	size_t size;
	void *image = good(kind, &size);

	op = (void *)((struct spyre_prog_header *)image + 1);
	ck_assert_msg(op[0].extent == out && op[0].flags == flags && op[1].extent == first &&
		      op[2].extent == second, "kind %d: %llu (%u), %llu, %llu", kind,
		      (unsigned long long)op[0].extent, op[0].flags,
		      (unsigned long long)op[1].extent, (unsigned long long)op[2].extent);
	free(image);
}

START_TEST(test_extents)
{
	/* 4 rows, 2 sticks; 2 row pairs and 2 sticks of K; 64 groups of 4 rows of K. */
	check_good(PRODUCT4, 4096 + 3 * 1024 + 256, SPYRE_OPERAND_WRITE, 2048 + 128 + 128,
		   65536 + 63 * 256 + 128);
	check_good(PRODUCT8, 4096 + 3 * 1024 + 128, SPYRE_OPERAND_WRITE, 2048 + 3 * 128 + 128,
		   65536 + 127 * 256 + 128);
	check_good(PRODUCT_FP32, 4096 + 3 * 1024 + 128, SPYRE_OPERAND_READ | SPYRE_OPERAND_WRITE,
		   2 * 2048 + 3 * 128 + 128, 65536 + 95 * 256 + 128);
	check_good(TOPK, 256, SPYRE_OPERAND_WRITE, 768, 0);
	check_good(MASK, 768, SPYRE_OPERAND_WRITE, 768, 768);
	check_good(MULSUM, 384, SPYRE_OPERAND_WRITE, 768, 768);
	check_good(TILE8, 128 * 128, SPYRE_OPERAND_WRITE, 127 * 256 + 128, 0);
	/* 64 elements of four bits are 32 bytes. */
	check_good(NIBBLES, 768, SPYRE_OPERAND_WRITE, 384 + 256 + 32, 0);
}
END_TEST

/* A fresh program of one instruction with one field changed. */
#define BAD(kind, field, new_value, reason)					\
	do {									\
		size_t bad_size;						\
		struct spyre_prog_header *h = good(kind, &bad_size);		\
		struct spyre_prog_operand *op = (void *)(h + 1);		\
		struct spyre_instr *in = (void *)((char *)(op + 3) + 16 + 16);	\
		struct spyre_view *view = (void *)(in + 1);			\
		struct spyre_verify_error err;					\
		struct spyre_program prog;					\
										\
		(void)view;							\
		field = new_value;						\
		ck_assert_int_eq(spyre_program_verify(h, bad_size, 1, &prog, &err), -EINVAL); \
		ck_assert_msg(err.stop == SPYRE_STOP_##reason,			\
			      #kind " " #field " = " #new_value ": %s, value %llu limit %llu", \
			      spyre_stop_name(err.stop), (unsigned long long)err.value, \
			      (unsigned long long)err.limit);			\
		free(h);							\
	} while (0)

START_TEST(test_products)
{
	BAD(PRODUCT4, in->lanes, 128, BAD_SHAPE);
	BAD(PRODUCT4, in->lanes, 16, BAD_SHAPE);
	BAD(PRODUCT4, in->count[3], 3, BAD_SHAPE);
	BAD(PRODUCT4, in->count[5], 64, BAD_SHAPE);
	BAD(PRODUCT4, in->flags, SPYRE_INSTR_REDUCE_LANES, BAD_SHAPE);
	BAD(PRODUCT4, in->flags, SPYRE_INSTR_ACCUMULATE, ACCESS);
	BAD(PRODUCT4, in->imm[0], 1, BAD_SHAPE);
	BAD(PRODUCT4, in->valid, 1, BAD_SHAPE);
	BAD(PRODUCT4, in->reduce_mask, 1, BAD_SHAPE);
	BAD(PRODUCT4, view[0].format, SPYRE_FMT_SENINT8, BAD_FORMAT);
	BAD(PRODUCT4, view[0].format, SPYRE_FMT_SENUINT32, BAD_FORMAT);
	BAD(PRODUCT4, view[1].format, SPYRE_FMT_SENINT16, BAD_FORMAT);
	BAD(PRODUCT4, view[1].format, SPYRE_FMT_SEN169_FP16, BAD_FORMAT);
	BAD(PRODUCT4, view[2].format, SPYRE_FMT_SEN143_FP8, BAD_FORMAT);
	BAD(PRODUCT4, view[2].format, SPYRE_FMT_SENINT8, EXTENT);
	BAD(PRODUCT4, view[0].stride[5], 128, BAD_VIEW);
	BAD(PRODUCT4, view[1].stride[4], 128, BAD_VIEW);
	BAD(PRODUCT4, view[2].stride[3], 128, BAD_VIEW);
	BAD(PRODUCT4, view[1].lanes, SPYRE_LANES_SPLAT, BAD_VIEW);
	BAD(PRODUCT8, in->count[5], 64, BAD_SHAPE);
	BAD(PRODUCT8, in->count[5], 384, EXTENT);
	BAD(PRODUCT8, view[0].format, SPYRE_FMT_IEEE_INT32, BAD_FORMAT);
	BAD(PRODUCT8, view[0].format, SPYRE_FMT_SENINT8, BAD_FORMAT);
	BAD(PRODUCT8, view[2].format, SPYRE_FMT_SENINT8, BAD_FORMAT);
	BAD(PRODUCT8, view[1].format, SPYRE_FMT_SEN153_FP9, BAD_FORMAT);
	BAD(PRODUCT8, in->flags, SPYRE_INSTR_ACCUMULATE, BAD_FORMAT);
	BAD(PRODUCT_FP32, in->count[5], 80, BAD_SHAPE);
	BAD(PRODUCT_FP32, in->lanes, 64, EXTENT);
	BAD(PRODUCT_FP32, in->flags, 0, ACCESS);
	BAD(PRODUCT_FP32, view[0].format, SPYRE_FMT_SEN169_FP16, BAD_FORMAT);
	BAD(PRODUCT_FP32, view[0].format, SPYRE_FMT_IEEE_INT32, BAD_FORMAT);
	BAD(PRODUCT_FP32, view[2].offset, 2, BAD_VIEW);
}
END_TEST

START_TEST(test_searches)
{
	BAD(TOPK, in->imm[1], 0, BAD_SHAPE);
	BAD(TOPK, in->imm[1], 65, BAD_SHAPE);
	BAD(TOPK, in->imm[0], 65477, BAD_SHAPE);
	BAD(TOPK, in->imm[0], ~0u, BAD_SHAPE);
	BAD(TOPK, in->imm[2], 1, BAD_SHAPE);
	BAD(TOPK, in->imm[3], 1, BAD_SHAPE);
	BAD(TOPK, in->valid, 193, BAD_SHAPE);
	BAD(TOPK, in->flags, SPYRE_INSTR_REDUCE_LANES, BAD_SHAPE);
	BAD(TOPK, in->flags, SPYRE_INSTR_ACCUMULATE, BAD_SHAPE);
	BAD(TOPK, in->reduce_mask, 1, BAD_VIEW);
	BAD(TOPK, in->reduce_mask, 4, BAD_SHAPE);
	BAD(TOPK, view[0].stride[1], 128, BAD_VIEW);
	BAD(TOPK, view[1].lanes, SPYRE_LANES_SPLAT, BAD_VIEW);
	BAD(TOPK, view[1].format, SPYRE_FMT_BOOL, BAD_FORMAT);
	BAD(TOPK, in->func, SPYRE_FUNC_SUM, BAD_FUNC);
	BAD(TOPK, in->func, 82, BAD_FUNC);
	BAD(INDEX, in->imm[2], (1u << 24) - 191, BAD_SHAPE);
	BAD(INDEX, in->imm[2], ~0u, BAD_SHAPE);
	/* A single point counts as well. */
	BAD(INDEX, in->valid = in->reduce_mask = 0; in->imm[2], (1u << 24) - 63, BAD_SHAPE);
	BAD(INDEX, in->valid = in->reduce_mask = 0; in->imm[2], 1u << 24, BAD_SHAPE);
}
END_TEST

START_TEST(test_masks_and_pairs)
{
	BAD(MASK, in->imm[1], (1u << 24) - 191, BAD_SHAPE);
	BAD(MASK, in->imm[1], ~0u, BAD_SHAPE);
	BAD(MASK, in->reduce_mask = 0; in->imm[1], (1u << 24) - 63, BAD_SHAPE);
	BAD(MASK, in->imm[2], 2, BAD_SHAPE);
	BAD(MASK, in->imm[2], 4, BAD_SHAPE);
	BAD(MASK, in->imm[1] = 0; in->imm[2], 1, BAD_SHAPE);
	BAD(MASK, in->imm[3], (1u << 24) + 1, BAD_SHAPE);
	BAD(MASK, in->reduce_mask, 4, BAD_SHAPE);
	BAD(MASK, in->flags, 1, BAD_SHAPE);
	BAD(MASK, in->valid, 1, BAD_SHAPE);
	BAD(MASK, in->func, SPYRE_FUNC_ADD, BAD_SHAPE);
	BAD(MULSUM, in->num_views, 2, BAD_SHAPE);
	BAD(MULSUM, in->reduce_mask, 0, BAD_SHAPE);
	BAD(MULSUM, in->reduce_mask, 2, BAD_VIEW);
	BAD(MULSUM, in->imm[0], 1, BAD_SHAPE);
	BAD(MULSUM, view[2].format, SPYRE_FMT_IEEE_INT64, BAD_FORMAT);
	BAD(MULSUM, view[2].operand, 3, BAD_VIEW);
	BAD(PAIR, in->flags, 0, BAD_SHAPE);
	BAD(PAIR, in->lanes, 1, BAD_SHAPE);
	BAD(PAIR, in->imm[1], 1, BAD_SHAPE);
	BAD(TILE8, in->lanes, 64, BAD_SHAPE);
	BAD(TILE8, in->count[4], 64, BAD_SHAPE);
	BAD(TILE8, in->count[5], 64, BAD_SHAPE);
	BAD(TILE8, view[1].format, SPYRE_FMT_SEN143_FP8, BAD_FORMAT);
	BAD(TILE8, view[0].format, SPYRE_FMT_IEEE_INT64, BAD_FORMAT);
	BAD(TILE8, view[0].format, SPYRE_FMT_SENINT4, BAD_FORMAT);
	BAD(NIBBLES, in->lanes, 63, BAD_SHAPE);
	BAD(NIBBLES, in->lanes, 66, EXTENT);
	BAD(NIBBLES, view[0].format, SPYRE_FMT_SENINT2, BAD_FORMAT);
}
END_TEST

/*
 * The packed formats have two and four times the rate, and a quarter. Four rows use
 * sqrt(4 / 64) of the array. Enough iterations hide the other costs.
 */
START_TEST(test_costs)
{
	static const struct { int kind; uint64_t macs, cycles; } want[] = {
		{ PRODUCT4, 8 * 256 * 64, 4 * 8 * 256 * 64 / 4096 },
		{ PRODUCT8, 8 * 256 * 64, 4 * 8 * 256 * 64 / 2048 },
		{ PRODUCT_FP32, 8 * 96 * 32, 4 * 8 * 96 * 32 / 256 },
	};
	struct spyre_instr_cost cost;
	uint32_t i;
	size_t size;

	for (i = 0; i < 3; i++) {
		char *image = good(want[i].kind, &size);
		struct spyre_instr *in = (void *)(image + 64 + 3 * 16 + 16 + 16);
		struct spyre_view *view = (void *)(in + 1);

		/* The operands are in the LX, where memory is not slower than the PT. */
		view[0].operand = view[1].operand = view[2].operand = SPYRE_VIEW_LX;
		memset(view[2].stride, 0, sizeof(view[2].stride));
		spyre_cost_instr(in, &cost);
		ck_assert_uint_eq(cost.macs, want[i].macs);
		ck_assert_uint_eq(cost.cycles, want[i].cycles + 16);
		free(image);
	}
}
END_TEST

/* 6 points of one stick, 7 levels of 64 ranks, two sticks per cycle. */
START_TEST(test_search_cost)
{
	struct spyre_instr_cost cost;
	size_t size;
	char *image = good(TOPK, &size);

	spyre_cost_instr((void *)(image + 64 + 3 * 16 + 16 + 16), &cost);
	ck_assert_uint_eq(cost.elements, 6 * 64);
	ck_assert_uint_eq(cost.cycles, 6 * 7 / 2 + 16);
	free(image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_verify_instr");
	TCase *tc = tcase_create("verify");

	tcase_add_test(tc, test_extents);
	tcase_add_test(tc, test_products);
	tcase_add_test(tc, test_searches);
	tcase_add_test(tc, test_masks_and_pairs);
	tcase_add_test(tc, test_costs);
	tcase_add_test(tc, test_search_cost);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
