# SPDX-License-Identifier: MIT
spyreincludedir = $(includedir)/spyre
spyreinclude_HEADERS = \
	include/spyre/activity.h include/spyre/device.h include/spyre/graph.h \
	include/spyre/kernel.h include/spyre/layout.h \
	include/spyre/memory.h include/spyre/sdsc.h include/spyre/spyre.h \
	include/spyre/ras.h include/spyre/stream.h include/spyre/telemetry.h include/spyre/types.h
pkgconfig_DATA = libspyre/libspyre.pc
EXTRA_DIST += libspyre/libspyre.map include/uapi/drm/spyre_accel.h include/uapi/drm/spyre_coredump.h

# The library with its internal symbols, for unit tests of internals.
noinst_LTLIBRARIES += libspyre/libcore.la
libspyre_libcore_la_CPPFLAGS = $(AM_CPPFLAGS) $(YYJSON_CFLAGS) $(XXHASH_CFLAGS) \
	$(LIBDRM_CFLAGS) $(LIBURING_CFLAGS)
libspyre_libcore_la_CFLAGS = $(AM_CFLAGS) -pthread
libspyre_libcore_la_LIBADD = model/libmodel.la $(YYJSON_LIBS) $(XXHASH_LIBS) \
	$(LIBDRM_LIBS) $(LIBURING_LIBS) $(LIBM) -lpthread

# One source per line, so that branches merge.
libspyre_libcore_la_SOURCES =
libspyre_libcore_la_SOURCES += libspyre/backend/backend.h
libspyre_libcore_la_SOURCES += libspyre/backend/embedded.h
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_card.c
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_check.c
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_device.c
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_memory.c
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_queue.c
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_reset.c
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_warm.c
libspyre_libcore_la_SOURCES += libspyre/backend/embedded_worker.c
libspyre_libcore_la_SOURCES += libspyre/backend/futex.h
libspyre_libcore_la_SOURCES += libspyre/runtime/activity.c
libspyre_libcore_la_SOURCES += libspyre/runtime/activity.h
libspyre_libcore_la_SOURCES += libspyre/runtime/block.c
libspyre_libcore_la_SOURCES += libspyre/runtime/block.h
libspyre_libcore_la_SOURCES += libspyre/runtime/capture.c
libspyre_libcore_la_SOURCES += libspyre/runtime/chunk.c
libspyre_libcore_la_SOURCES += libspyre/runtime/chunk.h
libspyre_libcore_la_SOURCES += libspyre/runtime/command.c
libspyre_libcore_la_SOURCES += libspyre/runtime/context.c
libspyre_libcore_la_SOURCES += libspyre/runtime/context.h
libspyre_libcore_la_SOURCES += libspyre/runtime/copy.c
libspyre_libcore_la_SOURCES += libspyre/runtime/copy.h
libspyre_libcore_la_SOURCES += libspyre/runtime/deferred.c
libspyre_libcore_la_SOURCES += libspyre/runtime/device.c
libspyre_libcore_la_SOURCES += libspyre/runtime/environment.c
libspyre_libcore_la_SOURCES += libspyre/runtime/environment.h
libspyre_libcore_la_SOURCES += libspyre/runtime/error.c
libspyre_libcore_la_SOURCES += libspyre/runtime/error.h
libspyre_libcore_la_SOURCES += libspyre/runtime/event.c
libspyre_libcore_la_SOURCES += libspyre/runtime/format.c
libspyre_libcore_la_SOURCES += libspyre/runtime/graph.c
libspyre_libcore_la_SOURCES += libspyre/runtime/graph.h
libspyre_libcore_la_SOURCES += libspyre/runtime/host_memory.c
libspyre_libcore_la_SOURCES += libspyre/runtime/kernel.c
libspyre_libcore_la_SOURCES += libspyre/runtime/kernel.h
libspyre_libcore_la_SOURCES += libspyre/runtime/kernel_pool.c
libspyre_libcore_la_SOURCES += libspyre/runtime/kernel_variant.c
libspyre_libcore_la_SOURCES += libspyre/runtime/launch.c
libspyre_libcore_la_SOURCES += libspyre/runtime/linear.c
libspyre_libcore_la_SOURCES += libspyre/runtime/log.c
libspyre_libcore_la_SOURCES += libspyre/runtime/ras.c
libspyre_libcore_la_SOURCES += libspyre/runtime/ras.h
libspyre_libcore_la_SOURCES += libspyre/runtime/memory.c
libspyre_libcore_la_SOURCES += libspyre/runtime/memory.h
libspyre_libcore_la_SOURCES += libspyre/runtime/reset.c
libspyre_libcore_la_SOURCES += libspyre/runtime/share.c
libspyre_libcore_la_SOURCES += libspyre/runtime/status.c
libspyre_libcore_la_SOURCES += libspyre/runtime/stream.c
libspyre_libcore_la_SOURCES += libspyre/runtime/stream.h
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry_page.h
libspyre_libcore_la_SOURCES += libspyre/runtime/va.c
libspyre_libcore_la_SOURCES += libspyre/runtime/va.h
libspyre_libcore_la_SOURCES += libspyre/runtime/visible.c
libspyre_libcore_la_SOURCES += libspyre/runtime/visible.h
libspyre_libcore_la_SOURCES += libspyre/runtime/work.c
libspyre_libcore_la_SOURCES += libspyre/runtime/staging.c
libspyre_libcore_la_SOURCES += libspyre/runtime/zeroing.c
include libspyre/layout/local.mk
include libspyre/sdsc/local.mk

lib_LTLIBRARIES += libspyre/libspyre.la
libspyre_libspyre_la_SOURCES =
libspyre_libspyre_la_LIBADD = libspyre/libcore.la
libspyre_libspyre_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(LT_VERSION) \
	-Wl,--version-script=$(top_srcdir)/libspyre/libspyre.map
if !SANITIZED
libspyre_libspyre_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libspyre_libspyre_la_DEPENDENCIES = libspyre/libspyre.map
