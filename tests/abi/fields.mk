# SPDX-License-Identifier: MIT
check_PROGRAMS += tests/abi/abi-fields
tests_abi_abi_fields_SOURCES = tests/abi/abi-fields.c tests/abi/fields.c tests/abi/fields.h \
	tests/abi/fields-targets.c tests/abi/fields-uring.c
tests_abi_abi_fields_CPPFLAGS = $(ABI_CPPFLAGS) $(LIBURING_CFLAGS)
tests_abi_abi_fields_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS) $(LIBURING_LIBS)
