# SPDX-License-Identifier: MIT
# libflex: memory, streams, copies, launches and formats; libsendnn and
# libsendnn_interface, of which the front-end uses no symbol, but which it links with.
if COMPAT
compatlib_LTLIBRARIES += compat/libflex.la
compat_libflex_la_SOURCES =
compat_libflex_la_SOURCES += compat/src/error.hpp
compat_libflex_la_SOURCES += compat/src/formats.cpp
compat_libflex_la_SOURCES += compat/src/formats.hpp
compat_libflex_la_CPPFLAGS = $(compat_cppflags) $(YYJSON_CFLAGS)
compat_libflex_la_CXXFLAGS = $(compat_cxxflags)
compat_libflex_la_LDFLAGS = $(compat_ldflags)
compat_libflex_la_LIBADD = libspyre/libspyre.la $(YYJSON_LIBS)

compatlib_LTLIBRARIES += compat/libsendnn.la compat/libsendnn_interface.la
compat_libsendnn_la_SOURCES = compat/src/empty.c
compat_libsendnn_la_LDFLAGS = $(compat_ldflags)
compat_libsendnn_interface_la_SOURCES = compat/src/empty.c
compat_libsendnn_interface_la_LDFLAGS = $(compat_ldflags)

compatflexdir = $(compatincludedir)/flex
compatflex_HEADERS = compat/include/flex/export.h
compatsendefsdir = $(compatincludedir)/util/sendefs
compatsendefs_HEADERS = compat/include/util/sendefs/sendefs.h
compatconvertdir = $(compatincludedir)/spyrecode-host-functions/sendataconvert
compatconvert_HEADERS = compat/include/spyrecode-host-functions/sendataconvert/sen_data_convert.h
compatconvert_HEADERS += compat/include/spyrecode-host-functions/sendataconvert/sen_host_ops.h
endif

if COMPAT
if HAVE_CHECK
compat_tests += compat/tests/formats
compat_tests_formats_SOURCES = compat/tests/formats.cpp compat/tests/check.hpp
compat_tests_formats_CPPFLAGS = $(compat_test_cppflags)
compat_tests_formats_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_formats_LDADD = $(compat_test_ldadd)
endif
endif
