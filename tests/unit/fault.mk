# SPDX-License-Identifier: MIT
# RAS records and coredumps. runtime_* also run on the kernel's card.
EXTRA_DIST += tests/unit/coredump_sample.h
if HAVE_CHECK
check_PROGRAMS += tests/unit/runtime_ras tests/unit/tools_coredump
TESTS += tests/unit/runtime_ras tests/unit/tools_coredump
tests_unit_runtime_ras_SOURCES = tests/unit/runtime_ras.c tests/unit/runtime_check.h
tests_unit_runtime_ras_CPPFLAGS = $(runtime_test_cppflags) $(YYJSON_CFLAGS)
tests_unit_runtime_ras_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(YYJSON_LIBS)
tests_unit_tools_coredump_SOURCES = tests/unit/tools_coredump.c tests/unit/tools_check.h \
	tests/unit/coredump_sample.c tests/unit/coredump_sample.h
tests_unit_tools_coredump_CPPFLAGS = $(tools_check_cppflags) $(COREDUMP_CPPFLAGS)
tests_unit_tools_coredump_LDADD = $(tools_check_ldadd) $(YYJSON_LIBS)
endif
