# SPDX-License-Identifier: MIT
# Tests of libspyre/base.
if HAVE_CHECK
check_PROGRAMS += tests/unit/base_array
TESTS += tests/unit/base_array
tests_unit_base_array_SOURCES = tests/unit/base_array.c tests/unit/runtime_check.h
tests_unit_base_array_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_base_array_LDADD = libspyre/libcore.la $(CHECK_LIBS)
endif
