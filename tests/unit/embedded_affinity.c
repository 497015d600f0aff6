// SPDX-License-Identifier: MIT
/* Helpers of an embedded card keep off the processor of the worker that they help. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include <check.h>

#include "libspyre/backend/embedded.h"
#include "suite.h"

static cpu_set_t at_start;

static void set_mask(const cpu_set_t *mask)
{
	ck_assert_int_eq(pthread_setaffinity_np(pthread_self(), sizeof(*mask), mask), 0);
}

static cpu_set_t get_mask(void)
{
	cpu_set_t mask;

	ck_assert_int_eq(pthread_getaffinity_np(pthread_self(), sizeof(mask), &mask), 0);
	return mask;
}

/* Returns a processor of the mask other than @not. */
static int other_processor(int not)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (i != not && CPU_ISSET(i, &at_start))
			return i;
	return -1;
}

static cpu_set_t one(int processor)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(processor, &mask);
	return mask;
}

static void begin(void)
{
	at_start = get_mask();
}

static void end(void)
{
	set_mask(&at_start);
}

static bool alone(void)
{
	return CPU_COUNT(&at_start) < 2;	/* there is no other processor */
}

START_TEST(moves_away)
{
	struct embedded_placement placement;
	cpu_set_t mask;
	int processor;

	if (alone())
		return;
	embedded_placement_init(&placement);
	/* Each round finds the thread where the one before has sent it. */
	for (int i = 0; i < 10; i++) {
		processor = embedded_processor();
		embedded_keep_off(&placement, processor);
		mask = get_mask();
		if (CPU_EQUAL(&mask, &at_start))
			continue;	/* moved by the scheduler between the two calls */
		ck_assert(!CPU_ISSET(processor, &mask));
		ck_assert_int_ne(embedded_processor(), processor);
		ck_assert_int_eq(CPU_COUNT(&mask), CPU_COUNT(&at_start) - 1);
		CPU_SET(processor, &mask);
		ck_assert(CPU_EQUAL(&mask, &at_start));
	}
	mask = get_mask();
	ck_assert(!CPU_EQUAL(&mask, &at_start));
}
END_TEST

START_TEST(stays_elsewhere)
{
	struct embedded_placement placement;
	cpu_set_t mask;

	embedded_placement_init(&placement);
	embedded_keep_off(&placement, -1);
	embedded_keep_off(&placement, CPU_SETSIZE);
	mask = get_mask();
	ck_assert(CPU_EQUAL(&mask, &at_start));
}
END_TEST

/* The mask of a thread that may use one processor only, and that of taskset, stay. */
START_TEST(keeps_the_masks_of_others)
{
	struct embedded_placement placement;
	int processor = embedded_processor();
	cpu_set_t narrow, mask;

	if (alone())
		return;
	narrow = one(processor);
	set_mask(&narrow);
	embedded_placement_init(&placement);
	embedded_keep_off(&placement, processor);
	mask = get_mask();
	ck_assert(CPU_EQUAL(&mask, &narrow));

	set_mask(&at_start);
	embedded_placement_init(&placement);
	narrow = one(other_processor(processor));
	set_mask(&narrow);
	embedded_keep_off(&placement, embedded_processor());
	mask = get_mask();
	ck_assert(CPU_EQUAL(&mask, &narrow));
	/* It is left alone from then on. */
	set_mask(&at_start);
	embedded_keep_off(&placement, embedded_processor());
	mask = get_mask();
	ck_assert(CPU_EQUAL(&mask, &at_start));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("embedded_affinity");
	TCase *tcase = tcase_create("affinity");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, moves_away);
	tcase_add_test(tcase, stays_elsewhere);
	tcase_add_test(tcase, keeps_the_masks_of_others);
	return suite_run(suite);
}
