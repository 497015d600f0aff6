# SPDX-License-Identifier: MIT
# Contexts that fail: marks, CONTEXT_RESET, fault injection, coredumps; and what must not change
# the results of others.
check_PROGRAMS += tests/abi/abi-fault tests/abi/abi-index tests/abi/abi-inject tests/abi/abi-rounding

tests_abi_abi_fault_SOURCES = tests/abi/abi-fault.c
tests_abi_abi_fault_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_fault_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)
if HAVE_LIBURING
tests_abi_abi_fault_CPPFLAGS += $(LIBURING_CFLAGS) -DHAVE_LIBURING
tests_abi_abi_fault_LDADD += $(LIBURING_LIBS)
endif

tests_abi_abi_inject_SOURCES = tests/abi/abi-inject.c
tests_abi_abi_inject_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_inject_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_index_SOURCES = tests/abi/abi-index.c
tests_abi_abi_index_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_index_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS) -lpthread

tests_abi_abi_rounding_SOURCES = tests/abi/abi-rounding.c
tests_abi_abi_rounding_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_rounding_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS) -lm
