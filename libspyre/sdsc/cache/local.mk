# SPDX-License-Identifier: MIT
libspyre_libcore_la_SOURCES += libspyre/sdsc/cache/code_dir.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/cache/code_dir.h
libspyre_libcore_la_SOURCES += libspyre/sdsc/cache/code_image.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/cache/code_image.h
libspyre_libcore_la_SOURCES += libspyre/sdsc/cache/spyrecode.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/cache/spyrecode.h
