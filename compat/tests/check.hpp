/* SPDX-License-Identifier: MIT */
/* Helpers shared by the tests of compat/. */
#ifndef SPYRE_COMPAT_TESTS_CHECK_HPP
#define SPYRE_COMPAT_TESTS_CHECK_HPP

#include <check.h>
/* A macro of Check that is the name of a function of the standard library. */
#undef fail

#include <cstdlib>
#include <exception>
#include <string>

/* @statement must throw an exception whose text contains @part. */
#define ck_throws(statement, part) \
	do { \
		std::string ck_text; \
		bool ck_thrown = false; \
		try { \
			statement; \
		} catch (const std::exception &error) { \
			ck_thrown = true; \
			ck_text = error.what(); \
		} \
		ck_assert_msg(ck_thrown, "%s: no exception", #statement); \
		ck_assert_msg(ck_text.find(part) != std::string::npos, \
			      "%s: \"%s\" does not mention \"%s\"", #statement, \
			      ck_text.c_str(), std::string(part).c_str()); \
	} while (0)

/* Check keeps the pointers of ck_assert_str_eq(), so that temporaries need a name. */
inline void check_text(const std::string &actual, const char *expected)
{
	ck_assert_str_eq(actual.c_str(), expected);
}

/* Runs @cases, a NULL-terminated list of tests, each in its own process. */
inline int run_tests(const char *name, const TTest *const *cases)
{
	Suite *suite = suite_create(name);
	TCase *tests = tcase_create(name);
	SRunner *runner = srunner_create(suite);

	/* The timeout is generous, because emulators and sanitizers are slow. */
	tcase_set_timeout(tests, 300);
	for (; *cases; cases++)
		tcase_add_test(tests, *cases);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	const int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif /* SPYRE_COMPAT_TESTS_CHECK_HPP */
