# SPDX-License-Identifier: MIT
# Asynchronous VM_BIND, sync_files and eventfds, pinned memory, close() in mid-job.
ABI_FENCE_SOURCES = tests/abi/fence.c tests/abi/fence.h

check_PROGRAMS += tests/abi/abi-bind
tests_abi_abi_bind_SOURCES = tests/abi/abi-bind.c $(ABI_FENCE_SOURCES)
tests_abi_abi_bind_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_bind_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

check_PROGRAMS += tests/abi/abi-pin
tests_abi_abi_pin_SOURCES = tests/abi/abi-pin.c $(ABI_FENCE_SOURCES)
tests_abi_abi_pin_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_pin_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

check_PROGRAMS += tests/abi/abi-syncfile
tests_abi_abi_syncfile_SOURCES = tests/abi/abi-syncfile.c $(ABI_FENCE_SOURCES)
tests_abi_abi_syncfile_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_syncfile_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

check_PROGRAMS += tests/abi/abi-close
tests_abi_abi_close_SOURCES = tests/abi/abi-close.c $(ABI_FENCE_SOURCES)
tests_abi_abi_close_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_close_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS) -lpthread
