# SPDX-License-Identifier: MIT
# Programs that break things on purpose: allocations, processes, the module.
BREAK_CPPFLAGS = $(ABI_CPPFLAGS)
BREAK_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)
if HAVE_LIBURING
BREAK_CPPFLAGS += $(LIBURING_CFLAGS) -DABI_URING
BREAK_LDADD += $(LIBURING_LIBS)
endif

check_PROGRAMS += tests/abi/abi-failnth
tests_abi_abi_failnth_SOURCES = tests/abi/abi-failnth.c tests/abi/failnth.h \
	tests/abi/failnth-memory.c tests/abi/failnth-work.c tests/abi/failnth-uring.c
tests_abi_abi_failnth_CPPFLAGS = $(BREAK_CPPFLAGS)
tests_abi_abi_failnth_LDADD = $(BREAK_LDADD)

check_PROGRAMS += tests/abi/abi-kill
tests_abi_abi_kill_SOURCES = tests/abi/abi-kill.c tests/abi/kill.h tests/abi/kill-client.c
tests_abi_abi_kill_CPPFLAGS = $(BREAK_CPPFLAGS)
tests_abi_abi_kill_LDADD = $(BREAK_LDADD)

check_PROGRAMS += tests/abi/abi-unload
tests_abi_abi_unload_SOURCES = tests/abi/abi-unload.c
tests_abi_abi_unload_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_unload_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

EXTRA_DIST += tests/vm/lib.sh tests/debugvm/run.sh tests/debugvm/Kconfig \
	tests/debugvm/kernel.config tests/debugvm/kcsan.config tests/debugvm/run-abi.sh
