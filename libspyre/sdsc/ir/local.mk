# SPDX-License-Identifier: MIT
libspyre_libcore_la_SOURCES += libspyre/sdsc/ir/address.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/ir/address.h
libspyre_libcore_la_SOURCES += libspyre/sdsc/ir/bundle.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/ir/bundle.h
libspyre_libcore_la_SOURCES += libspyre/sdsc/ir/ir.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/ir/ir.h
