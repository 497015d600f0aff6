# SPDX-License-Identifier: MIT
# Tests of the runtime, on the backend that SPYRE_BACKEND names.
if HAVE_CHECK
runtime_tests = tests/unit/runtime_activity tests/unit/runtime_boxes tests/unit/runtime_copy \
	tests/unit/runtime_counters \
	tests/unit/runtime_devices tests/unit/runtime_errors tests/unit/runtime_graph \
	tests/unit/runtime_kernel tests/unit/runtime_memlock tests/unit/runtime_memory \
	tests/unit/runtime_peer tests/unit/runtime_pools tests/unit/runtime_reset tests/unit/runtime_share tests/unit/runtime_streams \
	tests/unit/runtime_threads tests/unit/runtime_trace tests/unit/runtime_va \
	tests/unit/trace_cores tests/unit/trace_memory
check_PROGRAMS += $(runtime_tests)
TESTS += $(runtime_tests)
runtime_test_cppflags = $(AM_CPPFLAGS) $(CHECK_CFLAGS)

tests_unit_runtime_activity_SOURCES = tests/unit/runtime_activity.c tests/unit/runtime_check.h
tests_unit_runtime_activity_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_activity_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_boxes_SOURCES = tests/unit/runtime_boxes.c tests/unit/runtime_check.h
tests_unit_runtime_boxes_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_boxes_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_runtime_copy_SOURCES = tests/unit/runtime_copy.c tests/unit/runtime_check.h
tests_unit_runtime_copy_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_copy_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_counters_SOURCES = tests/unit/runtime_counters.c tests/unit/runtime_check.h
tests_unit_runtime_counters_CPPFLAGS = $(runtime_test_cppflags) -I$(top_srcdir)/include/uapi \
	$(LIBDRM_CFLAGS) $(YYJSON_CFLAGS)
tests_unit_runtime_counters_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(YYJSON_LIBS) -lpthread
tests_unit_runtime_devices_SOURCES = tests/unit/runtime_devices.c tests/unit/runtime_check.h
tests_unit_runtime_devices_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_devices_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_runtime_errors_SOURCES = tests/unit/runtime_errors.c tests/unit/runtime_check.h
tests_unit_runtime_errors_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_errors_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_graph_SOURCES = tests/unit/runtime_graph.c tests/unit/runtime_check.h
tests_unit_runtime_graph_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_graph_LDADD = libspyre/libspyre.la $(CHECK_LIBS) -lpthread
tests_unit_runtime_kernel_SOURCES = tests/unit/runtime_kernel.c tests/unit/runtime_check.h
tests_unit_runtime_kernel_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_kernel_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_memlock_SOURCES = tests/unit/runtime_memlock.c tests/unit/runtime_check.h
tests_unit_runtime_memlock_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_memlock_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_memory_SOURCES = tests/unit/runtime_memory.c tests/unit/runtime_check.h
tests_unit_runtime_memory_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_memory_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_peer_SOURCES = tests/unit/runtime_peer.c tests/unit/runtime_check.h
tests_unit_runtime_peer_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_peer_LDADD = libspyre/libspyre.la $(CHECK_LIBS) -lpthread
tests_unit_runtime_pools_SOURCES = tests/unit/runtime_pools.c tests/unit/runtime_check.h
tests_unit_runtime_pools_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_pools_LDADD = libspyre/libspyre.la $(CHECK_LIBS) -lpthread
tests_unit_runtime_reset_SOURCES = tests/unit/runtime_reset.c tests/unit/runtime_check.h
tests_unit_runtime_reset_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_reset_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_share_SOURCES = tests/unit/runtime_share.c tests/unit/runtime_check.h
tests_unit_runtime_share_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_share_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_streams_SOURCES = tests/unit/runtime_streams.c tests/unit/runtime_check.h
tests_unit_runtime_streams_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_streams_LDADD = libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_runtime_threads_SOURCES = tests/unit/runtime_threads.c tests/unit/runtime_check.h
tests_unit_runtime_threads_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_threads_LDADD = libspyre/libspyre.la $(CHECK_LIBS) -lpthread
tests_unit_runtime_trace_SOURCES = tests/unit/runtime_trace.c tests/unit/runtime_check.h
tests_unit_runtime_trace_CPPFLAGS = $(runtime_test_cppflags) $(YYJSON_CFLAGS)
tests_unit_runtime_trace_LDADD = libspyre/libcore.la $(CHECK_LIBS) $(YYJSON_LIBS)
tests_unit_trace_cores_SOURCES = tests/unit/trace_cores.c tests/unit/runtime_check.h
tests_unit_trace_cores_CPPFLAGS = $(runtime_test_cppflags) $(YYJSON_CFLAGS)
tests_unit_trace_cores_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(YYJSON_LIBS)
tests_unit_trace_memory_SOURCES = tests/unit/trace_memory.c tests/unit/runtime_check.h
tests_unit_trace_memory_CPPFLAGS = $(runtime_test_cppflags) $(YYJSON_CFLAGS)
tests_unit_trace_memory_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(YYJSON_LIBS)
tests_unit_runtime_va_SOURCES = tests/unit/runtime_va.c tests/unit/runtime_check.h
tests_unit_runtime_va_CPPFLAGS = $(runtime_test_cppflags)
tests_unit_runtime_va_LDADD = libspyre/libcore.la $(CHECK_LIBS)
endif
