# SPDX-License-Identifier: MIT
# Programs that check spyre_vdev.ko against its header. They need the module, so
# tests/vm runs them instead of make check; each skips itself without a node.
check_LTLIBRARIES += tests/abi/libabi.la
ABI_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/include/uapi $(LIBDRM_CFLAGS)
tests_abi_libabi_la_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_libabi_la_LIBADD = $(LIBDRM_LIBS)
tests_abi_libabi_la_SOURCES = \
	tests/abi/abi.c tests/abi/abi.h tests/abi/queue.c tests/abi/prog.c tests/abi/prog.h \
	tests/abi/tap.c tests/abi/tap.h

check_PROGRAMS += \
	tests/abi/abi-ioctl tests/abi/abi-core tests/abi/abi-memory tests/abi/abi-submit \
	tests/abi/abi-timeout tests/abi/abi-sched tests/abi/abi-lifetime tests/abi/abi-race \
	tests/abi/abi-unplug tests/abi/abi-reset tests/abi/abi-stress tests/abi/abi-bench

tests_abi_abi_ioctl_SOURCES = tests/abi/abi-ioctl.c \
	tests/abi/ioctl.h tests/abi/ioctl-memory.c tests/abi/ioctl-queue.c \
	tests/abi/ioctl-submit.c tests/abi/ioctl-cb.c
tests_abi_abi_ioctl_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_ioctl_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_core_SOURCES = tests/abi/abi-core.c
tests_abi_abi_core_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_core_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_memory_SOURCES = tests/abi/abi-memory.c
tests_abi_abi_memory_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_memory_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_submit_SOURCES = tests/abi/abi-submit.c \
	tests/abi/submit.h tests/abi/submit-box.c tests/abi/submit-dma.c tests/abi/submit-exec.c \
	tests/abi/submit-sync.c
tests_abi_abi_submit_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_submit_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_timeout_SOURCES = tests/abi/abi-timeout.c
tests_abi_abi_timeout_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_timeout_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_lifetime_SOURCES = tests/abi/abi-lifetime.c
tests_abi_abi_lifetime_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_lifetime_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_unplug_SOURCES = tests/abi/abi-unplug.c \
	tests/abi/dmabuf-peers.c tests/abi/dmabuf-peers.h
tests_abi_abi_unplug_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_unplug_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_reset_SOURCES = tests/abi/abi-reset.c
tests_abi_abi_reset_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_reset_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_bench_SOURCES = tests/abi/abi-bench.c
tests_abi_abi_bench_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_bench_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_sched_SOURCES = tests/abi/abi-sched.c
tests_abi_abi_sched_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_sched_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_race_SOURCES = tests/abi/abi-race.c
tests_abi_abi_race_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_race_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS) -lpthread

tests_abi_abi_stress_SOURCES = tests/abi/abi-stress.c tests/abi/stuck.c tests/abi/stuck.h
tests_abi_abi_stress_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_stress_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

if HAVE_LIBURING
check_PROGRAMS += tests/abi/abi-uring
tests_abi_abi_uring_SOURCES = tests/abi/abi-uring.c tests/abi/fence.c tests/abi/fence.h \
	tests/abi/dmabuf-peers.c tests/abi/dmabuf-peers.h
tests_abi_abi_uring_CPPFLAGS = $(ABI_CPPFLAGS) $(LIBURING_CFLAGS)
tests_abi_abi_uring_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS) $(LIBURING_LIBS) -lpthread
endif

include tests/abi/debug.mk
include tests/abi/fence.mk
include tests/abi/abi-bo.mk
include tests/abi/fault.mk
include tests/abi/arbiter.mk
include tests/abi/abi-vf.mk
include tests/abi/fields.mk
include tests/abi/compat.mk

TESTS += tests/abi/abi-header.sh
EXTRA_DIST += tests/abi/abi-header.sh tests/abi/abi-hwmon.py
