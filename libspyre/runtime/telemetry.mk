# SPDX-License-Identifier: MIT
# Telemetry, part of libcore.
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry.c
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry_history.c
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry_kernel.c
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry_page.c
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry_pages.c
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry_sources.h
libspyre_libcore_la_SOURCES += libspyre/runtime/telemetry_support.c
