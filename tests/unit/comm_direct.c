/* SPDX-License-Identifier: MIT */
/*
 * Ranks of one thread: collectives in a group, which their streams execute by copies between
 * the cards, and the same calls without a group, which threads of the streams execute through
 * shared memory. Both leave the same bytes on every rank.
 */
#include <time.h>

#include "comm_ranks.h"
#include "tests/order.h"

#define MAX_RANKS 8
#define BYTES (24ull << 20)

static spyre_context *contexts[MAX_RANKS];
static spyre_stream *streams[MAX_RANKS];
static spyre_comm *comms[MAX_RANKS];
static spyre_devptr from[MAX_RANKS], to[MAX_RANKS];
static uint8_t *contents, *first[MAX_RANKS], *second;
static uint32_t ranks, state;

static uint32_t next(uint32_t limit)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

static void open_ranks(uint32_t n)
{
	int cards;

	ranks = n;
	ck_ok(spyre_device_count(&cards));
	for (uint32_t i = 0; i < n; i++) {
		ck_ok(spyre_context_create((int)i % cards, 0, &contexts[i]));
		ck_ok(spyre_stream_get(contexts[i], SPYRE_STREAM_DEFAULT, &streams[i]));
		ck_ok(spyre_mem_alloc(contexts[i], BYTES, &from[i]));
		ck_ok(spyre_mem_alloc(contexts[i], BYTES, &to[i]));
		first[i] = malloc(BYTES);
	}
	second = malloc(BYTES);
	contents = malloc(BYTES);
	ck_ok(spyre_comm_init_all(contexts, n, NULL, comms));
}

static void close_ranks(void)
{
	for (uint32_t i = 0; i < ranks; i++)
		ck_ok(spyre_comm_destroy(comms[i]));
	for (uint32_t i = 0; i < ranks; i++) {
		ck_ok(spyre_context_destroy(contexts[i]));
		free(first[i]);
	}
	free(second);
	free(contents);
}

/* Small DL16 numbers, so that no sum or product overflows into an infinity. */
static void fill(uint64_t bytes)
{
	for (uint32_t i = 0; i < ranks; i++) {
		uint16_t *half = (uint16_t *)contents;

		for (uint64_t j = 0; j < bytes / 2; j++)
			half[j] = (uint16_t)((next(2) << 15) | ((28 + next(4)) << 9) | next(512));
		order_le(half, bytes / 2, 2);
		ck_ok(spyre_memcpy_h2d(contexts[i], from[i], contents, bytes));
		memset(contents, 0x5a, bytes);
		ck_ok(spyre_memcpy_h2d(contexts[i], to[i], contents, bytes));
	}
}

struct shape {
	int kind;
	int64_t rows;
	int64_t sticks;
	uint32_t root;
	spyre_reduction reduction;
	bool in_place;
	spyre_layout part, whole;
};

static void layout_init(spyre_layout *layout, int64_t rows, int64_t sticks)
{
	const int64_t size[2] = { rows, sticks * 64 };

	ck_ok(spyre_layout_init(layout, 2, size, SPYRE_FORMAT_IEEE_FP16));
}

static struct shape random_shape(void)
{
	static const spyre_reduce_op ops[] = {
		SPYRE_REDUCE_SUM, SPYRE_REDUCE_AVG, SPYRE_REDUCE_PRODUCT, SPYRE_REDUCE_MIN,
		SPYRE_REDUCE_MAX, SPYRE_REDUCE_PREMUL_SUM,
	};
	struct shape s = {
		.kind = (int)next(9), .rows = 1 + next(next(4) ? 20 : 2000), .sticks = 1 + next(6),
		.root = next(ranks), .reduction = { ops[next(6)], 0.75f }, .in_place = next(2),
	};

	layout_init(&s.part, s.rows, s.sticks);
	layout_init(&s.whole, s.rows * ranks, s.sticks);
	return s;
}

