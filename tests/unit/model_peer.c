// SPDX-License-Identifier: MIT
/* Copies of rows between two memories: bytes, checks, overlap, cost. */
#include "model_util.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#include "model/peer.h"

#define GIB (1ull << 30)

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* Copies between guarded memories of exactly the checked size. */
static void check_copy(const struct spyre_rows *rows, int threads)
{
	uint64_t dst_bytes, src_bytes, state = 99;
	struct guarded dst, src, want;
	struct test_host h;

	ck_assert_int_eq(spyre_rows_check(rows, &dst_bytes, &src_bytes), SPYRE_STOP_NONE);
	guarded_alloc(&dst, dst_bytes);
	guarded_alloc(&want, dst_bytes);
	guarded_alloc(&src, src_bytes);
	for (uint64_t i = 0; i < dst_bytes; i++)
		dst.p[i] = want.p[i] = next(&state);
	for (uint64_t i = 0; i < src_bytes; i++)
		src.p[i] = next(&state);
	for (uint64_t r = 0; r < rows->rows; r++)
		memcpy(want.p + r * rows->dst_stride, src.p + r * rows->src_stride,
		       rows->row_bytes);
	test_host_init(&h, spyre_unit_find("scalar"), threads);
	ck_assert_int_eq(spyre_card_copy_rows(&h.host, NULL, &h.self, rows, dst.p, src.p),
			 SPYRE_STOP_NONE);
	test_host_done(&h);
	ck_assert(!memcmp(dst.p, want.p, dst_bytes));
	ck_assert(guarded_intact(&dst) && guarded_intact(&src));
	guarded_free(&dst);
	guarded_free(&want);
	guarded_free(&src);
}

START_TEST(copies)
{
	static const struct spyre_rows shapes[] = {
		{ 1, 1, 0, 0 }, { 1, 3u << 20, 7, 9 }, { 3, 1 << 20, 1 << 20, 1 << 20 },
		{ 5, 700000, 700001, 800000 }, { 100000, 1, 1, 1 }, { 100000, 1, 3, 2 },
		{ 40000, 65, 65, 130 }, { 16385, 64, 64, 64 },
		{ 2, (1 << 20) + 1, 2 << 20, 3 << 20 },
	};
	uint64_t state = 3;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		check_copy(&shapes[i], 1);
		check_copy(&shapes[i], 4);
	}
	for (int i = 0; i < 200; i++) {
		struct spyre_rows rows = { 1 + next(&state) % 300, 1 + next(&state) % 2000, 0, 0 };

		rows.dst_stride = rows.row_bytes + next(&state) % 100;
		rows.src_stride = rows.row_bytes + next(&state) % 3000;
		check_copy(&rows, 1 + i % 3);
	}
}
END_TEST

