# SPDX-License-Identifier: MIT
check_PROGRAMS += tests/abi/abi-arbiter
tests_abi_abi_arbiter_SOURCES = tests/abi/abi-arbiter.c
tests_abi_abi_arbiter_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_arbiter_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)
