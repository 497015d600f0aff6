# SPDX-License-Identifier: MIT
libspyre_libcore_la_SOURCES += libspyre/sdsc/write/write.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/write/write_json.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/write/write_mlir.c
