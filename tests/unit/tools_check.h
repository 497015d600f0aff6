/* SPDX-License-Identifier: MIT */
/* Helpers shared by the tests of the spyre command. */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

/* The text must contain @part: the file, the offset or the value found. */
#define ck_mentions(why, part) \
	ck_assert_msg(strstr((why).s, part), "'%s' does not mention '%s'", (why).s, part)

static char folder[64];

static inline void make_folder(void)
{
	strcpy(folder, "/tmp/spyre-tools-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void remove_folder(void)
{
	ck_assert_int_eq(rmdir(folder), 0);
}

static inline int run_case(const char *name, TCase *tests)
{
	Suite *suite = suite_create(name);

	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

#endif /* TOOLS_CHECK_H */
