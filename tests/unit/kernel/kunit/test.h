/* SPDX-License-Identifier: MIT */
/* The part of KUnit that the arbiter's suite uses, so that the suite runs as a program. */
#ifndef TESTS_UNIT_KERNEL_KUNIT_TEST_H
#define TESTS_UNIT_KERNEL_KUNIT_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "../shim.h"

#define GFP_KERNEL 0

#define KUNIT_ALLOCATIONS 256

/* The case owns its memory, which is freed with it. */
struct kunit {
	unsigned failed, allocated;
	void *memory[KUNIT_ALLOCATIONS];
};

struct kunit_case {
	const char *name;
	void (*run)(struct kunit *test);
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(function) { #function, function }

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int flags)
{
	(void)flags;
	if (test->allocated == KUNIT_ALLOCATIONS)
		return NULL;
	return test->memory[test->allocated++] = calloc(1, size);
}

static inline void kunit_kfree(struct kunit *test, void *memory)
{
	unsigned i;

	for (i = 0; i < test->allocated; i++) {
		if (test->memory[i] != memory)
			continue;
		free(memory);
		test->memory[i] = test->memory[--test->allocated];
		return;
	}
}

static inline bool kunit_check(struct kunit *test, bool ok, const char *text, long long left,
			       long long right, const char *file, int line)
{
	if (ok)
		return true;
	test->failed++;
	printf("# %s:%d: %s, with %lld and %lld\n", file, line, text, left, right);
	return false;
}

#define KUNIT_COMPARE(test, a, op, b) \
	kunit_check(test, (a) op (b), #a " " #op " " #b, (long long)(a), (long long)(b), \
		    __FILE__, __LINE__)
#define KUNIT_EXPECT_EQ(test, a, b) KUNIT_COMPARE(test, a, ==, b)
#define KUNIT_EXPECT_NE(test, a, b) KUNIT_COMPARE(test, a, !=, b)
#define KUNIT_EXPECT_LE(test, a, b) KUNIT_COMPARE(test, a, <=, b)
#define KUNIT_EXPECT_GE(test, a, b) KUNIT_COMPARE(test, a, >=, b)
#define KUNIT_EXPECT_GT(test, a, b) KUNIT_COMPARE(test, a, >, b)
#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...) KUNIT_EXPECT_EQ(test, a, b)
#define KUNIT_EXPECT_GT_MSG(test, a, b, ...) KUNIT_EXPECT_GT(test, a, b)
#define KUNIT_EXPECT_TRUE_MSG(test, a, ...) KUNIT_COMPARE(test, a, ==, true)
#define KUNIT_EXPECT_FALSE_MSG(test, a, ...) KUNIT_COMPARE(test, a, ==, false)

/* A failed assertion ends the program, because there is no thread to end. */
#define KUNIT_ASSERT(passed) \
	do { \
		if (!(passed)) \
			exit(1); \
	} while (0)
#define KUNIT_ASSERT_EQ(test, a, b) KUNIT_ASSERT(KUNIT_EXPECT_EQ(test, a, b))
#define KUNIT_ASSERT_LE(test, a, b) KUNIT_ASSERT(KUNIT_EXPECT_LE(test, a, b))
#define KUNIT_ASSERT_NOT_NULL(test, a) KUNIT_ASSERT((a) != NULL)

static inline int kunit_run(const struct kunit_suite *suite)
{
	const struct kunit_case *one;
	unsigned failed = 0, number = 0;

	for (one = suite->test_cases; one->run; one++) {
		struct kunit test = { 0 };

		one->run(&test);
		printf("%s %u %s.%s\n", test.failed ? "not ok" : "ok", ++number, suite->name,
		       one->name);
		failed += test.failed;
		while (test.allocated)
			free(test.memory[--test.allocated]);
	}
	printf("1..%u\n", number);
	return failed ? 1 : 0;
}

#define kunit_test_suite(suite) \
	int main(void) \
	{ \
		return kunit_run(&(suite)); \
	}

#endif
