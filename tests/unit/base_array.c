// SPDX-License-Identifier: MIT
/* The growing array of the library. */
#include "runtime_check.h"

#include "libspyre/base/array.h"

START_TEST(grows)
{
	uint64_t *list = NULL;
	size_t capacity = 0;

	for (size_t i = 0; i < 1000; i++) {
		size_t before = capacity;

		ck_assert(spyre_array_reserve(&list, &capacity, i + 1, sizeof(*list)));
		ck_assert_uint_ge(capacity, i + 1);
		/* It doubles, and only once it is full. */
		ck_assert(capacity == before || (before == i && (!i || capacity == 2 * before)));
		list[i] = i * i;
	}
	for (size_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(list[i], i * i);
	free(list);
}
END_TEST

START_TEST(takes_many_at_once)
{
	uint8_t *list = NULL;
	size_t capacity = 0;

	ck_assert(spyre_array_reserve(&list, &capacity, 0, 1));
	ck_assert_ptr_null(list);
	ck_assert(spyre_array_reserve(&list, &capacity, 4097, 1));
	ck_assert_uint_ge(capacity, 4097);
	list[4096] = 1;
	free(list);
}
END_TEST

/* An array too large for the address space is refused, and the old one is kept. */
START_TEST(refuses_overflow)
{
	uint32_t *list = NULL, *before;
	size_t capacity = 0, had;

	ck_assert(spyre_array_reserve(&list, &capacity, 3, sizeof(*list)));
	list[2] = 7;
	before = list;
	had = capacity;
	ck_assert(!spyre_array_reserve(&list, &capacity, SIZE_MAX, sizeof(*list)));
	ck_assert(!spyre_array_reserve(&list, &capacity, SIZE_MAX / 2 + 1, sizeof(*list)));
	ck_assert(!spyre_array_reserve(&list, &capacity, SIZE_MAX / 4 + 1, sizeof(*list)));
	ck_assert_ptr_eq(list, before);
	ck_assert_uint_eq(capacity, had);
	ck_assert_uint_eq(list[2], 7);
	free(list);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("array");

	tcase_add_test(tests, grows);
	tcase_add_test(tests, takes_many_at_once);
	tcase_add_test(tests, refuses_overflow);
	return run_suite("base_array", tests);
}