static spyre_status call(const struct shape *s, uint32_t i)
{
	const spyre_devptr in = s->in_place ? to[i] : from[i];
	spyre_comm *c = comms[i];

	switch (s->kind) {
	case 0:
		return spyre_all_reduce(c, in, to[i], &s->whole, s->reduction, streams[i]);
	case 1:
		return spyre_reduce(c, in, to[i], &s->whole, s->reduction, s->root, streams[i]);
	case 2:
		return spyre_broadcast(c, in, to[i], &s->part, s->root, streams[i]);
	case 3:
		return spyre_all_gather(c, from[i], &s->part, to[i], &s->whole, streams[i]);
	case 4:
		return spyre_reduce_scatter(c, from[i], &s->whole, to[i], &s->part, s->reduction,
					    streams[i]);
	case 5:
		return spyre_gather(c, from[i], &s->part, to[i], &s->whole, s->root, streams[i]);
	case 6:
		return spyre_scatter(c, from[i], &s->whole, to[i], &s->part, s->root, streams[i]);
	case 7:
		return spyre_all_to_all(c, from[i], to[i], &s->whole, 1, streams[i]);
	default:
		return spyre_barrier(c, streams[i]);
	}
}

static void run(const struct shape *s, bool grouped)
{
	if (grouped)
		ck_ok(spyre_group_begin());
	for (uint32_t i = 0; i < ranks; i++)
		ck_ok(call(s, i));
	if (grouped)
		ck_ok(spyre_group_end());
	for (uint32_t i = 0; i < ranks; i++)
		ck_ok(spyre_stream_synchronize(streams[i]));
}

static void compare(const struct shape *s)
{
	const uint64_t bytes = spyre_layout_bytes(&s->whole);
	const uint32_t seed = state;

	fill(bytes);
	run(s, false);
	for (uint32_t i = 0; i < ranks; i++)
		ck_ok(spyre_memcpy_d2h(contexts[i], first[i], to[i], bytes));
	state = seed;
	fill(bytes);
	run(s, true);
	for (uint32_t i = 0; i < ranks; i++) {
		ck_ok(spyre_memcpy_d2h(contexts[i], second, to[i], bytes));
		ck_assert_msg(!memcmp(first[i], second, bytes), "kind %d of %d rows of %d sticks, rank "
			      "%u of %u, root %u, operator %d%s", s->kind, (int)s->rows,
			      (int)s->sticks, i, ranks, s->root, s->reduction.op,
			      s->in_place ? ", in place" : "");
	}
}

/* The kernel's card is tested in a virtual machine without acceleration. */
static int shapes(void)
{
	const char *backend = getenv("SPYRE_BACKEND");

	return backend && !strcmp(backend, "drm") ? 5 : 40;
}

START_TEST(test_same_bytes)
{
	state = (uint32_t)_i;
	open_ranks((uint32_t)_i);
	for (int i = 0; i < shapes(); i++) {
		const struct shape s = random_shape();

		if (spyre_layout_bytes(&s.whole) <= BYTES)
			compare(&s);
	}
	close_ranks();
}
END_TEST

/* Large tensors go block by block. */
START_TEST(test_blocks)
{
	struct shape s = { .reduction = { SPYRE_REDUCE_SUM, 0 }, .root = 1, .rows = 11111 };

	open_ranks(3);
	s.sticks = 2;
	layout_init(&s.part, s.rows, s.sticks);
	layout_init(&s.whole, s.rows * ranks, s.sticks);
	for (s.kind = 0; s.kind < 9; s.kind++)
		compare(&s);
	close_ranks();
}
END_TEST

/* Ranks of a group that disagree get the same error as in processes. */
START_TEST(test_mismatch)
{
	struct shape a = { .kind = 0, .rows = 4, .sticks = 1 }, b;

	open_ranks(2);
	layout_init(&a.whole, 8, 1);
	b = a;
	b.reduction.op = SPYRE_REDUCE_MAX;
	ck_ok(spyre_group_begin());
	ck_ok(call(&a, 0));
	ck_ok(call(&b, 1));
	ck_ok(spyre_group_end());
	for (uint32_t i = 0; i < ranks; i++) {
		ck_assert(spyre_stream_synchronize(streams[i]));
		ck_mentions("must call the same collectives");
	}
	close_ranks();
}
END_TEST

