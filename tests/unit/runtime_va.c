/* SPDX-License-Identifier: MIT */
/* The two allocators of device addresses, without a card. */
#include "runtime_check.h"

#include "libspyre/runtime/chunk.h"
#include "libspyre/runtime/va.h"

#define SEGMENT (1ull << 34)
#define PAGE 4096ull
#define LIVE 512

START_TEST(segments)
{
	uint64_t got[7];
	struct spyre_va va;

	ck_assert(spyre_va_init(&va));
	ck_assert_uint_eq(spyre_va_largest(&va), SEGMENT);
	/* Segment 0 lacks its first page, and nothing crosses a segment. */
	ck_assert_uint_eq(spyre_va_alloc(&va, SEGMENT, PAGE), SEGMENT);
	ck_assert_uint_eq(spyre_va_alloc(&va, SEGMENT - PAGE, PAGE), PAGE);
	for (int i = 2; i < 7; i++) {
		got[i] = spyre_va_alloc(&va, SEGMENT - PAGE, PAGE);
		ck_assert_uint_eq(got[i], i * SEGMENT);
	}
	ck_assert_uint_eq(spyre_va_largest(&va), PAGE);
	for (int i = 2; i < 7; i++)
		ck_assert_uint_eq(spyre_va_alloc(&va, PAGE, PAGE), (i + 1) * SEGMENT - PAGE);
	ck_assert_uint_eq(spyre_va_alloc(&va, PAGE, PAGE), 0);
	ck_assert_uint_eq(spyre_va_largest(&va), 0);
	/* Adjacent ranges across the boundary of segments 2 and 3 are not merged. */
	spyre_va_free(&va, 3 * SEGMENT - PAGE, PAGE);
	spyre_va_free(&va, 3 * SEGMENT, SEGMENT - PAGE);
	ck_assert_uint_eq(spyre_va_largest(&va), SEGMENT - PAGE);
	ck_assert_uint_eq(va.num_free, 2);
	spyre_va_fini(&va);
}
END_TEST

START_TEST(first_fit)
{
	struct spyre_va va;
	uint64_t a, b, c;

	ck_assert(spyre_va_init(&va));
	a = spyre_va_alloc(&va, 4 * PAGE, PAGE);
	b = spyre_va_alloc(&va, 2 * PAGE, PAGE);
	c = spyre_va_alloc(&va, 4 * PAGE, PAGE);
	spyre_va_free(&va, a, 4 * PAGE);
	ck_assert_uint_eq(spyre_va_alloc(&va, 3 * PAGE, PAGE), a);
	ck_assert_uint_eq(spyre_va_alloc(&va, 2 * PAGE, PAGE), c + 4 * PAGE);
	ck_assert_uint_eq(spyre_va_alloc(&va, PAGE, PAGE), a + 3 * PAGE);
	/* An aligned range may leave a hole before it, which is used later. */
	c = spyre_va_alloc(&va, PAGE, 1 << 21);
	ck_assert_uint_eq(c % (1 << 21), 0);
	ck_assert_uint_gt(spyre_va_alloc(&va, PAGE, PAGE), b);
	spyre_va_fini(&va);
}
END_TEST

/* Random traffic: no overlap, and all of it coalesces in the end. */
START_TEST(random_ranges)
{
	struct { uint64_t start, bytes; } live[LIVE] = { 0 };
	uint64_t state = 7;
	struct spyre_va va;

	ck_assert(spyre_va_init(&va));
	for (int round = 0; round < 20000; round++) {
		uint32_t slot = random_next(&state) % LIVE;
		uint64_t align = PAGE << random_next(&state) % 10;

		if (live[slot].bytes) {
			spyre_va_free(&va, live[slot].start, live[slot].bytes);
			live[slot].bytes = 0;
			continue;
		}
		live[slot].bytes = (1 + random_next(&state) % 4096) * PAGE;
		live[slot].start = spyre_va_alloc(&va, live[slot].bytes, align);
		ck_assert_uint_ne(live[slot].start, 0);
		ck_assert_uint_eq(live[slot].start % align, 0);
		for (uint32_t i = 0; i < LIVE; i++)
			if (i != slot && live[i].bytes &&
			    live[i].start + live[i].bytes > live[slot].start &&
			    live[slot].start + live[slot].bytes > live[i].start)
				ck_abort_msg("ranges %u and %u overlap", i, slot);
	}
	for (uint32_t i = 0; i < LIVE; i++)
		if (live[i].bytes)
			spyre_va_free(&va, live[i].start, live[i].bytes);
	ck_assert_uint_eq(va.num_free, 7);
	ck_assert_uint_eq(va.live, 0);
	ck_assert_uint_eq(spyre_va_largest(&va), SEGMENT);
	spyre_va_fini(&va);
}
END_TEST

/* Compares with a byte per unit that records owner and cleanliness. */
START_TEST(random_units)
{
	static uint16_t owner[SPYRE_CHUNK_UNITS];
	static bool dirty[SPYRE_CHUNK_UNITS];
	struct { int first; uint32_t units; } live[LIVE] = { 0 };
	struct spyre_chunk *chunk = spyre_chunk_new();
	uint32_t first, units;
	uint64_t state = 3;

	ck_assert_ptr_nonnull(chunk);
	ck_assert_uint_eq(spyre_chunk_longest(chunk), SPYRE_CHUNK_UNITS);
	for (int round = 0; round < 20000; round++) {
		uint32_t slot = random_next(&state) % LIVE;

		if (live[slot].units) {
			if (live[slot].units > 1)
				ck_assert(!spyre_chunk_end(chunk, live[slot].first + 1, &units));
			ck_assert(spyre_chunk_end(chunk, live[slot].first, &units));
			ck_assert_uint_eq(units, live[slot].units);
			ck_assert(!spyre_chunk_end(chunk, live[slot].first, &units));
			spyre_chunk_give(chunk, live[slot].first, units);
			for (uint32_t u = 0; u < units; u++) {
				owner[live[slot].first + u] = 0;
				dirty[live[slot].first + u] = true;
			}
			live[slot].units = 0;
			continue;
		}
		live[slot].units = 1 + random_next(&state) % (round % 7 ? 16 : 1500);
		live[slot].first = spyre_chunk_take(chunk, live[slot].units);
		if (live[slot].first < 0) {
			ck_assert_uint_lt(spyre_chunk_longest(chunk), live[slot].units);
			live[slot].units = 0;
			continue;
		}
		for (uint32_t u = 0; u < live[slot].units; u++) {
			if (owner[live[slot].first + u] || dirty[live[slot].first + u])
				ck_abort_msg("unit %u is not clean", live[slot].first + u);
			owner[live[slot].first + u] = slot + 1;
		}
	}
	for (uint32_t u = 0; u < SPYRE_CHUNK_UNITS; u++) {
		bool found = spyre_chunk_find(chunk, u, &first, &units);

		if (found != (owner[u] != 0) ||
		    (found && (first != live[owner[u] - 1].first ||
			       units != live[owner[u] - 1].units)))
			ck_abort_msg("unit %u: owner %u, found %d at %u", u, owner[u], found, first);
	}
	free(chunk);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("va");

	tcase_add_test(tests, segments);
	tcase_add_test(tests, first_fit);
	tcase_add_test(tests, random_ranges);
	tcase_add_test(tests, random_units);
	return run_suite("runtime_va", tests);
}
