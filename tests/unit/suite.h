/* SPDX-License-Identifier: MIT */
/*
 * Runs a suite of Check to its end; the result is the exit code of main(). CK_FORK=no in the
 * environment keeps all tests in this process.
 */
#ifndef SUITE_H
#define SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int suite_finish(SRunner *runner)
{
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run(Suite *suite)
{
	return suite_finish(srunner_create(suite));
}

static inline int suite_run_in_process(Suite *suite)
{
	SRunner *runner = srunner_create(suite);

	srunner_set_fork_status(runner, CK_NOFORK);
	return suite_finish(runner);
}

/*
 * For hundreds of short tests that open a card each: under AddressSanitizer a process of
 * its own for each test takes far longer than the test, since every exit looks for leaks.
 */
static inline int suite_run_many(Suite *suite)
{
#ifdef __SANITIZE_ADDRESS__
	return suite_run_in_process(suite);
#else
	return suite_run(suite);
#endif
}

#endif /* SUITE_H */
