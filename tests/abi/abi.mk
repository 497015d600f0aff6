# SPDX-License-Identifier: MIT
# The ABI tests need a node, so they are built here and run in the VM by
# tests/vm/run-abi.sh; only the header's layout is checked by make check.
abi_programs = tests/abi/core-ioctls tests/abi/fields tests/abi/submit tests/abi/memory \
	tests/abi/execute tests/abi/kill tests/abi/unplug tests/abi/stress \
	tests/abi/bench
abi_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/include/uapi $(LIBDRM_CFLAGS)
abi_libs = tests/abi/libabi.la

check_LTLIBRARIES += tests/abi/libabi.la
tests_abi_libabi_la_SOURCES = tests/abi/abi.c tests/abi/abi.h
tests_abi_libabi_la_CPPFLAGS = $(abi_cppflags)

check_PROGRAMS += $(abi_programs)
tests_abi_core_ioctls_SOURCES = tests/abi/core-ioctls.c
tests_abi_core_ioctls_CPPFLAGS = $(abi_cppflags)
tests_abi_core_ioctls_LDADD = $(abi_libs)
tests_abi_fields_SOURCES = tests/abi/fields.c
tests_abi_fields_CPPFLAGS = $(abi_cppflags)
tests_abi_fields_LDADD = $(abi_libs)
tests_abi_submit_SOURCES = tests/abi/submit.c
tests_abi_submit_CPPFLAGS = $(abi_cppflags)
tests_abi_submit_LDADD = $(abi_libs)
tests_abi_memory_SOURCES = tests/abi/memory.c
tests_abi_memory_CPPFLAGS = $(abi_cppflags)
tests_abi_memory_LDADD = $(abi_libs)
tests_abi_execute_SOURCES = tests/abi/execute.c
tests_abi_execute_CPPFLAGS = $(abi_cppflags)
tests_abi_execute_LDADD = $(abi_libs)
tests_abi_kill_SOURCES = tests/abi/kill.c
tests_abi_kill_CPPFLAGS = $(abi_cppflags)
tests_abi_kill_LDADD = $(abi_libs)
tests_abi_unplug_SOURCES = tests/abi/unplug.c
tests_abi_unplug_CPPFLAGS = $(abi_cppflags)
tests_abi_unplug_LDADD = $(abi_libs)
tests_abi_stress_SOURCES = tests/abi/stress.c
tests_abi_stress_CPPFLAGS = $(abi_cppflags)
tests_abi_stress_LDADD = $(abi_libs)
tests_abi_bench_SOURCES = tests/abi/bench.c
tests_abi_bench_CPPFLAGS = $(abi_cppflags)
tests_abi_bench_LDADD = $(abi_libs)

.PHONY: abi-programs
abi-programs: $(abi_programs)

TESTS += tests/abi/layout.sh
dist_check_SCRIPTS = tests/abi/layout.sh
EXTRA_DIST += tests/vm/run-abi.sh tests/vm/in-guest.sh scripts/vm