/* Several collectives in one group, and groups behind each other without a wait. */
START_TEST(test_many)
{
	struct shape s = { .kind = 0, .rows = 100, .sticks = 3 };
	uint16_t *half;

	open_ranks(4);
	layout_init(&s.whole, s.rows, s.sticks);
	s.in_place = true;
	fill(spyre_layout_bytes(&s.whole));
	for (uint32_t i = 0; i < ranks; i++) {
		uint16_t one = 31 << 9;

		order_le(&one, 1, sizeof(one));
		ck_ok(spyre_memset_async(streams[i], to[i], &one, sizeof(one),
					 spyre_layout_bytes(&s.whole)));
	}
	for (int k = 0; k < 3; k++) {
		ck_ok(spyre_group_begin());
		for (uint32_t i = 0; i < ranks; i++)
			ck_ok(call(&s, i));
		for (uint32_t i = ranks; i-- > 0;)
			ck_ok(call(&s, i));
		ck_ok(spyre_group_end());
	}
	for (uint32_t i = 0; i < ranks; i++) {
		double number;

		ck_ok(spyre_stream_synchronize(streams[i]));
		ck_ok(spyre_memcpy_d2h(contexts[i], second, to[i], 128));
		half = (uint16_t *)second;
		order_le(half, 1, sizeof(*half));
		ck_ok(spyre_format_decode(SPYRE_FORMAT_SEN169_FP16, half, 1, &number));
		ck_assert_msg(number == 4096, "rank %u has %g", i, number);
	}
	close_ranks();
}
END_TEST

/* Bytes that an all_reduce of 16 KiB moves between two cards. */
static uint64_t crossing(void)
{
	struct shape s = { .kind = 0, .rows = 32, .sticks = 4 };
	uint64_t bytes = 0;

	open_ranks(2);
	layout_init(&s.whole, s.rows, s.sticks);
	fill(spyre_layout_bytes(&s.whole));
	ck_ok(spyre_group_begin());
	ck_ok(call(&s, 0));
	ck_ok(call(&s, 1));
	ck_ok(spyre_group_end());
	for (uint32_t i = 0; i < ranks; i++) {
		spyre_stream_stats stats = { .struct_size = sizeof(stats) };

		ck_ok(spyre_stream_synchronize(streams[i]));
		ck_ok(spyre_stream_get_stats(streams[i], &stats));
		bytes += stats.rdma_read + stats.rdma_written;
	}
	close_ranks();
	return bytes;
}

/* The switches of the vendor's runtime choose the way, for ranks of one thread. */
START_TEST(test_path)
{
	int cards;

	ck_ok(spyre_device_count(&cards));
	/* Between ranks of one card nothing crosses a link. */
	if (cards < 2)
		return;
	ck_assert_uint_eq(crossing(), 2 * 16384);
	setenv("FLEX_HDMA_MODE_FULL", "1", 1);
	ck_assert_uint_eq(crossing(), 0);
	setenv("FLEX_HDMA_MODE_FULL", "0", 1);
	setenv("FLEX_RDMA_MODE_FULL", "1", 1);
	ck_assert_uint_eq(crossing(), 2 * 16384);
}
END_TEST

START_TEST(test_path_that_contradicts)
{
	ck_ok(spyre_context_create(0, 0, &contexts[0]));
	setenv("FLEX_HDMA_MODE_FULL", "1", 1);
	setenv("FLEX_RDMA_MODE_FULL", "1", 1);
	ck_status(spyre_comm_init_all(contexts, 1, NULL, comms), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("FLEX_HDMA_MODE_FULL and FLEX_RDMA_MODE_FULL");
	setenv("FLEX_RDMA_MODE_FULL", "yes", 1);
	ck_status(spyre_comm_init_all(contexts, 1, NULL, comms), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("FLEX_RDMA_MODE_FULL");
	ck_ok(spyre_context_destroy(contexts[0]));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_direct");
	TCase *tcase = tcase_create("direct");

	setenv("SPYRE_EMBEDDED_CARDS", "8", 0);
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, test_same_bytes, 1, MAX_RANKS + 1);
	tcase_add_test(tcase, test_blocks);
	tcase_add_test(tcase, test_mismatch);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_path);
	tcase_add_test(tcase, test_path_that_contradicts);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
