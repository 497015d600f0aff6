// SPDX-License-Identifier: MIT
/* Regions: memory of objects that live equally long. */
#include "runtime_check.h"

#include <stdalign.h>
#include <string.h>

#include "libspyre/base/region.h"

#define OBJECTS 3000

static size_t size_of(size_t i)
{
	return i % 97 ? i * 7 % 5000 : 100000;
}

/* Objects of all chunk sizes, huge ones included, are aligned and do not overlap. */
START_TEST(objects_are_apart)
{
	static uint8_t *object[OBJECTS];
	struct spyre_region region = { 0 };

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < OBJECTS; i++) {
			object[i] = spyre_region_alloc(&region, size_of(i));
			ck_assert_ptr_nonnull(object[i]);
			ck_assert_uint_eq((uintptr_t)object[i] % alignof(max_align_t), 0);
			memset(object[i], (int)(i % 251), size_of(i));
		}
		for (size_t i = 0; i < OBJECTS; i++)
			for (size_t k = 0; k < size_of(i); k++)
				if (object[i][k] != i % 251)
					ck_abort_msg("byte %zu of object %zu is %u", k, i,
						     object[i][k]);
		spyre_region_fini(&region);
		ck_assert_ptr_null(region.chunks);
	}
}
END_TEST

START_TEST(large_object)
{
	const size_t bytes = (size_t)40 << 20;
	struct spyre_region region = { 0 };
	uint8_t *small = spyre_region_alloc(&region, 10), *large, *next;

	large = spyre_region_alloc(&region, bytes);
	next = spyre_region_alloc(&region, 10);
	ck_assert(small && large && next);
	small[9] = large[0] = large[bytes - 1] = next[0] = 1;
	spyre_region_fini(&region);
}
END_TEST

/* An object too large for the address space is refused; the others remain. */
START_TEST(refuses_overflow)
{
	struct spyre_region region = { 0 };
	uint8_t *small = spyre_region_alloc(&region, 3);

	small[2] = 7;
	ck_assert_ptr_null(spyre_region_alloc(&region, SIZE_MAX));
	ck_assert_ptr_null(spyre_region_alloc(&region, SIZE_MAX - 15));
	ck_assert_ptr_null(spyre_region_alloc(&region, SIZE_MAX / 4));
	ck_assert_uint_eq(small[2], 7);
	ck_assert_ptr_nonnull(spyre_region_alloc(&region, 3));
	spyre_region_fini(&region);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("region");

	tcase_add_test(tests, objects_are_apart);
	tcase_add_test(tests, large_object);
	tcase_add_test(tests, refuses_overflow);
	return run_suite("base_region", tests);
}
