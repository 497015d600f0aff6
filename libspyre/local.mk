# SPDX-License-Identifier: MIT
spyreincludedir = $(includedir)/spyre
spyreinclude_HEADERS = \
	include/spyre/activity.h include/spyre/collective.h include/spyre/device.h include/spyre/graph.h \
	include/spyre/kernel.h include/spyre/layout.h \
	include/spyre/memory.h include/spyre/peer.h include/spyre/sdsc.h include/spyre/spyre.h \
	include/spyre/ras.h include/spyre/stream.h include/spyre/telemetry.h include/spyre/trace.h \
	include/spyre/types.h
pkgconfig_DATA = libspyre/libspyre.pc
EXTRA_DIST += libspyre/libspyre.map include/uapi/drm/spyre_accel.h include/uapi/drm/spyre_coredump.h

# The library with its internal symbols, for unit tests of internals.
noinst_LTLIBRARIES += libspyre/libcore.la
libspyre_libcore_la_CPPFLAGS = $(AM_CPPFLAGS) $(YYJSON_CFLAGS) $(XXHASH_CFLAGS) \
	$(LIBDRM_CFLAGS) $(LIBURING_CFLAGS) $(LIBFABRIC_CFLAGS)
libspyre_libcore_la_CFLAGS = $(AM_CFLAGS) -pthread
libspyre_libcore_la_LIBADD = model/libmodel.la $(YYJSON_LIBS) $(XXHASH_LIBS) \
	$(LIBDRM_LIBS) $(LIBURING_LIBS) $(LIBM) -lpthread

# Each folder lists its files in a local.mk, one per line, so that branches merge.
libspyre_libcore_la_SOURCES =
include libspyre/base/local.mk
include libspyre/layout/local.mk
include libspyre/sdsc/local.mk
include libspyre/telemetry/local.mk
include libspyre/backend/local.mk
include libspyre/runtime/local.mk
include libspyre/comm/local.mk

lib_LTLIBRARIES += libspyre/libspyre.la
libspyre_libspyre_la_SOURCES =
libspyre_libspyre_la_LIBADD = libspyre/libcore.la
libspyre_libspyre_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(LT_VERSION) \
	-Wl,--version-script=$(top_srcdir)/libspyre/libspyre.map
if !SANITIZED
libspyre_libspyre_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libspyre_libspyre_la_DEPENDENCIES = libspyre/libspyre.map
