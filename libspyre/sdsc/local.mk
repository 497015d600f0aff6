# SPDX-License-Identifier: MIT
libspyre_libcore_la_SOURCES += libspyre/sdsc/load.c
libspyre_libcore_la_SOURCES += libspyre/sdsc/load.h
include libspyre/sdsc/ir/local.mk
include libspyre/sdsc/parse/local.mk
include libspyre/sdsc/lower/local.mk
include libspyre/sdsc/graph/local.mk
include libspyre/sdsc/plan/local.mk
include libspyre/sdsc/write/local.mk
include libspyre/sdsc/cache/local.mk
