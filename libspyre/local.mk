# SPDX-License-Identifier: MIT
spyreincludedir = $(includedir)/spyre
spyreinclude_HEADERS = \
	include/spyre/device.h include/spyre/kernel.h include/spyre/layout.h \
	include/spyre/memory.h include/spyre/sdsc.h include/spyre/spyre.h \
	include/spyre/stream.h include/spyre/telemetry.h include/spyre/types.h
pkgconfig_DATA = libspyre/libspyre.pc
EXTRA_DIST += libspyre/libspyre.map
