# SPDX-License-Identifier: MIT
# Random tests of the public interface and of object lifetimes.
if HAVE_CHECK
check_PROGRAMS += tests/unit/copy_property
tests_unit_copy_property_SOURCES = tests/unit/copy_property.c tests/unit/runtime_check.h
tests_unit_copy_property_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_copy_property_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
TESTS += tests/unit/copy_property

check_PROGRAMS += tests/unit/runtime_lifetime
tests_unit_runtime_lifetime_SOURCES = tests/unit/runtime_lifetime.c tests/unit/runtime_check.h
tests_unit_runtime_lifetime_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_runtime_lifetime_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
TESTS += tests/unit/runtime_lifetime
endif
