# SPDX-License-Identifier: MIT
# The builder's operations and planners.
if HAVE_CHECK
check_PROGRAMS += tests/unit/sdsc_chain tests/unit/sdsc_graph tests/unit/sdsc_layers \
	tests/unit/sdsc_plan
TESTS += tests/unit/sdsc_chain tests/unit/sdsc_graph tests/unit/sdsc_layers \
	tests/unit/sdsc_plan
tests_unit_sdsc_chain_SOURCES = tests/unit/sdsc_chain.c tests/unit/runtime_check.h
tests_unit_sdsc_chain_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_chain_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
# Two programs with half of the operations each, because they take longest by far.
sdsc_operations = tests/unit/sdsc_graph_layers.c tests/unit/sdsc_graph_math.c \
	tests/unit/sdsc_graph_integers.c \
	tests/unit/sdsc_operation.c tests/unit/sdsc_operation.h tests/unit/sdsc_placing.c \
	tests/unit/runtime_check.h
tests_unit_sdsc_graph_SOURCES = tests/unit/sdsc_graph.c $(sdsc_operations)
tests_unit_sdsc_graph_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_graph_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(LIBM)
check_PROGRAMS += tests/unit/sdsc_division
TESTS += tests/unit/sdsc_division
tests_unit_sdsc_division_SOURCES = tests/unit/sdsc_division.c tests/unit/runtime_check.h
tests_unit_sdsc_division_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_division_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
check_PROGRAMS += tests/unit/sdsc_mark
TESTS += tests/unit/sdsc_mark
tests_unit_sdsc_mark_SOURCES = tests/unit/sdsc_mark.c tests/unit/runtime_check.h
tests_unit_sdsc_mark_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_mark_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_sdsc_layers_SOURCES = tests/unit/sdsc_layers.c $(sdsc_operations)
tests_unit_sdsc_layers_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_layers_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(LIBM)
check_PROGRAMS += tests/unit/sdsc_integers
TESTS += tests/unit/sdsc_integers
tests_unit_sdsc_integers_SOURCES = tests/unit/sdsc_integers.c $(sdsc_operations)
tests_unit_sdsc_integers_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_integers_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(LIBM)
check_PROGRAMS += tests/unit/sdsc_odd
TESTS += tests/unit/sdsc_odd
tests_unit_sdsc_odd_SOURCES = tests/unit/sdsc_odd.c $(sdsc_operations)
tests_unit_sdsc_odd_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_odd_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(LIBM)
tests_unit_sdsc_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_sdsc_plan_LDADD = libspyre/libcore.la $(CHECK_LIBS)
endif
TESTS += tests/unit/tools_build.sh
EXTRA_DIST += tests/unit/tools_build.sh
