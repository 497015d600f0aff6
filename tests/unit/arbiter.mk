# SPDX-License-Identifier: MIT
# The driver's arbiter in user space: its KUnit suite, and random contexts.
check_PROGRAMS += tests/unit/arbiter_kunit tests/unit/arbiter_sim
TESTS += tests/unit/arbiter_kunit tests/unit/arbiter_sim
arbiter_cppflags = -I$(top_srcdir)/tests/unit/kernel -I$(top_srcdir)/include/uapi $(AM_CPPFLAGS) \
	$(LIBDRM_CFLAGS)
arbiter_headers = tests/unit/kernel/shim.h tests/unit/kernel/kunit/test.h \
	tests/unit/kernel/linux/bitops.h tests/unit/kernel/linux/list.h \
	tests/unit/kernel/linux/minmax.h tests/unit/kernel/linux/prandom.h \
	tests/unit/kernel/linux/rbtree.h tests/unit/kernel/linux/rbtree_augmented.h
tests_unit_arbiter_kunit_SOURCES = kernel/spyre_arbiter.c kernel/tests/arbiter_kunit.c \
	$(arbiter_headers)
tests_unit_arbiter_kunit_CPPFLAGS = $(arbiter_cppflags)
tests_unit_arbiter_sim_SOURCES = kernel/spyre_arbiter.c tests/unit/arbiter_sim.c \
	tests/unit/arbiter_sim.h tests/unit/arbiter_oracle.c $(arbiter_headers)
tests_unit_arbiter_sim_CPPFLAGS = $(arbiter_cppflags)
