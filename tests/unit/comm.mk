# SPDX-License-Identifier: MIT
# Tests of collectives, on the backend that SPYRE_BACKEND names.
if HAVE_CHECK
comm_tests = tests/unit/comm_collective tests/unit/comm_direct tests/unit/comm_formats \
	tests/unit/comm_hostile tests/unit/comm_kills tests/unit/comm_random \
	tests/unit/comm_rogue tests/unit/comm_trouble tests/unit/comm_unbind
if HAVE_LIBFABRIC
comm_tests += tests/unit/comm_fabric
endif
check_PROGRAMS += $(comm_tests)
TESTS += $(comm_tests)
comm_test_sources = tests/unit/comm_ranks.c tests/unit/comm_ranks.h tests/unit/runtime_check.h
comm_call_sources = tests/unit/comm_calls.c tests/unit/comm_calls.h
comm_test_cppflags = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
comm_test_libs = libspyre/libspyre.la $(CHECK_LIBS) $(LIBM) -lpthread

tests_unit_comm_collective_SOURCES = tests/unit/comm_collective.c $(comm_test_sources)
tests_unit_comm_collective_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_collective_LDADD = $(comm_test_libs)
tests_unit_comm_direct_SOURCES = tests/unit/comm_direct.c $(comm_test_sources)
tests_unit_comm_direct_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_direct_LDADD = $(comm_test_libs)
tests_unit_comm_formats_SOURCES = tests/unit/comm_formats.c $(comm_test_sources)
tests_unit_comm_formats_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_formats_LDADD = $(comm_test_libs)
tests_unit_comm_hostile_SOURCES = tests/unit/comm_hostile.c $(comm_call_sources) \
	$(comm_test_sources)
tests_unit_comm_hostile_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_hostile_LDADD = $(comm_test_libs)
tests_unit_comm_kills_SOURCES = tests/unit/comm_kills.c $(comm_call_sources) $(comm_test_sources)
tests_unit_comm_kills_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_kills_LDADD = $(comm_test_libs)
tests_unit_comm_random_SOURCES = tests/unit/comm_random.c $(comm_test_sources)
tests_unit_comm_random_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_random_LDADD = $(comm_test_libs)
tests_unit_comm_rogue_SOURCES = tests/unit/comm_rogue.c $(comm_call_sources) $(comm_test_sources)
tests_unit_comm_rogue_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_rogue_LDADD = libspyre/libcore.la $(CHECK_LIBS) $(LIBM) -lpthread
tests_unit_comm_trouble_SOURCES = tests/unit/comm_trouble.c $(comm_call_sources) \
	$(comm_test_sources)
tests_unit_comm_trouble_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_trouble_LDADD = $(comm_test_libs)
tests_unit_comm_unbind_SOURCES = tests/unit/comm_unbind.c $(comm_call_sources) \
	$(comm_test_sources)
tests_unit_comm_unbind_CPPFLAGS = $(comm_test_cppflags)
tests_unit_comm_unbind_LDADD = $(comm_test_libs)
tests_unit_comm_fabric_SOURCES = tests/unit/comm_fabric.c $(comm_test_sources)
tests_unit_comm_fabric_CPPFLAGS = $(comm_test_cppflags) $(LIBFABRIC_CFLAGS)
tests_unit_comm_fabric_LDADD = libspyre/libcore.la $(CHECK_LIBS) $(LIBM) -lpthread
endif

TESTS += tests/unit/comm_netns.sh
EXTRA_DIST += tests/unit/comm_netns.sh