START_TEST(checks)
{
	static const struct {
		struct spyre_rows rows;
		enum spyre_stop want;
	} cases[] = {
		{ { 0, 1, 1, 1 }, SPYRE_STOP_DMA_SHAPE },
		{ { 1, 0, 1, 1 }, SPYRE_STOP_DMA_SHAPE },
		{ { (1ull << 31) + 1, 1, 1, 1 }, SPYRE_STOP_DMA_SHAPE },
		{ { 1ull << 31, 1, 1, 1 }, SPYRE_STOP_NONE },
		{ { 2, 8, 7, 8 }, SPYRE_STOP_DMA_SHAPE },
		{ { 2, 8, 8, 7 }, SPYRE_STOP_DMA_SHAPE },
		{ { 1, 8, 0, 0 }, SPYRE_STOP_NONE },
		{ { 1, 16 * GIB, 0, 0 }, SPYRE_STOP_NONE },
		{ { 1, 16 * GIB + 1, 0, 0 }, SPYRE_STOP_DMA_RANGE },
		{ { 1, ~0ull, 0, 0 }, SPYRE_STOP_DMA_RANGE },
		{ { 2, 8, 16 * GIB - 8, 8 }, SPYRE_STOP_NONE },
		{ { 2, 8, 16 * GIB - 7, 8 }, SPYRE_STOP_DMA_RANGE },
		{ { 2, 8, 8, 16 * GIB - 7 }, SPYRE_STOP_DMA_RANGE },
		{ { 3, 8, 1ull << 63, 8 }, SPYRE_STOP_DMA_RANGE },
		{ { 1ull << 31, 8, 9, 8 }, SPYRE_STOP_DMA_RANGE },
		{ { 2, ~0ull, ~0ull, ~0ull }, SPYRE_STOP_DMA_RANGE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t dst, src;

		ck_assert_msg(spyre_rows_check(&cases[i].rows, &dst, &src) == cases[i].want,
			      "case %zu", i);
	}
}
END_TEST

/* Every overlap is found; with equal strides, nothing else is called one. */
START_TEST(overlap)
{
	uint64_t state = 17;

	for (int i = 0; i < 20000; i++) {
		struct spyre_rows rows = { 1 + next(&state) % 5, 1 + next(&state) % 9, 0, 0 };
		uint64_t dst = 100 + next(&state) % 60, src = 100 + next(&state) % 60;
		uint8_t used[512] = { 0 };
		bool real = false, told;

		rows.dst_stride = rows.row_bytes + next(&state) % 12;
		rows.src_stride = i & 1 ? rows.dst_stride : rows.row_bytes + next(&state) % 12;
		for (uint64_t r = 0; r < rows.rows; r++)
			memset(used + src + r * rows.src_stride, 1, rows.row_bytes);
		for (uint64_t r = 0; r < rows.rows; r++)
			for (uint64_t b = 0; b < rows.row_bytes; b++)
				real |= used[dst + r * rows.dst_stride + b];
		told = spyre_rows_overlap(&rows, dst, src);
		expect(told || !real, "overlap missed: %d", i);
		/* Rows that meet only if there were more of them may count as overlapping. */
		expect(!told || real || rows.dst_stride != rows.src_stride || rows.rows > 1,
		       "no overlap: %d", i);
	}
	/* Two columns of a matrix. */
	ck_assert(!spyre_rows_overlap(&(struct spyre_rows){ 10, 64, 256, 256 }, 1064, 1000));
	ck_assert(!spyre_rows_overlap(&(struct spyre_rows){ 10, 64, 256, 256 }, 1000, 1192));
	ck_assert(spyre_rows_overlap(&(struct spyre_rows){ 10, 64, 256, 256 }, 1063, 1000));
	ck_assert(spyre_rows_overlap(&(struct spyre_rows){ 10, 64, 256, 256 }, 1000, 1193));
}
END_TEST

START_TEST(stops)
{
	const struct spyre_rows rows = { 64, 1 << 20, 1 << 20, 1 << 20 };
	struct guarded memory;
	struct test_host h;

	guarded_alloc(&memory, 128u << 20);
	test_host_init(&h, spyre_unit_find("scalar"), 1);
	h.polls_left = 5;
	ck_assert_int_eq(spyre_card_copy_rows(&h.host, NULL, &h.self, &rows, memory.p,
					      memory.p + (64u << 20)), SPYRE_STOP_CANCELLED);
	test_host_done(&h);
	guarded_free(&memory);
}
END_TEST

START_TEST(links)
{
	for (uint32_t a = 0; a < 8; a++)
		for (uint32_t b = 0; b < 8; b++)
			ck_assert_int_eq(spyre_link_between(a, b), a == b ? SPYRE_LINK_CARD :
					 a / 4 == b / 4 ? SPYRE_LINK_SWITCH : SPYRE_LINK_HOST);
}
END_TEST

static struct spyre_counters cost(uint64_t rows, uint64_t bytes, enum spyre_link link, bool sends)
{
	const struct spyre_rows r = { rows, bytes, bytes, bytes };
	struct spyre_counters c;

	spyre_cost_rows(&r, link, sends, &c);
	return c;
}

START_TEST(costs)
{
	struct spyre_counters c = cost(1, 42000, SPYRE_LINK_SWITCH, false);

	ck_assert_uint_eq(c.cycles, 1000 + 1500);
	ck_assert_uint_eq(c.bytes_read, 0);
	ck_assert_uint_eq(c.bytes_written, 42000);
	ck_assert_uint_eq(c.rdma_read, 42000);
	ck_assert_uint_eq(c.rdma_written, 0);
	c = cost(1, 42000, SPYRE_LINK_HOST, true);
	ck_assert_uint_eq(c.cycles, 2000 + 4500);
	ck_assert_uint_eq(c.bytes_read, 42000);
	ck_assert_uint_eq(c.bytes_written, 0);
	ck_assert_uint_eq(c.rdma_read, 0);
	ck_assert_uint_eq(c.rdma_written, 42000);
	c = cost(1, 35000, SPYRE_LINK_CARD, true);
	ck_assert_uint_eq(c.cycles, 1000 + 16);
	ck_assert_uint_eq(c.bytes_read, 35000);
	ck_assert_uint_eq(c.bytes_written, 35000);
	ck_assert_uint_eq(c.rdma_read + c.rdma_written, 0);
	/* Rows of one byte: a cycle each. */
	ck_assert_uint_eq(cost(5000, 1, SPYRE_LINK_SWITCH, false).cycles, 5000 + 1500);
	ck_assert_uint_eq(cost(5000, 1, SPYRE_LINK_CARD, false).cycles, 5000);
	/* The longest copy does not overflow. */
	ck_assert_uint_eq(cost(1, 16 * GIB, SPYRE_LINK_HOST, false).cycles,
			  (32 * GIB + 41) / 42 + 4500);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_peer");
	TCase *tests = tcase_create("peer");

	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, copies);
	tcase_add_test(tests, checks);
	tcase_add_test(tests, overlap);
	tcase_add_test(tests, stops);
	tcase_add_test(tests, links);
	tcase_add_test(tests, costs);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}
