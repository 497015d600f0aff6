# SPDX-License-Identifier: MIT
# Tests of collectives, on the backend that SPYRE_BACKEND names.
if HAVE_CHECK
comm_tests = tests/unit/comm_collective
check_PROGRAMS += $(comm_tests)
TESTS += $(comm_tests)

tests_unit_comm_collective_SOURCES = tests/unit/comm_collective.c tests/unit/comm_ranks.c \
	tests/unit/comm_ranks.h tests/unit/runtime_check.h
tests_unit_comm_collective_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_comm_collective_LDADD = libspyre/libspyre.la $(CHECK_LIBS) -lpthread
endif
