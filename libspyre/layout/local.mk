# SPDX-License-Identifier: MIT
libspyre_libcore_la_SOURCES += libspyre/layout/layout.c
libspyre_libcore_la_SOURCES += libspyre/layout/sizes.c
libspyre_libcore_la_SOURCES += libspyre/layout/sizes.h
libspyre_libcore_la_SOURCES += libspyre/layout/stick.c
libspyre_libcore_la_SOURCES += libspyre/layout/stick.h
libspyre_libcore_la_SOURCES += libspyre/layout/transfer.c
libspyre_libcore_la_SOURCES += libspyre/layout/transfer.h
