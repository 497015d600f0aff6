# SPDX-License-Identifier: MIT
# Tests of libspyre/base.
if HAVE_CHECK
base_tests = tests/unit/base_array tests/unit/base_region tests/unit/format_numbers
check_PROGRAMS += $(base_tests)
TESTS += $(base_tests)
tests_unit_base_array_SOURCES = tests/unit/base_array.c tests/unit/runtime_check.h
tests_unit_base_array_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_base_array_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_base_region_SOURCES = tests/unit/base_region.c tests/unit/runtime_check.h
tests_unit_base_region_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_base_region_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_format_numbers_SOURCES = tests/unit/format_numbers.c tests/unit/runtime_check.h
tests_unit_format_numbers_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_format_numbers_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(LIBM)
endif
