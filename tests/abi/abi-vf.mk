# SPDX-License-Identifier: MIT
check_PROGRAMS += tests/abi/abi-vf
tests_abi_abi_vf_SOURCES = tests/abi/abi-vf.c \
	tests/abi/vf.c tests/abi/vf.h tests/abi/vf-share.c tests/abi/vf-lifetime.c \
	tests/abi/vf-hold.c $(ABI_FENCE_SOURCES)
tests_abi_abi_vf_CPPFLAGS = $(BREAK_CPPFLAGS)
tests_abi_abi_vf_LDADD = $(BREAK_LDADD) -lpthread
